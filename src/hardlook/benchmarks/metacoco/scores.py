"""Scores of MetaCoCo: accuracy of every mode and the gaps between modes; `slices` has those of single queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.metacoco.comparison import comparable_words
from hardlook.benchmarks.metacoco.options import MetaCocoOptions
from hardlook.benchmarks.metacoco.slices import query_slices
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import LeftOut, Score, Scorecard
from hardlook.stats import t_interval

if TYPE_CHECKING:
    import polars as pl

    from hardlook.stats.intervals import Interval

GAPS = {"gap": ("iid", "ood"), "swapped-gap": ("iid", "swapped"), "blind-gap": ("iid", "blind")}
Numbers = NDArray[np.float64]


def score_tasks(card: BenchmarkCard, records: pl.DataFrame, options: MetaCocoOptions) -> Scorecard:
    """Every score; those of the first ways and shots are the headline, the others are slices."""
    scores: list[Score] = []
    left_out: list[LeftOut] = []
    combinations = sorted(set(zip(records["ways"].to_list(), records["shots"].to_list(), strict=True)))
    order = {ways: place for place, ways in enumerate(options.ways)}
    shots_order = {shots: place for place, shots in enumerate(options.resolved()[0])}
    combinations.sort(key=lambda pair: (order.get(pair[0], 99), shots_order.get(pair[1], 99)))
    for place, (ways, shots) in enumerate(combinations):
        chosen = records.filter((records["ways"] == ways) & (records["shots"] == shots))
        where = {} if place == 0 else {"ways": str(ways), "shots": str(shots)}
        scores += _accuracies(chosen, where, options, ways, shots) + _gaps(chosen, where, options)
        slices, notes = query_slices(chosen, where, options)
        scores += slices
        left_out += notes
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=(*_left_out(records), *left_out))


def headline_choice(records: pl.DataFrame, scorecard: Scorecard) -> tuple[int, int]:
    """The ways and shots that scores without a slice are of: those that are drawn and that no slice names."""
    drawn = set(zip(records["ways"].to_list(), records["shots"].to_list(), strict=True))
    sliced = {
        (int(score.slice["ways"]), int(score.slice["shots"]))
        for score in scorecard.scores
        if {"ways", "shots"} <= set(score.slice)
    }
    return min(drawn - sliced)


def task_accuracies(records: pl.DataFrame, mode: str) -> tuple[NDArray[np.int64], Numbers]:
    """The numbers of a mode's tasks, ascending, and the accuracy of each."""
    chosen = records.filter(records["mode"] == mode).sort("index")
    return chosen["index"].to_numpy(), chosen["correct"].to_numpy() / chosen["queries"].to_numpy()


def _accuracies(
    records: pl.DataFrame, where: dict[str, str], options: MetaCocoOptions, ways: int, shots: int
) -> list[Score]:
    scores = []
    for mode in options.modes:
        _, values = task_accuracies(records, mode)
        if len(values):
            words = comparable_words(mode, ways, shots, options)
            scores.append(_mean(mode, values, where, options, words))
    return scores


def _gaps(records: pl.DataFrame, where: dict[str, str], options: MetaCocoOptions) -> list[Score]:
    """Differences of the same task in two modes: same classes, same supports, other queries."""
    scores = []
    for name, (first, second) in GAPS.items():
        if name == "blind-gap" and options.blind_supports != "ours":
            continue  # its supports are not those of the other modes
        one, other = task_accuracies(records, first), task_accuracies(records, second)
        both = np.intersect1d(one[0], other[0])
        if len(both):
            paired = one[1][np.isin(one[0], both)] - other[1][np.isin(other[0], both)]
            scores.append(_mean(name, paired, where, options))
    return scores


def _mean(name: str, values: Numbers, where: dict[str, str], options: MetaCocoOptions, words: str = "") -> Score:
    interval: Interval | None = t_interval(values, options.level, "task")
    return Score(
        name,
        float(values.mean()),
        len(values),
        interval if interval is not None and interval.defined else None,
        where,
        comparable=words,
    )


def _left_out(records: pl.DataFrame) -> tuple[LeftOut, ...]:
    without = int((records["predicted"].list.len() == 0).sum())
    if not without:
        return ()
    return (LeftOut("tasks without single answers", without, "the run was told not to keep them"),)
