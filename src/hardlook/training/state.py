"""The state of an unfinished training in one file, and its history as JSON lines.

Learning rates, batches, augmentations and dropped parts are functions of seed and step, so weights, the optimiser's
moments, the moving average and the progress are all that is needed to go on as if nothing had happened.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "history.jsonl"
...     append_line(path, {"step": 10, "loss": 1.5})
...     read_lines(path)
[{'step': 10, 'loss': 1.5}]
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.optim import Optimizer

from hardlook.errors import ChangedRun, shorten
from hardlook.reading import reading
from hardlook.training.checkpoint import replace_file
from hardlook.training.optimisers import MovingAverage

HEADER = "hardlook-training"
_NO_STATE = "the file does not hold the state of a training"
_NO_HISTORY = "not the history of a training"
_REMEDY = "train in another folder, or delete this one to start again"
_NOTHING = object()
NAMED = 4  # settings that an error names


@dataclass(frozen=True)
class Progress:
    """How far a training is.

    `step` steps are done; `best` has of each selection the best validation score and its step; `sums` and `count` are
    those since the last line of the history; `seconds` are of training and validation.
    """

    step: int = 0
    best: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    sums: Mapping[str, float] = field(default_factory=dict)
    count: int = 0
    seconds: float = 0.0
    scaler: Mapping[str, Any] = field(default_factory=dict)


def save_state(
    path: Path,
    module: nn.Module,
    optimiser: Optimizer,
    average: MovingAverage | None,
    reached: Progress,
    identity: Mapping[str, Any],
) -> None:
    """Write the state whole; `identity` is what a training that resumes from it must share."""
    tensors = {f"module.{key}": value for key, value in module.state_dict().items()}
    if average is not None:
        tensors |= {f"average.{key}": value for key, value in average.module.state_dict().items()}
    numbers: dict[str, Any] = {}
    for place, held in optimiser.state_dict()["state"].items():
        for name, value in held.items():
            if isinstance(value, Tensor):
                tensors[f"optimiser.{place}.{name}"] = value
            else:
                numbers[f"optimiser.{place}.{name}"] = value
    header = {"reached": asdict(reached), "identity": dict(identity), "numbers": numbers}
    copies = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
    replace_file(path, save(copies, {HEADER: json.dumps(header)}))


def read_progress(path: Path, identity: Mapping[str, Any]) -> Progress:
    """How far the saved state is; nothing done without a file; an error where it is of another training."""
    if not path.is_file():
        return Progress()
    with reading(path, _NO_STATE, remedy=_REMEDY):
        header = _read_header(path)
        check_identity(header["identity"], identity)
        reached = Progress(**header["reached"])
    return Progress(**{**asdict(reached), "best": {key: (one[0], one[1]) for key, one in reached.best.items()}})


def check_identity(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """A `ChangedRun` that names what differs between the training in a folder and the one that is asked for."""
    now = json.loads(json.dumps(dict(now)))
    if dict(before) == now:
        return
    was, given = dict(_list_settings(before)), dict(_list_settings(now))
    changed = [key for key in given | was if was.get(key, _NOTHING) != given.get(key, _NOTHING)]
    # What lies on top comes first: of another method nearly every setting differs.
    changed.sort(key=lambda key: (key.count("."), key))
    named = [f"{key} was {_describe(was, key)}, is {_describe(given, key)}" for key in changed[:NAMED]]
    further = [f"{len(changed) - NAMED} more differ"] if len(changed) > NAMED else []
    raise ChangedRun(f"the folder holds another training: {'; '.join(named + further)}", remedy=_REMEDY)


def _list_settings(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The single values in mappings and in lists of mappings, by names such as `recipe.stages.0.lr`."""
    parts: Iterable[tuple[Any, Any]]
    if isinstance(value, Mapping) and value:
        parts = value.items()
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        parts = enumerate(value)
    else:
        yield name, value
        return
    for key, one in parts:
        yield from _list_settings(one, f"{name}.{key}" if name else str(key))


def _describe(settings: Mapping[str, Any], key: str) -> str:
    return shorten(repr(settings[key]), 80) if key in settings else "not set"


def restore_state(path: Path, module: nn.Module, optimiser: Optimizer | None, average: MovingAverage | None) -> None:
    """Put the saved tensors into the module and, where given, into optimiser and average."""
    with reading(path, _NO_STATE, remedy=_REMEDY):
        numbers = _read_header(path)["numbers"]
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}
        _load_part(module, tensors, "module.")
        if average is not None:
            _load_part(average.module, tensors, "average.")
        if optimiser is not None:
            state: dict[int, dict[str, Any]] = {}
            for key, value in (tensors | numbers).items():
                if key.startswith("optimiser."):
                    _, place, name = key.split(".", 2)
                    state.setdefault(int(place), {})[name] = value
            optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def _read_header(path: Path) -> dict[str, Any]:
    with safe_open(path, framework="pt") as file:
        return dict(json.loads((file.metadata() or {})[HEADER]))


def _load_part(module: nn.Module, tensors: Mapping[str, Tensor], prefix: str) -> None:
    part = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
    with torch.no_grad():
        module.load_state_dict(part)


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Add a line to a history, on disk when this returns."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(dict(record)) + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All lines of a history; a last one that a killed process left unfinished does not count."""
    if not path.is_file():
        return []
    with reading(path, _NO_HISTORY, remedy=_REMEDY):
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1] if line]


def cut_lines(path: Path, step: int) -> list[dict[str, Any]]:
    """Keep the lines up to `step`: those that the saved state knows of."""
    with reading(path, _NO_HISTORY, remedy=_REMEDY):
        kept = [record for record in read_lines(path) if record["step"] <= step]
    if path.is_file():
        replace_file(path, "".join(json.dumps(record) + "\n" for record in kept).encode())
    return kept
