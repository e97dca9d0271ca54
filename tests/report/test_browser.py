"""The pages in a real browser: nothing overflows, overlaps or complains, and the tables sort."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hardlook.contract.sections import Section
from hardlook.report.charts import draw_svg
from hardlook.report.index import IndexEntry, render_index
from hardlook.report.page import render_page

from . import samples

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed"),
    pytest.mark.skipif(CHROMEDRIVER is None, reason="no chromedriver is installed (Debian: chromium-driver)"),
]
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars"
).split()
LOOKS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]

# Boxes of the texts of every visible drawing; turned labels are left out, for their boxes are not their shapes.
OVERLAPS = """
const found = [];
for (const svg of document.querySelectorAll("svg.chart")) {
  const frame = svg.getBoundingClientRect();
  if (!frame.width) continue;
  const texts = Array.from(svg.querySelectorAll("text")).filter((text) => !text.hasAttribute("transform"));
  const boxes = texts.map((text) => [text.firstChild.textContent, text.getBoundingClientRect()]);
  for (const [name, box] of boxes) {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1)
      found.push("out of its drawing: " + name);
  }
  boxes.forEach(([name, a], index) => boxes.slice(index + 1).forEach(([other, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    // Line boxes are taller than letters: names set one line apart touch by less than a third of that.
    if (wide > 1 && tall > 0.34 * Math.min(a.height, b.height)) found.push(name + " on " + other);
  }));
}
return found;
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(executable_path=CHROMEDRIVER))
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    parts = [*samples.sections(), Section("Degenerate", "", list(samples.degenerate().values()))]
    file.write_text(render_page(samples.scorecard(), parts, **samples.page_arguments()), encoding="utf-8")
    return file


def show(driver, file: Path, width: int, scheme: str) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wanted.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get_log("browser")
    driver.get(file.as_uri())


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_report_fits_and_the_console_is_quiet(driver, page, width, scheme):
    show(driver, page, width, scheme)
    assert driver.get_log("browser") == []
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    background = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.parametrize("width", [1280, 768, 390])
def test_no_text_of_a_drawing_covers_another_or_leaves_it(driver, page, width):
    show(driver, page, width, "light")
    assert driver.execute_script(OVERLAPS) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_exactly_one_drawing_of_each_chart_is_shown(driver, page, width):
    show(driver, page, width, "light")
    shown = driver.execute_script(
        "return Array.from(document.querySelectorAll('figure')).map(figure =>"
        " Array.from(figure.querySelectorAll('svg.chart')).filter(svg => svg.getBoundingClientRect().width).length)"
    )
    assert set(shown) == {0, 1} and shown.count(1) > 6


def column(driver, table: str, index: int) -> list[str]:
    return driver.execute_script(
        "return Array.from(document.getElementById(arguments[0]).tBodies[0].rows)"
        ".filter(row => !row.hidden).map(row => row.cells[arguments[1]].textContent)",
        table,
        index,
    )


def test_tables_sort_by_click_in_both_directions(driver, page):
    show(driver, page, 1280, "light")
    buttons = driver.find_elements("css selector", "#s1b7-table thead button")
    buttons[1].click()
    values = [float(text) for text in column(driver, "s1b7-table", 1)]
    assert values == sorted(values, reverse=True)
    buttons[1].click()
    values = [float(text) for text in column(driver, "s1b7-table", 1)]
    assert values == sorted(values)
    headers = driver.find_elements("css selector", "#s1b7-table thead th")
    assert [header.get_attribute("aria-sort") for header in headers] == ["none", "ascending", "none", "none"]
    buttons[0].send_keys("\ue007")
    assert column(driver, "s1b7-table", 0) == [f"model {i}" for i in range(20)]
    # Cells without a note stay at the end.
    buttons[3].click()
    assert column(driver, "s1b7-table", 3)[0] == "a note"


def test_the_filter_keeps_the_rows_that_hold_all_words(driver, page):
    show(driver, page, 1280, "light")
    field = driver.find_element("css selector", "input[data-filters='all-scores-table']")
    rows = driver.find_elements("css selector", "#all-scores-table tbody tr")
    expected = [row.text for row in rows if "miou" in row.text and "19" in row.text]
    field.send_keys("MIOU 19")
    kept = [row.text for row in rows if row.is_displayed()]
    assert kept == expected and 0 < len(kept) < len(rows)
    said = driver.find_element("css selector", "#all-scores .filter output").text
    assert said == f"{len(kept)} of {len(rows)} rows"


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_index_fits(driver, tmp_path, width, scheme):
    entries = [
        IndexEntry(
            "Open mIoU", "Near misses count.", "report.html", samples.scorecard().headline, draw_svg(samples.dial())
        )
    ]
    file = tmp_path / "index.html"
    file.write_text(render_index(entries, title="Demo", text="One report."), encoding="utf-8")
    show(driver, file, width, scheme)
    assert driver.get_log("browser") == []
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
