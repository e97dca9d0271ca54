"""Whether `hardlook compare` keeps its promise: false alarms in 5 % of comparisons at most, and the power it plans for.

Run `python benchmarks/compare_promise.py --jobs 2 --pairs 1000`. Planted models run through three benchmarks: open-miou
(an image is a cluster), toss (all pairs of a query image are a cluster) and metacoco (a task is a cluster; tasks share
images). Their records go to `compare_runs`, the function behind the command.

A planted model draws its errors anew for every image and seed. So each world is evaluated once with several seeds of
each model, and a pair of models is made from these records: clusters are drawn with replacement, and on each of them
either model gives the answer of one of its seeds, never both the same. No two pairs have the same models.

Two models without a difference have the same faults; a difference claimed in any of the headline scores is a false
alarm. Two models with a difference are compared on as many clusters as the comparison of all clusters of the world asks
for, at a power of .8; right is the verdict that the better model is better in the first score. The Wilson interval of
false alarms must reach 5 %, that of right verdicts 80 %.

`--simulated` measures the same on sums that are drawn without a run: models that err in different ways, several seeds,
and learners that fail on whole images.
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402

from hardlook.harness.runs.folder import RunFolder  # noqa: E402
from hardlook.harness.runs.in_memory import InMemoryRun  # noqa: E402
from hardlook.harness.runs.scoring import ScoredRun  # noqa: E402
from hardlook.harness.scorecard import Scorecard  # noqa: E402
from hardlook.report.compare.comparison import Comparison, compare_runs  # noqa: E402
from hardlook.report.compare.differences import POWER, Difference  # noqa: E402
from headline_calibration import wilson  # noqa: E402

ALPHA, SWAPS, RESAMPLES = 0.05, 999, 100
SEEDS, PILOTS, CHUNK = 6, 20, 25
BETTER, WORSE = "better", "worse"


@dataclass(frozen=True)
class PlantedRuns:
    """Runs of one planted model of two qualities through one benchmark.

    `cluster` is the column of records that names the clusters, `score` the one whose verdict is counted, `dial` the
    fault with its value for the better and the worse model, `clusters` the sizes of comparisons without a difference.
    `numbered` are the columns that must tell the draws of one cluster apart; the column `slices`, where given, is the
    same in all records: slices take most of the time, and no verdict on all units depends on them.
    """

    benchmark: str
    given: dict[str, Any]
    model: str
    dial: str
    faults: dict[str, float]
    cluster: str
    score: str
    clusters: tuple[int, ...] = (50,)
    numbered: tuple[str, ...] = ("unit",)
    slices: str = ""


PLANTED = (
    PlantedRuns(
        "open-miou",
        {"scenes": 300, "keep_predictions": False},
        "planted-segmenter",
        "stranger",
        {BETTER: 0.2, WORSE: 0.4},
        "unit",
        "open-miou",
        slices="context",
    ),
    PlantedRuns(
        "toss",
        {"scenes": 100, "tiers": "1", "keep_predictions": False},
        "planted-one-shot",
        "saliency",
        {BETTER: 0.3, WORSE: 0.45},
        "query",
        "lca",
        numbered=("unit", "query"),
    ),
    PlantedRuns(
        "metacoco",
        {"tasks": 200, "modes": "iid,ood"},
        "planted-learner",
        "noise",
        {BETTER: 0.3, WORSE: 0.36},
        "index",
        "iid",
        numbered=("unit", "index"),
    ),
)


@dataclass(frozen=True)
class World:
    """The records of a benchmark: by quality and seed, those of each cluster, in the same order for all."""

    run: InMemoryRun
    records: dict[str, list[list[pl.DataFrame]]]

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return len(self.records[BETTER][0])


def evaluate_seed(place: int, quality: str, seed: int, folder: Path) -> None:
    """Write the records of one model on the whole world to the folder."""
    planted = PLANTED[place]
    records = prepare_world(place).records(planted.model, {planted.dial: planted.faults[quality], "seed": seed})
    if planted.slices:
        records = records.with_columns(pl.lit("all").alias(planted.slices))
    records.write_parquet(folder / f"{place}-{quality}-{seed}.parquet")


@lru_cache(maxsize=1)
def prepare_world(place: int) -> InMemoryRun:
    planted = PLANTED[place]
    return InMemoryRun(planted.benchmark, {**planted.given, "resamples": 0})


def evaluate_world(place: int, pool: Executor, folder: Path) -> None:
    """Evaluate every model and seed, and keep the records in a folder, where all processes find them."""
    tasks = [(place, quality, seed, folder) for quality in (BETTER, WORSE) for seed in range(SEEDS)]
    list(pool.map(evaluate_seed, *zip(*tasks, strict=True)))


@lru_cache(maxsize=1)
def read_world(place: int, folder: Path) -> World:
    planted = PLANTED[place]
    records = {}
    for quality in (BETTER, WORSE):
        frames = (pl.read_parquet(folder / f"{place}-{quality}-{seed}.parquet") for seed in range(SEEDS))
        records[quality] = [
            frame.sort(planted.cluster, "unit").partition_by(planted.cluster, maintain_order=True) for frame in frames
        ]
    return World(prepare_world(place), records)


def draw_runs(place: int, world: World, drawn: Any, qualities: tuple[str, str], rng: np.random.Generator) -> list[Any]:
    """Two runs on the drawn clusters (n,); on each, the two answers are of different seeds."""
    first = rng.integers(SEEDS, size=len(drawn))
    second = (first + rng.integers(1, SEEDS, size=len(drawn))) % SEEDS
    columns = PLANTED[place].numbered
    runs = []
    for quality, seeds in zip(qualities, (first, second), strict=True):
        parts = [world.records[quality][seed][cluster] for seed, cluster in zip(seeds, drawn, strict=True)]
        draws = pl.Series("draw", np.repeat(np.arange(len(parts)), [len(part) for part in parts]))
        records = pl.concat(parts)
        # A cluster that is drawn twice counts as two.
        renamed = [
            draws.alias(name) if records.schema[name].is_integer() else (records[name] + "#" + draws.cast(pl.String))
            for name in columns
        ]
        runs.append(make_run(world.run, records.with_columns(renamed)))
    return runs


def make_run(run: InMemoryRun, records: pl.DataFrame) -> ScoredRun:
    card = run.benchmark.card
    manifest: dict[str, Any] = {"model": None, "answers": {}}
    empty = Scorecard(card.name, card.version, "")
    return ScoredRun(RunFolder(Path("none")), manifest, run.benchmark, run.options, records, pl.DataFrame(), empty)


def compare(runs: list[Any], seed: int) -> Comparison:
    return compare_runs(runs, names=["first", "second"], swaps=SWAPS, resamples=RESAMPLES, alpha=ALPHA, seed=seed)


def find_lead(place: int, comparison: Comparison) -> Difference | None:
    """The difference whose verdict counts; None where no drawn cluster has units of its score."""
    return next((one for one in comparison.headline if one.name == PLANTED[place].score), None)


def plan_clusters(place: int, folder: Path) -> tuple[int, float]:
    """As many clusters as the comparison of the whole world asks for, and the difference there; of several seeds."""
    world, rng = read_world(place, folder), np.random.default_rng([place, 0])
    found = []
    for seed in range(PILOTS):
        runs = draw_runs(place, world, np.arange(world.clusters), (BETTER, WORSE), rng)
        if lead := find_lead(place, compare(runs, seed)):
            found.append(lead)
    return int(np.median([one.units_needed for one in found])), float(np.mean([one.value for one in found]))


def count_verdicts(place: int, folder: Path, alike: bool, clusters: int, chunk: int, pairs: int) -> tuple[int, int]:
    """How many pairs are found different in a headline score, and how many rightly in the first one."""
    world, rng = read_world(place, folder), np.random.default_rng([place, 1, int(alike), clusters, chunk])
    told = right = 0
    for number in range(pairs):
        drawn = rng.integers(world.clusters, size=clusters)
        runs = draw_runs(place, world, drawn, (BETTER, BETTER if alike else WORSE), rng)
        comparison = compare(runs, 1_000 * chunk + number)
        told += any(one.is_significant for one in comparison.headline)
        lead = find_lead(place, comparison)
        right += lead is not None and lead.verdict == "better"
    return told, right


def measure_promise(pool: Executor, pairs: int, only: str, folder: Path) -> bool:
    """Print the table; whether every row keeps the promise."""
    heads = ("benchmark", "models", "true difference", "clusters", "found different", "rightly", "Wilson interval")
    print(f"| {' | '.join(heads)} | promised | kept |")
    print("|---|---|---|---|---|---|---|---|---|")
    kept = True
    parts = [min(CHUNK, pairs - start) for start in range(0, pairs, CHUNK)]
    for place, planted in enumerate(PLANTED):
        if only and planted.benchmark != only:
            continue
        evaluate_world(place, pool, folder)
        needed, difference = plan_clusters(place, folder)
        rows = [(True, clusters) for clusters in planted.clusters] + [(False, needed)]
        tasks = [(place, folder, *row, chunk, size) for row in rows for chunk, size in enumerate(parts)]
        found = dict.fromkeys(rows, (0, 0))
        for task, counts in zip(tasks, pool.map(count_verdicts, *zip(*tasks, strict=True)), strict=True):
            before = found[task[2], task[3]]
            found[task[2], task[3]] = (before[0] + counts[0], before[1] + counts[1])
        for (alike, clusters), (told, right) in found.items():
            low, high = wilson(told if alike else right, pairs)
            good = low <= ALPHA if alike else high >= POWER
            kept &= good
            faults = f"{planted.faults[BETTER]:g} and {planted.faults[BETTER if alike else WORSE]:g}"
            print(
                f"| {planted.benchmark} | {planted.dial} {faults} | "
                f"{'none' if alike else f'{planted.score} {difference:.3f}'} | {clusters} | {told / pairs:.3f} | "
                f"{'' if alike else f'{right / pairs:.3f}'} | {low:.3f} to {high:.3f} | "
                f"{f'at most {ALPHA}' if alike else f'at least {POWER}'} | {'yes' if good else 'NO'} |",
                flush=True,
            )
    return kept


def main() -> int:
    """Print the tables; return 1 if a row misses its promise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--pairs", type=int, default=100, help="planted pairs per row")
    parser.add_argument("--benchmark", default="", help="one of the benchmarks alone; with --simulated part of a row")
    parser.add_argument("--simulated", action="store_true", help="sums that are drawn, in place of runs")
    chosen = parser.parse_args()
    start = time.perf_counter()
    if chosen.simulated:
        from compare_simulated import measure_simulated

        kept = measure_simulated(chosen.jobs, chosen.pairs, chosen.benchmark)
    else:
        # Spawned: polars' threads do not survive a fork.
        context = multiprocessing.get_context("spawn")
        with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(chosen.jobs, context) as pool:
            kept = measure_promise(pool, chosen.pairs, chosen.benchmark, Path(folder))
    seconds = time.perf_counter() - start
    print(f"\n{chosen.pairs:,} pairs per row, {SWAPS} swaps, {seconds:.0f} s with {chosen.jobs} jobs")
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
