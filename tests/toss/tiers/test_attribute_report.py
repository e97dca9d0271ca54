"""Attributes beside those of another table."""

from hardlook.toss.tiers.attribute_report import compare_with_published
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
