"""hardlook: evaluation of vision models whose quality an average hides.

Importing the package costs nothing: torch, polars and the benchmarks load when they are used. `dir(hardlook)` is the
table of contents.

>>> import hardlook as hl
>>> hl.__version__.count(".")
2
>>> [card.name for card in hl.benchmarks()][-1], "run" in dir(hl)
('toss', True)
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from hardlook.moved import MovedModules

if TYPE_CHECKING:
    from hardlook import metrics as metrics
    from hardlook import torchmetrics as torchmetrics
    from hardlook.api.calibrating import calibrate as calibrate
    from hardlook.api.comparing import compare as compare
    from hardlook.api.comparing import leaderboard as leaderboard
    from hardlook.api.demonstrating import demo as demo
    from hardlook.api.exploring import serve as serve
    from hardlook.api.gating import gate as gate
    from hardlook.api.listing import benchmarks as benchmarks
    from hardlook.api.listing import check as check
    from hardlook.api.own_benchmarks import benchmark as benchmark
    from hardlook.api.running import join as join
    from hardlook.api.running import run as run
    from hardlook.api.runs import Run as Run
    from hardlook.api.runs import load as load
    from hardlook.api.runs import runs as runs
    from hardlook.api.training import train as train
    from hardlook.api.verifying import verify as verify
    from hardlook.harness.benchmark import Benchmark as Benchmark
    from hardlook.models.listing import models as models
    from hardlook.models.registry import register as register
    from hardlook.models.weights.install import list_weights as weights  # noqa: F401
    from hardlook.models.wrapping import wrap as wrap
    from hardlook.similarity.measures import similarity as similarity
    from hardlook.world.layouts import make_world as make_world

__version__ = "0.2.0"

# The public names and where they are; a name without a function is a module. `models`, `similarity` and `weights` are
# packages that can be called.
_PLACES = {
    "run": "hardlook.api.running:run",
    "train": "hardlook.api.training:train",
    "load": "hardlook.api.runs:load",
    "runs": "hardlook.api.runs:runs",
    "join": "hardlook.api.running:join",
    "verify": "hardlook.api.verifying:verify",
    "compare": "hardlook.api.comparing:compare",
    "gate": "hardlook.api.gating:gate",
    "leaderboard": "hardlook.api.comparing:leaderboard",
    "serve": "hardlook.api.exploring:serve",
    "benchmarks": "hardlook.api.listing:benchmarks",
    "models": "hardlook.models:",
    "check": "hardlook.api.listing:check",
    "wrap": "hardlook.models.wrapping:wrap",
    "register": "hardlook.models.registry:register",
    "calibrate": "hardlook.api.calibrating:calibrate",
    "demo": "hardlook.api.demonstrating:demo",
    "weights": "hardlook.models.weights:",
    "make_world": "hardlook.world.layouts:make_world",
    "benchmark": "hardlook.api.own_benchmarks:benchmark",
    "Benchmark": "hardlook.harness.benchmark:Benchmark",
    "Run": "hardlook.api.runs:Run",
    "similarity": "hardlook.similarity:",
    "metrics": "hardlook.metrics:",
    "torchmetrics": "hardlook.torchmetrics:",
}

__all__ = [
    "__version__",
    *_PLACES,
]

sys.meta_path.append(MovedModules())


def __getattr__(name: str) -> Any:
    """The public name, imported when it is first used."""
    if name not in _PLACES:
        raise AttributeError(f"module 'hardlook' has no attribute {name!r}")
    module, _, attribute = _PLACES[name].partition(":")
    found = importlib.import_module(module)
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
