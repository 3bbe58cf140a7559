"""What a release needs: one version everywhere, no placeholder left, an sdist with all files, one ruff."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import edrvfl

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
WORD = "OWN" + "ER"  # in two parts, so that this file is not one that has the placeholder
PLACEHOLDER = f"github.com/{WORD}/edrvfl"  # docs/releasing.md says how to replace it


def newest(changelog):
    """Return the version of the newest section, and whether it is released: it then has a date."""
    version, state = re.search(
        r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE
    ).groups()
    return version, state != "unreleased"


def is_released(version, changelog):
    return "dev" not in version and newest(changelog) != (version, False)


def tracked_files():
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def test_the_version_is_the_same_everywhere():
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest(CHANGELOG)[0] == cited[1] == edrvfl.__version__.partition(".dev")[0]


@pytest.mark.parametrize(
    ("version", "section", "released"),
    [
        ("0.2.0", "0.2.0 (unreleased)", False),
        ("0.2.0.dev3", "0.2.0 (unreleased)", False),
        ("0.2.0", "0.2.0 (2027-03-01)", True),
        ("0.2.0", "0.3.0 (unreleased)", True),
    ],
)
def test_what_counts_as_a_release(version, section, released):
    assert is_released(version, f"# Changelog\n\n## {section}\n\n- x\n\n## 0.1.0 (2026-12-01)\n") == released


def test_no_release_has_a_placeholder_and_it_has_one_form():
    texts = {}
    for name in tracked_files():
        if (ROOT / name).exists() and not name.startswith("results/"):
            texts[name] = (ROOT / name).read_bytes()
    others = re.compile(rb"(?<!github\.com/)\b" + WORD.encode() + rb"\b(?!/edrvfl)")
    assert [name for name, text in texts.items() if others.search(text)] == []
    left = [name for name, text in texts.items() if PLACEHOLDER.encode() in text]
    assert left == [] or not is_released(edrvfl.__version__, CHANGELOG), "docs/releasing.md says what to do"


def test_the_sdist_holds_what_git_does():
    always = {".gitignore", "pyproject.toml"}  # Hatch takes these along
    kept = {*always, *PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    assert {name.partition("/")[0] for name in tracked_files()} == kept


def test_nothing_is_both_an_extra_and_a_group():
    assert not {*PROJECT["project"]["optional-dependencies"]} & {*PROJECT["dependency-groups"]}
    included = {entry["include-group"] for entry in PROJECT["dependency-groups"]["dev"]}
    assert included == {*PROJECT["dependency-groups"]} - {"dev", "core"}  # core is in test


def test_the_hooks_have_the_ruff_of_the_group_lint():
    pinned = dict(entry.split("==") for entry in PROJECT["dependency-groups"]["lint"] if "==" in entry)
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.search(r"ruff-pre-commit\n +rev: v(\S+)", hooks)[1] == pinned["ruff"]
