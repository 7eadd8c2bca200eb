"""Tests the page of the real program in headless Chromium: what users see, click and copy.

Usage: page.py FOLDER-WITH-THE-PROGRAMS FOLDER-FOR-SCREENSHOTS
"""

import base64
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

ID = "2407837855670862845"
DISCORD = "175928847299117063"
AXE = Path(importlib.util.find_spec("axe_playwright_python").origin).with_name("axe.min.js").read_text()
LANGUAGES = ("en", "zh")


class Server:
    """`vesta serve` on free loopback ports, stopped by its own process ID."""

    def __init__(self, program: Path, *flags: str, admin: str = "127.0.0.1:0") -> None:
        self.folder = tempfile.TemporaryDirectory()
        free = f"--http-listen 127.0.0.1:0 --grpc-listen 127.0.0.1:0 --admin-listen {admin} --state-dir state"
        self.process = subprocess.Popen(
            [program, "serve", *free.split(), *flags],
            cwd=self.folder.name,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        found = {}
        for line in self.process.stdout:
            words = line.split()
            if words[:1] in (["HTTP"], ["admin"]):
                found[words[0]] = words[1].removeprefix("http://").rstrip("/")
            if words[:1] == ["try"]:
                break
        self.rest, self.admin = f"http://{found['HTTP']}/", f"http://{found['admin']}/"

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(timeout=30) == 0, "not a clean exit"
        self.folder.cleanup()


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def metric(admin: str, name: str) -> float:
    return float(re.search(rf"^{re.escape(name)} (\S+)$", read(admin + "metrics"), re.M)[1])


@contextmanager
def load(server: Server):
    """Requests IDs until it is stopped."""
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.01):
            read(server.rest + "v1/ids?count=100")

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


