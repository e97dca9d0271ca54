"""Whether the support is used: what is found of the same query images with a right support and with a spurious one.

Levels of tier 2 have different query images, and an easy image is found with any support. So the share that is left
under a spurious support is taken over the query images that have both. A model that never sees its support has the
share 1 then, whatever the images.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hardlook.harness.rounding import format_percent
from hardlook.harness.scorecard import Scorecard
from hardlook.harness.stats import Estimate
from hardlook.harness.tally import Draws, estimate_tally
from hardlook.harness.verdicts import CANNOT_TELL, judge
from hardlook.metrics.one_shot import class_iou
from hardlook.toss.options import COGNIZANCE
from hardlook.toss.pixel_sums import NamedScore, PixelSums, Totals, mean_iou, sum_pixels, tally_scores
from hardlook.toss.scores import SAME_CLASS, SPURIOUS

if TYPE_CHECKING:
    import polars as pl

# Of the right support's mIoU: what is left under a wrong one if the support is ignored, and if it is followed.
IGNORED_ABOVE, FOLLOWED_BELOW = 0.75, 0.25
SIDES = ("right", "wrong")
SUPPORTS = {"L4": "of another class", "L5": "without a mask", "L6": "without an image"}


def measure_support_use(records: pl.DataFrame, *, void_ignored: bool) -> dict[str, Estimate]:
    """By spurious level its mIoU over that of supports of the right class, on query images that have both.

    `records` are of one number of shots. The intervals resample query images. A level that shares no query image with
    the right supports is left out.
    """
    import polars as pl

    tier = records.filter(pl.col("tier") == COGNIZANCE)
    right, target = tier.filter(pl.col("split").is_in(SAME_CLASS)), ("fold", "class", "query")
    found = {}
    for level in SPURIOUS:
        wrong = tier.filter(pl.col("split") == level)
        common = [right.join(wrong, on=target, how="semi"), wrong.join(right, on=target, how="semi")]
        if common[0].is_empty():
            continue
        both = pl.concat([one.with_columns(against=pl.lit(name)) for one, name in zip(common, SIDES, strict=True)])
        sums = sum_pixels(both, ("against", "fold", "class"), void_ignored=void_ignored)
        share = partial(_name_share, sums)
        [tally] = tally_scores(sums, share, key=("toss", "support use", level))
        [found[level]] = estimate_tally(tally, Draws())
    return found


def _name_share(sums: PixelSums, totals: Totals) -> list[NamedScore]:
    right, wrong = (mean_iou(sums, totals, sums.where(against=name)) for name in SIDES)
    return [NamedScore("share", {}, class_iou(wrong, right), sums.where())]


def describe_support_use(records: pl.DataFrame, scorecard: Scorecard) -> str:
    """How much of what a right support finds is left when the support shows something else, and what that means."""
    ignored = any(reading.name == "void" and reading.value == "ignored" for reading in scorecard.readings)
    sliced = {int(score.slice["shots"]) for score in scorecard.scores if "shots" in score.slice}
    shares = measure_support_use(records.filter(~records["shots"].is_in(sliced)), void_ignored=ignored)
    if not shares:
        return ""
    parts = [f"{_format_share(share)} with a support {SUPPORTS[level]}" for level, share in shares.items()]
    return (
        "Of the mIoU that a support of the right class gives on the same query images, what is left is "
        f"{', '.join(parts)}. {judge_support_use(shares)}"
    )


def _format_share(share: Estimate) -> str:
    queries = f"{share.interval.n} {'image' if share.interval.n == 1 else 'images'}"
    if not np.isfinite(share.value):
        return f"undefined ({queries})"
    bounds = (
        f"{format_percent(share.interval.low, gap='')} to {format_percent(share.interval.high, gap='')}, "
        if share.interval.defined
        else ""
    )
    return f"{format_percent(share.value, gap='')} ({bounds}{queries})"


def judge_support_use(shares: Mapping[str, Estimate]) -> str:
    """A verdict that the intervals of all levels bear, or that these data cannot tell."""
    found = {level: judge(share, FOLLOWED_BELOW) for level, share in shares.items()}
    kept = {level: judge(share, IGNORED_ABOVE) for level, share in shares.items()}
    if all(one.side == "above" for one in kept.values()):
        return "The support is all but ignored: the model finds the query's object with any support."
    if all(one.side == "below" for one in found.values()):
        return "The support is followed: without it next to nothing is found."
    without = [one.side for level, one in found.items() if level != "L4"]
    if "L4" in found and found["L4"].side == "above" and without and all(side == "below" for side in without):
        if kept["L4"].side == "above":
            return "The model needs a support and nearly any will do: another class works almost as well."
        if kept["L4"].side == "below":
            return "The model needs a support, and in part any will do: much is found with another class."
    if any(one.side == "above" for one in found.values()) and any(one.side == "below" for one in kept.values()):
        return "The support is followed in part: much is found that it does not show."
    why = next(one.why for one in (*found.values(), *kept.values()) if one.why)
    return why.replace(CANNOT_TELL, f"{CANNOT_TELL} whether the support is used", 1)
