"""How often intervals of nominal level .95 hold the true value: simulated data sets with a known one.

Run `python benchmarks/interval_coverage.py --jobs 16 --data-sets 10000`. Needs numpy and scipy. Every cell of the
table draws that many data sets of one kind of score and one distribution, and counts how many intervals hold the true
value: the jackknife interval, which is the default, and the percentile and BCa intervals of the bootstrap. The goal is
.94 to .96 with 30 clusters and more, and at least .92 with fewer; cells outside are marked `*`. A share of 10,000 data
sets has a standard error of .002. `--only WORD` takes the rows whose name holds the word.

`--tasks` simulates few-shot tasks that are drawn from one pool of images instead. It counts how often the t interval
over tasks holds the accuracy on the pool, and on all images, and how often the interval over tasks and images holds the
latter; 2,000 data sets take some minutes on 16 processors.
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

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from hardlook.harness.stats.bootstrap import apply_statistic, leave_each_out, ratio  # noqa: E402
from hardlook.harness.stats.intervals import METHODS, ResamplingPlan, summarise, t_interval  # noqa: E402
from hardlook.harness.stats.jackknife import (  # noqa: E402
    UNBOUNDED,
    Range,
    Spread,
    SpreadMeter,
    add_variances,
    jackknife_bounds,
)
from hardlook.harness.stats.resampling import draw_multiplicities, find_clusters  # noqa: E402
from hardlook.harness.stats.shared_draws import share_out_errors  # noqa: E402

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
    return np.asarray(1.0 + rng.poisson(4, n))


def large_sizes(rng: Rng, n: int) -> Numbers:
    """Most clusters are of a few units, one in a hundred of thirty and more."""
    return np.asarray(np.ceil(rng.lognormal(1, 1, n)))


def pareto_sizes(rng: Rng, n: int) -> Numbers:
    """A tail so long that the largest of a hundred clusters holds a tenth of all units."""
    return np.asarray(np.ceil(2 * rng.pareto(1.5, n) + 0.01))


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
        return np.asarray(iou.sum(axis=1) / occurs.sum(axis=1))


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
            return with_ones(np.asarray(first)), with_ones(np.asarray(second))
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


def beta(a: float, b: float) -> Callable[[Rng, int], Numbers]:
    return lambda rng, n: with_ones(rng.beta(a, b, n))


def bernoulli(share: float) -> Callable[[Rng, int], Numbers]:
    return lambda rng, n: with_ones((rng.random(n) < share).astype(np.float64))


def clustered(sizes: Callable[[Rng, int], Numbers]) -> Callable[[Rng, int], Numbers]:
    return lambda rng, n: draw_counts(rng, sizes(rng, n), rng.beta(2, 1, n))


def classes_of(rates: Numbers) -> Callable[[Rng, int], Numbers]:
    return lambda rng, n: draw_classes(rng, n, rates)


def list_scenarios() -> list[Scenario]:
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
                clustered(draw),
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
                classes_of(rates),
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


@dataclass(frozen=True)
class TaskScenario:
    """Tasks of five ways, drawn from a pool of `images` of each of twelve classes."""

    tasks: int
    images: int
    shots: int
    queries: int
    noise: float = 0.8


TASK_SCENARIOS = (
    TaskScenario(60, 40, 1, 5),
    TaskScenario(100, 30, 1, 5),
    TaskScenario(100, 100, 1, 15),
    TaskScenario(600, 30, 1, 15),
    TaskScenario(600, 100, 1, 15),
    TaskScenario(600, 100, 5, 15),
    TaskScenario(300, 60, 5, 15, 1.2),
    TaskScenario(2000, 100, 1, 15),
)
WAYS, CONCEPTS, DEPTH = 5, 12, 6
CENTRES = np.random.default_rng(3).normal(0, 1, (CONCEPTS, DEPTH))


def draw_pool(rng: Rng, images: int, noise: float) -> Numbers:
    """(classes, images, depth): features of images, some of which are far from the centre of their class."""
    shape = (CONCEPTS, images)
    spread = np.exp(0.5 * rng.normal(0, 1, (*shape, 1)))
    return CENTRES[:, None] + noise * spread * rng.normal(0, 1, (*shape, DEPTH))


def answer_tasks(rng: Rng, pool: Numbers, tasks: int, shots: int, queries: int) -> tuple[Any, Any, Any, Any]:
    """Nearest centroid: whether each answer is right (T, W, Q), the classes, and the numbers of the images."""
    images = pool.shape[1]
    classes = np.argsort(rng.random((tasks, CONCEPTS)), axis=1)[:, :WAYS]
    drawn = np.argpartition(rng.random((tasks, WAYS, images)), shots + queries - 1, axis=2)[:, :, : shots + queries]
    seen = pool[classes[:, :, None], drawn]
    centroid = seen[:, :, :shots].mean(axis=2)
    apart = ((seen[:, :, shots:, None] - centroid[:, None, None]) ** 2).sum(axis=-1)
    right = apart.argmin(axis=-1) == np.arange(WAYS)[None, :, None]
    numbers = classes[:, :, None] * images + drawn
    return right, classes, numbers[:, :, :shots], numbers[:, :, shots:]


def find_task_truth(place: int) -> float:
    """The accuracy over pools of ten times as many images."""
    one, rng = TASK_SCENARIOS[place], np.random.default_rng(54321)
    found = [
        answer_tasks(rng, draw_pool(rng, 500, one.noise), 250, one.shots, one.queries)[0].mean() for _ in range(200)
    ]
    return float(np.mean(found))


def count_covered_tasks(place: int, chunk: int, data_sets: int, truth: float) -> Numbers:
    """Intervals over tasks that hold the accuracy of this pool, and of all images; and those over images, too."""
    one, rng = TASK_SCENARIOS[place], np.random.default_rng([place, 77, chunk])
    covered = np.zeros(5)
    for _ in range(data_sets):
        pool = draw_pool(rng, one.images, one.noise)
        right, classes, support, query = answer_tasks(rng, pool, one.tasks, one.shots, one.queries)
        values = right.mean(axis=(1, 2))
        tasks_of_pool = min(10 * one.tasks, 20_000)
        of_pool = float(answer_tasks(rng, pool, tasks_of_pool, one.shots, one.queries)[0].mean())
        tasks = t_interval(values, LEVEL, "task", SHARE)
        error = np.array([values.std(ddof=1) / np.sqrt(len(values))])
        variance, freedom = share_out_errors(right, classes, support, query).measure()
        spread = Spread(error, np.array([len(values) - 1.0]), np.ones(1), np.zeros(1))
        both = add_variances(spread, [(np.array([variance]), freedom)])
        low, high = jackknife_bounds([values.mean()], both, LEVEL, SHARE, len(values))
        covered += [
            of_pool in tasks,
            truth in tasks,
            low[0] <= truth <= high[0],
            tasks.high - tasks.low,
            high[0] - low[0],
        ]
    return covered


def measure_tasks(jobs: int, data_sets: int) -> None:
    """Print the table of tasks that share images."""
    places = range(len(TASK_SCENARIOS))
    truths = list(share_out(jobs, find_task_truth, [(place,) for place in places]))
    parts = [min(CHUNK // 5, data_sets - start) for start in range(0, data_sets, CHUNK // 5)]
    tasks = [(place, chunk, size, truths[place]) for place in places for chunk, size in enumerate(parts)]
    tasks.sort(key=lambda task: -TASK_SCENARIOS[task[0]].tasks)
    found = np.zeros((len(TASK_SCENARIOS), 5))
    for task, covered in zip(tasks, share_out(jobs, count_covered_tasks, tasks), strict=True):
        found[task[0]] += covered
    heads = ("tasks", "images per class", "shots", "queries", "t: this pool", "t: all images", "shared images", "width")
    print(f"| {' | '.join(heads)} |")
    print("|---" * len(heads) + "|")
    for one, (pool, alone, both, narrow, wide) in zip(TASK_SCENARIOS, found, strict=True):
        shares = [f"{count / data_sets:.3f}".removeprefix("0") for count in (pool, alone)]
        setting = (one.tasks, one.images, one.shots, one.queries)
        print(
            f"| {' | '.join(map(str, (*setting, *shares, mark(both / data_sets, one.tasks))))} | {wide / narrow:.2f} |"
        )


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
    columns = sorted({n for _, n in cells})
    print(f"| score | distribution | {' | '.join(f'{n} clusters' for n in columns)} |")
    print("|---|---|" + "---|" * len(columns))
    for place in places:
        row = SCENARIOS[place]
        texts = []
        for n in columns:
            shares = found[place, n][0] / data_sets if (place, n) in found else None
            others = "" if shares is None else ", ".join(f"{share:.3f}".removeprefix("0") for share in shares[1:])
            texts.append("" if shares is None else f"{mark(shares[0], n)} ({others})")
        print(f"| {row.kind} | {row.distribution} | {' | '.join(texts)} |")
    wider = [found[cell][1][0] / found[cell][1][1] for cell in cells]
    print(
        f"\nEach cell: {METHODS[0]} ({', '.join(METHODS[1:])}). Widths of {METHODS[0]} against {METHODS[1]} intervals:"
    )
    print(f"{np.median(wider):.2f} in the median, {min(wider):.2f} to {max(wider):.2f}.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--data-sets", type=int, default=500, help="data sets per cell")
    parser.add_argument("--resamples", type=int, default=400, help="resamples of the bootstrap intervals")
    parser.add_argument("--tasks", action="store_true", help="tasks that share images, in place of the other table")
    parser.add_argument("--only", default="", help="rows whose kind and distribution hold this")
    chosen = parser.parse_args()
    start = time.perf_counter()
    if chosen.tasks:
        measure_tasks(chosen.jobs, chosen.data_sets)
    else:
        measure_intervals(chosen.jobs, chosen.data_sets, chosen.resamples, chosen.only)
    took = f"{time.perf_counter() - start:.0f} s with {chosen.jobs} jobs"
    print(f"\n{chosen.data_sets:,} data sets per cell, {chosen.resamples:,} resamples, {took}")
