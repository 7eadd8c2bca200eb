"""Follows the links of the built book: each must lead to a file of the book, and to an element of its page.

book.py FOLDER"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = set(), {"", "top"}
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.add(unquote(value))


def broken(folder):
    pages = {path: Page(path) for path in folder.rglob("*.html")}
    if len(pages) < 20:
        yield f"{folder} has {len(pages)} pages only"
    for path, page in pages.items():
        for link in sorted(page.links):
            file, _, anchor = link.partition("#")
            if ":" in file or path.name in ("404.html", "print.html", "toc.html"):
                continue
            aim = (path.parent / file).resolve() if file else path
            if aim not in pages and not aim.exists():
                yield f"{path.relative_to(folder)}: {link} leads nowhere"
            elif aim in pages and anchor not in pages[aim].anchors:
                yield f"{path.relative_to(folder)}: {link}: the page has no such heading"


folder = Path(sys.argv[1]).resolve()
wrong = list(broken(folder))
print("\n".join(wrong) or f"the book is in {folder}: every link lands")
sys.exit(bool(wrong))
