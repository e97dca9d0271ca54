"""Salient against other targets, and what blurring the salient region changes.

With SSSI a target that is known not to be salient is looked for in the blurred query, a salient one in the query as it
is. `suppressed-all` blurs every query: what happens when nobody knows which targets are salient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.benchmarks.bias_saliency.options import BiasSaliencyOptions
from hardlook.benchmarks.bias_saliency.suppression import SUPPRESSED
from hardlook.benchmarks.bias_saliency.units import PLAIN
from hardlook.benchmarks.one_shot_pairs.cells import NamedScore, Totals, add_up, scores_of_pairs, tally_cells
from hardlook.benchmarks.one_shot_pairs.following import tally_following
from hardlook.benchmarks.one_shot_pairs.means import class_ious, mean_iou
from hardlook.benchmarks.one_shot_pairs.options import void_reading
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import LeftOut, Scorecard
from hardlook.contract.tally import SumTally

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = 5
LABELS = ("condition", "is_salient", "fold", "class")
COMPARABLE = "beside the paper's: its split of the pairs is not published, so only the pattern compares"


def score_both(card: BenchmarkCard, records: pl.DataFrame, options: BiasSaliencyOptions) -> Scorecard:
    """Every score with its interval over query images."""
    scores = scores_of_pairs(tally_both(records, options), options)
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=_left_out(_marked(records, options)))


def tally_both(records: pl.DataFrame, options: BiasSaliencyOptions) -> list[SumTally]:
    """The pixels of both conditions, of salient and other targets; then what masks go with where targets are others."""
    import polars as pl

    marked = _marked(records, options)
    void_ignored = void_reading(options) == "ignored"
    cells = add_up(marked, LABELS, void_ignored=void_ignored)

    def name_scores(totals: Totals) -> Sequence[NamedScore]:
        plain, blurred = cells.where(condition=PLAIN), cells.where(condition=SUPPRESSED)
        salient, other = cells.where(is_salient=True), cells.where(is_salient=False)
        chosen = {
            "base": plain,
            "sssi": (plain & salient) | (blurred & other),
            "suppressed-all": blurred,
            "salient": plain & salient,
            "non-salient": plain & other,
            "non-salient-sssi": blurred & other,
            "salient-suppressed": blurred & salient,
        }
        means = {name: mean_iou(cells, totals, where) for name, where in chosen.items()}
        scores = [NamedScore(name, {}, values, chosen[name]) for name, values in means.items()]
        for name, first, second in (
            ("gain", "sssi", "base"),
            ("non-salient-gain", "non-salient-sssi", "non-salient"),
            ("salience-gap", "salient", "non-salient"),
        ):
            scores.append(NamedScore(name, {}, means[first] - means[second], chosen[first] | chosen[second]))
        for name in ("base", "sssi"):
            for fold in cells.values_of("fold", chosen[name]):
                here = chosen[name] & cells.where(fold=fold)
                scores.append(NamedScore(name, {"fold": str(fold)}, mean_iou(cells, totals, here), here))
            labels, ious = class_ious(cells, totals, chosen[name])
            scores += [
                NamedScore(name, {"class": label}, ious[:, place], chosen[name] & cells.where(**{"class": label}))
                for place, label in enumerate(labels)
            ]
        return scores

    def more(score: NamedScore) -> dict[str, str]:
        return {"comparable": COMPARABLE if not score.slice else ""}

    tallies = tally_cells(cells, name_scores, key=("bias-saliency", "bootstrap"), more=more)
    others = marked.filter((pl.col("condition") == PLAIN) & ~pl.col("is_salient"))
    key = ("bias-saliency", "following")
    return tallies + tally_following(others, void_ignored=void_ignored, key=key, where={})


def _marked(records: pl.DataFrame, options: BiasSaliencyOptions) -> pl.DataFrame:
    import polars as pl

    # NaN is above everything to polars: a target without a pixel, where nothing is salient, is not salient.
    above = pl.col("salience").is_not_nan() & (pl.col("salience") > options.salient_above)
    return records.with_columns(is_salient=above)


def _left_out(marked: pl.DataFrame) -> tuple[LeftOut, ...]:
    import polars as pl

    notes = []
    for value, words in ((True, "salient"), (False, "non-salient")):
        if not (marked["is_salient"] == value).any():
            notes.append(LeftOut(f"scores of {words} targets", 1, f"no target is {words} in these pairs"))
    undefined = marked.filter((pl.col("condition") == PLAIN) & pl.col("salience").is_nan())["unit"].to_list()
    if undefined:
        why = "neither target nor saliency mask has a pixel; they count as not salient"
        notes.append(LeftOut("targets without a salience", len(undefined), why, tuple(undefined[:EXAMPLES])))
    return tuple(notes)
