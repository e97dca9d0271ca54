"""The page of a comparison in a real browser: it fits, is quiet, has no serious finding, and its table sorts."""

import pytest
import report_browser
from browsers import NEEDS_SELENIUM
from small_runs import small_run

from hardlook.report.compare.comparison import compare_runs, read_runs
from hardlook.report.compare.document import write_comparison

from .test_accessibility import AXE, findings
from .test_browser import OVERLAPS, unfold

pytestmark = [
    *NEEDS_SELENIUM,
    pytest.mark.skipif(AXE is None, reason="axe-playwright-python is not installed"),
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Of two models and of three, whose long names begin alike."""
    root = tmp_path_factory.mktemp("runs")
    folders = []
    for seed, stranger in enumerate((0.1, 0.3, 0.8)):
        folders.append(root / f"planted-segmenter-that-errs-{stranger}")
        small_run(folders[-1], scenes=10, args={"stranger": stranger, "seed": seed}, given={"resamples": 20})
    found = {}
    for name, chosen in (("two", folders[::2]), ("three", folders)):
        runs = read_runs(chosen)
        found[name] = root / f"{name}.html"
        write_comparison(compare_runs(runs, swaps=99), runs, found[name], examples=2)
    return found


@pytest.mark.parametrize(
    ("name", "width", "scheme"), [("two", 390, "dark"), ("three", 390, "light"), ("three", 1280, "dark")]
)
def test_the_page_fits_is_quiet_and_has_no_serious_finding(driver, pages, name, width, scheme):
    report_browser.show(driver, pages[name], width, scheme)
    assert driver.get_log("browser") == []
    assert report_browser.requested(driver) == [pages[name].as_uri()]
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    unfold(driver)
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    assert driver.execute_script(OVERLAPS) == []
    driver.execute_script("document.querySelectorAll('details').forEach(box => { box.open = true })")
    assert findings(driver) == []


def test_ranks_letters_and_the_end_of_each_name_are_seen_on_a_phone(driver, pages):
    report_browser.show(driver, pages["three"], 390, "light")
    shown = driver.execute_script(
        "return Array.from(document.querySelectorAll('svg.chart text')).filter(t => t.getBoundingClientRect().width)"
        ".map(t => t.firstChild.textContent)"
    )
    labels = [text.split() for text in shown if text[:1].isdigit() and len(text.split()) == 3]
    assert {name for _, _, name in labels} == {
        "\N{HORIZONTAL ELLIPSIS}0.1",
        "\N{HORIZONTAL ELLIPSIS}0.3",
        "\N{HORIZONTAL ELLIPSIS}0.8",
    }
    assert [rank for rank, _, _ in labels] == sorted(rank for rank, _, _ in labels)
    assert all(letters.isalpha() for _, letters, _ in labels)


def test_all_differences_sort_by_size(driver, pages):
    report_browser.show(driver, pages["three"], 1280, "light")
    unfold(driver)
    table = driver.find_elements("css selector", "table.sortable")[-1]
    heads = [cell.text for cell in table.find_elements("css selector", "thead th")]
    column = heads.index("difference")
    table.find_elements("css selector", "thead button")[column].click()
    values = driver.execute_script(
        "return Array.from(arguments[0].tBodies[0].rows).map(r => r.cells[arguments[1]].dataset.value).filter(v => v)",
        table,
        column,
    )
    numbers = [float(value) for value in values]
    assert len(numbers) > 10 and numbers == sorted(numbers, reverse=True)