class Page:
    """A separate browser with a page in it."""

    def __init__(self, url: str, shots: Path, language: str = "en", dark: bool = False, width: int = 1100,
                 zone: str = "UTC") -> None:
        options = webdriver.ChromeOptions()
        for flag in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", f"--lang={language}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(executable_path="/usr/bin/chromedriver", env={**os.environ, "TZ": zone})
        self.driver = webdriver.Chrome(options=options, service=service)
        self.shots, self.url, self.offences = shots, url, []
        command = self.driver.execute_cdp_cmd
        self.width(width)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        command("Emulation.setEmulatedMedia", {"features": [scheme]})
        command("Page.addScriptToEvaluateOnNewDocument", {"source": """
            addEventListener("securitypolicyviolation", (event) => {
              console.error("policy: " + event.violatedDirective + " " + event.blockedURI); });"""})
        origin = {"origin": url.rstrip("/"), "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
        command("Browser.grantPermissions", origin)
        self.driver.get(url)
        self.until(lambda: self.driver.execute_script("return typeof rule === 'object'"))
        self.choose("language", language)

    def width(self, width: int) -> None:
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def until(self, what, seconds: float = 20):
        return WebDriverWait(self.driver, seconds, 0.05).until(lambda _: what())

    def at(self, id: str):
        return self.driver.find_element(By.ID, id)

    def text(self, id: str) -> str:
        return self.at(id).text

    def choose(self, id: str, value: str) -> None:
        self.driver.execute_script("""
            const it = document.getElementById(arguments[0]); it.value = arguments[1];
            it.dispatchEvent(new Event("input", { bubbles: true }));""", id, value)

    def type(self, id: str, text: str) -> None:
        self.at(id).send_keys(Keys.CONTROL, "a")
        self.at(id).send_keys(text)

    def go(self, page: str) -> None:
        self.driver.find_element(By.CSS_SELECTOR, f"nav a[href='#{page}']").click()
        self.until(lambda: self.at(f"page-{page}").is_displayed())

    def shot(self, name: str) -> None:
        height = self.driver.execute_script("return Math.min(document.documentElement.scrollHeight, 4000)")
        clip = {"x": 0, "y": 0, "width": self.driver.execute_script("return innerWidth"), "height": height, "scale": 1}
        shown = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
        (self.shots / f"{name}.png").write_bytes(base64.b64decode(shown["data"]))

    def accessible(self, name: str) -> None:
        """Checks: no violation known to the checker, nothing wider than the window, nothing cut without a hint."""
        self.driver.execute_script(AXE)
        found = self.driver.execute_async_script("axe.run().then(arguments[0])")
        found = [(it["id"], [node["html"][:120] for node in it["nodes"]]) for it in found["violations"]]
        assert not found, f"{name}: {found}"
        wider = self.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, f"{name}: {wider} pixels wider than the window"
        cut = self.driver.execute_script("""
            const hints = (it) => getComputedStyle(it).backgroundImage.includes("gradient");
            return [...document.body.querySelectorAll("*:not(.unseen, select, option, input)")].filter((it) => it.checkVisibility()
              && it.scrollWidth > it.clientWidth + 1 && getComputedStyle(it).overflowX !== "visible" && !hints(it))
              .map((it) => it.outerHTML.slice(0, 120));""")
        assert not cut, f"{name}: cut without a hint: {cut}"

    def close(self, allowed: str | None = None) -> None:
        """Closes the page; fails on any console error or request to another host."""
        errors = [it["message"] for it in self.driver.get_log("browser") if it["level"] in ("SEVERE", "WARNING")]
        asked = [json.loads(it["message"])["message"] for it in self.driver.get_log("performance")]
        urls = [it["params"]["request"]["url"] for it in asked if it["method"] == "Network.requestWillBeSent"]
        self.driver.quit()
        errors = [it for it in errors if not allowed or allowed not in it]
        assert not errors, errors
        foreign = [it for it in urls if not it.startswith((self.url, "data:", "blob:", "chrome:"))]
        assert not foreign, foreign


def same_keys_in_both_languages(context) -> None:
    page = context.page(context.server.rest)
    keys = page.driver.execute_script("return Object.values(WORDS).map((it) => Object.keys(it).sort())")
    assert keys[0] == keys[1] and len(keys[0]) > 80, set(keys[0]) ^ set(keys[1])
    used = page.driver.execute_script(
        "return [...document.querySelectorAll('[data-t],[data-label]')].map((it) => it.dataset.t ?? it.dataset.label)")
    assert set(used) <= set(keys[0]), set(used) - set(keys[0])
    page.close()


def an_id_is_explained(context) -> None:
    for language in LANGUAGES:
        page = context.page(context.server.rest, language)
        for text in [ID, "0x216a5bc5c00003fd", "2rrvDihMXHR", "22TJVRQ0000ZX", f" {ID}"]:
            page.type("text", text)
            assert "max-peak" in page.text("verdict") and "2018-01-04T02:08:23.000Z" in page.text("verdict"), text
        cells = page.driver.find_elements(By.CSS_SELECTOR, "#bits i")
        assert "".join(cell.text for cell in cells) == f"{int(ID):064b}"
        labels = [it.text for it in page.driver.find_elements(By.CSS_SELECTOR, "#bits b")]
        assert labels == ["version 1", "type 1", "genMethod 2", "time 30", "seq 20", "machine 10"], labels
        facts = page.text("made-at")
        assert ("10:08:23" in facts) and ("2049-01-09" in facts) and ("2407837855670863000" in facts), facts
        forms = page.text("forms")
        for form in ["216a5bc5c00003fd", "2rrvDihMXHR", "22TJVRQ0000ZX", "BETWEEN 2407837855670861824 AND 2407837856744603647"]:
            assert form in forms, forms
        program = subprocess.run([context.program, "explain", ID, "-o", "json"], capture_output=True, text=True, check=True)
        said = json.loads(program.stdout)
        fields = page.text("fields")
        for field in ["time", "seq", "machine"]:
            assert re.search(rf"^{field} \S+ {said[field]} ", fields, re.M), (field, fields)
        page.shot(f"id-{language}")
        page.accessible(f"ID {language}")
        page.close()


def times_are_those_of_the_reader(context) -> None:
    # A reader in UTC, which the page shows anyway, gets a second zone.
    for zone, shown in [("America/New_York", "21:08:23"), ("Asia/Shanghai", "10:08:23"), ("UTC", "10:08:23")]:
        page = context.page(context.server.rest, zone=zone)
        page.type("text", ID)
        assert shown in page.text("made-at"), (zone, page.text("made-at"))
        page.close()


def text_that_is_not_an_id_is_refused(context) -> None:
    page = context.page(context.server.rest)
    page.type("text", "hello")
    assert "base62" in page.text("id-error") and not page.at("explained").is_displayed()
    page.type("text", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F")
    assert "UUID of version 7" in page.text("kind") and "2022-02-22" in page.text("kind")
    page.type("text", "01ARYZ6S41TSV4RRFFQ69G5FAV")
    assert "ULID" in page.text("kind") and "2016-07-30" in page.text("kind")
    page.type("text", "-1")
    assert "18446744073709551615" in page.text("forms")
    page.type("text", '"><img src=x onerror=alert(1)>')
    assert page.text("id-error") and not page.driver.find_elements(By.CSS_SELECTOR, "img")
    page.close()


def a_guess_does_not_claim_and_the_day_decides(context) -> None:
    for language, unsure in [("en", "Not certain"), ("zh", "不能确定")]:
        page = context.page(context.server.rest, language)
        page.type("text", DISCORD)
        assert unsure in page.text("verdict"), page.text("verdict")
        names = [it.text for it in page.driver.find_elements(By.CSS_SELECTOR, "#guesses b")]
        assert names[0] == "discord" and "max-peak" in names, names
        page.type("made", "2016-04-30")
        assert unsure not in page.text("verdict") and "discord" in page.text("verdict")
        assert "2016-04-30T11:18:25.796Z" in page.text("verdict")
        page.type("made", "2016-13")
        assert "2016-04-30" in page.text("made-error")
        page.type("made", "")
        page.at("made").send_keys(Keys.DELETE)
        page.choose("chosen", "instagram")
        page.driver.find_element(By.XPATH, "//*[@id='guesses']/button[b='cosid']").click()
        assert "cosid" in page.text("verdict") and unsure not in page.text("verdict"), "a chip chooses its layout"
        page.driver.switch_to.active_element.send_keys(Keys.ENTER)
        assert unsure in page.text("verdict"), "a second time leaves it to the guess"
        page.choose("chosen", "instagram")
        assert "instagram" in page.text("verdict") and unsure not in page.text("verdict")
        page.shot(f"guess-{language}")
        page.accessible(f"guess {language}")
        page.close()


def doubts_are_shown(context) -> None:
    """Shows a share for systems without a known layout, and a number that JavaScript may have rounded."""
    for language, other, rounded in [("en", "another system 31 %", "May be rounded by JavaScript"), ("zh", "其他系统 31 %", "可能被 JavaScript 舍入过")]:
        page = context.page(context.server.rest, language)
        page.type("text", DISCORD)
        assert page.at("made").get_attribute("class") == "wanted" and "2026-04" in page.text("verdict"), "the month is asked for"
        page.driver.execute_script("""
            const answer = ask("explain", arguments[0], "", Date.now(), "", "");
            const rounded = { by: "JavaScript", from: "175928847299117056", until: "175928847299117072" };
            window.ask = () => ({ ...answer, other: 0.312, rounded });
            showId();""", DISCORD)
        assert page.text("guesses").endswith(other), page.text("guesses")
        for part in [rounded, "175928847299117056", "175928847299117072"]:
            assert part in page.text("rounded"), page.text("rounded")
        page.accessible(f"doubts {language}")
        page.shot(f"doubts-{language}")
        page.driver.execute_script("const it = ask(); it.other = 0; it.rounded = null; window.ask = () => it; showId();")
        assert other not in page.text("guesses") and not page.at("rounded").is_displayed()
        page.close()


def the_bits_fit_one_row_at_1280_pixels(context) -> None:
    page = context.page(context.server.rest, width=1280)
    page.type("text", ID)
    names = page.driver.execute_script("return [...document.querySelectorAll('#chosen option')].map((it) => it.value)")
    assert len(names) > 10, names
    for name in names:
        page.choose("chosen", name)
        page.choose("text", ID)
        if page.text("id-error"):  # above the largest ID of this layout
            page.choose("text", "4503599627370495")
        tops, cells = page.driver.execute_script("""
            const tops = (of) => [...document.querySelectorAll(of)].map((it) => it.getBoundingClientRect().top);
            return [new Set(tops("#bits > span")).size + new Set(tops("#bits i")).size, tops("#bits i").length];""")
        assert page.at("bits").is_displayed() and (tops, cells) == (2, 64), f"{name}: {page.text('bits')}"
    page.close()


def a_browser_is_shown_around(context) -> None:
    server = Server(context.program, "--segment-store", "sqlite:segments.db", "--serial-store", "sqlite:serials.db")
    for url, wanted in [
        (server.rest, ["genid", "v1/ids?count=10", "v1/layout", "cache", "db", "docs/", "openapi.json"]),
        (server.admin, ["status", "pool", "events", "segments", "serials", "metrics", "readyz", "healthz"]),
    ]:
        for language, sentence in [("en", "64-bit IDs that never repeat"), ("zh", "64 位 ID")]:
            page = context.page(url, language)
            assert sentence in page.text("page-id")
            links = [it.get_attribute("href") for it in page.driver.find_elements(By.CSS_SELECTOR, "#start a") if it.is_displayed()]
            assert [it.removeprefix(url) for it in links if "#" not in it] == wanted, links
            for link in links:
                read(link)
            page.accessible(f"start {url}")
            page.shot(f"start-{'rest' if url == server.rest else 'admin'}-{language}")
            page.type("text", ID)
            assert not page.at("start").is_displayed(), "an ID takes its place"
            page.driver.find_element(By.CSS_SELECTOR, "h1 a").click()
            page.until(lambda: page.at("start").is_displayed())
            page.close()
    server.stop()


def numbers_stand_right_under_their_headings(context) -> None:
    page = context.page(context.server.admin, width=1280)
    page.type("text", ID)
    numbers = "return [...document.querySelectorAll(arguments[0])].map((it) => [getComputedStyle(it).textAlign, it.textContent])"
    fields = page.driver.execute_script(numbers, "#page-id thead .n, #fields .n")
    page.go("console")
    page.until(lambda: page.text("requests"))
    console = page.driver.execute_script(numbers, "#page-console thead .n, #page-console tbody .n")
    assert len(fields) == 3 + 18 and len(console) > 20, (fields, console)
    for align, text in fields + console:
        assert align == "right", text
    left = page.driver.execute_script("""
        const isNumber = (it) => /^[\\d,.]+$/.test(it.textContent) && it.cellIndex > 0;
        return [...document.querySelectorAll("#page-console tbody td")].filter(isNumber)
          .filter((it) => getComputedStyle(it).textAlign !== "right").map((it) => it.outerHTML);""")
    assert not left, left
    page.close()


def segment_pages_have_the_style_of_the_page(context) -> None:
    server = Server(context.program, "--segment-store", "sqlite:segments.db")
    request = urllib.request.Request(server.admin + "segments", json.dumps({"tag": "<b>orders", "step": 1000}).encode())
    request.add_header("content-type", "application/json")
    urllib.request.urlopen(request, timeout=10).close()
    page = context.page(server.rest, dark=True)
    for name in ["cache", "db"]:
        for width in [1280, 360]:
            page.width(width)
            page.driver.get(server.rest + name)
            assert page.driver.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 27)"
            align = "return getComputedStyle([...document.querySelectorAll('td')].find((it) => it.textContent === '1000')).textAlign"
            assert page.driver.execute_script(align) == ("right" if width == 1280 else "left")
            assert "<b>orders" in page.driver.find_element(By.TAG_NAME, "table").text
            page.accessible(f"{name} {width}")
            page.shot(f"{name}-{width}")
    page.close()
    server.stop()


def errors_are_chinese_in_chinese(context) -> None:
    page = context.page(context.server.rest, "zh")
    for text in ["hello", "-9223372036854775809", "18446744073709551616", "0xg", "22TJVRQ0000ZX2", "2rrvDihMX R", "z" * 26]:
        page.type("text", text)
        assert re.search("[\u4e00-\u9fff]", page.text("id-error")), (text, page.text("id-error"))
        assert not re.search(r"[a-z]{3,} [a-z]{3,} [a-z]{3,}", page.text("id-error")), page.text("id-error")
        colour = page.driver.execute_script("return getComputedStyle(document.getElementById('id-error')).color")
        assert colour == "rgb(179, 38, 30)", colour
    page.go("layout")
    page.choose("b-machine", "22")
    assert "64 位" in page.text("layout-error"), page.text("layout-error")
    page.choose("n-years", "0")
    page.driver.find_element(By.CSS_SELECTOR, "#needs button").click()
    assert page.driver.execute_script("return said('years must be 1 to 9, but is 0')") == "years 必须在 1 到 9 之间，实际为 0"
    # Inside another sentence; unknown sentences stay unchanged.
    nested = page.driver.execute_script("return said('the generator has stopped: it was shut down')")
    assert nested == "生成器已停止：已被关闭", nested
    assert page.driver.execute_script("return said('no such sentence')") == "no such sentence"
    page.close()


def translated_sentences_are_those_of_the_sources(context) -> None:
    """Checks that the longest piece of each sentence between its values is in a source file."""
    root = Path(__file__).parents[3]
    files = [it for crate in ["intf", "explain", "service", "numbers", "net", "boot"] for it in (root / f"vesta-{crate}/src").rglob("*.rs")]
    source = "\n".join(it.read_text() for it in [*files, root / "scripts/page/src/lib.rs"])
    source = re.sub(r"\\\n\s*", "", source)
    page = context.page(context.server.rest)
    sentences = page.driver.execute_script("return Object.keys(SENTENCES)")
    assert len(sentences) > 40, sentences
    for sentence in sentences:
        piece = max(sentence.split("{}"), key=len).strip(" :;,()")
        assert piece in source, f"no source contains {piece!r}: correct scripts/page/sentences.js"
    page.close()


def forms_are_copied(context) -> None:
    page = context.page(context.server.rest)
    page.type("text", ID)
    for row in page.driver.find_elements(By.CSS_SELECTOR, "#forms tr"):
        row.find_element(By.TAG_NAME, "button").click()
        page.until(lambda: page.driver.execute_script("return document.getElementById('said').textContent") == "Copied")
        copied = page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
        assert copied == row.find_element(By.CLASS_NAME, "mono").text, copied
        page.driver.execute_script("document.getElementById('said').textContent = ''")
    page.close()


def a_new_id_is_made(context) -> None:
    page = context.page(context.server.rest)
    assert page.text("curl") == f"curl {context.server.rest}genid"
    page.at("new").click()
    page.until(lambda: page.at("explained").is_displayed())
    assert "REST" in page.text("fields"), page.text("fields")
    assert page.driver.current_url.endswith(page.at("text").get_attribute("value"))
    page.close()


def a_refused_request_says_why(context) -> None:
    for language, why in [("en", "the generator has stopped: it was shut down"), ("zh", "生成器已停止：已被关闭")]:
        page = context.page(context.server.rest, language)
        page.driver.execute_script("""
            const problem = { detail: "the generator has stopped: it was shut down" };
            window.fetch = async () => new Response(JSON.stringify(problem), { status: 503 });""")
        page.at("new").click()
        page.until(lambda: page.text("id-error") == why)
        page.driver.execute_script("window.fetch = async () => { throw new TypeError('network'); }")
        page.at("new").click()
        page.until(lambda: page.text("id-error") not in ["", why])
        page.close()


def an_address_leads_to_an_id(context) -> None:
    page = context.page(context.server.admin)
    page.driver.get(context.server.admin + f"#id/{ID}")
    page.until(lambda: "max-peak" in page.text("verdict"))
    assert not page.at("new").is_displayed(), "the admin listener makes none"
    page.close()


def a_layout_is_designed(context) -> None:
    for language in LANGUAGES:
        page = context.page(context.server.rest, language)
        page.go("layout")
        for id, value in [("n-years", "60"), ("n-machines", "4096"), ("n-rate", "50000")]:
            page.type(id, value)
        page.driver.find_element(By.CSS_SELECTOR, "#needs button").click()
        program = subprocess.run(
            [context.program, "layout", "design", "--years", "60", "--machines", "4096", "--per-second", "50000", "--toml"],
            capture_output=True, text=True, check=True)
        assert page.text("toml").strip() == program.stdout.strip()
        page.choose("b-machine", "22")
        assert page.text("layout-error") and not page.at("designed").is_displayed(), "69 bits"
        page.choose("unit", "1000000")
        for time, seq, machine, warnings in [(31, 6, 22, 2), (32, 10, 22, 3), (32, 12, 8, 1)]:
            for id, bits in [("b-time", time), ("b-seq", seq), ("b-machine", machine)]:
                page.choose(id, str(bits))
            assert f"{1 << machine:,}" in page.text("designed-is"), page.text("designed-is")
            found = page.driver.find_elements(By.CSS_SELECTOR, "#warnings li")
            assert len(found) == warnings, page.text("warnings")
        file = Path(context.folder) / "layout.toml"
        file.write_text(page.text("toml"))
        subprocess.run([context.program, "layout", "check", file], capture_output=True, check=True)
        page.shot(f"layout-{language}")
        page.accessible(f"layout {language}")
        page.close()


def the_keyboard_is_enough(context) -> None:
    page = context.page(context.server.rest)
    keys = webdriver.ActionChains(page.driver)

    def focused() -> str:
        return page.driver.execute_script("const it = document.activeElement; return it.id || it.hash || it.textContent")

    def tab_to(wanted: str) -> None:
        for _ in range(80):
            if focused() == wanted:
                outline = page.driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
                assert outline == "solid", f"{wanted} does not show that it has the focus"
                return
            keys.send_keys(Keys.TAB).perform()
        raise AssertionError(f"no way to {wanted}")

    tab_to("text")
    keys.send_keys(ID).perform()
    assert "max-peak" in page.text("verdict")
    tab_to("made")
    keys.send_keys("2018-01").perform()
    tab_to("chosen")
    keys.send_keys("snowf").perform()
    assert "snowflake" in page.text("verdict")
    tab_to("Copy")
    keys.send_keys(Keys.ENTER).perform()
    page.until(lambda: focused() == "Copied")
    assert page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    page.driver.execute_script("document.activeElement.blur(); document.body.focus()")
    tab_to("#layout")
    keys.send_keys(Keys.ENTER).perform()
    page.until(lambda: page.at("page-layout").is_displayed())
    tab_to("b-time")
    keys.send_keys(Keys.ARROW_RIGHT).perform()
    assert page.text("o-time") == "42"
    tab_to("copy-toml")
    keys.send_keys(Keys.SPACE).perform()
    page.until(lambda: "time_bits = 42" in page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])"))
    page.close()


