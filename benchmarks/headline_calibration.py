"""How often reports headline a slice: without any effect (at most 5 in 100), and with one (at least 90 in 100).

    python benchmarks/headline_calibration.py                  # 1,000 reports per row, on one core
    python benchmarks/headline_calibration.py --reports 10000 --jobs 16

A report is a scorecard of 20 slices, whose statement is made by the code that makes it in a run's report:
`hardlook.harness.verdicts.compare_slices`. Each slice is a mean over units, drawn in clusters; its standard error is
that of a bootstrap over clusters. Without an effect all slices are drawn from one distribution, and any headline is
wrong. With one, the first slice has a mean lower by .2 and a standard deviation of .2 per unit; it is found if that
slice is headlined. Rates have 95 % Wilson intervals. The exit code is 1 where a rate misses its goal: false alarms
whose interval lies above .05, findings whose interval reaches below .9.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.scorecard import Score
from hardlook.harness.stats.intervals import Interval
from hardlook.harness.verdicts import compare_slices

SLICES, RESAMPLES, EFFECT, SPREAD = 20, 400, 0.2, 0.2
Numbers = NDArray[np.float64]
Slices = tuple[Numbers, Numbers]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Numbers]


def _beta(mean: float, spread: float) -> Draw:
    strength = mean * (1 - mean) / spread**2 - 1
    return lambda rng, size: rng.beta(mean * strength, (1 - mean) * strength, size)


DISTRIBUTIONS: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(0.6, SPREAD, size),
    "beta, mean .6": _beta(0.6, SPREAD),
    "0 or 1, half": lambda rng, size: (rng.random(size) < 0.5).astype(float),
    "0 or 1, .97": lambda rng, size: (rng.random(size) < 0.97).astype(float),
    "exponential": lambda rng, size: SPREAD * rng.exponential(size=size),
    "log-normal": lambda rng, size: 0.1 * rng.lognormal(0, 1, size),
    "mostly 0": lambda rng, size: rng.beta(0.3, 0.9, size) * (rng.random(size) < 0.3),
    "few near 1": lambda rng, size: 1 - 0.05 * rng.exponential(size=size),
}


@dataclass(frozen=True)
class Setting:
    """One row: a distribution, clusters per slice (the last slices may have more), units per cluster, an effect."""

    distribution: str
    clusters: tuple[int, ...]
    units: int = 1
    within: float = 0.0
    shared: float = 0.0
    effect: float = 0.0

    def __str__(self) -> str:
        sizes = sorted(set(self.clusters))
        parts = [self.distribution, f"{len(self.clusters)} slices of {'-'.join(map(str, sizes))} clusters"]
        parts += [f"of {self.units} units, {self.within:.0%} of the variance within"] if self.units > 1 else []
        parts += ["one image in all slices"] if self.shared else []
        return ", ".join(parts)


def list_settings() -> list[Setting]:
    """The rows: without an effect, then with one."""
    even, uneven = (30,) * SLICES, (10,) * 10 + (100,) * 10
    rows = [Setting(name, clusters) for name in DISTRIBUTIONS for clusters in ((10,) * SLICES, even, uneven, (30, 30))]
    rows += [Setting("normal", even, units=8, within=within) for within in (0.2, 0.8)]
    rows += [Setting("normal", (10, 20) * 10, units=8, within=0.5), Setting("normal", even, shared=0.5)]
    found = [Setting(name, even, effect=EFFECT) for name in ("normal", "beta, mean .6")]
    found += [Setting("normal", even, units=8, within=within, effect=EFFECT) for within in (0.2, 0.8)]
    found.append(Setting("normal", (30,) + (10,) * 10 + (100,) * 9, effect=EFFECT))
    return rows + found


def draw_slices(rng: np.random.Generator, setting: Setting, size: tuple[int, ...], common: Numbers) -> Slices:
    """Sums and counts of clusters, each of shape `size` (reports, slices, clusters).

    The standard deviation of a unit is that of the distribution. With several units per cluster, `within` is the share
    of its variance that is not its cluster's, and clusters differ in size.
    """
    values = DISTRIBUTIONS[setting.distribution](rng, size)
    if setting.shared:
        mean, image = 0.6, common[:, None, : size[2]]
        values = mean + math.sqrt(setting.shared) * (image - mean) + math.sqrt(1 - setting.shared) * (values - mean)
    if setting.units == 1:
        return values, np.ones(size)
    counts = rng.integers(1, 2 * setting.units, size).astype(float)
    between = 0.6 + math.sqrt(1 - setting.within) * (values - 0.6)
    own = SPREAD * math.sqrt(setting.within) / np.sqrt(counts)
    return counts * (between + own * rng.normal(size=size)), counts


def bootstrap(sums: Numbers, counts: Numbers, weights: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Value, standard error, low and high (reports, slices) of the ratio of totals, by a bootstrap over clusters."""
    replicates = (sums @ weights.T) / (counts @ weights.T)
    low, high = np.quantile(replicates, [0.025, 0.975], axis=-1)
    return sums.sum(-1) / counts.sum(-1), replicates.std(-1, ddof=1), low, high


