"""What a model follows where the two part: the target, or what is salient.

On targets that are not salient the predicted masks are held against the truth and against the saliency model's mask.
A gap between salient and other targets alone does not tell: salient targets may be easier for any model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hardlook.benchmarks.one_shot_pairs.cells import NamedScore, Totals, add_up, score_cells
from hardlook.benchmarks.one_shot_pairs.means import mean_iou
from hardlook.benchmarks.one_shot_pairs.shown_scores import dot_of, found, number_of
from hardlook.contract.benchmark import ScoreMeaning
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import DotChart

if TYPE_CHECKING:
    import polars as pl

TRUTH, SALIENCE, LEAD = "follows-truth", "follows-salience", "salience-lead"
MEANINGS = (
    ScoreMeaning(TRUTH, "follows truth", "mIoU of the masks with the truth, on targets that are not salient"),
    ScoreMeaning(
        SALIENCE, "follows salience", "mIoU of the same masks with what is salient in their queries instead", False
    ),
    ScoreMeaning(LEAD, "lead of salience", "follows-salience minus follows-truth; below 0 is good", False),
)


def score_following(
    others: pl.DataFrame,
    *,
    void_ignored: bool,
    rng: np.random.Generator,
    resamples: int,
    level: float,
    where: Mapping[str, str],
    comparable: str = "",
) -> list[Score]:
    """The three scores over records of targets that are not salient; none where no saliency model was asked.

    A saliency mask leaves no pixel open, so void counts against the truth's side alone.
    """
    import polars as pl

    asked = others.filter(pl.col("salient") >= 0) if "salient" in others.columns else others.head(0)
    if asked.is_empty():
        return []
    against = asked.with_columns(
        intersection=pl.col("predicted_salient"), truth=pl.col("salient"), predicted_void=pl.lit(0), void=pl.lit(0)
    ).select(asked.columns)
    both = pl.concat(
        [asked.with_columns(against=pl.lit(TRUTH)), against.with_columns(against=pl.lit(SALIENCE))],
        how="vertical_relaxed",
    )
    # Both halves have the same query images, so a resample draws them together and the difference is paired.
    cells = add_up(both, ("against", "fold", "class"), void_ignored=void_ignored)

    def name_scores(totals: Totals) -> Sequence[NamedScore]:
        chosen = {name: cells.where(against=name) for name in (TRUTH, SALIENCE)}
        means = {name: mean_iou(cells, totals, rows) for name, rows in chosen.items()}
        scores = [NamedScore(name, where, values, chosen[name]) for name, values in means.items()]
        return [*scores, NamedScore(LEAD, where, means[SALIENCE] - means[TRUTH], chosen[TRUTH])]

    scores = score_cells(cells, name_scores, rng=rng, resamples=resamples, level=level)
    return [replace(score, comparable=comparable) for score in scores]


def following_words(scorecard: Scorecard) -> str:
    """What the masks go with where the target is not salient; empty where nobody asked."""
    truth, salience, lead = (found(scorecard, name) for name in (TRUTH, SALIENCE, LEAD))
    if truth is None or salience is None or lead is None:
        return ""
    numbers = (
        f"where the target is not salient, the masks have an mIoU of {salience.value:.3f} with what is salient and of "
        f"{truth.value:.3f} with the target, a difference of {number_of(lead)}"
    )
    if lead.interval and lead.interval.low > 0:
        return f"This model follows salience instead of the support: {numbers}."
    if lead.interval and lead.interval.high < 0:
        return f"This model does not follow salience: {numbers}."
    return f"Whether this model follows salience cannot be told: {numbers}."


def following_chart(scorecard: Scorecard) -> DotChart | None:
    """Both overlaps, one under the other."""
    truth, salience = found(scorecard, TRUTH), found(scorecard, SALIENCE)
    if truth is None or salience is None:
        return None
    return DotChart(
        "Targets that are not salient: what the masks go with",
        "The same masks, held against the target and against what is salient in the query. A model that follows its "
        "support has the first dot far right of the second.",
        (dot_of(truth, "the target"), dot_of(salience, "what is salient")),
        axis="mIoU of the predicted masks",
    )
