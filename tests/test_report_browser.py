"""The page in a real browser: Debian's chromium and chromium-driver. Where they are not installed these tests are
skipped, unless BRITTLE_BROWSER=required says that they must run."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from brittle.report import across
from brittle.verdicts import VERDICTS
from test_report import CROSSINGS, HOSTILE, WORLDS, make_inputs, written

BROWSER, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync --hide-scrollbars"


class Browser:
    """A window on the page."""

    def __init__(self, driver: webdriver.Chrome, url: str) -> None:
        self.driver, self.url = driver, url

    def visit(self, width: int = 1280) -> None:
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.driver.get(self.url)

    def cdp(self, command: str, **options: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, options)

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def click(self, selector: str) -> None:
        self.js("arguments[0].scrollIntoView({block: 'center'}); arguments[0].click()", self.one(selector))

    def column(self, table: str, index: int) -> list[str]:
        """What is seen in a column, from above."""
        return self.js(
            "return [...document.getElementById(arguments[0]).tBodies[0].rows].filter((row) => row.offsetHeight)"
            ".map((row) => row.cells[arguments[1]].innerText.trim())",
            table,
            index,
        )


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory, committed: Path) -> Iterator[Browser]:
    if not (BROWSER.is_file() and DRIVER.is_file()):
        (pytest.fail if os.environ.get("BRITTLE_BROWSER") == "required" else pytest.skip)(
            f"{BROWSER} and {DRIVER} are not installed (Debian's chromium and chromium-driver)"
        )
    folder = tmp_path_factory.mktemp("site") / "brittle"
    make_inputs(folder, committed)
    written(folder)
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield Browser(driver, (folder / "plots/report.html").as_uri())
    finally:
        driver.quit()


@pytest.fixture
def browser(opened: Browser) -> Iterator[Browser]:
    opened.visit()
    yield opened
    opened.js("localStorage.clear()")


def test_the_page_opens_without_errors_and_asks_for_nothing(browser: Browser) -> None:
    browser.driver.get_log("performance")  # what came before
    browser.driver.get_log("browser")
    browser.visit()
    browser.js("scrollTo(0, document.body.scrollHeight)")
    messages = [json.loads(entry["message"])["message"] for entry in browser.driver.get_log("performance")]
    asked = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
    assert browser.url in asked
    assert {url for url in asked if not url.startswith("data:")} == {browser.url}
    assert browser.driver.get_log("browser") == []
    assert (
        browser.js("return [...document.images].filter((image) => !image.naturalWidth).map((image) => image.alt)") == []
    )


def place(key: str) -> int:
    """Of a column of the leaderboard."""
    return [column.key for column in across.REMEDIES.columns].index(key)


def test_what_a_plugin_calls_itself_is_text(browser: Browser) -> None:
    assert HOSTILE in browser.column("remedies-table", place("remedy"))
    assert browser.js("return document.scripts.length") == 1


@pytest.mark.parametrize("key", [None, Keys.ENTER, Keys.SPACE], ids=["click", "Enter", "Space"])
def test_claims_are_sorted_by_click_and_by_keyboard(browser: Browser, key: str | None) -> None:
    def press(index: int) -> str | None:
        button = browser.one(f"#claims th:nth-child({index}) button")
        button.click() if key is None else button.send_keys(key)
        return browser.one(f"#claims th:nth-child({index})").get_attribute("aria-sort")

    ids = browser.column("claims", 0)
    assert ids.index("M2") < ids.index("M10")
    assert press(1) == "ascending"
    assert browser.column("claims", 0) == ids
    assert press(1) == "descending"
    assert browser.column("claims", 0) == ids[::-1]
    assert press(4) == "ascending"
    assert browser.one("#claims th").get_attribute("aria-sort") is None
    verdicts = [cell.splitlines()[0].split(maxsplit=1)[1] for cell in browser.column("claims", 3)]
    assert verdicts == sorted(verdicts, key=VERDICTS.index)


def test_a_sheet_is_sorted_by_numbers_and_empty_cells_are_last(browser: Browser) -> None:
    browser.click(f"#remedies-table th:nth-child({place('cost') + 1}) button")  # as text, 100 would be before 2
    costs = [float(cost) for cost in browser.column("remedies-table", place("cost"))]
    assert costs == sorted([1, 11, 2, 100] * len(WORLDS))
    for _ in range(2):  # either way
        browser.click(f"#remedies-table th:nth-child({place('certified') + 1}) button")
        shares = browser.column("remedies-table", place("certified"))
        numbers = [float(share) for share in shares[:8]]
        assert all(share.startswith("–") for share in shares[8:])
    assert numbers == sorted(numbers, reverse=True)


def test_filters_hide_rows_and_combine(browser: Browser) -> None:
    everything = browser.column("claims", 0)
    browser.click("[data-table=claims] [data-choice=differs]")
    differ = browser.column("claims", 0)
    browser.click("[data-table=claims] [data-choice=FP]")
    assert browser.column("claims", 0) == [id for id in differ if id.startswith("P")]
    assert browser.one("#claims-shown").text == f"{len(browser.column('claims', 0))} of {len(everything)} shown"
    pressed = browser.js(
        "return [...document.querySelectorAll('[data-table=claims] [aria-pressed=true]')].map((b) => b.innerText)"
    )
    assert pressed == ["≠ differs", "FP"]
    browser.click(".glance a[href='#M1']")  # a link to a row that is hidden brings it back
    assert browser.column("claims", 0) == everything

    browser.click(f"[data-table=remedies-table] [data-choice='{WORLDS[1]}']")
    assert set(browser.column("remedies-table", 0)) == {WORLDS[1]}
    assert set(browser.column("vectors-table", 0)) == set(WORLDS)


def test_the_theme_is_remembered(browser: Browser) -> None:
    def background() -> str:
        return browser.js("return getComputedStyle(document.body).backgroundColor")

    light = background()
    browser.click("#theme")
    dark = background()
    assert dark != light
    browser.visit()
    assert background() == dark
    browser.click("#theme")
    assert background() == light


def test_the_theme_of_the_system_is_followed(browser: Browser) -> None:
    light = browser.js("return getComputedStyle(document.body).backgroundColor")
    browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert browser.js("return getComputedStyle(document.body).backgroundColor") != light
    browser.cdp("Emulation.setEmulatedMedia", features=[])


@pytest.mark.parametrize("width", [360, 820, 1280])
def test_the_page_never_scrolls_sideways(browser: Browser, width: int) -> None:
    browser.visit(width)
    browser.js("for (const details of document.querySelectorAll('details')) details.open = true")
    assert browser.js("return [innerWidth, document.documentElement.scrollWidth]") == [width, width]


def test_everything_can_be_read_without_scripts(browser: Browser) -> None:
    ids = browser.column("claims", 0)
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.visit()
        assert not browser.one("#theme").is_displayed()
        rows = browser.driver.find_elements(By.CSS_SELECTOR, "#claims tbody tr")
        assert len(rows) == len(ids)
        assert all(row.is_displayed() for row in rows)
        assert browser.one("#remedies-table th").text == "World"
        assert browser.driver.find_elements(By.CSS_SELECTOR, ".play") == []
        assert browser.one("#margin_flipped img").is_displayed()
        assert browser.one("#margin_flipped a[download]").is_displayed()
        buttons = browser.driver.find_elements(By.TAG_NAME, "button")
        assert [button.get_attribute("outerHTML") for button in buttons if button.is_displayed()] == []
    finally:
        browser.cdp("Emulation.setScriptExecutionDisabled", value=False)


def test_on_paper_there_are_no_buttons_and_the_rules_are_open(browser: Browser) -> None:
    browser.click("#theme")  # dark on the screen
    browser.cdp("Emulation.setEmulatedMedia", media="print")
    try:
        shown = "return [...document.querySelectorAll(arguments[0])].filter((e) => e.offsetHeight).length"
        assert browser.js(shown, "button:not(th button), nav, .filters") == 0
        assert browser.one("#claims th").text == "Id"  # the title of a column is a button on the screen
        assert browser.js(shown, "#claims details p") > 0
        assert browser.js(shown, ".play, a[download]") == 0
        assert browser.js(shown, "#made table") == 2  # versions and files, but not the pages of parameters
        assert browser.js(shown, "pre") == 0
        assert browser.js("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        browser.cdp("Emulation.setEmulatedMedia", media="")


def press(browser: Browser, *keys: str) -> str:
    """Press keys on the slider; what it says then."""
    browser.one("#margin_flipped .play input").send_keys(*keys)
    return browser.one("#margin_flipped output").text


def test_the_slider_counts_the_exact_crossings(browser: Browser) -> None:
    assert press(browser, Keys.HOME).startswith("At size 0.00: 0 of ")
    size = 0.0
    for keys in ([Keys.PAGE_UP] * 2, [Keys.ARROW_RIGHT] * 7, [Keys.ARROW_LEFT] * 3, [Keys.END]):
        said = press(browser, *keys)
        size = float(browser.one("#margin_flipped .play input").get_property("value"))
        events = CROSSINGS[CROSSINGS["c"] <= size].sort_values("c", kind="stable")
        last = events.groupby(["direction", "seed", "sample"])["flips"].last()  # flipped, or flipped back
        z, random = (int(last[name].sum()) if name in last.index else 0 for name in ("z", "random"))
        assert re.findall(r"(\d+) of \d+ samples", said) == [str(z), str(random)]
        squares = "return document.querySelectorAll('#margin_flipped rect.z.flipped').length"
        assert browser.js(squares) == z
    assert size > 0
    assert z > 0


@pytest.mark.parametrize("width", [360, 1280])
def test_the_slider_fits_and_stands_out_in_either_theme(browser: Browser, width: int) -> None:
    browser.visit(width)
    for _ in range(2):
        colours = browser.js(
            "return ['z', 'random'].map((name) => getComputedStyle(document.querySelector(`.play path.${name}`)))"
            ".map((style) => style.stroke)"
            ".concat(getComputedStyle(document.body).backgroundColor)"
        )
        assert len(set(colours)) == 3
        browser.click("#theme")
    box = browser.js("const b = document.querySelector('.play svg').getBoundingClientRect(); return [b.left, b.right]")
    assert box[0] >= 0
    assert box[1] <= width


def test_every_claim_and_figure_has_a_link_to_itself(browser: Browser) -> None:
    for id in ("M6", "X1", "margin_flipped", "kkt"):
        link = browser.one(f"[id='{id}'] a.here")
        assert link.get_attribute("href") == f"{browser.url}#{id}"
        browser.js("arguments[0].click()", link)
        assert browser.js("return document.querySelector(':target').id") == id


def test_the_data_behind_a_figure_are_one_click_away(browser: Browser, tmp_path: Path) -> None:
    browser.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.click("#kkt a[download]")
    for _ in range(100):
        if (tmp_path / "kkt.csv").exists():
            break
        time.sleep(0.1)
    folder = Path(browser.url.removeprefix("file://")).parent
    assert (tmp_path / "kkt.csv").read_bytes() == (folder / "kkt.csv").read_bytes()
    figures = browser.js(
        "return [...document.querySelectorAll('figure')].filter((f) => !f.querySelector('a[download]'))"
        ".map((f) => f.id)"
    )
    assert figures == []


def test_a_figure_is_enlarged_and_put_back(browser: Browser) -> None:
    browser.click("#kkt .enlarge")
    assert browser.one("dialog img").size["width"] > browser.one("#kkt img").size["width"]
    browser.one("dialog button").send_keys(Keys.ESCAPE)
    assert not browser.one("dialog").is_displayed()
    browser.click("#fig1 img")  # the figure itself is a button, too
    assert browser.js("return document.querySelectorAll('dialog img').length") == 1


def test_those_who_hear_the_page_hear_everything(browser: Browser) -> None:
    def without(selector: str, holds: str) -> list[str]:
        return browser.js(
            f"return [...document.querySelectorAll(arguments[0])].filter((e) => !({holds})).map((e) => e.outerHTML)",
            selector,
        )

    assert without("img", "e.alt.trim()") == []
    assert without("button", "(e.getAttribute('aria-label') ?? e.textContent).trim()") == []
    assert without("th", "['col', 'row'].includes(e.scope)") == []
    assert without("a[href]", "e.textContent.trim()") == []
    assert without("[role=region], [role=group], nav", "e.getAttribute('aria-label')") == []
    assert without("html", "e.lang") == []
    levels = browser.js("return [...document.querySelectorAll('h1, h2, h3, h4')].map((e) => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_keyboard_reaches_the_content_first(browser: Browser) -> None:
    def focused() -> WebElement:
        return browser.driver.switch_to.active_element

    browser.one("body").send_keys(Keys.TAB)
    assert focused().get_attribute("href").endswith("#main")
    assert focused().location["x"] >= 0
    focused().send_keys(Keys.ENTER)
    assert focused().get_attribute("id") == "main"
