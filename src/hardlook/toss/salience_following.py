"""What predicted masks follow where the target is not salient: the target, or what is salient in the query.

A gap between salient and other targets alone does not show it: salient targets may be easier for any model. Nor does
the larger of two IoUs: a mask of the whole image has the higher IoU with whatever is larger. So the shares that the
masks cover of what is only target and of what is only salient are compared too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.rounding import format_fixed, format_percent
from hardlook.harness.scorecard import Score, Scorecard, find_score
from hardlook.harness.sections import DotChart, score_dot
from hardlook.harness.tally import DIFFERENCE, SumTally
from hardlook.harness.verdicts import CANNOT_TELL, judge
from hardlook.toss.pixel_sums import NamedScore, Totals, mean_iou, sum_pixels, tally_scores

if TYPE_CHECKING:
    import polars as pl

FOLLOWS_TRUTH, FOLLOWS_SALIENCE, SALIENCE_LEAD = "follows-truth", "follows-salience", "salience-lead"
COVERS_TARGET, COVERS_SALIENCE, SALIENCE_PULL = "covers-target", "covers-salience", "salience-pull"
FOLLOWING_SCORES = (
    ScoreMeaning(FOLLOWS_TRUTH, "follows truth", "mIoU of the masks with the truth, on targets that are not salient"),
    ScoreMeaning(
        FOLLOWS_SALIENCE,
        "follows salience",
        "mIoU of the same masks with what is salient in their queries instead",
        False,
    ),
    ScoreMeaning(SALIENCE_LEAD, "lead of salience", "follows-salience minus follows-truth; below 0 is good", False),
    ScoreMeaning(COVERS_TARGET, "covers target", "share of the pixels that are target and not salient in the masks"),
    ScoreMeaning(
        COVERS_SALIENCE, "covers salience", "share of the pixels that are salient and not target in the masks", False
    ),
    ScoreMeaning(SALIENCE_PULL, "pull of salience", "covers-salience minus covers-target; below 0 is good", False),
)
_ROWS = {
    FOLLOWS_TRUTH: ("the target", "mIoU of the masks with"),
    FOLLOWS_SALIENCE: ("what is salient", "mIoU of the masks with"),
    COVERS_TARGET: ("only target", "share that the masks cover of what is"),
    COVERS_SALIENCE: ("only salient", "share that the masks cover of what is"),
}


def tally_following(
    records: pl.DataFrame,
    *,
    void_ignored: bool,
    key: tuple[str | int, ...],
    where: Mapping[str, str],
    comparable: str = "",
) -> list[SumTally]:
    """The six scores over records of targets that are not salient; none if no saliency model ran.

    Each is a ratio of sums for every class, the mean over classes, then over folds. A saliency mask leaves no pixel
    open, so void counts against the truth's side alone.
    """
    import polars as pl

    measured = records.filter(pl.col("salient") >= 0) if "salient" in records.columns else records.head(0)
    if measured.is_empty():
        return []
    # All copies have the same query images, so a resample draws them together and differences are paired.
    sums = sum_pixels(_copy_counts(measured), ("against", "fold", "class"), void_ignored=void_ignored)
    differences = ((SALIENCE_LEAD, FOLLOWS_SALIENCE, FOLLOWS_TRUTH), (SALIENCE_PULL, COVERS_SALIENCE, COVERS_TARGET))

    def name_scores(totals: Totals) -> Sequence[NamedScore]:
        chosen = {name: sums.where(against=name) for name in _ROWS}
        means = {name: mean_iou(sums, totals, rows) for name, rows in chosen.items()}
        scores = [NamedScore(name, where, values, chosen[name]) for name, values in means.items()]
        scores += [
            NamedScore(name, where, means[one] - means[two], chosen[one], DIFFERENCE) for name, one, two in differences
        ]
        return scores

    # A row of the copies may represent several pairs.
    more = {"n": len(measured), "comparable": comparable}
    return tally_scores(sums, name_scores, key=key, more=lambda score: more)


def _copy_counts(measured: pl.DataFrame) -> pl.DataFrame:
    """One row per fold, class and query image, four times: with each region in the place of the truth.

    Sums of counts suffice, since every score here is a ratio of sums. A covered share is an IoU with the prediction
    cut to the region.
    """
    import polars as pl

    counts = ("predicted", "truth", "intersection", "predicted_void", "void", "pixels")
    salient = ("salient", "predicted_salient", "truth_salient", "found_salient")
    summed = measured.group_by("fold", "class", "query", maintain_order=True).agg(pl.col(*counts, *salient).sum())
    only_target = pl.col("intersection") - pl.col("found_salient")
    only_salient = pl.col("predicted_salient") - pl.col("found_salient")
    # Intersection, predicted and truth of each copy.
    regions = {
        FOLLOWS_SALIENCE: (pl.col("predicted_salient"), pl.col("predicted"), pl.col("salient")),
        COVERS_TARGET: (only_target, only_target, pl.col("truth") - pl.col("truth_salient")),
        COVERS_SALIENCE: (only_salient, only_salient, pl.col("salient") - pl.col("truth_salient")),
    }
    copies = [summed.with_columns(against=pl.lit(FOLLOWS_TRUTH))]
    no_void = {"predicted_void": pl.lit(0, pl.Int64), "void": pl.lit(0, pl.Int64)}
    for name, (hits, predicted, truth) in regions.items():
        columns = {"intersection": hits, "predicted": predicted, "truth": truth, **no_void}
        copies.append(summed.with_columns(**columns, against=pl.lit(name)))
    return pl.concat(copies)


def describe_following(scorecard: Scorecard) -> str:
    """What the masks follow where the target is not salient; empty if no saliency model ran.

    A model follows salience instead of the support if its masks overlap better with the salient region and also cover
    more of what is only salient than of what is only target, both beyond chance. If the two disagree, both are named.
    """
    scores = {name: find_score(scorecard, name) for name in (*_ROWS, SALIENCE_LEAD, SALIENCE_PULL)}
    if not all(scores.values()):
        return ""
    truth, salience, target, other, lead, pull = (score for score in scores.values() if score)
    numbers = (
        f"where the target is not salient, the masks have an mIoU of {format_fixed(salience.value, 3)} with what is "
        "salient and of "
        f"{format_fixed(truth.value, 3)} with the target (difference {_format_difference(lead)}), and cover "
        f"{format_percent(other.value, gap='')} of "
        f"what is only salient and {format_percent(target.value, gap='')} of what is only target "
        f"(difference {_format_difference(pull)})"
    )
    pulled, led = judge(pull), judge(lead)
    if pulled.side == led.side == "above":
        return f"This model follows salience instead of the support: {numbers}."
    if (pulled.side, led.side) == ("below", "above"):
        return (
            "This model covers the target rather than what is salient, though its masks overlap better with the "
            f"latter, as large masks do where that is the larger region: {numbers}."
        )
    if pulled.side == "below":
        return f"This model follows the target rather than salience: {numbers}."
    if pulled.side == "equal":
        return f"This model's masks do not tell the target from what is salient: {numbers}."
    unclear = (pulled.why or led.why).removesuffix(".")
    return f"{unclear.replace(CANNOT_TELL, f'{CANNOT_TELL} whether this model follows salience', 1)}: {numbers}."


def _format_difference(score: Score) -> str:
    """The value and its interval, for use in parentheses.

    >>> _format_difference(Score("salience-lead", -0.184, 3))
    '\N{MINUS SIGN}0.184'
    """
    interval = score.interval
    text = f"{format_fixed(score.value, 3)}" + (
        f", {format_fixed(interval.low, 3)} to {format_fixed(interval.high, 3)}" if interval else ""
    )
    return text.replace("-", "\N{MINUS SIGN}")


def build_following_chart(scorecard: Scorecard) -> DotChart | None:
    """Both overlaps and both covered shares, one under the other."""
    rows = [score_dot(score, *labels) for name, labels in _ROWS.items() if (score := find_score(scorecard, name))]
    if len(rows) < len(_ROWS):
        return None
    caption = (
        "The same masks, compared with the target and with what is salient in the query. A model that follows its "
        "support has the first dot of each pair far right of the second. The covered shares do not depend on which "
        "of the two regions is larger."
    )
    return DotChart("Targets that are not salient: what the masks go with", caption, tuple(rows), axis="mIoU or share")
