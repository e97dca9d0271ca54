"""How often intervals of nominal level .95 hold the true value: simulated data sets with a known one.

Run `python benchmarks/coverage.py --jobs 16 --data-sets 10000`. Needs numpy and scipy. Every cell of the table draws that
many data sets of one kind of score and one distribution, and counts how many intervals hold the true value: the
jackknife interval, which is the default, and the percentile and BCa intervals of the bootstrap. The goal is .94 to .96
with 30 clusters and more, and at least .92 with fewer; cells outside are marked `*`. A share of 10,000 data sets has a
standard error of .002. `--only WORD` takes the rows whose name holds the word.

`--tasks` simulates few-shot tasks that are drawn from one pool of images instead, and counts how often the interval over
tasks and the interval over tasks and images hold the accuracy on the pool, and on all images.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.stats.bootstrap import apply_statistic, leave_each_out, ratio
from hardlook.harness.stats.intervals import METHODS, ResamplingPlan, summarise
from hardlook.harness.stats.jackknife import UNBOUNDED, Range, SpreadMeter
from hardlook.harness.stats.resampling import draw_multiplicities, find_clusters

Numbers = NDArray[np.float64]
Rng = np.random.Generator
LEVEL, CLASSES, CHUNK = 0.95, 20, 250
TRUTH_CLUSTERS, TRUTH_PARTS = 20_000, 200
SHARE, DIFFERENCE = (0.0, 1.0), (-1.0, 1.0)


@dataclass(frozen=True)
class Scenario:
    """One row: `draw(rng, n)` gives the sums (n, columns) of n clusters; `statistic` the score of their totals.

    `true` is the score of all clusters there are; None where it is computed from four million of them.
    """

    kind: str
    distribution: str
    draw: Callable[[Rng, int], Numbers]
    statistic: Callable[[Numbers], Numbers]
    range: Range
    true: float | None = None
    clusters: tuple[int, ...] = (10, 30, 100)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def with_ones(values: Numbers) -> Numbers:
    return np.stack([values, np.ones(len(values))], axis=1)


def draw_counts(rng: Rng, sizes: Numbers, shares: Numbers) -> Numbers:
    """Right answers and answers of clusters that answer rightly with their own probability."""
    return np.stack([rng.binomial(sizes.astype(np.int64), shares), sizes], axis=1).astype(np.float64)


def poisson_sizes(rng: Rng, n: int) -> Numbers:
    return 1.0 + rng.poisson(4, n)


def large_sizes(rng: Rng, n: int) -> Numbers:
    """Most clusters are of a few units, one in a hundred of thirty and more."""
    return np.ceil(rng.lognormal(1, 1, n))


def pareto_sizes(rng: Rng, n: int) -> Numbers:
    """A tail so long that the largest of a hundred clusters holds a tenth of all units."""
    return np.ceil(2 * rng.pareto(1.5, n) + 0.01)


def draw_iou(rng: Rng, n: int, quality: Numbers, spread: float = 1.0) -> Numbers:
    """Intersection and union of n objects whose areas are lognormal."""
    union = rng.lognormal(7, spread, n)
    return np.stack([union * quality, union], axis=1)


CLASS_RATES = {"even classes": np.full(CLASSES, 0.15), "rare classes": np.geomspace(0.4, 0.02, CLASSES)}
CLASS_QUALITY = np.random.default_rng(5).uniform(0, 2, CLASSES)


def draw_classes(rng: Rng, n: int, rates: Numbers, better: float = 0.0, difficulty: Numbers | None = None) -> Numbers:
    """Intersections, unions and true pixels of all classes in n images; an image is easier or harder as a whole."""
    present = rng.random((n, CLASSES)) < rates
    hard = rng.normal(0, 0.5, (n, 1)) if difficulty is None else difficulty
    truth = np.where(present, rng.lognormal(7, 1, (n, CLASSES)), 0.0)
    hit = truth * sigmoid(CLASS_QUALITY + better - hard + rng.normal(0, 0.5, (n, CLASSES)))
    wrong = np.where(present, rng.lognormal(4, 1, (n, CLASSES)), 0.0)
    return np.concatenate([hit, truth + wrong, truth], axis=1)


def mean_iou(totals: Numbers) -> Numbers:
    """The mean over the classes that occur."""
    hit, union, truth = np.moveaxis(totals.reshape(len(totals), 3, CLASSES), 1, 0)
    occurs = truth > 0
    iou = np.divide(hit, union, out=np.zeros_like(hit), where=occurs)
    with np.errstate(invalid="ignore"):
        return iou.sum(axis=1) / occurs.sum(axis=1)


def pair_of(draw: Callable[[Rng, int], tuple[Numbers, Numbers]]) -> Callable[[Rng, int], Numbers]:
    return lambda rng, n: np.concatenate(draw(rng, n), axis=1)


def difference_of(statistic: Callable[[Numbers], Numbers]) -> Callable[[Numbers], Numbers]:
    def difference(totals: Numbers) -> Numbers:
        half = totals.shape[1] // 2
        return statistic(totals[:, :half]) - statistic(totals[:, half:])

    return difference


def two_modes(rng: Rng, n: int) -> tuple[Numbers, Numbers]:
    """A task in two modes: other queries, the same supports."""
    ease = rng.normal(1, 0.7, n)
    shown = (sigmoid(ease + rng.normal(0, 0.3, n)), sigmoid(ease - 0.5 + rng.normal(0, 0.3, n)))
    return tuple(draw_counts(rng, np.full(n, 15.0), one) for one in shown)  # type: ignore[return-value]


def two_models(kind: str) -> Callable[[Rng, int], tuple[Numbers, Numbers]]:
    def draw(rng: Rng, n: int) -> tuple[Numbers, Numbers]:
        ease = rng.normal(0, 1, n)
        first, second = sigmoid(1 + ease + rng.normal(0, 0.5, n)), sigmoid(0.8 + ease + rng.normal(0, 0.5, n))
        if kind == "mean":
            return with_ones(first), with_ones(second)
        if kind == "iou":
            union = rng.lognormal(7, 1, n)
            return np.stack([first * union, union], axis=1), np.stack([second * union, union], axis=1)
        if kind == "single":
            luck = rng.random(n)
            return with_ones((luck < first) * 1.0), with_ones((luck < second) * 1.0)
        if kind == "miou":
            hard, seed = rng.normal(0, 0.5, (n, 1)), int(rng.integers(2**62))
            # The same truth, another model.
            one, other = (
                draw_classes(np.random.default_rng(seed), n, CLASS_RATES["even classes"], by, hard) for by in (0.3, 0.0)
            )
            change = sigmoid(rng.normal(0, 0.5, (n, CLASSES)))
            other[:, :CLASSES] *= 0.8 + 0.2 * change
            return one, other
        sizes = large_sizes(rng, n) if kind == "large" else poisson_sizes(rng, n)
        return draw_counts(rng, sizes, first), draw_counts(rng, sizes, second)

    return draw


def list_scenarios() -> list[Scenario]:
    beta, bernoulli = (
        (lambda a, b: lambda rng, n: with_ones(rng.beta(a, b, n))),
        (lambda p: lambda rng, n: with_ones((rng.random(n) < p) * 1.0)),
    )
    rows = [
        Scenario("mean", "normal", lambda rng, n: with_ones(rng.normal(0.5, 0.1, n)), ratio, SHARE, 0.5),
        Scenario("mean", "uniform", beta(1, 1), ratio, SHARE, 0.5),
        Scenario("mean", "skewed: beta(.5, 4.5)", beta(0.5, 4.5), ratio, SHARE, 0.1),
        Scenario("mean", "near 1: beta(9, 1)", beta(9, 1), ratio, SHARE, 0.9),
        Scenario("mean", "right or wrong, .9 right", bernoulli(0.9), ratio, SHARE, 0.9),
        Scenario("mean", "right or wrong, .97 right", bernoulli(0.97), ratio, SHARE, 0.97),
        Scenario(
            "mean",
            "skewed: clicks, 1 to 20",
            lambda rng, n: with_ones(np.minimum(20, rng.geometric(0.3, n))),
            ratio,
            (1.0, 20.0),
        ),
        Scenario(
            "mean", "exponential, from 0", lambda rng, n: with_ones(rng.exponential(1, n)), ratio, (0.0, np.inf), 1.0
        ),
        Scenario(
            "mean", "exponential, no range", lambda rng, n: with_ones(rng.exponential(1, n)), ratio, UNBOUNDED, 1.0
        ),
        Scenario(
            "mean",
            "lognormal, from 0",
            lambda rng, n: with_ones(rng.lognormal(0, 1, n)),
            ratio,
            (0.0, np.inf),
            float(np.exp(0.5)),
        ),
    ]
    sizes = {"even clusters": poisson_sizes, "few large clusters": large_sizes, "Pareto clusters": pareto_sizes}
    for word, draw in sizes.items():
        rows.append(
            Scenario(
                "clustered mean",
                word,
                lambda rng, n, draw=draw: draw_counts(rng, draw(rng, n), rng.beta(2, 1, n)),
                ratio,
                SHARE,
                2 / 3,
            )
        )
    rows += [
        Scenario(
            "clustered mean",
            "near 1: .95 right",
            lambda rng, n: draw_counts(rng, poisson_sizes(rng, n), rng.beta(19, 1, n)),
            ratio,
            SHARE,
            0.95,
        ),
        Scenario(
            "ratio of sums",
            "IoU, lognormal areas",
            lambda rng, n: draw_iou(rng, n, rng.beta(3, 1, n)),
            ratio,
            SHARE,
            0.75,
        ),
        Scenario(
            "ratio of sums", "IoU near 1", lambda rng, n: draw_iou(rng, n, rng.beta(19, 1, n)), ratio, SHARE, 0.95
        ),
        Scenario(
            "ratio of sums",
            "IoU, few large areas",
            lambda rng, n: draw_iou(rng, n, rng.beta(3, 1, n), 1.5),
            ratio,
            SHARE,
            0.75,
        ),
    ]
    for word, rates in CLASS_RATES.items():
        rows.append(
            Scenario(
                "mIoU, 20 classes",
                word,
                lambda rng, n, rates=rates: draw_classes(rng, n, rates),
                mean_iou,
                SHARE,
                None,
                (10, 24, 30, 100),
            )
        )
    rows.append(Scenario("difference", "two modes of a task", pair_of(two_modes), difference_of(ratio), DIFFERENCE))
    words = {
        "mean": "means",
        "single": "right or wrong",
        "iou": "IoU, lognormal areas",
        "even": "accuracy, even clusters",
        "large": "accuracy, few large clusters",
    }
    for kind, word in words.items():
        rows.append(Scenario("paired difference", word, pair_of(two_models(kind)), difference_of(ratio), DIFFERENCE))
    rows.append(
        Scenario(
            "paired difference",
            "mIoU, even classes",
            pair_of(two_models("miou")),
            difference_of(mean_iou),
            DIFFERENCE,
            None,
            (10, 24, 30, 100),
        )
    )
    return rows


SCENARIOS = list_scenarios()


@lru_cache
def find_truth(place: int) -> float:
    """The score of four million clusters."""
    scenario = SCENARIOS[place]
    if scenario.true is not None:
        return scenario.true
    rng = np.random.default_rng(12345)
    totals = sum(scenario.draw(rng, TRUTH_CLUSTERS).sum(axis=0) for _ in range(TRUTH_PARTS))
    return float(scenario.statistic(np.asarray(totals)[None])[0])


def count_covered(
    place: int, n: int, chunk: int, data_sets: int, resamples: int, truth: float
) -> tuple[Numbers, Numbers]:
    """By method, how many intervals hold the true value, and the sum of their widths."""
    scenario, rng = SCENARIOS[place], np.random.default_rng([place, n, chunk])
    covered, width = np.zeros(len(METHODS)), np.zeros(len(METHODS))
    clusters = find_clusters(n)
    for _ in range(data_sets):
        sums = scenario.draw(rng, n)
        value = apply_statistic(scenario.statistic, sums.sum(axis=0)[None])[0]
        replicates = [
            apply_statistic(scenario.statistic, block @ sums) for block in draw_multiplicities(clusters, resamples, rng)
        ]
        left_out = np.concatenate(list(leave_each_out(scenario.statistic, sums, clusters.sizes)))
        meter = SpreadMeter(value, clusters.sizes)
        meter.add(left_out)
        for row, (method, given) in enumerate(
            (("jackknife", meter.measure()), ("percentile", None), ("bca", left_out))
        ):
            plan = ResamplingPlan(rng, clusters, resamples, LEVEL, method, "cluster", scenario.range)  # type: ignore[arg-type]
            interval = summarise(plan, value, np.concatenate(replicates), given)[0].interval
            covered[row] += truth in interval
            width[row] += np.nan_to_num(interval.high - interval.low)
    return covered, width


def share_out(jobs: int, work: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> Iterator[Any]:
    if jobs == 1:
        yield from (work(*task) for task in tasks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(work, *zip(*tasks, strict=True))


def mark(share: float, n: int) -> str:
    """The share with a star where it misses the goal."""
    meets = 0.94 <= round(share, 3) <= 0.96 if n >= 30 else round(share, 3) >= 0.92
    return f"{share:.3f}".removeprefix("0") + ("" if meets else "*")


def measure_intervals(jobs: int, data_sets: int, resamples: int, only: str) -> None:
    """Print the table of coverage."""
    places = [place for place, one in enumerate(SCENARIOS) if only in f"{one.kind} {one.distribution}"]
    truths = dict(zip(places, share_out(jobs, find_truth, [(place,) for place in places]), strict=True))
    parts = [min(CHUNK, data_sets - start) for start in range(0, data_sets, CHUNK)]
    cells = [(place, n) for place in places for n in SCENARIOS[place].clusters]
    tasks = [
        (place, n, chunk, size, resamples, truths[place]) for place, n in cells for chunk, size in enumerate(parts)
    ]
    # The longest first, so that no worker is left alone with them.
    tasks.sort(key=lambda task: -task[1])
    found = {cell: np.zeros((2, len(METHODS))) for cell in cells}
    for task, (covered, width) in zip(tasks, share_out(jobs, count_covered, tasks), strict=True):
        found[task[:2]] += [covered, width]
    print(f"| score | distribution | clusters | {' | '.join(METHODS)} | width against percentile |")
    print("|---|---|---|" + "---|" * (len(METHODS) + 1))
    for place, n in cells:
        covered, width = found[place, n]
        shares = " | ".join(mark(count / data_sets, n) for count in covered)
        row = SCENARIOS[place]
        print(f"| {row.kind} | {row.distribution} | {n} | {shares} | {width[0] / width[1]:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--data-sets", type=int, default=500, help="data sets per cell")
    parser.add_argument("--resamples", type=int, default=1000, help="resamples of the bootstrap intervals")
    parser.add_argument("--only", default="", help="rows whose kind and distribution hold this")
    chosen = parser.parse_args()
    start = time.perf_counter()
    measure_intervals(chosen.jobs, chosen.data_sets, chosen.resamples, chosen.only)
    print(
        f"\n{chosen.data_sets:,} data sets per cell, {chosen.resamples:,} resamples, {time.perf_counter() - start:.0f} s with {chosen.jobs} jobs"
    )