def light_and_dark_from_360_pixels_on(context) -> None:
    with load(context.server):
        for language, dark, width in [("en", True, 360), ("zh", False, 360), ("zh", True, 1100)]:
            page = context.page(context.server.admin, language, dark=dark, width=width)
            page.type("text", ID)
            back = page.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
            assert (back == "rgb(18, 22, 27)") == dark, back
            name = f"{language}-{'dark' if dark else 'light'}-{width}"
            page.accessible(f"ID {name}")
            page.shot(f"id-{name}")
            page.go("layout")
            page.accessible(f"layout {name}")
            page.shot(f"layout-{name}")
            page.go("console")
            page.until(lambda: page.at("live").is_displayed())
            page.accessible(f"console {name}")
            page.shot(f"console-{name}")
            page.close()


def the_console_is_live_and_right(context) -> None:
    page = context.page(context.server.admin)
    page.go("console")
    page.until(lambda: page.at("live").is_displayed())

    def issued() -> int:
        return int(page.driver.execute_script("return document.querySelector('#tile-issued dd')?.textContent ?? '0'").replace(",", ""))

    seen = []
    with load(context.server):
        looks = 28 if os.environ.get("VESTA_TEST_FULL") else 3
        for _ in range(looks):
            last = seen[-1] if seen else issued()
            page.until(lambda: issued() > last)
            seen.append(issued())
        rate = page.until(lambda: re.search(r"^[\d,.]*[1-9][\d,.]*$", page.text("tile-rate"), re.M))[0]
        page.until(lambda: "ms" in page.text("tile-p99"))
    assert seen == sorted(seen)
    # Once no requests arrive, the figures are those of /metrics.
    total = metric(context.server.admin, 'vesta_ids_issued_total{token=""}')
    page.until(lambda: issued() == total)
    requests = {line.split()[0]: line for line in page.text("requests").splitlines()}
    for method in ["/v1/ids"]:
        count = metric(context.server.admin, f'vesta_requests_total{{method="{method}",outcome="OK"}}')
        assert f"{method} OK {count:,.0f} " in requests[method] + " ", requests
    status = json.loads(read(context.server.admin + "status"))
    pool = json.loads(read(context.server.admin + "pool"))
    machine = str(status["machine"])
    assert page.text("machines").startswith(machine), page.text("machines")
    # At once, because the next poll replaces them.
    cells = page.driver.execute_script("return [...document.querySelectorAll('#grid i')].map((it) => [it.className, it.title])")
    held = [title for state, title in cells if state == "held"]
    assert len(cells) == 1024 and len(held) == 1, held
    held = held[0]
    assert held.startswith(f"{machine}: held, ") and f"PID {pool['records'][0]['pid']}" in held, held
    rows, labels, axis = page.driver.execute_script("""
        const rows = new Map();
        for (const it of document.querySelectorAll('#grid i')) rows.set(it.offsetTop, (rows.get(it.offsetTop) ?? 0) + 1);
        const labels = [...document.querySelectorAll('#grid b')].filter((it) => it.textContent && it.offsetWidth);
        return [[...rows.values()], labels.map((it) => [it.textContent, rows.has(it.offsetTop)]),
          [...document.querySelectorAll('#axis span')].map((it) => it.textContent)]""")
    assert rows == [64] * 16, rows
    assert labels == [[str(at), True] for at in range(0, 1024, 64)], labels
    top, half, zero = (float(number.replace(",", "")) for number in axis)
    assert top == 2 * half and zero == 0 and top >= float(rate.replace(",", "")), (axis, rate)
    heights = [height for line in drawn(page) for _, height in line]
    assert min(heights) < 40 and all(0 <= height <= 40 for height in heights), heights
    assert "claimed" in page.text("events"), page.text("events")
    page.shot("console")
    page.accessible("console")
    page.close()