def count_headlines(setting: Setting, reports: int, start: int) -> int:
    """How many of these reports headline a slice; with an effect, how many headline that slice."""
    rng = np.random.default_rng([start, *str(setting).encode(), int(100 * setting.effect)])
    common = rng.normal(0.6, SPREAD, (reports, max(setting.clusters)))
    found: dict[int, tuple[Numbers, ...]] = {}
    for n in sorted(set(setting.clusters)):
        places = [place for place, clusters in enumerate(setting.clusters) if clusters == n]
        sums, counts = draw_slices(rng, setting, (reports, len(places), n), common)
        if 0 in places:
            sums[:, 0] -= setting.effect * counts[:, 0]
        # A run's draws are named and seeded, so that they are the same for all reports.
        weights = np.random.default_rng(n).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(float)
        columns = bootstrap(sums, counts, weights)
        found |= {place: tuple(one[:, row] for one in columns) for row, place in enumerate(places)}
    headlined = 0
    for report in range(reports):
        scores = []
        for place, n in enumerate(setting.clusters):
            value, error, low, high = (float(column[report]) for column in found[place])
            interval = Interval(low, high, 0.95, "percentile", n, "image")
            scores.append(Score("miou", value, n, interval, {"slice": str(place)}, standard_error=error))
        [tests] = compare_slices([scores])
        headlined += tests[0].differs if setting.effect else any(test.differs for test in tests)
    return headlined


def wilson(count: int, n: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share."""
    z, share = 1.959964, count / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return middle - half, middle + half


def main() -> int:
    """Print a row per setting; return 1 if one of them misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="rows whose text contains this")
    given = parser.parse_args()
    missed = 0
    print("| data | reports | headlined | 95 % | goal | s |\n|---|---|---|---|---|---|")
    for setting in list_settings():
        if given.only not in str(setting):
            continue
        begun = time.perf_counter()
        starts = np.array_split(np.arange(given.reports), given.jobs)
        work = partial(count_headlines, setting)
        sizes, first = [len(part) for part in starts], [int(part[0]) for part in starts if len(part)]
        if given.jobs > 1:
            with ProcessPoolExecutor(given.jobs) as pool:
                count = sum(pool.map(work, sizes, first))
        else:
            count = work(given.reports, 0)
        low, high = wilson(count, given.reports)
        effect = bool(setting.effect)
        missed += low < 0.9 if effect else low > 0.05
        goal = "at least .90" if effect else "at most .05"
        what = f"{setting}{', effect .2 in one' if effect else ''}"
        cells = (what, given.reports, f"{count / given.reports:.3f}", f"{low:.3f} to {high:.3f}", goal)
        print("|", " | ".join(map(str, cells)), f"| {time.perf_counter() - begun:.0f} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
