"""A checkpoint folder: weights in shards below 15 MB with an index, and `checkpoint.json` with what they are.

Every file is written beside its place and moved there, shards before the index and the index before
`checkpoint.json`; the index holds the hash of every shard.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     write_checkpoint(Path(folder), {"layer.weight": torch.ones(2, 2)}, {"selected": {"step": 7}})
...     sorted(path.name for path in Path(folder).iterdir()), read_weights(Path(folder))["layer.weight"].sum().item()
(['checkpoint.json', 'model-0000007-1-of-1.safetensors', 'model.safetensors.index.json'], 4.0)
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from hardlook.errors import DataError, ModelError
from hardlook.reading import read_bytes, read_json, reading

CARD, INDEX = "checkpoint.json", "model.safetensors.index.json"
SCHEMA = "hardlook.checkpoint/1"
SHARD_BYTES = 14_950_000
HEADER_BYTES = 200  # of a tensor in the header of its shard, about
HALF_LIMIT = 65_000.0
_REMEDY = "copy the folder again, or give the training's command again"


def is_checkpoint(path: Path | str) -> bool:
    """Whether the path is a folder with a checkpoint."""
    try:
        return (Path(path).expanduser() / CARD).is_file()
    except (OSError, ValueError):  # no name of a file
        return False


def write_checkpoint(
    folder: Path, state: Mapping[str, Tensor], card: Mapping[str, Any], *, limit: int = SHARD_BYTES, half: bool = False
) -> None:
    """Write weights and their card, and remove the shards of earlier weights.

    `card["selected"]["step"]` names the shards. `half` stores matrices as float16: half the bytes, three digits.
    """
    folder.mkdir(parents=True, exist_ok=True)
    step = int(card["selected"]["step"])
    shards: list[dict[str, Tensor]] = [{}]
    filled, pieces = 0, {}
    for key, value in state.items():
        parts = _cut(value if not half else _halve(value), limit)
        if len(parts) > 1:
            pieces[key] = [f"{key}#{number}" for number in range(len(parts))]
        for name, part in zip(pieces.get(key, [key]), parts, strict=True):
            cost = part.numel() * part.element_size() + HEADER_BYTES + len(name)
            if shards[-1] and filled + cost > limit:
                shards.append({})
                filled = 0
            # A copy of its own: two names may share one tensor, and safetensors stores none twice.
            shards[-1][name] = part.detach().cpu().contiguous().clone()
            filled += cost
    names = [f"model-{step:07d}-{number}-of-{len(shards)}.safetensors" for number in range(1, len(shards) + 1)]
    index: dict[str, Any] = {"metadata": {"step": step}, "weight_map": {}, "sha256": {}, "pieces": pieces}
    for name, shard in zip(names, shards, strict=True):
        data = save(shard)
        replace_file(folder / name, data)
        index["weight_map"] |= dict.fromkeys(shard, name)
        index["sha256"][name] = hashlib.sha256(data).hexdigest()
    replace_file(folder / INDEX, json.dumps(index, indent=1).encode())
    write_card(folder, card)
    for path in folder.glob("model-*.safetensors"):
        if path.name not in index["sha256"]:
            path.unlink()


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Write `checkpoint.json`."""
    replace_file(folder / CARD, json.dumps({"schema": SCHEMA, **card}, indent=1).encode())


def read_card(folder: Path) -> dict[str, Any]:
    """What `checkpoint.json` says; an error where it is none of a training."""
    path = folder / CARD
    card = read_json(path, what="not the description of a checkpoint", remedy=_REMEDY)
    with reading(path, "not the description of a checkpoint", remedy=_REMEDY):
        if card["schema"] != SCHEMA:
            raise DataError(f"a checkpoint of another version: {card['schema']!r}", remedy="update hardlook")
        int(card["selected"]["step"])
    return dict(card)


def list_weights_files(folder: Path) -> tuple[Path, ...]:
    """The index and the shards of a checkpoint; an error that names the first one missing."""
    index = _read_index(folder)
    paths = tuple(folder / name for name in sorted(index["sha256"]))
    if absent := [path for path in paths if not path.is_file()]:
        raise DataError("a part of the weights is missing", file=absent[0], remedy=_REMEDY)
    return (folder / INDEX, *paths)


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors by name, on the CPU; an error that names the file where a shard is missing or damaged."""
    index = _read_index(folder)
    if (step := read_card(folder)["selected"]["step"]) != index["metadata"]["step"]:
        what = f"checkpoint.json is of step {step} and the weights are of step {index['metadata']['step']}"
        raise DataError(what, file=folder, remedy="a training was killed here; give its command again")
    stored: dict[str, Tensor] = {}
    for name, wanted in index["sha256"].items():
        data = read_bytes(folder / name)
        if hashlib.sha256(data).hexdigest() != wanted:
            raise DataError("the weights are damaged: their hash differs", file=folder / name, remedy=_REMEDY)
        with reading(folder / name, "not a readable safetensors file", remedy=_REMEDY):
            stored |= load(data)
    with reading(folder / INDEX, "the index does not fit the shards", remedy=_REMEDY):
        whole = {key: torch.cat([stored.pop(part) for part in parts]) for key, parts in index["pieces"].items()}
    return stored | whole


def load_weights(module: torch.nn.Module, state: Mapping[str, Tensor], *, file: Path) -> None:
    """Copy the tensors into the module; missing, surplus and misshapen ones are listed in the error."""
    from hardlook.networks.loading import check_keys

    if differences := check_keys(module, state):
        what = f"the weights do not fit {type(module).__name__}: {differences}"
        raise ModelError(what, file=file, remedy="the code has changed since; train again, or install that version")
    module.load_state_dict(dict(state))


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, also after a crash."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
    try:
        with beside.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove files that a killed process had not moved to their places."""
    for path in folder.glob(".*.????????"):
        path.unlink(missing_ok=True)


def _read_index(folder: Path) -> dict[str, Any]:
    path = folder / INDEX
    index = read_json(path, what="not the index of a checkpoint", remedy=_REMEDY)
    with reading(path, "not the index of a checkpoint", remedy=_REMEDY):
        names = set(index["weight_map"].values())
        if names != set(index["sha256"]) or any(Path(name).name != name for name in names):
            raise DataError("the index names files that it has no hash of")
        int(index["metadata"]["step"]), dict(index["pieces"])
    return dict(index)


def _cut(value: Tensor, limit: int) -> list[Tensor]:
    """The tensor in pieces along its first axis that fit into a shard."""
    size = value.numel() * value.element_size()
    if size + HEADER_BYTES <= limit or not value.ndim or len(value) < 2:
        return [value]
    rows = max(1, int(len(value) * (limit - HEADER_BYTES - 1000) / size))
    return list(torch.split(value, rows))


def _halve(value: Tensor) -> Tensor:
    # Statistics of normalisations outgrow float16, and are few.
    small = value.is_floating_point() and value.ndim > 1 and float(value.abs().max()) < HALF_LIMIT
    return value.half() if small else value