def drawn(page: Page) -> list[list[tuple[float, float]]]:
    """The lines of the chart, each from its first to its last point; 120 is now."""
    lines = []
    for start in page.driver.execute_script("return document.querySelector('#rates').lastElementChild.getAttribute('d')").split("M")[1:]:
        (x, y), (end, *others) = start.split("H")[0].split(" "), start.split("H")[1].split("L")
        points = [(x, y), (end, y), *(it.split(" ") for it in others)]
        lines.append([(float(x), float(y)) for x, y in points])
    return lines


def the_chart_shows_only_time_that_the_server_knows(context) -> None:
    began = time.monotonic()
    server = Server(context.program)
    page = context.page(server.admin)
    page.until(lambda: len(json.loads(read(server.admin + "status"))["rates"]) >= 2)
    # The first answer fills the chart: nothing from before the start, all that is known since.
    page.driver.execute_script("""
        const show = showRates;
        showRates = (rates) => { const rate = show(rates); window.asked = (window.asked ?? 0) + 1; return rate; };""")
    page.go("console")
    page.until(lambda: page.driver.execute_script("return window.asked"))
    (line,) = drawn(page)
    assert len(line) > 2 and line[0][0] >= 120 - (time.monotonic() - began), line
    assert all(0 < right - left < 4 for (left, _), (right, _) in zip(line, line[1:])), line

    # The server knows the time in which the page asked nothing, not that in which it was stopped itself.
    page.go("id")
    before = len(line)
    page.until(lambda: len(json.loads(read(server.admin + "status"))["rates"]) > before)
    page.go("console")
    page.until(lambda: len(drawn(page)) == 1 and len(drawn(page)[0]) > before)
    os.kill(server.process.pid, signal.SIGSTOP)
    stopped = time.monotonic()
    try:
        page.until(lambda: time.monotonic() - stopped > 5)
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    page.until(lambda: len(drawn(page)) == 2)
    page.until(lambda: len(drawn(page)[1]) > 2)
    known, again = drawn(page)
    assert len(known) > before and again[0][0] - known[-1][0] > 4, (known, again)
    page.shot("gap")
    page.close()
    server.stop()


