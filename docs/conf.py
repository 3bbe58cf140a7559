"""How Sphinx builds the site. `make docs` calls it; it asks the network on Read the Docs alone."""

import os
import sys
from pathlib import Path

import edrvfl

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "edrvfl"
author = "the edrvfl developers"
copyright = author
release = version = edrvfl.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "house",
]
exclude_patterns = ["_build", "_ext", "_templates", "gallery/*.ipynb", "gallery/*.py"]
templates_path = ["_templates"]
smartquotes = False  # a default is "loo", as one types it
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections name the types
numpydoc_show_class_members = False  # the template of a class lists them

# Types of parameters link to the pages of NumPy, pandas and scikit-learn where the site is hosted. Elsewhere
# it builds without a network and without these links; `READTHEDOCS=True make docs` has them.
if os.environ.get("READTHEDOCS"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }
    numpydoc_xref_param_type = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(demo|tabarena_adapter)\.py",
    "within_subsection_order": "house.ExampleOrder",
    "backreferences_dir": "generated/examples",
    "doc_module": ("edrvfl",),
    "reference_url": {"edrvfl": None},
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,  # that page would load scripts from elsewhere
    "thumbnail_size": (600, 400),
    "min_reported_time": 1,
    "abort_on_example_error": True,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "edrvfl"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# The page "Answers in a browser" has its runtime and its model where docs/make_browser.py could bring them.
html_extra_path = [
    "../results/report.html",
    *(["_build/extra"] if (HERE / "_build" / "extra").exists() else []),
]
html_show_sourcelink = False
html_copy_source = False
ALONE = (
    "index",
    "start",
    "method",
    "compare",
    "study",
    "extending",
    "results",
    "paper_map",
    "decisions",
    "promises",
    "developing",
    "releasing",
    "changelog",
)
html_sidebars = {page: [] for page in ALONE}  # these have no pages below them
html_theme_options = {
    "logo": {"text": "edrvfl"},
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["version-switcher", "theme-switcher"],
    # a release adds its line to this file: docs/releasing.md
    "switcher": {"json_url": "_static/switcher.json", "version_match": ".".join(release.split(".")[:2])},
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    # a page with a list of its neighbours on the left has no second list: its code needs the room
    "secondary_sidebar_items": {page: ["page-toc"] for page in ALONE},
    "back_to_top_button": False,
}
