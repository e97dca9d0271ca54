"""Attributes beside those of another table."""

import pytest

from hardlook.toss.tiers.attribute_report import MAX_SPOTS, build_scatter, compare_with_published
from hardlook.toss.tiers.attributes import AttributeRow


def row(token, salience, iou, **more):
    return AttributeRow(token, None, iou, 0.1, 0.5, salience, 2, 0.0, more.get("class_name", "cat"), token)


def test_comparison_with_another_table_counts_equal_values():
    ours = [row(str(n), n / 10, 1 - n / 10) for n in range(10)]
    theirs = [
        AttributeRow(str(n), 0.5, n / 10, 0.1 + (n == 3), 0.5, (n / 10) ** 2, 2, 0.0, "1", str(n)) for n in range(8)
    ]
    found = compare_with_published(ours, theirs)
    assert found.rows == 8
    assert {one.column: one.estimate.value for one in found.ranked} == {"saliou": 1.0, "iou": -1.0}
    assert {one.column: (one.equal, one.rows) for one in found.exact} == {
        "blob_count": (8, 8),
        "distractor_weight": (8, 8),
        "area_ratio": (7, 8),
        "offset_ratio": (8, 8),
    }


@pytest.mark.parametrize(
    ("masks", "step"), [(1, 1), (MAX_SPOTS, 1), (MAX_SPOTS + 1, 2), (2 * MAX_SPOTS, 2), (2 * MAX_SPOTS + 1, 3)]
)
def test_a_chart_of_many_masks_draws_evenly_spaced_ones_and_says_so(masks, step):
    rows = [row(str(n), n / masks, 0.5) for n in range(masks)]
    chart = build_scatter(rows, "saliou", "iou", {"0": "easy"}, "Caption.")
    assert [spot.label for spot in chart.spots] == [str(n) for n in range(0, masks, step)]
    assert [(spot.x, spot.y) for spot in chart.spots] == [(n / masks, 0.5) for n in range(0, masks, step)]
    assert chart.spots[0].group == "easy"
    assert ("One of every" in chart.caption) is (step > 1)
    assert step == 1 or f"One of every {step} of the {masks:,} masks is drawn." in chart.caption


def test_masks_without_a_value_are_in_no_chart():
    assert build_scatter([row("1", None, 0.5)], "saliou", "iou", {}, "") is None
    chart = build_scatter([row("1", None, 0.5), row("2", 0.25, 0.5)], "saliou", "iou", {}, "")
    assert [spot.label for spot in chart.spots] == ["2"]