def troubles_are_red_and_in_the_language(context) -> None:
    try:
        read(context.server.rest + "v1/ids?count=0")
    except urllib.error.HTTPError as error:
        assert error.code == 400, error
    for language, fenced, renewed in [
        ("en", "another process took its machine ID over: db-1 (pid 7)", "the store answers again, after 3 s"),
        ("zh", "另一个进程接管了它的机器 ID：db-1 (pid 7)", "存储在 3 秒后恢复应答"),
    ]:
        page = context.page(context.server.admin, language)
        page.driver.execute_script("""
            const real = fetch;
            const event = { time: "2026-11-26T12:00:00.000Z", machine: 870 };
            const texts = { fenced: "another process took its machine ID over: db-1 (pid 7)", "renewed-late": "the store answers again, after 3 s" };
            const events = Object.entries(texts).map(([kind, text]) => ({ ...event, kind, text }));
            window.fetch = async (path, how) => path.startsWith("events") ? Response.json({ events, last: 2 }) : real(path, how);""")
        page.go("console")
        page.until(lambda: fenced in page.text("events") and renewed in page.text("events"))
        red = page.driver.execute_script("""
            const colour = (it) => getComputedStyle(it).color;
            return [...document.querySelectorAll("#events span, #requests span")].filter((it) => colour(it) === "rgb(179, 38, 30)").map((it) => it.textContent);""")
        kinds = ("fenced", "renewed-late") if language == "en" else ("被接管", "续约延迟")
        assert {"OUT_OF_RANGE", kinds[0]} <= set(red) and not {"OK", kinds[1]} & set(red), red
        page.shot(f"troubles-{language}")
        page.close()


