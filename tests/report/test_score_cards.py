"""What the averages hide: slices that differ from the rest beyond chance, and what the data cannot tell."""

from __future__ import annotations

import pytest
import report_samples

from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.stats.intervals import Interval
from hardlook.report.page import render_page
from hardlook.report.statements import describe_slices


def score(name, value, half=0.05, n=40, **where):
    interval = Interval(value - half, value + half, 0.95, "percentile", n, "image") if half is not None else None
    return Score(name, value, n, interval, where)


def spreads(*scores, **more):
    return describe_slices(Scorecard("b", "1", "m", scores), **more)


def test_both_ends_are_named_with_their_intervals():
    [found] = spreads(
        *(score("iou", value, **{"class": name}) for name, value in zip("abc", (0.5, 0.2, 0.8), strict=True))
    )
    assert (found.name, found.by) == ("iou", "class")
    assert found.text == "from 0.200 (0.150 to 0.250) for b to 0.800 (0.750 to 0.850) for c" and found.found


@pytest.mark.parametrize("half", [0.45, 0.5])
def test_ends_that_chance_may_have_parted_are_not_told(half):
    [found] = spreads(score("iou", 0.2, half, kind="a"), score("iou", 0.8, half, kind="b"))
    assert not found.found
    assert found.text.startswith("these data cannot tell: none of 2 differs from the rest beyond chance. The clearest")
    assert "would take about" in found.text and "it has 40" in found.text
    assert spreads(score("iou", 0.2, None, kind="a"), score("iou", 0.8, None, kind="b")) == []


def test_slices_of_one_to_three_units_are_no_headline():
    thin = [score("iou", 0.0, 0.0, n=n, kind=str(n)) for n in (1, 2, 3)]
    [found] = spreads(*thin, score("iou", 0.9, 0.01, n=3, kind="b"))
    assert not found.found
    assert found.text == "these data cannot tell: 0 of 4 slices have 10 images and an interval; the largest has 3"
    [found] = spreads(*thin, score("iou", 0.6, n=50, kind="sky"))
    assert found.text == "these data cannot tell: 1 of 4 slices has 10 images and an interval, and it takes two"
    [found] = spreads(*thin, *(score("iou", 0.6, n=50, kind=name) for name in "abcd"))
    assert not found.found and found.text.endswith("; 3 more have too few")


def test_one_slice_below_the_others_is_set_against_them():
    [found] = spreads(score("iou", 0.2, kind="a"), *(score("iou", 0.7, 0.3, kind=name) for name in "bcdef"))
    assert found.text == "0.200 (0.150 to 0.250) for a, 0.700 in the mean of the other 5"


def test_the_clearest_difference_is_named_where_none_is_clear():
    values = {"a": 0.50, "b": 0.51, "c": 0.60, "d": 0.52}
    [found] = spreads(*(score("iou", value, 0.15, kind=name) for name, value in values.items()))
    assert "The clearest difference, 0.090 for c, would take" in found.text


def test_kinds_with_a_finding_come_first():
    unclear = [score("iou", value, 0.4, context=name) for name, value in (("sea", 0.5), ("sky", 0.6))]
    clear = [score("iou", value, **{"class": name}) for name, value in (("cat", 0.1), ("dog", 0.9))]
    assert [(one.by, one.found) for one in spreads(*unclear, *clear)] == [("class", True), ("context", False)]


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
    assert [(one.by, " for 0, 0 to " in one.text) for one in spreads(*pairs)] == [("a and b", True)]


def test_both_ends_have_the_same_decimals():
    [found] = spreads(score("noc", 2.4432, 0.5, dataset="a"), score("noc", 14.25, 2, dataset="b"))
    assert found.text == "from 2.44 (1.94 to 2.94) for a to 14.25 (12.25 to 16.25) for b"


def test_slices_that_share_an_end_are_counted():
    values = (("a", 0.0), ("b", 0.0), ("c", 0.9), ("d", 0.9), ("e", 0.95))
    scores = [score("iou", value, 0.01, **{"class": name}) for name, value in values]
    assert "for a and 1 more to" in spreads(*scores)[0].text


def test_not_more_than_asked():
    scores = [score("iou", value, **{f"k{i}": v}) for i in range(6) for v, value in (("a", 0.1), ("b", 0.9))]
    assert len(spreads(*scores)) == 4 and len(spreads(*scores, most=2)) == 2


def test_values_that_differ_in_the_last_bits_only_are_equal():
    noisy = [score("iou", 1.0 - i * 1e-16, None if i == 3 else 0.01, n=24, kind=str(i)) for i in range(4)]
    assert [found.text for found in spreads(*noisy)] == ["1.000 in all 4"]


def test_the_page_says_it_before_the_cards_and_escapes_names():
    hostile = Scorecard(
        "b", "1", "m", (score("iou", 0.1, k=report_samples.HOSTILE), score("iou", 0.9, k="b"), score("iou", 0.5))
    )
    page = render_page(hostile, [])
    hides = page.index("The average hides the k ")
    assert 0 < hides < page.index('class="cards"') < page.index("What the averages hide</h2>")
    assert "<script>alert" not in page
    assert "What the averages hide" not in render_page(Scorecard("b", "1", "m", (Score("iou", 0.5, 9),)), [])
