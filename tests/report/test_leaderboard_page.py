"""The page of a leaderboard in a real browser: it fits, is quiet, and shows every run of a small board at once."""

import pytest
import report_browser
from browsers import NEEDS_SELENIUM
from leaderboard_runs import score, write_run

from hardlook.report.leaderboard.board import build_leaderboard
from hardlook.report.leaderboard.report import write_pages
from hardlook.report.leaderboard.runs import collect_runs

from .test_accessibility import AXE, findings

pytestmark = [
    *NEEDS_SELENIUM,
    pytest.mark.skipif(AXE is None, reason="axe-playwright-python is not installed"),
]

ROWS_IN_SIGHT = """
const box = document.querySelector(".scroll"), end = box.getBoundingClientRect().bottom;
return Array.from(box.querySelectorAll("tbody tr")).filter((row) => row.getBoundingClientRect().bottom <= end)
  .map((row) => row.children[1].textContent);
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    words = "not comparable: " + "the pairs are not the published ones, " * 6
    for index in range(10):
        scores = [score(name, index / 100, comparable=words) for name in ("lca", "hca", "scs")]
        units = "abc" if index < 7 else "xyz"
        write_run(root / f"run-{index}", scores, benchmark="toss", model=f"model-{index}", units=units)
    found = collect_runs(root)
    [page], _ = write_pages(
        [build_leaderboard(found.benchmarks["toss"], found.runs["toss"])], tmp_path_factory.mktemp("out")
    )
    return page


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light")])
def test_a_small_board_is_seen_whole_and_has_no_serious_finding(driver, page, width, scheme):
    report_browser.show(driver, page, width, scheme)
    assert driver.get_log("browser") == []
    assert report_browser.requested(driver) == [page.as_uri()]
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    assert set(driver.execute_script(ROWS_IN_SIGHT)) >= {f"model-{index}" for index in range(10)}
    assert findings(driver) == []
