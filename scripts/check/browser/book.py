"""Tests the built books in headless Chromium: what fits its page, the playground, the search in Chinese.

Usage: book.py FOLDER-OF-THE-BOOKS FOLDER-FOR-SCREENSHOTS
"""

import base64
import json
import sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

ID = "2407837855670862845"
WIDE, NARROW = 1280, 390
# Elements that may be wider than their page. Code has its own scroll bar in a narrow window.
BUDGET = {WIDE: {"table": 0, "pre": 0, "page": 0}, NARROW: {"table": 5, "pre": None, "page": 0}}
MEASURE = """
const over = (it) => it && it.clientWidth ? it.scrollWidth - it.clientWidth : 0;
const found = [["page", over(document.querySelector(".content")), ""]];
for (const it of document.querySelectorAll("main :is(table, pre)")) {
  const inside = it.tagName === "PRE" ? [it, it.querySelector("code")] : [it, it.parentElement];
  found.push([it.tagName.toLowerCase(), Math.max(...inside.map(over)), it.textContent.trim().slice(0, 60)]);
}
return found.filter(([, pixels]) => pixels > 1);
"""


class Book:
    """A browser for all pages, which are files."""

    def __init__(self, folder: Path, shots: Path) -> None:
        options = webdriver.ChromeOptions()
        for flag in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(executable_path="/usr/bin/chromedriver")
        self.driver = webdriver.Chrome(options=options, service=service)
        self.folder, self.shots = folder, shots
        shots.mkdir(parents=True, exist_ok=True)

    def window(self, width: int, dark: bool = False) -> None:
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def open(self, page: str) -> None:
        self.driver.get((self.folder / page).as_uri())
        self.driver.execute_async_script("document.fonts.ready.then(() => setTimeout(arguments[0]))")

    def until(self, what):
        return WebDriverWait(self.driver, 20, 0.05).until(lambda _: what())

    def shot(self, name: str) -> None:
        height = self.driver.execute_script("return Math.min(document.documentElement.scrollHeight, 3000)")
        clip = {"x": 0, "y": 0, "width": self.driver.execute_script("return innerWidth"), "height": height, "scale": 1}
        shown = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
        (self.shots / f"book-{name}.png").write_bytes(base64.b64decode(shown["data"]))

    def within(self) -> None:
        """Checks that no page complained, or asked for anything outside of the books."""
        errors = [it["message"] for it in self.driver.get_log("browser") if it["level"] in ("SEVERE", "WARNING")]
        assert not errors, errors
        asked = [json.loads(it["message"])["message"] for it in self.driver.get_log("performance")]
        urls = [it["params"]["request"]["url"] for it in asked if it["method"] == "Network.requestWillBeSent"]
        foreign = [it for it in urls if not it.startswith((self.folder.as_uri(), "data:", "blob:"))]
        assert urls and not foreign, foreign


def pages_fit(book: Book) -> None:
    pages = [it for it in sorted(book.folder.rglob("*.html")) if it.name not in ("toc.html", "README.html")]
    for width, budget in BUDGET.items():
        book.window(width)
        found = []
        for page in pages:
            book.open(page)
            found += [(pixels, what, page.relative_to(book.folder), text)
                      for what, pixels, text in book.driver.execute_script(MEASURE)]
        for what, most in budget.items():
            wide = sorted((it for it in found if it[1] == what), key=lambda it: -it[0])
            print(f"{width} px: {len(wide)} of kind {what} too wide in {len(pages)} pages")
            for pixels, _, page, text in wide[:10] if most is not None else ():
                print(f"  by {pixels} px: {page}: {' '.join(text.split())}")
            assert most is None or len(wide) <= most, f"{len(wide)} instead of {most} of kind {what} at {width} px"


