"""The benchmarks by name: built in, or installed as entry points.

>>> sorted(BUILT_IN)
['closed-miou', 'metacoco', 'open-ap', 'open-miou', 'open-pq', 'rclicks', 'toss']
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points

from hardlook.errors import OptionError
from hardlook.harness.benchmark import Benchmark, as_benchmark

BUILT_IN: Mapping[str, str] = {
    "closed-miou": "hardlook.open_vocabulary.closed_miou:CLOSED_MIOU",
    "metacoco": "hardlook.metacoco.benchmark:METACOCO",
    "open-ap": "hardlook.open_vocabulary.ap.benchmark:OPEN_AP",
    "open-miou": "hardlook.open_vocabulary.miou.benchmark:OPEN_MIOU",
    "open-pq": "hardlook.open_vocabulary.pq.benchmark:OPEN_PQ",
    "rclicks": "hardlook.rclicks.benchmark:RCLICKS",
    "toss": "hardlook.toss.benchmark:TOSS",
}

# Studies run like benchmarks, under a command of their own: `hardlook bias support` and `hardlook bias saliency`.
STUDIES: Mapping[str, str] = {
    "bias-saliency": "hardlook.toss.bias.saliency_study:BIAS_SALIENCY",
    "bias-support": "hardlook.toss.bias.support_study:BIAS_SUPPORT",
}

# Those that were made in this process, in a script or a notebook.
_ADDED: dict[str, Benchmark] = {}

ENTRY_POINTS = "hardlook.benchmarks"


def list_benchmarks() -> dict[str, str]:
    """Every benchmark by name, built in or installed, with the place where it is defined."""
    installed = {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
    return {**installed, **dict.fromkeys(_ADDED, "this process"), **BUILT_IN}


def add(benchmark: Benchmark) -> Benchmark:
    """Make a benchmark known by its card's name in this process, in place of an earlier one of that name; return it."""
    name = benchmark.card.name
    if name in BUILT_IN or name in STUDIES:
        if benchmark == find_benchmark(name):
            return benchmark
        raise OptionError(f"the name {name!r} is that of a built-in benchmark", remedy="give the card another name")
    _ADDED[name] = benchmark
    return benchmark


def find_added(name: str) -> Benchmark | None:
    """The benchmark of that name that was made in this process; None where there is none."""
    return _ADDED.get(name)


def find_benchmark(name: str) -> Benchmark:
    """The benchmark with that name, or that a `package.module:attribute` refers to."""
    # Entry points are searched only for a name that is not built in: it takes 20 ms.
    if name in _ADDED:
        return _ADDED[name]
    built_in = {**BUILT_IN, **STUDIES}
    names = built_in if name in built_in or ":" in name else {**list_benchmarks(), **STUDIES}
    place = names.get(name, name)
    module, _, attribute = place.partition(":")
    if not attribute:
        near = difflib.get_close_matches(name, names, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are: {', '.join(sorted(names))}"
        raise OptionError(f"there is no benchmark {name!r}", remedy=hint)
    try:
        return as_benchmark(getattr(importlib.import_module(module), attribute))
    except (ImportError, AttributeError, TypeError) as error:
        raise OptionError(f"benchmark {name!r} cannot be loaded from {place}: {error}") from error
