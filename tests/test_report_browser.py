"""The page in a real browser: Debian's chromium and chromium-driver. Where they are not installed these tests are
skipped, unless BRITTLE_BROWSER=required says that they must run."""

from __future__ import annotations

import json
import os
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
from test_report import HOSTILE, WORLDS, make_inputs, written

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
    assert HOSTILE in browser.column("X3-table", place("remedy"))
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
    assert press(5) == "ascending"
    assert browser.one("#claims th").get_attribute("aria-sort") is None
    verdicts = [verdict.split(maxsplit=1)[1] for verdict in browser.column("claims", 4)]
    order = ["reproduced", "differs", "not run at this scale"]
    assert verdicts == sorted(verdicts, key=order.index)


def test_a_sheet_is_sorted_by_numbers_and_empty_cells_are_last(browser: Browser) -> None:
    browser.click(f"#X3-table th:nth-child({place('cost') + 1}) button")  # as text, 100 would be before 2
    assert [float(cost) for cost in browser.column("X3-table", place("cost"))] == sorted([1, 11, 2, 100] * len(WORLDS))
    for _ in range(2):  # either way
        browser.click(f"#X3-table th:nth-child({place('certified') + 1}) button")
        shares = browser.column("X3-table", place("certified"))
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
    browser.click(".glance a[href='#claim-M1']")  # a link to a row that is hidden brings it back
    assert browser.column("claims", 0) == everything

    browser.click(f"[data-table=X3-table] [data-choice='{WORLDS[1]}']")
    assert set(browser.column("X3-table", 0)) == {WORLDS[1]}
    assert set(browser.column("X1-table", 0)) == set(WORLDS)


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
        assert browser.one("#X3-table th").text == "World"
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
        assert browser.js(shown, "#made table") == 2  # versions and files, but not the pages of parameters
        assert browser.js(shown, "pre") == 0
        assert browser.js("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        browser.cdp("Emulation.setEmulatedMedia", media="")


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
