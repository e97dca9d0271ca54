"""Scores of MetaCoCo: accuracy of every mode and the gaps between modes; `slices` has those of single queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hardlook.benchmarks.metacoco.options import MetaCocoOptions
from hardlook.benchmarks.metacoco.slices import tally_queries
from hardlook.benchmarks.metacoco.task_means import TaskMean, tally_means, task_means
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import LeftOut, Score, Scorecard
from hardlook.contract.tally import SumTally, scores_of
from hardlook.stats import t_interval

if TYPE_CHECKING:
    import polars as pl


def score_tasks(card: BenchmarkCard, records: pl.DataFrame, options: MetaCocoOptions) -> Scorecard:
    """Every score; those of the first ways and shots are the headline, the others are slices."""
    scores: list[Score] = []
    left_out: list[LeftOut] = []
    for chosen, where in _choices(records, options):
        scores += [_mean(one, where, options) for one in task_means(chosen, options) if len(one.values)]
        tallies, notes = tally_queries(chosen, where, options)
        scores += [score for tally in tallies for score in scores_of(tally, options)]
        left_out += notes
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=(*_left_out(records), *left_out))


def tally_tasks(records: pl.DataFrame, options: MetaCocoOptions) -> list[SumTally]:
    """What all these scores are made from, those with a t interval too."""
    tallies: list[SumTally] = []
    for chosen, where in _choices(records, options):
        tallies.append(tally_means(task_means(chosen, options), where))
        tallies += tally_queries(chosen, where, options)[0]
    return tallies


def headline_choice(records: pl.DataFrame, scorecard: Scorecard) -> tuple[int, int]:
    """The ways and shots that scores without a slice are of: those that are drawn and that no slice names."""
    drawn = set(zip(records["ways"].to_list(), records["shots"].to_list(), strict=True))
    sliced = {
        (int(score.slice["ways"]), int(score.slice["shots"]))
        for score in scorecard.scores
        if {"ways", "shots"} <= set(score.slice)
    }
    return min(drawn - sliced)


def _choices(records: pl.DataFrame, options: MetaCocoOptions) -> Iterator[tuple[pl.DataFrame, dict[str, str]]]:
    """The records of each choice of ways and shots, in the order of the options, and the slice it is."""
    combinations = sorted(set(zip(records["ways"].to_list(), records["shots"].to_list(), strict=True)))
    order = {ways: place for place, ways in enumerate(options.ways)}
    shots_order = {shots: place for place, shots in enumerate(options.resolved()[0])}
    combinations.sort(key=lambda pair: (order.get(pair[0], 99), shots_order.get(pair[1], 99)))
    for place, (ways, shots) in enumerate(combinations):
        chosen = records.filter((records["ways"] == ways) & (records["shots"] == shots))
        yield chosen, {} if place == 0 else {"ways": str(ways), "shots": str(shots)}


def _mean(one: TaskMean, where: dict[str, str], options: MetaCocoOptions) -> Score:
    interval = t_interval(one.values, options.level, "task")
    return Score(
        one.name,
        float(one.values.mean()),
        len(one.values),
        interval if interval.defined else None,
        where,
        comparable=one.comparable,
    )


def _left_out(records: pl.DataFrame) -> tuple[LeftOut, ...]:
    without = int((records["predicted"].list.len() == 0).sum())
    if not without:
        return ()
    return (LeftOut("tasks without single answers", without, "the run was told not to keep them"),)
