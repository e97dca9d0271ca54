"""Scores of RClicks from records: over all datasets, by dataset, by object size, by clicking group.

Every statistic is one value per instance, and a score is its mean. A score of several datasets is the mean over
datasets of their scores, each dataset weighing alike, as in the paper's main table; numbers of failures are those of
a dataset. Slices by size pool the instances of all datasets. Intervals resample images within datasets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.benchmark import BenchmarkCard, Quality, ScoreMeaning
from hardlook.harness.scorecard import LeftOut, Score, Scorecard
from hardlook.harness.stats.jackknife import Range
from hardlook.harness.tally import Entry, SumTally, score_tally, with_ranges
from hardlook.metrics.boundaries import f_measures
from hardlook.metrics.click_robustness import (
    Change,
    FailureReading,
    area_under_ious,
    clicks_to_reach,
    failures,
    first_to_last,
    instance_difficulty,
    ious,
    lower_to_upper,
    lower_to_upper_half,
    noise_to_signal,
    rise_over_base,
    sample_and_deviation,
)
from hardlook.rclicks.clicks.courses import BASE, HALVES, find_groups, split_draws
from hardlook.rclicks.options import RClicksOptions, failure_reading, halves_reading
from hardlook.rclicks.published import describe_comparability
from hardlook.rclicks.time_to_mask import parse_click_times

if TYPE_CHECKING:
    import polars as pl

_lower = partial(ScoreMeaning, higher_is_better=False)
_headline = partial(_lower, headline=True)

SCORES = (
    _headline("noc90", "NoC@90, sampled clicks", "clicks to 90 % IoU, mean over the clicking groups"),
    _headline("noc90-base", "NoC@90, centre clicks", "clicks to 90 % IoU when every click is the centre of the error"),
    _headline("dsb", "dSB", "how many more clicks the groups need than the centre rule, in % of it"),
    _headline("dgr", "dGR", "how many more clicks the least probable group needs than the most probable one, in %"),
    _headline(
        "nsr", "NSR of IoU-AuC", "NSR@20 when there are 20 rounds: spread of IoU-AuC between groups over its mean, in %"
    ),
    _lower("dhh", "dHH", "how many more clicks the improbable half needs than the probable one, in %"),
    _lower("noc90-std", "NoC@90, spread", "standard deviation between groups, mean over instances"),
    _lower("noc85", "NoC@85, sampled clicks", "clicks to 85 % IoU, mean over the clicking groups"),
    _lower("noc85-base", "NoC@85, centre clicks", "clicks to 85 % IoU when every click is the centre of the error"),
    _lower("noc95", "NoC@95, sampled clicks", "clicks to 95 % IoU, mean over the clicking groups"),
    _lower("noc95-base", "NoC@95, centre clicks", "clicks to 95 % IoU when every click is the centre of the error"),
    _lower("nof", "NoF, sampled clicks", "instances that fail to reach 90 %, mean over the clicking groups"),
    _lower("nof-std", "NoF, spread", "standard deviation of that number between groups"),
    _lower("nof-base", "NoF, centre clicks", "instances that fail to reach 90 % by clicks at the centre of the error"),
    _lower("dsb-nof", "dSB of NoF", "failures of the groups less those of the centre rule"),
    _lower("dgr-nof", "dGR of NoF", "failures of the least probable group less those of the most probable one"),
    _lower("dhh-nof", "dHH of NoF", "failures of the improbable half less those of the probable one"),
    ScoreMeaning(
        "auc", "IoU-AuC, sampled clicks", "area under IoU against clicks, mean over the clicking groups, x 100"
    ),
    _lower("auc-std", "IoU-AuC, spread", "standard deviation between groups, mean over instances, x 100"),
    ScoreMeaning(
        "auc-base", "IoU-AuC, centre clicks", "area under IoU against clicks at the centre of the error, x 100"
    ),
    ScoreMeaning("boundary-auc", "Boundary IoU, sampled clicks", "IoU-AuC of the bands along both boundaries, x 100"),
    ScoreMeaning("boundary-auc-base", "Boundary IoU, centre clicks", "the same, of clicks at the centre of the error"),
    ScoreMeaning("boundary-f", "Boundary F, sampled clicks", "area under the contours' F against clicks, x 100"),
    ScoreMeaning("boundary-f-base", "Boundary F, centre clicks", "the same, of clicks at the centre of the error"),
    ScoreMeaning("dsb-iou", "dSB of IoU-AuC", "IoU-AuC of the groups less that of the centre rule, x 100"),
    ScoreMeaning(
        "dgr-iou", "dGR of IoU-AuC", "IoU-AuC of the least probable group less the most probable one's, x 100"
    ),
    ScoreMeaning("dhh-iou", "dHH of IoU-AuC", "IoU-AuC of the improbable half less the probable one's, x 100"),
    _lower("time90", "Time to 90 %, sampled clicks", "seconds of computing to 90 % IoU, mean over the clicking groups"),
    _lower("time90-base", "Time to 90 %, centre clicks", "seconds of computing to 90 % IoU by centre clicks"),
    ScoreMeaning("sample-iou1", "Sample@1", "IoU after one click of the click model, mean over groups, x 100"),
    _lower("sample-iou1-std", "Sample@1, spread", "standard deviation between groups, mean over instances, x 100"),
    _lower("noc90-draw-std", "NoC@90, spread of draws", "standard deviation between a group's draws, mean over all"),
    _lower("nof-draw-std", "NoF, spread of draws", "standard deviation of that number between draws"),
    _lower("auc-draw-std", "IoU-AuC, spread of draws", "standard deviation between a group's draws, mean, x 100"),
    _lower(
        "sample-iou1-draw-std", "Sample@1, spread of draws", "standard deviation between a group's draws, mean, x 100"
    ),
    ScoreMeaning("base-iou1", "Base@1", "IoU after one centre click, x 100"),
    ScoreMeaning("user-iou1", "User@1", "IoU after one click by people, x 100"),
    _lower("user-iou1-std", "User@1, spread", "standard deviation between people, mean over instances, x 100"),
    _lower("nsr1", "NSR@1 of people", "spread of IoU between people's first clicks over its mean, in %"),
)

QUALITIES = (
    Quality("noc90", "clicks to 90 % IoU, mean over groups", higher_is_better=False),
    Quality("auc", "IoU-AuC x 100, mean over groups"),
    Quality("dgr", "more clicks of the least probable group than of the most probable one, in %", False),
)

Counts = NDArray[np.int64]

Numbers = NDArray[np.float64]

PERCENTS = (85, 90, 95)

TARGET = 90

# Means per instance here; scores multiply them by the number of instances.
COUNTED = ("nof", "nof-base", "dsb-nof", "dgr-nof", "dhh-nof")

# Differences of numbers of clicks. Where no course reaches 90 % they would be 0, as of the best of models.
OF_CLICKS = (
    *("dsb", "dgr", "dhh", "noc90-std", "nof-std", "noc90-draw-std", "nof-draw-std", "dsb-nof", "dgr-nof", "dhh-nof"),
)
UNREACHED = "no course reaches 90 % IoU, so that differences in clicks do not show"

# Scores of single draws.
BY_DRAW = ("noc90", "dsb", "dgr", "nsr", "dhh", "nof", "auc", "sample-iou1")

ORDER = {meaning.name: place for place, meaning in enumerate(SCORES)}


@dataclass(frozen=True)
class ClickResults:
    """The counts of pixels of N instances, C courses and R rounds.

    `dataset`, `image` and `size` (N,) texts; `courses` the C names; `intersection` and `union` (N, C, R); `people`
    holds the IoUs (n,) after people's first clicks on each instance, n may be 0; `whose` says what people these are.
    `later_draws` are the results of further draws, with the same courses; the others are of the first draw.
    `boundary` (N, C, R, 6) are the fields of `BoundaryCounts`, None where they were not counted.
    """

    units: tuple[str, ...]
    dataset: NDArray[np.str_]
    image: NDArray[np.str_]
    size: NDArray[np.str_]
    courses: tuple[str, ...]
    intersection: Counts
    union: Counts
    people: tuple[Numbers, ...]
    whose: str = "people"
    later_draws: tuple[ClickResults, ...] = ()
    boundary: Counts | None = None

    def __len__(self) -> int:
        return len(self.units)

    @cached_property
    def iou(self) -> Numbers:
        """(N, C, R) in [0, 1]."""
        return ious(self.intersection, self.union)

    @property
    def draws(self) -> tuple[ClickResults, ...]:
        """The results of each draw, the first one first."""
        return (replace(self, later_draws=()), *self.later_draws)

    @cached_property
    def mean_iou(self) -> Numbers:
        """(N, C, R) in [0, 1], mean over draws."""
        return np.mean([draw.iou for draw in self.draws], axis=0) if self.later_draws else self.iou

    @property
    def base(self) -> int:
        """The index of the centre rule."""
        return self.courses.index(BASE.name)

    @property
    def groups(self) -> list[int]:
        """The indices of the clicking groups, from the least probable clicks to the most."""
        return find_groups(self.courses)

    @property
    def halves(self) -> list[int]:
        """The indices of the lower and the upper half; empty without these courses."""
        return [self.courses.index(half.name) for half in HALVES if half.name in self.courses]

    def select(self, chosen: NDArray[np.bool_]) -> ClickResults:
        """These instances alone; `chosen` (N,) bool."""
        arrays = {name: getattr(self, name)[chosen] for name in ("dataset", "image", "size", "intersection", "union")}
        units, people = tuple(compress(self.units, chosen)), tuple(compress(self.people, chosen))
        if self.boundary is not None:
            arrays["boundary"] = self.boundary[chosen]
        later = tuple(draw.select(chosen) for draw in self.later_draws)
        return replace(self, units=units, people=people, later_draws=later, **arrays)


def read_results(records: pl.DataFrame) -> ClickResults:
    """The arrays of records, in the order of their units."""
    records = records.sort("unit")
    courses = tuple(records["courses"][0].split(","))
    shape = (len(records), len(courses), int(records["rounds"][0]))
    texts: dict[str, Any] = {
        name: np.asarray(records[name].to_list(), dtype=np.str_) for name in ("dataset", "image", "size")
    }
    counts: dict[str, Counts] = {
        name: np.asarray(records[name].explode(), np.int64).reshape(shape) for name in ("intersection", "union")
    }
    people = zip(records["user_intersection"].to_list(), records["user_union"].to_list(), strict=True)
    draws = split_draws(courses)
    if "boundary" in records.columns and all(records["boundary"].list.len() > 0):
        counts["boundary"] = np.asarray(records["boundary"].explode(), np.int64).reshape(*shape, -1)
    first, *later = (_take_courses(counts, [*draw.values()]) for draw in draws)
    table = ClickResults(
        units=tuple(records["unit"].to_list()),
        courses=tuple(draws[0]),
        people=tuple(ious(np.asarray(hits, np.int64), np.asarray(unions, np.int64)) for hits, unions in people),
        whose=next((whose for whose in records["people"].to_list() if whose), "no people"),
        **texts,
        **first,
    )
    return replace(table, later_draws=tuple(replace(table, **one) for one in later))


def _take_courses(counts: Mapping[str, Counts], courses: list[int]) -> dict[str, Any]:
    # In C order, as the records are: another order of memory may add floats in another order.
    return {name: np.take(part, courses, axis=1) for name, part in counts.items()}


def score_records(card: BenchmarkCard, records: pl.DataFrame, options: RClicksOptions) -> Scorecard:
    """Every score with its interval over images."""
    table = read_results(records)
    scores: list[Score] = []
    for some, where in _slices(table):
        here = [*score_tally(_tally(some, options, where), options), *_failure_spread(some, options, where)]
        scores += [_mark_unreached(score, some) for score in sorted(here, key=lambda score: ORDER[score.name])]
    for number, draw in enumerate(table.draws if table.later_draws else (), 1):
        here = score_tally(_tally(draw, options, {"draw": str(number)}, BY_DRAW), options)
        scores += [_mark_unreached(score, draw) for score in here]
    scores += [score for tally in _groups(table) for score in score_tally(tally, options)]
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=_left_out(table, options))


def tally_records(records: pl.DataFrame, options: RClicksOptions) -> list[SumTally]:
    """What the scores are made from: of all datasets, of each, of each size, of each group.

    Without `nof-std`, a spread between ten counts: a resample adds its own noise to it, so that its interval would be
    too high.
    """
    table = read_results(records)
    return [*(_tally(some, options, where) for some, where in _slices(table)), *_groups(table)]


def _slices(table: ClickResults) -> Iterator[tuple[ClickResults, dict[str, str]]]:
    """Instances that are scored together."""
    yield table, {}
    for dataset in sorted(set(table.dataset.tolist())):
        yield table.select(table.dataset == dataset), {"dataset": dataset}
    for size in ("small", "medium", "large"):
        some = table.select(table.size == size)
        if len(some):
            yield some, {"size": size}


def _tally(
    table: ClickResults, options: RClicksOptions, where: Mapping[str, str], names: Sequence[str] = tuple(ORDER)
) -> SumTally:
    """These statistics of some instances; those of one size weigh alike, whatever dataset they are of."""
    nof, dhh = failure_reading(options), halves_reading(options)
    computed = instance_statistics(table, nof=nof, dhh=dhh)
    if options.cost:
        times = parse_click_times(options.cost)
        for ending in ("", "-base"):
            computed[f"time90{ending}"] = np.asarray(times.seconds(computed[f"noc90{ending}"]))
    statistics = {name: values for name, values in computed.items() if name in names}
    if "size" in where:
        image = np.char.add(np.char.add(table.dataset, "/"), table.image)
        table = replace(table, dataset=np.full(len(table), "all"), image=image)
    _, place, counts = np.unique(table.dataset, return_inverse=True, return_counts=True)
    columns = [values * counts[place] if name in COUNTED else values for name, values in statistics.items()]
    ran = {"dhh": dhh, "nof": nof}
    entries, reason = [], _find_reason(table)
    for name, values in statistics.items():
        reading = ", ".join(f"{key}={ran[key]}" for key in ran if key in name)
        used = ~np.isnan(values)
        n, images = int(used.sum()), len(set(zip(table.dataset[used], table.image[used], strict=True)))
        words = _comparable(name, n, options, where)
        without = reason if name in OF_CLICKS else ""
        entries.append(Entry(name, 0 if without else n, dict(where), reading, words, clusters=images, reason=without))
        if without:
            columns[len(entries) - 1] = np.full(len(table), np.nan)
    key = ("rclicks", "bootstrap", "/".join(where.values()))
    ranges = name_ranges(table.iou.shape[2], float(counts.mean()))
    return tally_datasets(np.stack(columns, axis=1), table, with_ranges(entries, ranges), key)


def name_ranges(rounds: int, instances: float) -> dict[str, Range]:
    """By score its lowest and highest value; `instances` is their mean number over datasets.

    >>> name_ranges(20, 50.0)["noc85"], name_ranges(20, 50.0)["dsb-nof"]
    ((1.0, 20.0), (-50.0, 50.0))
    """
    clicks, percent, change = (1.0, float(rounds)), (0.0, 100.0), (-100.0, 100.0)
    ranges: dict[str, Range] = {f"noc{one}{ending}": clicks for one in PERCENTS for ending in ("", "-base")}
    for name in ("dsb", "dgr", "dhh"):
        ranges |= {name: (-100.0, math.inf), f"{name}-nof": (-instances, instances), f"{name}-iou": change}
    for name in ("auc", "sample-iou1", "user-iou1"):
        ranges |= {name: percent, f"{name}-std": percent, f"{name}-draw-std": percent}
    from_0 = ("noc90-std", "noc90-draw-std", "nsr", "nsr1", "time90", "time90-base")
    unlimited = dict.fromkeys(from_0, (0.0, math.inf))
    failed = dict.fromkeys(("nof", "nof-base"), (0.0, instances))
    of_boundaries = ("boundary-auc", "boundary-auc-base", "boundary-f", "boundary-f-base")
    return ranges | unlimited | failed | dict.fromkeys(("auc-base", "base-iou1", *of_boundaries), percent)


def _find_reason(table: ClickResults) -> str:
    """Why differences of clicks are undefined: no course of these instances reaches the target. Empty where one does.

    All courses are cut off alike then, as those of the best of models would be.
    """
    return UNREACHED if all(_never(draw).all() for draw in table.draws) else ""


def _never(table: ClickResults) -> NDArray[np.bool_]:
    """(N, C) whether a course of the first draw does not reach the target."""
    return failures(table.intersection, table.union, TARGET, "ours")


def _mark_unreached(score: Score, table: ClickResults) -> Score:
    """Undefined, with the reason, where no course of these instances reaches the target."""
    if score.name not in OF_CLICKS or not (reason := _find_reason(table)):
        return score
    return Score(
        score.name,
        math.nan,
        0,
        slice=score.slice,
        reading=score.reading,
        comparable=score.comparable,
        rests_on=score.rests_on,
        reason=reason,
    )


def _groups(table: ClickResults) -> Iterator[SumTally]:
    """NoC@90 and IoU-AuC of every group."""
    draws = [clicks_to_reach(draw.intersection, draw.union, TARGET) for draw in table.draws]
    noc = np.stack(draws).mean(0)
    area = 100 * np.stack([area_under_ious(draw.iou) for draw in table.draws]).mean(0)
    for place in table.groups:
        group = table.courses[place]
        entries = [Entry(name, len(table), {"group": group}) for name in ("noc90", "auc")]
        columns, ranges = np.stack([noc[:, place], area[:, place]], axis=1), name_ranges(table.iou.shape[2], 0.0)
        yield tally_datasets(columns, table, with_ranges(entries, ranges), ("rclicks", "bootstrap", f"group {group}"))


def _failure_spread(table: ClickResults, options: RClicksOptions, where: Mapping[str, str]) -> list[Score]:
    """The spread of the number of failures between groups and between draws, of one dataset.

    A mean over datasets has none.
    """
    if len(set(table.dataset.tolist())) > 1:
        return []
    nof = failure_reading(options)
    counts = np.stack(
        [failures(draw.intersection, draw.union, TARGET, nof)[:, draw.groups].sum(0) for draw in table.draws]
    )
    spreads = {"nof-std": float(np.mean([sample_and_deviation(draw)[1] for draw in counts]))}
    if table.later_draws:
        spreads["nof-draw-std"] = float(counts.std(axis=0, ddof=1).mean())
    return [
        Score(
            name,
            spread,
            len(table),
            slice=dict(where),
            reading=f"nof={nof}",
            comparable=_comparable(name, len(table), options, where),
        )
        for name, spread in spreads.items()
    ]


def _comparable(name: str, n: int, options: RClicksOptions, where: Mapping[str, str]) -> str:
    return "" if "size" in where else describe_comparability(where.get("dataset", ""), n, options, name)


def _left_out(table: ClickResults, options: RClicksOptions) -> tuple[LeftOut, ...]:
    notes = []
    silent = [unit for unit, ious in zip(table.units, table.people, strict=True) if not len(ious)]
    if silent and len(silent) < len(table):
        why = "nobody's first click on them is in the file"
        notes.append(LeftOut("instances without people's clicks", len(silent), why, tuple(silent[:5])))
    if len(table.groups) % 2 and halves_reading(options) != "paper":
        why = f"{len(table.groups)} groups have no two halves; an even --groups, or --halves with dhh=paper, has"
        notes.append(LeftOut("scores of dHH", 3, why, ("dhh", "dhh-nof", "dhh-iou")))
    if alone := [unit for unit, ious in zip(table.units, table.people, strict=True) if len(ious) == 1]:
        why = "one person's click has no spread"
        notes.append(LeftOut("instances in NSR@1 and the spread of User@1", len(alone), why, tuple(alone[:5])))
    # The centre rule, which all draws share, counts once.
    others = [place for place, name in enumerate(table.courses) if name != BASE.name]
    if never := int(_never(table).sum() + sum(_never(draw)[:, others].sum() for draw in table.later_draws)):
        rounds = table.iou.shape[2]
        why = f"they count as {rounds} clicks each: differences between them do not show in NoC, dSB, dGR and dHH"
        notes.append(LeftOut("courses that never reach 90 % IoU", never, why, kept=True))
    lost = np.flatnonzero(table.mean_iou[:, table.groups].max((1, 2)) == 0)
    if len(lost):
        why = "no group's mask ever met the object, so that NSR is undefined"
        notes.append(LeftOut("instances in NSR", len(lost), why, tuple(table.units[i] for i in lost[:5])))
    return tuple(notes)


def compute_unit_qualities(records: pl.DataFrame, options: RClicksOptions) -> pl.DataFrame:
    """`unit`, `noc90`, `auc` and `dgr` of each instance, in the order of the records."""
    import polars as pl

    table = read_results(records)
    groups = table.groups
    noc = [clicks_to_reach(draw.intersection, draw.union, TARGET)[:, groups] for draw in table.draws]
    found = {
        "unit": table.units,
        "noc90": np.mean(noc, axis=0).mean(1),
        "auc": 100 * np.mean([area_under_ious(draw.iou[:, groups]).mean(1) for draw in table.draws], axis=0),
        "dgr": np.mean([first_to_last(draw) for draw in noc], axis=0),
    }
    return records.select("unit").join(pl.DataFrame(found), on="unit", how="left", maintain_order="left")


def instance_statistics(table: ClickResults, *, nof: FailureReading, dhh: str) -> dict[str, Numbers]:
    """Every statistic by name, (N,) each, by these two readings; NaN where an instance has none, such as no people.

    Of several draws the mean of their statistics, and the spread between them.
    """
    draws = [_draw_statistics(draw, nof=nof, dhh=dhh) for draw in table.draws]
    if len(draws) == 1:
        return draws[0]
    return {name: _mean_of_defined([draw[name] for draw in draws]) for name in draws[0]} | _draw_spreads(table)


def _mean_of_defined(draws: Sequence[Numbers]) -> Numbers:
    """(N,) means of the draws (N,) that are defined, NaN where none is."""
    values = np.stack(draws)
    defined = ~np.isnan(values)
    total = np.where(defined, values, 0.0).sum(0)
    means: Numbers = np.divide(total, defined.sum(0), out=np.full(len(total), np.nan), where=defined.any(0))
    return means


def _draw_spreads(table: ClickResults) -> dict[str, Numbers]:
    """The standard deviations between the draws of a group, mean over groups (N,).

    With n - 1 in the denominator, since the number of draws is a choice and should not change what is estimated.
    """
    draws, groups = table.draws, table.groups
    values: dict[str, list[NDArray[Any]]] = {
        "noc90": [clicks_to_reach(draw.intersection, draw.union, TARGET) for draw in draws],
        "auc": [100 * area_under_ious(draw.iou) for draw in draws],
        "sample-iou1": [100 * draw.iou[:, :, 0] for draw in draws],
    }
    return {
        f"{name}-draw-std": np.stack(of_draws)[:, :, groups].std(axis=0, ddof=1).mean(1)
        for name, of_draws in values.items()
    }


def _draw_statistics(table: ClickResults, *, nof: FailureReading, dhh: str) -> dict[str, Numbers]:
    found: dict[str, Numbers] = {}
    for percent in PERCENTS:
        noc = clicks_to_reach(table.intersection, table.union, percent).astype(np.float64)
        found[f"noc{percent}"], deviation = sample_and_deviation(noc[:, table.groups])
        found[f"noc{percent}-base"] = noc[:, table.base]
        if percent == TARGET:
            found[f"noc{percent}-std"] = deviation
            found |= _changes(noc, table, "percent", dhh, "")
    failed = failures(table.intersection, table.union, TARGET, nof).astype(float)
    found["nof"] = failed[:, table.groups].mean(1)
    found["nof-base"] = failed[:, table.base]
    found |= _changes(failed, table, "difference", dhh, "-nof")
    area = area_under_ious(table.iou)
    found["auc"], found["auc-std"] = (100 * part for part in sample_and_deviation(area[:, table.groups]))
    found["auc-base"] = 100 * area[:, table.base]
    found |= _changes(100 * area, table, "difference", dhh, "-iou")
    if table.boundary is not None:
        found |= _boundary_statistics(table, table.boundary)
    found["nsr"] = noise_to_signal(area[:, table.groups])
    found |= _one_click(table)
    return found


def _boundary_statistics(table: ClickResults, boundary: Counts) -> dict[str, Numbers]:
    intersection, union, *contours = np.moveaxis(boundary, -1, 0)
    found: dict[str, Numbers] = {}
    for name, values in (("boundary-auc", ious(intersection, union)), ("boundary-f", f_measures(*contours))):
        area = 100 * area_under_ious(values)
        found |= {name: area[:, table.groups].mean(1), f"{name}-base": area[:, table.base]}
    return found


def _changes(values: Numbers, table: ClickResults, change: Change, dhh: str, ending: str) -> dict[str, Numbers]:
    """dSB, dGR and dHH of (N, C) values."""
    groups = values[:, table.groups]
    found = {
        f"dsb{ending}": rise_over_base(groups, values[:, table.base], change),
        f"dgr{ending}": first_to_last(groups, change),
    }
    if dhh == "paper":
        lower, upper = (values[:, place] for place in table.halves)
        found[f"dhh{ending}"] = lower_to_upper_half(lower, upper, change)
    elif groups.shape[1] % 2 == 0:
        found[f"dhh{ending}"] = lower_to_upper(groups, change)
    return found


def _one_click(table: ClickResults) -> dict[str, Numbers]:
    first = table.iou[:, :, 0]
    mean, deviation = sample_and_deviation(first[:, table.groups])
    found = {
        "sample-iou1": 100 * mean,
        "sample-iou1-std": 100 * deviation,
        "base-iou1": 100 * first[:, table.base],
    }
    if any(len(ious) for ious in table.people):
        found["user-iou1"] = _people_statistic(table, lambda ious: 100 * float(ious.mean()))
        found["user-iou1-std"] = _people_statistic(table, lambda ious: 100 * float(ious.std()), least=2)
        found["nsr1"] = _people_statistic(table, lambda ious: float(noise_to_signal(ious[None])[0]), least=2)
    return found


def _people_statistic(table: ClickResults, measure: Callable[[Numbers], float], least: int = 1) -> Numbers:
    """Of instances with a minimal number of people's clicks; one click has no spread."""
    return np.array([measure(ious) if len(ious) >= least else np.nan for ious in table.people])


