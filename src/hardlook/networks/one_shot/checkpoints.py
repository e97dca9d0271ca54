"""Published checkpoints of one-shot networks: read without unpickling, freed of their prefix, and loaded by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hardlook.errors import ModelError
from hardlook.networks.loading import KeyDifferences, LoadedWeights, check_keys, load_state_dict
from hardlook.networks.one_shot.catalogue import find_network, has_released_reading
from hardlook.networks.one_shot.network import OneShotNetwork

PARALLEL = "module."
COUNTERS = "num_batches_tracked"


def load_published(
    path: Path, name: str, backbone: str = "resnet50", *, released: bool = False
) -> tuple[OneShotNetwork, LoadedWeights]:
    """The network of that name with the weights of a file; an error that lists what is missing, left over or misshapen.

    Counts of batches, which inference never reads, may be missing.
    """
    loaded = load_state_dict(path)
    state = {key.removeprefix(PARALLEL): value for key, value in loaded.state.items()}
    kind = find_network(name).load()
    options: dict[str, Any] = {}
    if "classes" in kind.stages and "classifier.weight" in state:
        options["classes"] = len(state["classifier.weight"])
    if released and has_released_reading(kind):
        options["released"] = True
    network = kind.build(backbone, **options)
    found = check_keys(network, state)
    differences = KeyDifferences(
        tuple(key for key in found.missing if not key.endswith(COUNTERS)), found.unexpected, found.misshapen
    )
    if differences:
        what = f"the weights are none of {name} on {backbone}: {differences}"
        raise ModelError(what, file=path, remedy="name the network and its backbone (--model-arg backbone=NAME)")
    network.load_state_dict(dict(state), strict=False)
    return network, loaded
