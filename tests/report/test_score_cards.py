"""What the averages hide: ends of slices that are apart beyond their intervals, and no others."""

from __future__ import annotations

import pytest
import report_samples

from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.stats.intervals import Interval
from hardlook.report.page import find_slice_extremes, render_page


def score(name, value, half=0.05, **where):
    interval = Interval(value - half, value + half, 0.95, "percentile", 9, "image") if half else None
    return Score(name, value, 9, interval, where)


def spreads(*scores, **more):
    return find_slice_extremes(Scorecard("b", "1", "m", scores), **more)


def test_both_ends_are_named_with_their_intervals():
    [found] = spreads(
        *(score("iou", value, **{"class": name}) for name, value in zip("abc", (0.5, 0.2, 0.8), strict=True))
    )
    assert (found.name, found.by) == ("iou", "class")
    assert found.lowest == "0.200 (0.150 to 0.250) for b" and found.highest == "0.800 (0.750 to 0.850) for c"


@pytest.mark.parametrize("half", [0.3, 0.31, None])
def test_ends_that_chance_may_have_parted_are_not_told(half):
    assert spreads(score("iou", 0.2, half, kind="a"), score("iou", 0.8, half, kind="b")) == []


def test_a_property_with_one_value_is_not_named_and_does_not_repeat_another():
    scores = [score("miou", value, split=name) for name, value in (("easy", 0.8), ("hard", 0.2))]
    again = [score("miou", one.value, fold="0", **one.slice) for one in scores]
    assert [found.by for found in spreads(*again, *scores)] == ["split"]
    assert spreads(score("miou", 0.8, fold="0")) == []


def test_the_first_score_of_each_kind_of_slice_is_told_and_titles_are_used():
    scores = [score(name, value, size=size) for name in ("noc", "auc") for size, value in (("s", 9.0), ("l", 2.0))]
    [found] = spreads(*scores, titles={"noc": "NoC@90"})
    assert found.name == "NoC@90"
    pairs = [score("iou", 0.1 + 0.2 * (i + 2 * j), a=str(i), b=str(j)) for i in range(2) for j in range(2)]
    assert [(one.by, one.lowest.split(" for ")[1]) for one in spreads(*pairs)] == [("a and b", "0, 0")]


def test_both_ends_have_the_same_decimals():
    [found] = spreads(score("noc", 2.4432, 0.5, dataset="a"), score("noc", 14.25, 2, dataset="b"))
    assert (found.lowest, found.highest) == ("2.44 (1.94 to 2.94) for a", "14.25 (12.25 to 16.25) for b")


def test_slices_that_share_an_end_are_counted():
    scores = [score("iou", value, 0.01, **{"class": name}) for name, value in (("a", 0.0), ("b", 0.0), ("c", 0.9))]
    assert spreads(*scores)[0].lowest.endswith("for a and 1 more")


def test_not_more_than_asked():
    scores = [score("iou", value, **{f"k{i}": v}) for i in range(6) for v, value in (("a", 0.1), ("b", 0.9))]
    assert len(spreads(*scores)) == 4 and len(spreads(*scores, most=2)) == 2


def test_the_page_says_it_before_the_cards_and_escapes_names():
    hostile = Scorecard(
        "b", "1", "m", (score("iou", 0.1, k=report_samples.HOSTILE), score("iou", 0.9, k="b"), Score("iou", 0.5, 9))
    )
    page = render_page(hostile, [])
    assert 0 < page.index("What the averages hide") < page.index('class="cards"')
    assert "<script>alert" not in page
    assert "What the averages hide" not in render_page(Scorecard("b", "1", "m", (Score("iou", 0.5, 9),)), [])
