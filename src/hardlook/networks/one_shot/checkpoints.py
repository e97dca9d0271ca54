"""Published checkpoints of one-shot networks: read without unpickling, freed of their prefix, and loaded by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hardlook.errors import ModelError, OptionError
from hardlook.networks.loading import KeyDifferences, LoadedWeights, check_keys, load_state_dict
from hardlook.networks.one_shot.catalogue import find_network, has_released_reading
from hardlook.networks.one_shot.network import OneShotNetwork

PARALLEL = "module."
COUNTERS = "num_batches_tracked"


def load_published(
    path: Path,
    name: str,
    backbone: str = "resnet50",
    *,
    released: bool = False,
    options: Mapping[str, Any] | None = None,
) -> tuple[OneShotNetwork, LoadedWeights]:
    """The network of that name with the weights of a file; an error that lists what is missing, left over or misshapen.

    Counts of batches, which inference never reads, may be missing. `options` are those of the network's class that a
    file does not tell, such as PFENet's `bins`.
    """
    loaded = load_state_dict(path)
    state = {key.removeprefix(PARALLEL): value for key, value in loaded.state.items()}
    if len(state) < len(loaded.state):
        twice = [key for key in loaded.state if key.startswith(PARALLEL) and key.removeprefix(PARALLEL) in loaded.state]
        what = f"{len(twice)} weights are there with and without {PARALLEL}: {', '.join(twice[:3])}"
        raise ModelError(what, file=path, remedy="keep one of the two")
    kind = find_network(name).load()
    chosen = dict(options or {})
    known = [one for one in inspect.signature(kind.__init__).parameters if one not in ("self", "backbone", "released")]
    if unknown := [one for one in chosen if one not in known]:
        raise OptionError(f"{name} has no option {unknown[0]!r}", remedy=f"one of {', '.join(known)}")
    if "classes" in kind.stages and "classifier.weight" in state:
        chosen["classes"] = len(state["classifier.weight"])
    if released and has_released_reading(kind):
        chosen["released"] = True
    network = kind.build(backbone, **chosen)
    found = check_keys(network, state)
    differences = KeyDifferences(
        tuple(key for key in found.missing if not key.endswith(COUNTERS)), found.unexpected, found.misshapen
    )
    if differences:
        what = f"the weights are none of {name} on {backbone}: {differences}"
        raise ModelError(what, file=path, remedy="name the network and its backbone (--model-arg backbone=NAME)")
    whole = [
        key
        for key, value in network.state_dict().items()
        if value.is_floating_point() and not state[key].is_floating_point()
    ]
    if whole:
        what = f"{len(whole)} weights are whole numbers: {', '.join(whole[:3])} ({state[whole[0]].dtype})"
        raise ModelError(what, file=path, remedy="give weights in floating point, not quantised ones")
    network.load_state_dict(dict(state), strict=False)
    return network, loaded
