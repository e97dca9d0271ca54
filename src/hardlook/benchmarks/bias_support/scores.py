"""mIoU under every condition, and how much of the right support's is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hardlook.benchmarks.bias_support.conditions import CONDITIONS, CORRECT, SPURIOUS
from hardlook.benchmarks.one_shot_pairs.cells import NamedScore, Totals, add_up, scores_of_pairs, tally_cells
from hardlook.benchmarks.one_shot_pairs.means import class_ious, mean_iou, pair_iou
from hardlook.benchmarks.one_shot_pairs.options import void_reading
from hardlook.benchmarks.one_shot_pairs.study_lists import StudyOptions
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import Scorecard
from hardlook.contract.tally import SumTally
from hardlook.metrics.one_shot_scores import class_iou

if TYPE_CHECKING:
    import polars as pl

LABELS = ("condition", "fold", "class")
COMPARABLE = "beside the paper's: its pairs are not published, so only the pattern compares"


def score_conditions(card: BenchmarkCard, records: pl.DataFrame, options: StudyOptions) -> Scorecard:
    """Every score with its interval over query images."""
    scores = scores_of_pairs(tally_conditions(records, options), options)
    return Scorecard(card.name, card.version, "", tuple(scores))


def tally_conditions(records: pl.DataFrame, options: StudyOptions) -> list[SumTally]:
    """The pixels of every condition, fold and class."""
    cells = add_up(records, LABELS, void_ignored=void_reading(options) == "ignored")
    present = [one for one in CONDITIONS if cells.where(condition=one.name).any()]

    def name_scores(totals: Totals) -> Sequence[NamedScore]:
        chosen = {one.name: cells.where(condition=one.name) for one in present}
        means = {name: mean_iou(cells, totals, where) for name, where in chosen.items()}
        scores = [NamedScore(name, {}, values, chosen[name]) for name, values in means.items()]
        right = means.get(CORRECT.name, np.full(len(totals), np.nan))
        for one in SPURIOUS:
            if one.name in means and CORRECT.name in means:
                both = chosen[CORRECT.name] | chosen[one.name]
                at = {"support": one.name}
                scores.append(NamedScore("drop", at, right - means[one.name], both))
                scores.append(NamedScore("left", at, class_iou(means[one.name], right), both))
        for name, where in chosen.items():
            at = {"support": name}
            scores.append(NamedScore("pair-iou", at, pair_iou(totals, where), where))
            for fold in cells.values_of("fold", where):
                here = where & cells.where(fold=fold)
                scores.append(NamedScore("miou", {**at, "fold": str(fold)}, mean_iou(cells, totals, here), here))
            names, ious = class_ious(cells, totals, where)
            scores += [
                NamedScore("iou", {**at, "class": label}, ious[:, place], where & cells.where(**{"class": label}))
                for place, label in enumerate(names)
            ]
        return scores

    def more(score: NamedScore) -> dict[str, str]:
        return {"comparable": COMPARABLE if not score.slice else ""}

    return tally_cells(cells, name_scores, key=("bias-support", "bootstrap"), more=more)
