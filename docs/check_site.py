"""Check the built site: links lead somewhere, nothing is loaded from elsewhere, every name has its page.

`python docs/check_site.py [FOLDER]` reads docs/_build/html or the folder that is named, and asks no network.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import edrvfl

BUILT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "_build" / "html").resolve()
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("source", "src"), ("iframe", "src")}


class Page(HTMLParser):
    """What a page names: its anchors, where it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        for name, value in attrs:
            if value and (name == "id" or (tag, name) == ("a", "name")):
                self.anchors.add(value)
            if value and (tag, name) in LOADED:
                self.loads.append(value)
            if value and name in ("href", "src"):
                self.links.append(value)


def complaints_of(path: Path, pages: dict[Path, Page]) -> list[str]:
    """Return what is wrong with one page."""
    name, found = path.relative_to(BUILT), []
    found += [f"{name} loads {url}" for url in pages[path].loads if urlsplit(url).netloc]
    for link in pages[path].links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.exists():
            found.append(f"{name} links to {link}, which does not exist")
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            found.append(f"{name} links to {link}, which has no such anchor")
    return found


def missing_names(pages: dict[Path, Page]) -> list[str]:
    """Return the public names that have no page."""
    # a list of names has no page of its own
    names = [f"edrvfl.{name}" for name in edrvfl.__all__ if callable(getattr(edrvfl, name))]
    documented = {name: pages.get(BUILT / "generated" / f"{name}.html") for name in names}
    return [
        f"{name} has no page" for name, page in documented.items() if page is None or name not in page.anchors
    ]


def main() -> None:
    """Print what is wrong; fail if anything is."""
    files = [file for file in BUILT.rglob("*.html") if "_static" not in file.relative_to(BUILT).parts]
    pages = {file.resolve(): Page(file.read_text()) for file in files}
    found = [complaint for path in pages for complaint in complaints_of(path, pages)] + missing_names(pages)
    n_links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {n_links} links, {len(found)} complaints")
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
