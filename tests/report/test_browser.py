"""The pages in a real browser: nothing overflows, overlaps, complains or is fetched; tables sort, galleries open."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import report_samples
from browsers import NEEDS_SELENIUM
from report_browser import LOOKS, requested, show

from hardlook.harness.sections import Section, Table
from hardlook.report.charts import draw_svg
from hardlook.report.index import IndexEntry, render_index
from hardlook.report.page import render_page

pytestmark = NEEDS_SELENIUM

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


def unfold(driver) -> None:
    """Open all sections of the page."""
    driver.execute_script("document.querySelectorAll('details.part').forEach(part => { part.open = true })")


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    parts = [
        *report_samples.sections(),
        report_samples.three_galleries(),
        Section("Degenerate", "", list(report_samples.degenerate().values())),
    ]
    file.write_text(render_page(report_samples.scorecard(), parts, **report_samples.page_arguments()), encoding="utf-8")
    return file


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_report_fits_and_the_console_is_quiet(driver, page, width, scheme):
    show(driver, page, width, scheme)
    assert driver.get_log("browser") == []
    assert requested(driver) == [page.as_uri()]
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    unfold(driver)
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    background = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.parametrize("width", [1280, 768, 390])
def test_no_text_of_a_drawing_covers_another_or_leaves_it(driver, page, width):
    show(driver, page, width, "light")
    unfold(driver)
    assert driver.execute_script(OVERLAPS) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_exactly_one_drawing_of_each_chart_is_shown(driver, page, width):
    show(driver, page, width, "light")
    unfold(driver)
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
    unfold(driver)
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
    unfold(driver)
    field = driver.find_element("css selector", "input[data-filters='all-scores-table']")
    rows = driver.find_elements("css selector", "#all-scores-table tbody tr")
    expected = [row.text for row in rows if "miou" in row.text and "19" in row.text]
    field.send_keys("MIOU 19")
    kept = [row.text for row in rows if row.is_displayed()]
    assert kept == expected and 0 < len(kept) < len(rows)
    said = driver.find_element("css selector", "#all-scores .filter output").text
    assert said == f"{len(kept)} of {len(rows)} rows"


def boxes(driver) -> list[bool]:
    return driver.execute_script(
        "return Array.from(document.querySelectorAll('details.box')).map(box => box.open &&"
        " box.querySelector('.gallery').getBoundingClientRect().height > 0)"
    )


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_galleries_open_and_close_by_click_and_keyboard(driver, page, width, scheme):
    show(driver, page, width, scheme)
    unfold(driver)
    assert boxes(driver) == [True, True, False, False]
    summaries = driver.find_elements("css selector", "details.box > summary")
    summaries[2].click()
    assert boxes(driver) == [True, True, True, False]
    summaries[3].send_keys("\ue007")
    summaries[0].send_keys(" ")
    assert boxes(driver) == [False, True, True, True]
    assert driver.get_log("browser") == []


def test_a_unit_opens_its_record_by_the_keyboard(driver, page):
    show(driver, page, 1280, "light")
    unfold(driver)
    record = driver.find_element("css selector", "details.record")
    assert not record.find_element("css selector", "dl").is_displayed()
    record.find_element("css selector", "summary").send_keys("\ue007")
    assert "beach" in record.find_element("css selector", "dl").text
    assert record.find_element("css selector", "pre").text == report_samples.records()["u/1"].command


def test_every_drawing_on_show_has_a_name_and_words_in_the_accessibility_tree(driver, page):
    show(driver, page, 1280, "light")
    unfold(driver)
    nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    drawings = [node for node in nodes if node.get("role", {}).get("value") in ("image", "img", "graphics-document")]
    shown = driver.execute_script(
        "return Array.from(document.querySelectorAll('svg.chart')).filter(s => s.getBoundingClientRect().width).length"
    )
    names = [node["name"]["value"] for node in drawings if len(node["name"]["value"]) > 20]
    assert shown > 10 and len(names) >= shown


def test_the_keyboard_reaches_boxes_sort_buttons_and_filters_in_reading_order(driver, tmp_path):
    file = tmp_path / "report.html"
    parts = [report_samples.three_galleries(), Section("Table", "", (report_samples.table(),))]
    file.write_text(render_page(report_samples.scorecard(), parts, **report_samples.page_arguments()), encoding="utf-8")
    show(driver, file, 1280, "light")
    unfold(driver)
    driver.execute_script("document.querySelector('#s1 h2').tabIndex = -1; document.querySelector('#s1 h2').focus()")
    reached = []
    for _ in range(30):
        driver.switch_to.active_element.send_keys("\ue004")
        focused = driver.switch_to.active_element
        reached.append(focused.tag_name)
    rest = [tag for tag, before in zip(reached, [None, *reached], strict=False) if tag != before]
    # The boxes of the first section, the second section, and what is in it.
    assert rest[:4] == ["summary", "input", "div", "button"]
    assert reached.count("button") >= len(report_samples.table().columns)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_index_fits(driver, tmp_path, width, scheme):
    entries = [
        IndexEntry(
            "Open mIoU",
            "Near misses count.",
            "report.html",
            report_samples.scorecard().headline,
            draw_svg(report_samples.dial()),
        )
    ]
    file = tmp_path / "index.html"
    file.write_text(render_index(entries, title="Demo", text="One report."), encoding="utf-8")
    show(driver, file, width, scheme)
    assert driver.get_log("browser") == []
    assert requested(driver) == [file.as_uri()]
    assert driver.execute_script("return document.documentElement.scrollWidth") == width


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext is installed (Debian: poppler-utils)")
def test_a_printed_page_repeats_headers_and_shows_no_controls(driver, tmp_path):
    file, pdf = tmp_path / "report.html", tmp_path / "report.pdf"
    rows = [(f"row {index}", index / 300) for index in range(300)]
    sections = [
        Section("Table", "", (Table("Rows", "", ("a name", "a value"), rows),)),
        report_samples.three_galleries(),
    ]
    file.write_text(
        render_page(report_samples.scorecard(), sections, **report_samples.page_arguments()), encoding="utf-8"
    )
    show(driver, file, 1280, "dark")
    pdf.write_bytes(base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"]))
    text = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True).stdout
    pages = [page for page in text.split("\f") if re.search(r"^ *row \d+ ", page, re.MULTILINE)]
    assert len(pages) > 2
    assert all(re.search(r"a name +a value", page) for page in pages)
    assert "Filter" not in text and "Contents" not in text
    assert re.search(r"The best units +2 units \(closed when this was printed\)", text)
    # Sections are closed on the screen and open on paper, and closed again after printing.
    assert "class: class 7" in text and "Path length over WordNet" in text and "Everything needed to run this" in text
    assert driver.find_elements("css selector", "details.part[open]") == []


def list_open(driver) -> list[str]:
    return driver.execute_script(
        "return Array.from(document.querySelectorAll('section.folded')).filter(s => s.firstElementChild.open)"
        ".map(s => s.id)"
    )


def wait_for_open(driver, expected):
    """The page opens a section when it is told of the new address, which is after the click."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 10, 0.05).until(lambda browser: list_open(browser) == expected, f"not open: {expected}")


