"""Pairs of models shaped as the scores of three benchmarks are, without runs: `compare_promise.py --simulated`.

- closed mIoU: images with some of eight classes, areas lognormal;
- TOSS: several pairs of each query image, which succeed or fail together, a few images with many of them;
- MetaCoCo: tasks of one pool of images, a nearest centroid in feature space; each pair of models has other images.

Two models without a difference have the same quality and other errors, and each pair is drawn anew with all its images;
a difference claimed is a false alarm. Two models with a difference get as many clusters as the analysis of the command
asks for at a power of .8; a row counts the right verdicts. `twins` are two runs whose errors are alike, `unlike` two
models of which one errs a little everywhere and the other in whole clusters. With seeds, each model is three runs, and
quality varies from run to run.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.stats.bootstrap import ratio
from hardlook.harness.stats.ranking import units_needed_for
from hardlook.harness.stats.shared_draws import share_out_errors
from hardlook.harness.tally import SHARE, Entry, SeedTally, SumTally, Tally
from hardlook.report.compare.differences import POWER
from hardlook.report.compare.paired_tallies import PairedTally, SwapPlan, pair_tallies
from headline_calibration import wilson
from interval_coverage import share_out

Numbers = NDArray[np.float64]
Rng = np.random.Generator
ALPHA, CLASSES, CHUNK, PILOTS = 0.05, 8, 25, 400
SWAPS = 999


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def make_tally(sums: Numbers, statistic: Callable[[Numbers], Numbers], n: int, **more: Any) -> SumTally:
    entry = Entry("score", n, range=SHARE)
    return SumTally((entry,), sums, statistic, ("promise",), "cluster", **more)


def mean_iou(totals: Numbers) -> Numbers:
    hit, union = np.moveaxis(totals.reshape(len(totals), 2, CLASSES), 1, 0)
    occurs = union > 0
    iou: Numbers = np.divide(hit, union, out=np.zeros_like(hit), where=occurs)
    with np.errstate(invalid="ignore"):
        return np.asarray(iou.sum(axis=1) / occurs.sum(axis=1))


def plant_closed_miou(rng: Rng, n: int, gains: list[float], kind: str) -> list[Tally]:
    """Models on the same n images: `gains` are their qualities against the first."""
    rates, ease = np.linspace(0.6, 0.2, CLASSES), rng.normal(0, 0.7, (n, 1))
    present = rng.random((n, CLASSES)) < rates
    area = np.where(present, rng.lognormal(7, 0.8, (n, CLASSES)), 0.0)
    tallies: list[Tally] = []
    for place, gain in enumerate(gains):
        if kind == "unlike" and place % 2:
            share = 0.72 + 0.02 * rng.normal(0, 1, (n, CLASSES)) + gain
        elif kind == "unlike":
            share = np.where(rng.random((n, 1)) < 0.8, 0.9, 0.0) + gain
        else:
            share = sigmoid(1 + ease + rng.normal(0, 0.5, (n, CLASSES))) + gain
        tallies.append(make_tally(np.concatenate([area * np.clip(share, 0, 1), area], axis=1), mean_iou, n))
    return tallies


def plant_toss(rng: Rng, n: int, gains: list[float], kind: str) -> list[Tally]:
    """Pairs of n query images; a model fails all pairs of a query image alike, more or less."""
    sizes = np.ceil(rng.lognormal(1, 0.8, n)).astype(np.int64)
    ease = rng.normal(0.8, 0.7, n)
    tallies: list[Tally] = []
    for place, gain in enumerate(gains):
        if kind == "unlike":
            chance = np.full(n, 0.75) if place % 2 else np.where(rng.random(n) < 0.75, 1.0, 0.0)
        else:
            chance = sigmoid(ease + rng.normal(0, 0.7, n))
        right = rng.binomial(sizes, np.clip(chance + gain, 0, 1))
        tallies.append(make_tally(np.stack([right, sizes], axis=1).astype(np.float64), ratio, n))
    return tallies


CONCEPTS, WAYS, QUERIES, POOL, DEPTH = 12, 5, 5, 40, 6
CENTRES = np.random.default_rng(3).normal(0, 1, (CONCEPTS, DEPTH))


def plant_metacoco(rng: Rng, n: int, gains: list[float], kind: str) -> list[Tally]:
    """Tasks of five ways and one shot, from 40 images of each of twelve concepts; models see other features."""
    classes = np.argsort(rng.random((n, CONCEPTS)), axis=1)[:, :WAYS]
    drawn = np.argsort(rng.random((n, WAYS, POOL)), axis=2)[:, :, : 1 + QUERIES]
    images = classes[:, :, None] * POOL + drawn
    spread = np.exp(0.4 * rng.normal(0, 1, (CONCEPTS, POOL, 1)))
    tallies: list[Tally] = []
    for gain in gains:
        noise = (0.8 - gain) * spread * rng.normal(0, 1, (CONCEPTS, POOL, DEPTH))
        seen = (CENTRES[:, None] + noise)[classes[:, :, None], drawn]
        apart = ((seen[:, :, 1:, None] - seen[:, None, None, :, 0]) ** 2).sum(axis=-1)
        right = apart.argmin(axis=-1) == np.arange(WAYS)[None, :, None]
        shares = share_out_errors(right, classes, images[:, :, :1], images[:, :, 1:])
        accuracy = right.mean(axis=(1, 2))
        tallies.append(make_tally(np.stack([accuracy, np.ones(n)], axis=1), ratio, n, shares=(shares,)))
    return tallies


Plant = Callable[[Rng, int, list[float], str], list[Tally]]


@dataclass(frozen=True)
class Row:
    """One row of the table; `gain` is the quality that the first model has more, 0 for two without a difference."""

    benchmark: str
    plant: Plant
    kind: str
    clusters: int
    gain: float = 0.0
    seeds: int = 1
    seed_spread: float = 0.0


ROWS = (
    *(Row("closed mIoU", plant_closed_miou, "twins", n) for n in (12, 30, 100)),
    Row("closed mIoU", plant_closed_miou, "unlike", 100),
    Row("closed mIoU", plant_closed_miou, "seeds", 60, 0.0, 3, 0.02),
    *(Row("TOSS", plant_toss, "twins", n) for n in (12, 30, 100)),
    Row("TOSS", plant_toss, "unlike", 100),
    Row("TOSS", plant_toss, "seeds", 60, 0.0, 3, 0.02),
    *(Row("MetaCoCo", plant_metacoco, "twins", n) for n in (60, 300)),
    Row("MetaCoCo", plant_metacoco, "seeds", 100, 0.0, 3, 0.02),
    *(Row("closed mIoU", plant_closed_miou, "twins", 60, gain) for gain in (0.02, 0.04)),
    *(Row("TOSS", plant_toss, "twins", 60, gain) for gain in (0.05, 0.1)),
    *(Row("MetaCoCo", plant_metacoco, "twins", 100, gain) for gain in (0.1, 0.2)),
)


def plant_pair(row: Row, rng: Rng, n: int) -> list[Tally]:
    """Two models, each of one run or of several seeds."""
    if row.seeds == 1:
        return row.plant(rng, n, [row.gain, 0.0], row.kind)
    gains = [row.gain * (place < row.seeds) + row.seed_spread * rng.normal() for place in range(2 * row.seeds)]
    runs = row.plant(rng, n, gains, row.kind)
    return [SeedTally(tuple(runs[: row.seeds])), SeedTally(tuple(runs[row.seeds :]))]


def compare(tallies: list[Tally], seed: int, swaps: int = SWAPS) -> PairedTally:
    return pair_tallies(tallies, plan=SwapPlan(swaps), resamples=0, level=1 - ALPHA, seed=seed, method="jackknife")


def plan_clusters(place: int) -> int:
    """The clusters of a row: as given, or as many as the analysis of the command asks for at the true difference."""
    row = ROWS[place]
    if not row.gain:
        return row.clusters
    rng, found, errors, fixed, freedom = np.random.default_rng([place, 1]), [], [], [], []
    for seed in range(PILOTS):
        paired = compare(plant_pair(row, rng, 4 * row.clusters), seed, swaps=1)
        found.append(float(paired.values[0, 0] - paired.values[1, 0]))
        errors.append(float(paired.spreads[0, 1].standard_error[0]))
        fixed.append(float(paired.find_fixed_error(0, 1)[0]))
        freedom.append(float(paired.find_freedom(0, 1)[0]))
    inner = float(np.mean(np.square(fixed)))
    varying = math.sqrt(max(float(np.mean(np.square(errors))) - inner, 0.0))
    needed = units_needed_for(
        float(np.mean(found)),
        varying,
        4 * row.clusters,
        alpha=ALPHA,
        power=POWER,
        fixed_error=math.sqrt(inner),
        freedom=float(np.median(freedom)),
    )
    return int(needed) if math.isfinite(needed) else 0


def count_verdicts(place: int, chunk: int, pairs: int, clusters: int) -> tuple[int, int, int]:
    """How many pairs are found different, how many rightly, and how many intervals exclude 0."""
    row, rng = ROWS[place], np.random.default_rng([place, 2, chunk])
    told = right = outside = 0
    for number in range(pairs):
        paired = compare(plant_pair(row, rng, clusters), 1_000 * chunk + number)
        difference = float(paired.values[0, 0] - paired.values[1, 0])
        claimed = paired.find_p_values(0, 1)[0] <= ALPHA
        told += bool(claimed)
        right += bool(claimed and difference > 0)
        low, high = jackknife_interval(paired)
        outside += bool(low > 0 or high < 0)
    return told, right, outside


def jackknife_interval(paired: PairedTally) -> tuple[float, float]:
    from hardlook.harness.stats.jackknife import jackknife_bounds

    value = paired.values[0] - paired.values[1]
    low, high = jackknife_bounds(value, paired.spreads[0, 1], paired.level, (-1.0, 1.0), paired.clusters)
    return float(low[0]), float(high[0])


def measure_simulated(jobs: int, pairs: int, only: str = "") -> bool:
    """Print the table; whether every row keeps the promise."""
    places = [place for place, row in enumerate(ROWS) if only in f"{row.benchmark} {row.kind} {row.gain}"]
    planned = dict(zip(places, share_out(jobs, plan_clusters, [(place,) for place in places]), strict=True))
    parts = [min(CHUNK, pairs - start) for start in range(0, pairs, CHUNK)]
    tasks = [
        (place, chunk, size, clusters)
        for place, clusters in planned.items()
        if clusters
        for chunk, size in enumerate(parts)
    ]
    tasks.sort(key=lambda task: -task[3])
    found = np.zeros((len(ROWS), 3), np.int64)
    for task, counts in zip(tasks, share_out(jobs, count_verdicts, tasks), strict=True):
        found[task[0]] += counts
    heads = ("benchmark", "models", "runs each", "true gain", "clusters", "found different", "rightly", "Wilson")
    print(f"| {' | '.join(heads)} | interval without 0 | kept |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    kept = True
    for place, clusters in planned.items():
        row, (told, right, outside) = ROWS[place], found[place].tolist()
        if not clusters:
            print(f"| {row.benchmark} | {row.kind} | {row.seeds} | {row.gain} | no number | | | | | |")
            continue
        low, high = wilson(right if row.gain else told, pairs)
        good = high >= POWER if row.gain else low <= ALPHA
        kept &= good
        shares = f"{told / pairs:.3f} | {right / pairs if row.gain else math.nan:.3f} | {low:.3f} to {high:.3f}"
        print(
            f"| {row.benchmark} | {row.kind} | {row.seeds} | {row.gain or 'none'} | {clusters} | {shares} | "
            f"{outside / pairs:.3f} | {'yes' if good else 'NO'} |"
        )
    return kept
