"""The state of a training after an epoch, in one safetensors file: weights, Adam's moments, and what was reached.

The learning rate, the order, the flips and what is dropped are functions of seed, epoch and step, so no more is needed
to go on as if nothing had happened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import ChangedRun
from hardlook.models.click_models.clickability.tensor_file import read_header, write_tensors
from hardlook.models.weights.loading import load_state_dict

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

HEADER = "hardlook-clickability-training"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Reached:
    """How far a training is: epochs done, the best SIM so far and its epoch (0: none), the loss scaler's state."""

    epoch: int = 0
    best_sim: float = -1.0
    best_epoch: int = 0
    scaler: Mapping[str, Any] | None = None


def save_state(
    path: Path, network: nn.Module, optimizer: Optimizer, reached: Reached, identity: Mapping[str, Any]
) -> None:
    """Write the state; `identity` is what a run that goes on from it must share."""
    tensors = {f"network.{key}": value for key, value in network.state_dict().items()}
    for name, parameter in network.named_parameters():
        held = optimizer.state.get(parameter, {})
        tensors |= {f"adam.{moment}.{name}": held[moment] for moment in MOMENTS if moment in held}
    write_tensors(path, tensors, {HEADER: json.dumps({"reached": vars(reached), "identity": dict(identity)})})


def load_state(path: Path, network: nn.Module, optimizer: Optimizer, identity: Mapping[str, Any]) -> Reached:
    """Put the saved state into network and optimizer; an error where the file is of another training."""
    header = json.loads(read_header(path).get(HEADER, "{}"))
    before, now = header.get("identity", {}), json.loads(json.dumps(dict(identity)))
    changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    if changed:
        raise ChangedRun(
            f"the folder holds another training: {', '.join(changed)} differ",
            file=path,
            remedy="train in another folder, or delete this one to start again",
        )
    tensors = load_state_dict(path).state
    parts = {key.removeprefix("network."): value for key, value in tensors.items() if key.startswith("network.")}
    network.load_state_dict(parts)
    places = _places(network, optimizer)
    moments = {
        place: {moment: tensors[f"adam.{moment}.{name}"] for moment in MOMENTS}
        for name, place in places.items()
        if f"adam.step.{name}" in tensors
    }
    optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    return Reached(**header["reached"])


def _places(network: nn.Module, optimizer: Optimizer) -> dict[str, int]:
    # Adam numbers parameters in the order of its groups, which need not be the network's.
    ordered = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
    return {name: ordered.index(id(parameter)) for name, parameter in network.named_parameters()}