def a_planted_fault_is_found(book: Book) -> None:
    book.window(WIDE)
    book.open("use/concepts.html")
    assert book.driver.execute_script(MEASURE) == []
    book.driver.execute_script("""
        const plant = (tag, inside) => document.querySelector("main").append(Object.assign(document.createElement(tag), inside));
        plant("pre", { innerHTML: `<code style="overflow-x: auto">${"x".repeat(200)}</code>` });
        plant("div", { className: "table-wrapper", innerHTML: `<table><tr><td>${"x".repeat(200)}</td></tr></table>` });
        plant("div", { style: "width: 2000px", textContent: "x" });""")
    assert {what for what, _, _ in book.driver.execute_script(MEASURE)} == {"page", "pre", "table"}


def an_id_is_explained_and_a_layout_designed(book: Book) -> None:
    for page, machines in [("index.html", "machine IDs"), ("zh-CN/index.html", "机器 ID")]:
        book.window(WIDE)
        book.open(page)
        root = book.driver.find_element(By.ID, "playground").shadow_root
        at = lambda id: root.find_element(By.ID, id)
        book.until(lambda: machines in at("designed-is").text)
        assert book.driver.execute_script("return document.documentElement.lang") == ("zh-CN" if "/" in page else "en")
        at("text").send_keys("s/" + ID)  # s and / are the book's keys for its search
        assert not book.driver.find_element(By.ID, "mdbook-searchbar").is_displayed()
        at("text").clear()
        at("text").send_keys(ID)
        assert "max-peak" in at("verdict").text and "2018-01-04T02:08:23.000Z" in at("verdict").text
        assert "2rrvDihMXHR" in at("forms").text
        at("n-machines").clear()
        at("n-machines").send_keys("4096")
        root.find_element(By.CSS_SELECTOR, "#needs button").click()
        book.until(lambda: "4,096" in at("designed-is").text and "machine_bits = 12" in at("toml").text)
        for width, dark in [(WIDE, False), (768, True), (NARROW, True)]:
            book.window(width, dark)
            book.open(page)
            back = book.driver.execute_script("return getComputedStyle(document.documentElement).colorScheme")
            assert back == ("dark" if dark else "light"), back
            assert book.driver.execute_script(MEASURE) == []
            book.shot(f"{page.removesuffix('.html').replace('/', '-')}-{width}")
    book.window(WIDE)
    book.open("index.html")
    book.driver.get(book.driver.current_url + f"#id/{ID}")
    book.driver.refresh()
    root = book.driver.find_element(By.ID, "playground").shadow_root
    book.until(lambda: "max-peak" in root.find_element(By.ID, "verdict").text)


def the_search_finds_chinese(book: Book) -> None:
    for text, page in [("号段", "use/concepts.html"), ("机器", "use/concepts.html"), ("机器ID", "use/concepts.html"),
                       ("号段 leaf", "move/leaf.html"), ("没有这个词", None)]:
        book.open("zh-CN/use/choose.html")
        book.driver.find_element(By.ID, "mdbook-search-toggle").click()
        book.driver.find_element(By.ID, "mdbook-searchbar").send_keys(text)
        header = book.driver.find_element(By.ID, "mdbook-searchresults-header")
        book.until(lambda: text in header.text)
        links = [it.get_attribute("href") for it in book.driver.find_elements(By.CSS_SELECTOR, "#mdbook-searchresults a")]
        assert bool(links) == bool(page), (text, links)
        if page:
            assert any(f"zh-CN/{page}" in it for it in links), (text, links)
            assert book.driver.find_elements(By.CSS_SELECTOR, "#mdbook-searchresults .teaser em"), text
        if text == "号段":
            book.shot("search")


def of_a_session_the_commands_are_copied(book: Book) -> None:
    book.open("use/cli.html")
    copied = book.driver.execute_script("""
        return [...document.querySelectorAll("code.language-console")].map((it) => playground_text(it.closest("pre")));""")
    assert copied and all(it.startswith("vesta ") and "$" not in it[:1] for it in copied), copied


TESTS = [
    pages_fit,
    a_planted_fault_is_found,
    an_id_is_explained_and_a_layout_designed,
    the_search_finds_chinese,
    of_a_session_the_commands_are_copied,
]
book = Book(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
try:
    for test in TESTS:
        test(book)
        print(f"book: {test.__name__} ... ok")
    book.within()
finally:
    book.driver.quit()