def tally_datasets(columns: Numbers, table: ClickResults, entries: Sequence[Entry], key: tuple[str, ...]) -> SumTally:
    """One score for each column of `columns` (N, K); cells that are NaN do not count.

    A dataset without a cell in a column does not count in that column's mean. Images are drawn within datasets.
    """
    names = sorted(set(table.dataset.tolist()))
    here = np.stack([table.dataset == name for name in names], axis=1)
    defined = ~np.isnan(columns)
    values = np.where(defined, columns, 0.0)[:, None] * here[..., None]
    counts = defined[:, None] & here[..., None]
    shape = (2, len(names), columns.shape[1])

    def statistic(totals: Numbers) -> Numbers:
        sums = totals.reshape(len(totals), *shape)
        # By the counts: where another run has nothing, sums may keep a rounding error in place of 0.
        present = sums[:, 1] > 0
        means = np.divide(sums[:, 0], sums[:, 1], out=np.zeros_like(sums[:, 0]), where=present)
        averages: Numbers = means.sum(1) / present.sum(1)
        return averages

    return SumTally(
        tuple(entries),
        np.concatenate([values.reshape(len(values), -1), counts.reshape(len(values), -1)], axis=1),
        statistic,
        key,
        "image",
        [f"{dataset}/{image}" for dataset, image in zip(table.dataset, table.image, strict=True)],
        table.dataset,
    )


