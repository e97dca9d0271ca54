"""The pages of a demo in a real browser: short, no chart of equal values, comparisons below 8,000 px."""

from __future__ import annotations

import re

import pytest
import report_browser
from browsers import NEEDS_SELENIUM

from hardlook.harness.registry import BUILT_IN, find_benchmark
from hardlook.harness.runs.launch import launch
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.compare.document import write_comparison
from hardlook.report.run_report import write_report

pytestmark = NEEDS_SELENIUM

# As in the demo, on fewer units: heights depend on sections and scores, not on units.
FEW = {"metacoco": {"tasks": 12, "resamples": 20}, "toss": {"scenes": 24, "resamples": 20}}


@pytest.fixture(scope="module", params=BUILT_IN)
def pages(request, tmp_path_factory):
    """The reports of a sound and a faulty model, and their comparison."""
    root, name = tmp_path_factory.mktemp(request.param), request.param
    dial = next(dial for dial in find_benchmark(name).card.dials if dial.moves)
    runs = []
    for title, setting in (("sound", 0.0), ("faulty", 0.3)):
        given = FEW.get(name, {"scenes": 12, "resamples": 20})
        arguments = dict(dial.arguments(setting))
        scored = launch(name, out=root / title, model=dial.model, model_args=arguments, given=given).scored
        write_report(scored, examples=2)
        runs.append(scored)
    page = root / "comparison.html"
    write_comparison(compare_runs(runs, names=("sound", "faulty"), swaps=99), runs, page, examples=2)
    return {title: root / title / "report.html" for title in ("sound", "faulty")} | {"comparison": page}


def measure(driver, page, width=1280) -> int:
    report_browser.show(driver, page, width, "light")
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    return driver.execute_script("return document.documentElement.scrollHeight")


def list_values(svg: str) -> set[str]:
    """The values that a drawing of dots writes at its right edge, without their intervals."""
    texts = re.findall(r'<text[^>]*text-anchor="end"[^>]*>([^<]*)</text>', svg)
    return {text.split(" (")[0] for text in texts if re.fullmatch(r"-?\d+\.\d{3}( \(.*\))?", text)}


def test_comparisons_are_below_eight_thousand_pixels_and_reports_below_six_thousand(driver, pages):
    assert measure(driver, pages["comparison"]) < 8_000
    assert measure(driver, pages["comparison"], 390) < 8_000
    for title in ("sound", "faulty"):
        assert measure(driver, pages[title]) < 6_000


def test_every_page_opens_with_one_or_two_sentences_and_at_most_four_cards(driver, pages):
    for title, page in pages.items():
        text = page.read_text(encoding="utf-8")
        (lead,) = re.findall(r'<p class="lead">(.*?)</p>', text)
        # A full stop before a space ends a sentence; those in numbers have no space behind them.
        assert 1 <= len(re.findall(r"\.(?:\s|$)", lead)) <= 2, lead
        assert text.count('<li class="card">') <= 4
        assert title == "comparison" or 1 <= text.count('<li class="card">')
        assert "slope" not in text or title != "comparison"


def test_no_chart_of_a_sound_model_is_a_column_of_the_same_number(driver, pages):
    drawings = re.findall(r"<svg class=\"chart.*?</svg>", pages["sound"].read_text(encoding="utf-8"), re.DOTALL)
    assert not [drawing[:300] for drawing in drawings if list_values(drawing) == {"1.000"}]