def a_hidden_console_asks_nothing(context) -> None:
    page = context.page(context.server.admin)
    page.go("console")
    page.until(lambda: page.at("live").is_displayed())
    page.go("id")
    page.driver.execute_script("window.asked = 0; const f = fetch; window.fetch = (...it) => { asked++; return f(...it); }")
    # Longer than the polling interval.
    page.driver.set_script_timeout(30)
    page.driver.execute_async_script("setTimeout(arguments[0], 2500)")
    assert page.driver.execute_script("return asked") == 0
    page.go("console")
    page.until(lambda: page.driver.execute_script("return asked") > 0)
    page.close()


def the_console_survives_its_process(context) -> None:
    server = Server(context.program)
    page = context.page(server.admin)
    page.go("console")
    page.until(lambda: page.text("events"))
    server.stop()
    page.until(lambda: "No answer" in page.text("console-error"))
    # The events of the next process at this address start over.
    server = Server(context.program, admin=server.admin.removeprefix("http://").rstrip("/"))
    claimed = json.loads(read(server.admin + "events"))["events"][0]["moment"]
    page.until(lambda: page.text("events").startswith(claimed))
    assert len(page.text("events").splitlines()) == 1, page.text("events")
    page.close(allowed="ERR_CONNECTION_REFUSED")
    server.stop()


