"""What the page of the support ablations shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.benchmarks.bias_support.conditions import CONDITIONS, CORRECT, SPURIOUS
from hardlook.benchmarks.one_shot_pairs.pair_galleries import pair_gallery, with_iou
from hardlook.benchmarks.one_shot_pairs.shown_scores import FOLLOWED_TO, IGNORED_FROM
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import Dot, DotChart, HeatMap, Section, dot_of

if TYPE_CHECKING:
    import polars as pl

OURS, PAPER = "this model", "the paper's baseline"


def show(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The picture, what it means, the classes, and pairs whose object is found all the same."""
    sections = [_conditions(scorecard), _classes(scorecard), _pairs(records, scorecard)]
    return [section for section in sections if section is not None]


def _conditions(scorecard: Scorecard) -> Section:
    known = {score.name: score for score in scorecard.headline}
    rows = [dot_of(known[one.name], one.words, OURS) for one in CONDITIONS if one.name in known]
    rows += [Dot(one.words, one.published, group=PAPER) for one in CONDITIONS]
    chart = DotChart(
        "mIoU with the query's object, by what the support shows",
        "The truth is the query's own class throughout. A model that uses its support finds next to nothing in all "
        "rows but the first.",
        tuple(rows),
        axis="mIoU",
    )
    return Section("What is left when the support misleads", _verdict(scorecard), (chart,))


def _verdict(scorecard: Scorecard) -> str:
    left = {score.slice["support"]: score for score in scorecard.scores if score.name == "left"}
    if not left or not scorecard.get(CORRECT.name).value > 0:
        return "With the right support next to nothing is found, so nothing can be said about what is left."
    parts = [
        f"{left[one.name].value:.0%}{_span(left[one.name])} with {one.words}" for one in SPURIOUS if one.name in left
    ]
    shares = [score.value for score in left.values()]
    if min(shares) >= IGNORED_FROM:
        meaning = "The model all but ignores its support: it segments what it would segment anyway."
    elif max(shares) <= FOLLOWED_TO:
        meaning = "The model needs its support and follows it."
    else:
        meaning = "The model uses its support in part; the rows far to the right are what it finds without being told."
    return f"Of the mIoU with the right support this is left: {'; '.join(parts)}. {meaning}"


def _span(score: Score) -> str:
    return f" ({score.interval.low:.0%} to {score.interval.high:.0%})" if score.interval else ""


def _classes(scorecard: Scorecard) -> Section:
    cells = {
        (score.slice["class"], score.slice["support"]): score.value for score in scorecard.scores if score.name == "iou"
    }
    classes = list(dict.fromkeys(name for name, _ in cells))
    heat = HeatMap(
        "IoU of each class under each support",
        "Classes that stay warm across the row are found without the support.",
        classes,
        [one.name for one in CONDITIONS],
        [[cells.get((name, one.name), float("nan")) for one in CONDITIONS] for name in classes],
        row_axis="class",
        column_axis="support",
    )
    return Section("Which classes", "", (heat,))


def _pairs(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    """What is found although the support does not show it; nothing where the support is followed."""
    pairs = with_iou(records, scorecard)
    blocks = [
        pair_gallery(
            pairs.filter(pairs["condition"] == one.name), f"Found with {one.words}", "Highest IoU first.", "condition"
        )
        for one in SPURIOUS
    ]
    shown = tuple(block for block in blocks if block.examples)
    return Section("Found all the same", "One pair a query image.", shown) if shown else None
