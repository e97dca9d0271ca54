"""Time of comparing two runs of 10,000 images and 100 classes, beside scipy's permutation test in the same run.

Run `python benchmarks/compare.py`. Ours tests the mIoU and the IoU of every class at once, from the sums of each image.
scipy has no path for sums: it gathers the rows of both models for every swap. It is given the same statistic and timed
on a few swaps, scaled to all of them, which is fair because its time grows linearly with them; the table says how many
it ran. Everything runs on one thread, and processor time decides.

`python benchmarks/compare.py --seeds 800` counts verdicts instead: planted segmenters with a known difference, and with
none, one seed each.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hardlook.harness.benchmark import BenchmarkCard, ScoreMeaning
from hardlook.harness.tally import Entry, SumTally
from hardlook.metrics.mean_iou import class_iou, mean_iou
from hardlook.report.compare.differences import add_verdicts, compute_differences, correct_p_values
from hardlook.report.compare.paired_tallies import SwapPlan, pair_tallies

UNITS, CLASSES, SWAPS, RESAMPLES = 10_000, 100, 9_999, 2_000
PEER_SWAPS = 20
TARGET_RATIO, TARGET_SECONDS = 20.0, 30.0
CARD = BenchmarkCard("timed", "1", "", "", "", scores=(ScoreMeaning("miou", "mIoU", "", headline=True),))
SCENES, GOOD, BAD, ALPHA = 24, 0.1, 0.5, 0.05


def statistic(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mIoU and the IoU of each class: (m, 3 * classes) to (m, 1 + classes)."""
    sums = totals.reshape(len(totals), 3, CLASSES)
    return np.concatenate([mean_iou(sums, "detectron2")[:, None], class_iou(sums)], axis=-1)


def planted_tallies() -> list[SumTally]:
    """Pixels hit, true and predicted of two models that share the truth."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2_000, (UNITS, CLASSES)) * (rng.random((UNITS, CLASSES)) < 0.1)
    tallies = []
    for quality in (0.70, 0.71):
        hit = rng.binomial(truth, quality)
        sums = np.concatenate([hit, truth, hit + rng.integers(0, 200, truth.shape) * (truth > 0)], axis=1)
        entries = (Entry("miou", UNITS), *(Entry("iou", UNITS, {"class": str(i)}) for i in range(CLASSES)))
        tallies.append(SumTally(entries, sums.astype(np.float64), statistic, ("timed",), "image"))
    return tallies


def spent(work: Callable[[], object]) -> float:
    """Seconds on the processor."""
    start = time.process_time()
    work()
    return time.process_time() - start


def scipy_seconds(tallies: list[SumTally]) -> float:
    """Time of scipy's paired permutation test of the mIoU alone, scaled to all swaps."""
    from scipy.stats import permutation_test

    rows = np.concatenate([tally.sums for tally in tallies])

    def difference(first: NDArray[Any], second: NDArray[Any]) -> float:
        mine, other = rows[first].sum(axis=0)[None], rows[second].sum(axis=0)[None]
        return float((statistic(mine) - statistic(other))[0, 0])

    data = (np.arange(UNITS), UNITS + np.arange(UNITS))
    options: dict[str, Any] = {"permutation_type": "samples", "vectorized": False, "n_resamples": PEER_SWAPS}
    return spent(lambda: permutation_test(data, difference, rng=0, **options)) * SWAPS / PEER_SWAPS


def time_it() -> None:
    tallies = planted_tallies()

    def compared() -> object:
        paired = pair_tallies(tallies, plan=SwapPlan(SWAPS), resamples=RESAMPLES, level=0.95, seed=0)
        return add_verdicts(correct_p_values(compute_differences(paired, ["first", "second"], ["miou"])), CARD, ALPHA)

    with threadpool_limits(limits=1):
        ours = spent(lambda: pair_tallies(tallies, plan=SwapPlan(SWAPS), resamples=0, level=0.95, seed=0))
        whole = spent(compared)
        peer = scipy_seconds(tallies)
    print(f"{UNITS:,} images, {CLASSES} classes, {SWAPS:,} swaps, one thread, seconds of processor time")
    print(f"swap test of {1 + CLASSES} scores, ours     {ours:8.1f}")
    print(f"swap test of the mIoU, scipy        {peer:8.1f}  ({PEER_SWAPS} swaps, scaled)")
    print(f"ratio                               {peer / ours:8.1f}  target {TARGET_RATIO:g}", end="  ")
    print("met" if peer / ours >= TARGET_RATIO else "MISSED")
    print(f"all of it, with {RESAMPLES:,} resamples      {whole:8.1f}  target {TARGET_SECONDS:g}", end="  ")
    print("met" if whole <= TARGET_SECONDS else "MISSED")


def count_verdicts(seeds: int) -> None:
    """How often the verdict is right, over planted segmenters of `seeds` seeds."""
    from hardlook.harness.runs.in_memory import InMemoryRun

    run = InMemoryRun("closed-miou", {"scenes": SCENES, "resamples": 0, "keep_predictions": False})

    def tallies(stranger: float, start: int) -> list[Any]:
        args = ({"stranger": stranger, "seed": seed} for seed in range(start, start + seeds))
        records = (run.records("planted-segmenter", one) for one in args)
        assert run.benchmark.tallies is not None
        return [run.benchmark.tallies(rows, run.options)[0] for rows in records]

    def claims(first: list[Any], second: list[Any]) -> list[str]:
        found: list[str] = []
        for seed, pair in enumerate(zip(first, second, strict=True)):
            paired = pair_tallies(pair, plan=SwapPlan(999), resamples=0, level=0.95, seed=seed)
            rows = [one for one in compute_differences(paired, ["first", "second"], ["miou"]) if one.name == "miou"]
            found.append(add_verdicts(correct_p_values(rows), CARD, ALPHA)[0].verdict)
        return found

    good, bad = tallies(GOOD, 0), tallies(BAD, 100_000)
    right = claims(good, bad).count("better")
    print(f"{SCENES} scenes, stranger {GOOD} against {BAD}: right in {right} of {seeds} seeds")
    for name, runs in ((GOOD, good), (BAD, bad)):
        told = seeds - claims(runs, [*runs[1:], runs[0]]).count("cannot tell")
        print(
            f"{SCENES} scenes, stranger {name} against {name}, another seed: a difference claimed in {told} of {seeds}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=0, help="count verdicts over so many seeds instead of timing")
    chosen = parser.parse_args()
    count_verdicts(chosen.seeds) if chosen.seeds else time_it()