def a_hung_server_greys_the_console(context) -> None:
    server = Server(context.program)
    for language, since in [("en", "No answer since "), ("zh", "起没有应答")]:
        page = context.page(server.admin, language)
        page.go("console")
        page.until(lambda: page.at("live").is_displayed())
        colour = "return getComputedStyle(document.querySelector('#tile-ready dd')).color"
        green = page.driver.execute_script(colour)
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            page.until(lambda: since in page.text("console-error"), seconds=8)
            assert re.search(r"\d\d:\d\d:\d\d", page.text("console-error")), page.text("console-error")
            assert page.driver.execute_script(colour) != green, "still green"
            assert page.text("tile-ready").splitlines()[-1] in ["unknown", "未知"], page.text("tile-ready")
            assert "grayscale" in page.driver.execute_script("return getComputedStyle(document.getElementById('live')).filter")
            page.accessible(f"hung {language}")
            page.shot(f"hung-{language}")
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
        page.until(lambda: not page.text("console-error"))
        page.until(lambda: page.driver.execute_script(colour) == green)
        page.close()
    server.stop()


def a_token_is_asked_for_and_not_kept(context) -> None:
    folder = Path(context.folder)
    flags = "token new --name watcher --scopes metrics".split()
    made = subprocess.run([context.program, *flags], capture_output=True, text=True, check=True)
    token, table = made.stdout.split("\n", 1)
    config = folder / "vesta.toml"
    config.write_text("".join(line + "\n" for line in table.splitlines() if line.startswith(("[", "name", "sha256", "scopes"))))
    server = Server(context.program, "--config", str(config))
    page = context.page(server.admin)
    page.go("console")
    page.until(lambda: page.at("access").is_displayed())
    page.accessible("token")
    page.type("token", token)
    page.at("token").send_keys(Keys.ENTER)
    page.until(lambda: page.at("live").is_displayed())
    kept = page.driver.execute_script("return JSON.stringify(localStorage) + document.documentElement.outerHTML + location.href")
    assert token not in kept
    page.close(allowed="401")
    server.stop()


def segments_have_bars(context) -> None:
    server = Server(context.program, "--segment-store", "sqlite:segments.db")
    request = urllib.request.Request(server.admin + "segments", json.dumps({"tag": "orders", "step": 1000}).encode())
    request.add_header("content-type", "application/json")
    urllib.request.urlopen(request, timeout=10).close()
    for _ in range(10):
        read(server.rest + "v1/segments/orders/next")
    page = context.page(server.admin)
    page.go("console")
    page.until(lambda: "orders" in page.text("tags"))
    assert page.driver.find_elements(By.CSS_SELECTOR, "#tags progress")
    page.shot("segments")
    page.accessible("segments")
    page.close()
    server.stop()


