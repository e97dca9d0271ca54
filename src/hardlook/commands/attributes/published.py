"""Our attributes beside the published table: numbers, and how to read them."""

from __future__ import annotations

from typing import Any

from hardlook.contract.sections import Dot, DotChart, ScatterChart, Section, Spot, Table
from hardlook.tiers.published_comparison import PublishedComparison

_MEANING = {
    "saliou": "salience",
    "iou": "supervised IoU",
    "blob_count": "from the mask alone: all must be equal",
    "distractor_weight": "from the label map alone: all must be equal",
    "area_ratio": "published: one value an image, whatever the class; ours: the box of the class mask",
    "offset_ratio": "published: one value an image, whatever the class; ours: the box of the class mask",
}
_MOST_SPOTS = 1500


def published_section(comparison: PublishedComparison) -> Section:
    """The part of the page that compares."""
    dots = [
        Dot(_MEANING[one.column], one.estimate.value, one.estimate.interval.low, one.estimate.interval.high)
        for one in comparison.ranked
    ]
    shares = [
        (one.column, one.rows, one.equal, 100 * one.equal / one.rows, one.spearman, _MEANING[one.column])
        for one in comparison.exact
    ]
    spots = []
    for one in comparison.ranked:
        step = -(-one.ours.size // _MOST_SPOTS)
        points = zip(one.published[::step].tolist(), one.ours[::step].tolist(), strict=True)
        spots.append(
            ScatterChart(
                f"{_MEANING[one.column][0].upper()}{_MEANING[one.column][1:]}: published and ours",
                "One point a mask. Another model measured it there, so points spread; on the line both agree.",
                [Spot(x, y, "") for x, y in points],
                "published",
                "ours",
                diagonal=True,
            )
        )
    return Section(
        "Beside the published table",
        f"{comparison.rows:,} masks are in both tables. The published table's size and centredness repeat one "
        "value for all classes of an image, so they are not those of the class mask that the paper describes.",
        [
            DotChart(
                "Rank correlation with the published columns", "Spearman, interval over images.", dots, "Spearman"
            ),
            Table(
                "Equal values",
                "Within 1e-6.",
                ("column", "masks", "equal", "percent", "Spearman", "why"),
                shares,
                decimals=3,
            ),
            *spots,
        ],
    )


def published_document(comparison: PublishedComparison) -> dict[str, Any]:
    """The comparison as JSON."""
    return {
        "rows": comparison.rows,
        "spearman": {
            one.column: {
                "value": one.estimate.value,
                "low": one.estimate.interval.low,
                "high": one.estimate.interval.high,
                "masks": int(one.ours.size),
            }
            for one in comparison.ranked
        },
        "exact": {
            one.column: {
                "equal": one.equal,
                "rows": one.rows,
                "spearman": None if one.spearman != one.spearman else one.spearman,
            }
            for one in comparison.exact
        },
    }
