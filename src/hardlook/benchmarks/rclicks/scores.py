"""Scores of RClicks from records: over all datasets, by dataset, by object size, by group.

A score of several datasets is the mean over datasets of their scores, as in the paper's main table; numbers of
failures are those of a dataset. Slices by size pool the instances of all datasets. Intervals resample images within
datasets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.comparison import comparable_words
from hardlook.benchmarks.rclicks.dataset_means import tally_datasets
from hardlook.benchmarks.rclicks.meanings import SCORES
from hardlook.benchmarks.rclicks.options import RClicksOptions, failure_reading, halves_reading
from hardlook.benchmarks.rclicks.played import Played, played
from hardlook.benchmarks.rclicks.statistics import COUNTED, TARGET, group_statistics, instance_statistics
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import LeftOut, Score, Scorecard
from hardlook.contract.tally import Entry, SumTally, scores_of
from hardlook.metrics.click_counts import failures
from hardlook.metrics.click_robustness import sample_and_deviation

if TYPE_CHECKING:
    import polars as pl

ORDER = {meaning.name: place for place, meaning in enumerate(SCORES)}
Numbers = NDArray[np.float64]


def score_instances(card: BenchmarkCard, records: pl.DataFrame, options: RClicksOptions) -> Scorecard:
    """Every score with its interval over images."""
    table = played(records)
    scores: list[Score] = []
    for some, where in _slices(table):
        here = [*scores_of(_tally(some, options, where), options), *_failure_spread(some, options, where)]
        scores += sorted(here, key=lambda score: ORDER[score.name])
    scores += [score for tally in _groups(table) for score in scores_of(tally, options)]
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=_left_out(table, records))


def tally_instances(records: pl.DataFrame, options: RClicksOptions) -> list[SumTally]:
    """What the scores are made from: of all datasets, of each, of each size, of each group.

    Without `nof-std`, a spread between ten counts: a resample adds its own noise to it, so that its interval would lie
    too high.
    """
    table = played(records)
    return [*(_tally(some, options, where) for some, where in _slices(table)), *_groups(table)]


def _slices(table: Played) -> Iterator[tuple[Played, dict[str, str]]]:
    """Instances that are scored together."""
    yield table, {}
    for dataset in sorted(set(table.dataset.tolist())):
        yield table.some(table.dataset == dataset), {"dataset": dataset}
    for size in ("small", "medium", "large"):
        some = table.some(table.size == size)
        if len(some):
            yield some, {"size": size}


def _tally(table: Played, options: RClicksOptions, where: Mapping[str, str]) -> SumTally:
    """All statistics of some instances; those of one size weigh alike, whatever dataset they are of."""
    nof, dhh = failure_reading(options), halves_reading(options)
    found = instance_statistics(table, nof=nof, dhh=dhh)
    scale = np.full(len(table), float(len(table))) if "size" in where else _dataset_sizes(table)
    columns = [values * scale if name in COUNTED else values for name, values in found.items()]
    ran = {"dhh": dhh, "nof": nof}
    entries = []
    for name, values in found.items():
        reading = ", ".join(f"{key}={ran[key]}" for key in ran if key in name)
        n = int((~np.isnan(values)).sum())
        entries.append(Entry(name, n, dict(where), reading, _comparable(name, n, options, where)))
    pooled = _as_one_dataset(table) if "size" in where else table
    key = ("rclicks", "bootstrap", "/".join(where.values()))
    return tally_datasets(np.stack(columns, axis=1), pooled, entries, key)


def _groups(table: Played) -> Iterator[SumTally]:
    """NoC@90 and IoU-AuC of every group."""
    for group, columns in group_statistics(table).items():
        entries = [Entry(name, len(table), {"group": group}) for name in ("noc90", "auc")]
        yield tally_datasets(np.stack(columns, axis=1), table, entries, ("rclicks", "bootstrap", f"group {group}"))


def _failure_spread(table: Played, options: RClicksOptions, where: Mapping[str, str]) -> list[Score]:
    """The spread of the number of failures between groups, of one dataset; a mean over datasets has none."""
    if len(set(table.dataset.tolist())) > 1:
        return []
    nof = failure_reading(options)
    failed = failures(table.intersection, table.union, TARGET, nof)  # type: ignore[arg-type]
    spread = float(sample_and_deviation(failed[:, table.groups].sum(0))[1])
    words = _comparable("nof-std", len(table), options, where)
    return [Score("nof-std", spread, len(table), slice=dict(where), reading=f"nof={nof}", comparable=words)]


def _comparable(name: str, n: int, options: RClicksOptions, where: Mapping[str, str]) -> str:
    return "" if "size" in where else comparable_words(where.get("dataset", ""), n, options, name)


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