def test_a_section_opens_by_keyboard_by_its_link_and_by_the_address(driver, page):
    show(driver, page, 1280, "light")
    assert list_open(driver) == []
    driver.find_element("css selector", "#about summary").send_keys("\ue007")
    wait_for_open(driver, ["about"])
    driver.find_element("css selector", "nav a[href='#s3']").click()
    wait_for_open(driver, ["s3", "about"])
    # A link to where the page already is opens the section again.
    driver.find_element("css selector", "#s3 summary").click()
    wait_for_open(driver, ["about"])
    driver.find_element("css selector", "nav a[href='#s3']").click()
    wait_for_open(driver, ["s3", "about"])
    for anchor, opened in (("readings", "about"), ("s3b2", "s3"), ("all-scores", "all-scores")):
        driver.get("about:blank")
        driver.get(f"{page.as_uri()}#{anchor}")
        wait_for_open(driver, [opened])
        top = driver.execute_script("return document.getElementById(arguments[0]).getBoundingClientRect().top", anchor)
        assert 0 <= top < 900
    assert driver.get_log("browser") == []


def test_a_report_is_read_on_two_screens(driver, page):
    """Sentences and cards on the first one, and no section but the first below."""
    show(driver, page, 1280, "light")
    ends = driver.execute_script(
        "return ['.lead', '.cards', '#scores'].map(name => document.querySelector(name).getBoundingClientRect().bottom)"
    )
    assert ends[0] < 300 and ends[1] < 900 and ends[2] < 1200
