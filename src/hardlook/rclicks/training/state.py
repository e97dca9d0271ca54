"""The state of a training on disk: weights and optimizer in `last.safetensors`, one line per epoch in `history.jsonl`.

The learning rate, the order, the flips and the dropped parts are functions of seed, epoch and step, so weights, Adam's
moments and the progress are all that is needed to resume.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "history.jsonl"
...     append_epoch(path, EpochRecord(1, 0.01, 2.5, {"sim": 0.4}, 3.0))
...     read_history(path)[0].validation["sim"]
0.4
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import ChangedRun, DataError
from hardlook.harness.runs.folder import write_atomically
from hardlook.networks.clickability import NAME, read_header, write_tensors
from hardlook.networks.loading import load_state_dict
from hardlook.reading import reading

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

BEST, LAST, HISTORY = NAME, "last.safetensors", "history.jsonl"
HEADER = "hardlook-clickability-training"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")
_NO_STATE = "the file does not hold the state of a training"
REMEDY = "train in another folder, or delete this one to start again"


@dataclass(frozen=True)
class TrainingProgress:
    """How far a training is: epochs done, the best SIM so far and its epoch (0: none), the loss scaler's state."""

    epoch: int = 0
    best_sim: float = -1.0
    best_epoch: int = 0
    scaler: Mapping[str, Any] | None = None


def save_state(
    path: Path, network: nn.Module, optimizer: Optimizer, reached: TrainingProgress, identity: Mapping[str, Any]
) -> None:
    """Write the state; `identity` is what a run that resumes from it must share."""
    tensors = {f"network.{key}": value for key, value in network.state_dict().items()}
    for name, parameter in network.named_parameters():
        held = optimizer.state.get(parameter, {})
        tensors |= {f"adam.{moment}.{name}": held[moment] for moment in MOMENTS if moment in held}
    write_tensors(path, tensors, {HEADER: json.dumps({"reached": vars(reached), "identity": dict(identity)})})


def read_progress(path: Path) -> TrainingProgress:
    """How far the saved state is; nothing done without a file. The history may be an epoch ahead of a killed run."""
    if not path.is_file():
        return TrainingProgress()
    with reading(path, _NO_STATE, remedy=REMEDY):
        return TrainingProgress(**json.loads(read_header(path)[HEADER])["reached"])


def check_state(path: Path, identity: Mapping[str, Any]) -> TrainingProgress:
    """How far the saved state is; an error where the file is of another training."""
    with reading(path, _NO_STATE, remedy=REMEDY):
        header = json.loads(read_header(path).get(HEADER, "{}"))
        before, now = header.get("identity", {}), json.loads(json.dumps(dict(identity)))
        changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
        if changed:
            raise ChangedRun(f"the folder holds another training: {', '.join(changed)} differ", remedy=REMEDY)
        return TrainingProgress(**header["reached"])


def restore_state(path: Path, network: nn.Module, optimizer: Optimizer | None) -> None:
    """Put the saved tensors into the network and, where given, into its optimizer."""
    with reading(path, _NO_STATE, remedy=REMEDY):
        tensors = load_state_dict(path).state
        parts = {key.removeprefix("network."): value for key, value in tensors.items() if key.startswith("network.")}
        network.load_state_dict(parts)
        if optimizer is None:
            return
        # Adam numbers parameters in the order of its groups, which need not be the network's.
        ordered = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
        moments = {
            ordered.index(id(parameter)): {moment: tensors[f"adam.{moment}.{name}"] for moment in MOMENTS}
            for name, parameter in network.named_parameters()
            if f"adam.step.{name}" in tensors
        }
        optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})


@dataclass(frozen=True)
class EpochRecord:
    """An epoch from 1: its last learning rate, mean training loss in nats, validation means, seconds it took."""

    epoch: int
    lr: float
    train_loss: float
    validation: Mapping[str, float]
    seconds: float


def append_epoch(path: Path, record: EpochRecord) -> None:
    """Add a line to the history."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(record)) + "\n")


def read_history(path: Path) -> tuple[EpochRecord, ...]:
    """All epochs; a last line that a killed run left unfinished does not count."""
    if not path.is_file():
        return ()
    with reading(path, "not the history of a training", remedy=REMEDY):
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        return tuple(EpochRecord(**json.loads(line)) for line in lines if line)


def cut_history(path: Path, epochs: int) -> tuple[EpochRecord, ...]:
    """Keep the first `epochs` epochs: those that the saved state knows of."""
    kept = tuple(record for record in read_history(path) if record.epoch <= epochs)
    if (found := [record.epoch for record in kept]) != list(range(1, epochs + 1)):
        listed = ", ".join(map(str, found)) or "none"
        what = f"the history is damaged: it has the epochs {listed}, and the saved state has done {epochs}"
        raise DataError(what, file=path, remedy=REMEDY)
    write_atomically(path, "".join(json.dumps(asdict(record)) + "\n" for record in kept))
    return kept