def serials_have_rows(context) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = ["--serial-store", f"sqlite:{folder}/serials.db"]

        def serial(*words: str) -> None:
            subprocess.run([context.program, "serial", *words, *store], capture_output=True, check=True)

        daily = "INV-{date:yyMMdd}-{n:2}{check:damm}"
        serial("create", "invoices", daily, "--reset", "day", "--zone", "Asia/Shanghai", "--step", "10")
        serial("create", "tickets", "T{n:4+}")
        serial("create", "coupons", "{shuffle:8}", "--serial-keys", folder)
        server = Server(context.program, *store)
        read(server.rest + "v1/serials/invoices/next?count=25")
        told = {it["tag"]: it for it in json.loads(read(server.admin + "serials"))["tags"]}
        for language, width in [("en", 1100), ("zh", 360)]:
            page = context.page(server.admin, language, width=width)
            page.go("console")
            page.until(lambda: "invoices" in page.text("serial-tags"))
            # At once, because the next poll replaces them.
            rows = page.driver.execute_script("""
                return [...document.querySelectorAll("#serial-tags tr")].map((row) =>
                  [row.querySelectorAll("progress").length, ...[...row.cells].map((cell) => cell.textContent)]);""")
            why = rows.pop(1)
            english = told["coupons"]["notReadyBecause"]
            assert why[1] == english if language == "en" else "没有提供密钥" in why[1], "this server has no keys"
            rows = {name: (bars, cells) for bars, name, *cells in rows}
            bars, cells = rows["coupons"]
            assert bars == 1 and cells[-1] == told["coupons"]["fingerprint"], cells
            bars, cells = rows["invoices"]
            assert bars == 1 and cells[:4] == [daily, told["invoices"]["period"], "26", " 25 %"], cells
            bars, cells = rows["tickets"]
            assert bars == 0 and cells[:4] == ["T{n:4+}", "–", "1", "–"], cells
            page.shot(f"serials-{language}")
            page.accessible(f"serials {language}")
            page.close()
        server.stop()


def the_checks_find_what_is_planted(context) -> None:
    page = context.page(context.server.rest)
    page.driver.execute_script("document.body.insertAdjacentHTML('beforeend', '<input><p>x</p>')")
    try:
        page.accessible("planted")
        found = False
    except AssertionError:
        found = True
    assert found, "an input without a label"
    page.driver.execute_script("""
        document.querySelectorAll("body > input, body > p:not(.unseen)").forEach((it) => it.remove());
        document.getElementById("h-id").style.cssText = "width: 3rem; overflow: hidden; white-space: nowrap";""")
    try:
        page.accessible("planted")
        found = False
    except AssertionError as error:
        found = "cut without a hint" in str(error)
    assert found, "a heading that is cut"
    page.driver.execute_script("fetch('http://127.0.0.1:1/').catch(() => {})")
    page.driver.execute_script("document.body.insertAdjacentHTML('beforeend', '<p onclick=\"x()\" style=\"color:red\">x</p>')")
    try:
        page.close()
        found = False
    except AssertionError as error:
        found = "connect-src" in str(error) and "style-src" in str(error)
    assert found, "a request to another host, a style of a page that was talked into it"


TESTS = [
    same_keys_in_both_languages,
    an_id_is_explained,
    times_are_those_of_the_reader,
    text_that_is_not_an_id_is_refused,
    a_guess_does_not_claim_and_the_day_decides,
    doubts_are_shown,
    the_bits_fit_one_row_at_1280_pixels,
    a_browser_is_shown_around,
    numbers_stand_right_under_their_headings,
    segment_pages_have_the_style_of_the_page,
    errors_are_chinese_in_chinese,
    translated_sentences_are_those_of_the_sources,
    forms_are_copied,
    a_new_id_is_made,
    a_refused_request_says_why,
    an_address_leads_to_an_id,
    a_layout_is_designed,
    the_keyboard_is_enough,
    light_and_dark_from_360_pixels_on,
    the_console_is_live_and_right,
    the_chart_shows_only_time_that_the_server_knows,
    troubles_are_red_and_in_the_language,
    a_hidden_console_asks_nothing,
    the_console_survives_its_process,
    a_hung_server_greys_the_console,
    a_token_is_asked_for_and_not_kept,
    segments_have_bars,
    serials_have_rows,
    the_checks_find_what_is_planted,
]


class Context:
    def __init__(self, program: Path, shots: Path, folder: str) -> None:
        self.program, self.shots, self.folder = program, shots, folder
        self.server, self.pages = Server(program), []

    def page(self, url: str, language: str = "en", **how) -> Page:
        page = Page(url, self.shots, language, **how)
        self.pages.append(page)
        return page


def main() -> int:
    program, shots = Path(sys.argv[1]).absolute() / "vesta", Path(sys.argv[2])
    wanted = sys.argv[3:]
    shots.mkdir(parents=True, exist_ok=True)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        context = Context(program, shots, folder)
        try:
            for test in TESTS:
                name = test.__name__
                if wanted and name not in wanted:
                    continue
                context.pages.clear()
                started = time.monotonic()
                try:
                    test(context)
                    print(f"page: {name} ... ok ({time.monotonic() - started:.1f} s)", flush=True)
                except Exception:
                    failed.append(name)
                    print(f"page: {name} ... FAILED\n{traceback.format_exc()}", flush=True)
                    for number, page in enumerate(context.pages):
                        try:
                            page.shot(f"failed-{name}-{number}")
                        except Exception:  # closed
                            pass
                for page in context.pages:
                    page.driver.quit()
        finally:
            context.server.stop()
    if failed:
        print(f"screenshots: {shots}", file=sys.stderr)
    return 1 if failed else 0


sys.exit(main())