@dataclass(frozen=True)
class Difficulty:
    """Of each instance (N,): the mean and the deviation of the IoU after one click, and their ratio.

    `clicks` describes whose clicks these are. A mean of 0 has the ratio infinity, the highest difficulty.

    >>> Difficulty(np.array([0.5, 0.0]), np.array([0.1, 0.0]), "people's clicks").ratio
    array([0.2, inf])
    """

    mean: Numbers
    deviation: Numbers
    clicks: str

    @property
    def ratio(self) -> Numbers:
        """Deviation over mean."""
        ratio = instance_difficulty(self.mean[None], self.deviation[None])
        return np.where(np.isnan(ratio), np.inf, ratio)


BY_GROUPS = "the groups' clicks"


def measure_difficulty(table: ClickResults) -> Difficulty:
    """Over people's clicks where all instances have at least two, else over the groups' first clicks."""
    if len(table) and all(len(ious) >= 2 for ious in table.people):
        return Difficulty(*sample_and_deviation(table.people), f"the clicks of {table.whose}")
    return difficulty_by_groups(table)


def difficulty_by_groups(table: ClickResults) -> Difficulty:
    """Over the groups' first clicks; of several draws the means of both."""
    draws = [sample_and_deviation(draw.iou[:, draw.groups, 0]) for draw in table.draws]
    mean, deviation = np.mean(draws, axis=0)
    return Difficulty(mean, deviation, BY_GROUPS)
