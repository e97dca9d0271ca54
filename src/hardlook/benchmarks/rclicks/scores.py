"""Scores of RClicks from records: over all datasets, by dataset, by object size, by group.

A score of several datasets is the mean over datasets of their scores, as in the paper's main table; numbers of
failures are those of a dataset. Slices by size pool the instances of all datasets. Intervals resample images within
datasets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.comparison import comparable_words
from hardlook.benchmarks.rclicks.dataset_means import mean_over_datasets
from hardlook.benchmarks.rclicks.meanings import SCORES
from hardlook.benchmarks.rclicks.options import RClicksOptions, failure_reading, halves_reading
from hardlook.benchmarks.rclicks.played import Played, played
from hardlook.benchmarks.rclicks.statistics import COUNTED, TARGET, group_statistics, instance_statistics
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import LeftOut, Score, Scorecard, score_of
from hardlook.metrics.click_counts import failures
from hardlook.metrics.click_robustness import sample_and_deviation
from hardlook.randomness import generator
from hardlook.stats.intervals import Estimate

if TYPE_CHECKING:
    import polars as pl

ORDER = {meaning.name: place for place, meaning in enumerate(SCORES)}
Numbers = NDArray[np.float64]


def score_instances(card: BenchmarkCard, records: pl.DataFrame, options: RClicksOptions) -> Scorecard:
    """Every score with its interval over images."""
    table = played(records)
    scores = _scores(table, options, {})
    datasets = sorted(set(table.dataset.tolist()))
    for dataset in datasets:
        scores += _scores(table.some(table.dataset == dataset), options, {"dataset": dataset})
    for size in ("small", "medium", "large"):
        some = table.some(table.size == size)
        if len(some):
            scores += _scores(some, options, {"size": size}, by_dataset=False)
    scores += _groups(table, options)
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=_left_out(table, records))


def _estimates(columns: list[Numbers], table: Played, options: RClicksOptions, key: str) -> tuple[Estimate, ...]:
    rng = generator(options.seed, "rclicks", "bootstrap", key)
    return mean_over_datasets(
        np.stack(columns, axis=1), table, rng=rng, resamples=options.resamples, level=options.level
    )


def _scores(
    table: Played, options: RClicksOptions, where: Mapping[str, str], *, by_dataset: bool = True
) -> list[Score]:
    """All statistics of some instances; without `by_dataset` the instances of all datasets weigh alike."""
    nof, dhh = failure_reading(options), halves_reading(options)
    found = instance_statistics(table, nof=nof, dhh=dhh)
    scale = _dataset_sizes(table) if by_dataset else np.full(len(table), float(len(table)))
    columns = [values * scale if name in COUNTED else values for name, values in found.items()]
    pooled = table if by_dataset else _as_one_dataset(table)
    estimates = _estimates(columns, pooled, options, "/".join(where.values()))
    scores = []
    for (name, values), estimate in zip(found.items(), estimates, strict=True):
        ran = {"dhh": dhh, "nof": nof}
        reading = ", ".join(f"{key}={ran[key]}" for key in ran if key in name)
        n = int((~np.isnan(values)).sum())
        words = comparable_words(where.get("dataset", ""), n, options, name) if by_dataset else ""
        scores.append(score_of(name, estimate, n, slice=dict(where), reading=reading, comparable=words))
    if where.keys() == {"dataset"} or len(set(table.dataset.tolist())) == 1:
        words = comparable_words(where.get("dataset", ""), len(table), options, "nof-std") if by_dataset else ""
        spread, how = _failure_spread(table, nof), f"nof={nof}"
        scores.append(Score("nof-std", spread, len(table), slice=dict(where), reading=how, comparable=words))
    return sorted(scores, key=lambda score: ORDER[score.name])


def _groups(table: Played, options: RClicksOptions) -> list[Score]:
    """NoC@90 and IoU-AuC of every group."""
    scores = []
    for group, columns in group_statistics(table).items():
        estimates = _estimates(list(columns), table, options, f"group {group}")
        for name, estimate in zip(("noc90", "auc"), estimates, strict=True):
            scores.append(score_of(name, estimate, len(table), slice={"group": group}))
    return scores


def _failure_spread(table: Played, reading: str) -> float:
    failed = failures(table.intersection, table.union, TARGET, reading)  # type: ignore[arg-type]
    return float(sample_and_deviation(failed[:, table.groups].sum(0))[1])


def _dataset_sizes(table: Played) -> Numbers:
    names, place, counts = np.unique(table.dataset, return_inverse=True, return_counts=True)
    assert len(names)
    return counts[place].astype(np.float64)


def _as_one_dataset(table: Played) -> Played:
    image = np.char.add(np.char.add(table.dataset, "/"), table.image)
    everywhere = np.full(len(table), "all")
    return replace(table, dataset=everywhere, image=image)


def _left_out(table: Played, records: pl.DataFrame) -> tuple[LeftOut, ...]:
    notes = []
    silent = [unit for unit, ious in zip(table.units, table.people, strict=True) if not len(ious)]
    if silent and len(silent) < len(table):
        why = "nobody's first click on them is in the file"
        notes.append(LeftOut("instances without people's clicks", len(silent), why, tuple(silent[:5])))
    if len(table.groups) % 2 and not table.halves:
        why = f"{len(table.groups)} groups have no two halves; an even --groups, or --halves with dhh=paper, has"
        notes.append(LeftOut("scores of dHH", 3, why, ("dhh", "dhh-nof", "dhh-iou")))
    alone = [unit for unit, ious in zip(table.units, table.people, strict=True) if len(ious) == 1]
    if alone:
        why = "one person's click has no spread"
        notes.append(LeftOut("instances in NSR@1 and the spread of User@1", len(alone), why, tuple(alone[:5])))
    never = int(failures(table.intersection, table.union, TARGET, "ours").sum())
    if never:
        why = (
            f"kept, as {table.iou.shape[2]} clicks each: differences between them do not show in NoC, dSB, dGR and dHH"
        )
        notes.append(LeftOut("courses that never reach 90 % IoU", never, why))
    lost = np.flatnonzero(table.iou[:, table.groups].max((1, 2)) == 0)
    if len(lost):
        why = "no group's mask ever met the object, so that NSR is undefined"
        notes.append(LeftOut("instances in NSR", len(lost), why, tuple(table.units[i] for i in lost[:5])))
    return tuple(notes)
