"""Finishes the built books: puts the playground into their front pages, translates the frame of the Chinese one, and
follows their links. Each must lead to a file of the books, and to an element of its page.

book.py FOLDER"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
# Texts of mdbook's frame and of its search.
FRAME = {
    "Search this book ...": "搜索本书……",
    "Search (`/`)": "搜索（`/`）",
    "Toggle Searchbar": "搜索",
    "Search Result Teaser": "摘要",
    "' search result for \\''": "' 处：'",
    "' search results for \\''": "' 处：'",
    "searchterm + '\\':'": "searchterm",
    "'No search results for \\'' + searchterm + '\\'.'": "'没有找到：' + searchterm",
    "Toggle Table of Contents": "目录",
    "Table of contents": "目录",
    "Change theme": "更换主题",
    '"Themes"': '"主题"',
    ">Auto<": ">自动<",
    ">Light<": ">浅色<",
    "Git repository": "代码仓库",
    "Page navigation": "翻页",
    "Previous chapter": "上一章",
    "Next chapter": "下一章",
    "Keyboard shortcuts": "快捷键",
    "Press <kbd>←</kbd> or <kbd>→</kbd> to navigate between chapters": "<kbd>←</kbd> 和 <kbd>→</kbd> 翻页",
    "Press <kbd>S</kbd> or <kbd>/</kbd> to search in the book": "<kbd>S</kbd> 或 <kbd>/</kbd> 搜索本书",
    "Press <kbd>?</kbd> to show this help": "<kbd>?</kbd> 显示本帮助",
    "Press <kbd>Esc</kbd> to hide this help": "<kbd>Esc</kbd> 关闭本帮助",
    "Copy to clipboard": "复制",
    "Copied!": "已复制",
}


def playground():
    """The explainer and the designer of the page, with its rule, in an element that the book's style does not reach."""
    read = lambda name: (ROOT / "scripts" / name).read_text("utf-8")
    page = (ROOT / "vesta-boot/page/index.html").read_text("utf-8")
    rule = re.search(r'<script type="text/plain" id="rule">.*?</script>', page, re.S)[0]
    parts = re.findall(r'<section id="page-(?:id|layout)".*?</section>', read("page/index.html"), re.S)
    parts = re.sub(r'  <div id="start">.*?\n  </div>\n', "", "".join(parts), flags=re.S).replace(" hidden>\n  <h2", ">\n  <h2")
    # A rem of the book is 10 pixels.
    style = re.sub(r"(?<!\(max-width: )([\d.]+)rem", lambda it: f"{float(it[1]) * 1.6:g}rem", read("page/style.css"))
    light, dark = re.findall(r":root \{(.*?)\}", style, re.S)
    colours = "--back: var(--bg); --text: var(--fg); --link: var(--links); --soft: color-mix(in srgb, var(--fg) 8%, var(--bg));"
    script = "".join(read(f"page/{name}.js") for name in "words sentences base id layout".split())
    return f"""<style>#playground {{ {light} {colours} }}
:is(.coal, .navy, .ayu) #playground {{ {dark} {colours} }}</style>
<div id="playground"><template shadowrootmode="open"><style>{style}</style><div data-at="book">{parts}
<p id="said" class="unseen" role="status" aria-live="polite"></p></div>{rule}</template></div>
<script type="module">{script}{read("book/playground.js")}</script>"""


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
            if ":" in file or path.name == "toc.html":
                continue
            aim = (path.parent / file).resolve() if file else path
            if aim not in pages and not aim.exists():
                yield f"{path.relative_to(folder)}: {link} leads nowhere"
            elif aim in pages and anchor not in pages[aim].anchors:
                yield f"{path.relative_to(folder)}: {link}: the page has no such heading"


def replace(files, replacements):
    """Replaces texts in files; yields those that no file has."""
    missing = set(replacements)
    for file in files:
        text = file.read_text("utf-8")
        missing -= {old for old in replacements if old in text}
        for old, new in replacements.items():
            text = text.replace(old, new)
        file.write_text(text, "utf-8")
    yield from (f"{files[0].parent}: mdbook's files have no {old}" for old in missing)


folder = Path(sys.argv[1]).resolve()
chinese = folder / "zh-CN"
frame = [*chinese.rglob("*.html"), *chinese.glob("searcher-*.js"), *chinese.glob("book-*.js")]
fronts = [folder / "index.html", chinese / "index.html"]
wrong = [
    *replace(frame, FRAME),
    *replace(fronts, {"<!-- playground -->": playground()}),
    *broken(folder),
]
print("\n".join(wrong) or f"the book is in {folder}: every link lands")
sys.exit(bool(wrong))
