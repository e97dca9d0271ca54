"""What a model follows where the two part: the target, or what is salient.

On targets that are not salient the predicted masks are held against the truth and against the saliency model's mask.
A gap between salient and other targets alone does not tell: salient targets may be easier for any model. Nor does the
larger of two IoUs: a mask of the whole image goes best with whatever is largest. So the parts that are only target and
only salient are looked at too: which of them do the masks cover?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hardlook.benchmarks.one_shot_pairs.cells import NamedScore, Totals, add_up, tally_cells
from hardlook.benchmarks.one_shot_pairs.means import mean_iou
from hardlook.contract.benchmark import ScoreMeaning
from hardlook.contract.tally import SumTally

if TYPE_CHECKING:
    import polars as pl

TRUTH, SALIENCE, LEAD = "follows-truth", "follows-salience", "salience-lead"
COVERED_TARGET, COVERED_SALIENCE, PULL = "covers-target", "covers-salience", "salience-pull"
MEANINGS = (
    ScoreMeaning(TRUTH, "follows truth", "mIoU of the masks with the truth, on targets that are not salient"),
    ScoreMeaning(
        SALIENCE, "follows salience", "mIoU of the same masks with what is salient in their queries instead", False
    ),
    ScoreMeaning(LEAD, "lead of salience", "follows-salience minus follows-truth; below 0 is good", False),
    ScoreMeaning(COVERED_TARGET, "covers target", "share of the pixels that are target and not salient in the masks"),
    ScoreMeaning(
        COVERED_SALIENCE, "covers salience", "share of the pixels that are salient and not target in the masks", False
    ),
    ScoreMeaning(PULL, "pull of salience", "covers-salience minus covers-target; below 0 is good", False),
)


def tally_following(
    others: pl.DataFrame,
    *,
    void_ignored: bool,
    key: tuple[str | int, ...],
    where: Mapping[str, str],
    comparable: str = "",
) -> list[SumTally]:
    """The six scores over records of targets that are not salient; none where no saliency model was asked.

    Each is a ratio of sums for every class, the mean over classes, then over folds. A saliency mask leaves no pixel
    open, so void counts against the truth's side alone.
    """
    import polars as pl

    asked = others.filter(pl.col("salient") >= 0) if "salient" in others.columns else others.head(0)
    if asked.is_empty():
        return []
    # All copies have the same query images, so a resample draws them together and differences are paired.
    cells = add_up(_copies(asked), ("against", "fold", "class"), void_ignored=void_ignored)
    names = (TRUTH, SALIENCE, COVERED_TARGET, COVERED_SALIENCE)
    differences = ((LEAD, SALIENCE, TRUTH), (PULL, COVERED_SALIENCE, COVERED_TARGET))

    def name_scores(totals: Totals) -> Sequence[NamedScore]:
        chosen = {name: cells.where(against=name) for name in names}
        means = {name: mean_iou(cells, totals, rows) for name, rows in chosen.items()}
        scores = [NamedScore(name, where, values, chosen[name]) for name, values in means.items()]
        scores += [NamedScore(name, where, means[one] - means[two], chosen[one]) for name, one, two in differences]
        return scores

    # A row of the copies may stand for several pairs.
    more = {"n": len(asked), "comparable": comparable}
    return tally_cells(cells, name_scores, key=key, more=lambda score: more)


def _copies(asked: pl.DataFrame) -> pl.DataFrame:
    """One row a fold, class and query image, four times: what the masks are held against stands where the truth does.

    Sums of counts serve, since every score here is a ratio of sums. A covered share is an IoU with the prediction cut
    to the part in question.
    """
    import polars as pl

    counts = ("predicted", "truth", "intersection", "predicted_void", "void", "pixels")
    salient = ("salient", "predicted_salient", "truth_salient", "found_salient")
    summed = asked.group_by("fold", "class", "query", maintain_order=True).agg(pl.col(*counts, *salient).sum())
    nothing_open = {"predicted_void": pl.lit(0, pl.Int64), "void": pl.lit(0, pl.Int64)}
    found_target = pl.col("intersection") - pl.col("found_salient")
    found_salience = pl.col("predicted_salient") - pl.col("found_salient")
    held: dict[str, dict[str, pl.Expr]] = {
        TRUTH: {},
        SALIENCE: {"intersection": pl.col("predicted_salient"), "truth": pl.col("salient"), **nothing_open},
        COVERED_TARGET: {
            "intersection": found_target,
            "predicted": found_target,
            "truth": pl.col("truth") - pl.col("truth_salient"),
            **nothing_open,
        },
        COVERED_SALIENCE: {
            "intersection": found_salience,
            "predicted": found_salience,
            "truth": pl.col("salient") - pl.col("truth_salient"),
            **nothing_open,
        },
    }
    return pl.concat([summed.with_columns(**parts, against=pl.lit(name)) for name, parts in held.items()])
