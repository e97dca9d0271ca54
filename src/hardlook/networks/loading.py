"""Read weights and ONNX files without ever unpickling; fit weights to a network with the differences spelled out."""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook import fingerprints
from hardlook.errors import DataError, ModelError
from hardlook.extras import require
from hardlook.networks.inert_pickles import check_costs, list_parts
from hardlook.reading import reading

if TYPE_CHECKING:
    from torch import Tensor, nn

WRAPPERS = ("state_dict", "model_state_dict", "model", "params", "state", "model_sd")
"""Keys under which training scripts put the state dict of a checkpoint."""

SHOWN = 8
_PICKLES = 5  # in a file of torch before 1.6: magic number, version, machine, content, keys
_MAX_PICKLE_BYTES = 1 << 26
_LONGEST_NAME = 4096
_CHECKED_AT_ONCE = 1 << 22
_ARRAYS = ("bytearray", "builtins bytearray", "__builtin__ bytearray")  # as pickles of two protocols name it


@dataclass(frozen=True)
class LoadedWeights:
    """Tensors by name on the CPU, with the sha256 and the path of the file they came from."""

    state: Mapping[str, Tensor] = field(repr=False)
    sha256: str
    path: Path


@dataclass(frozen=True)
class KeyDifferences:
    """How a state dict differs from what a network wants; all empty means it fits."""

    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    misshapen: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.misshapen)

    def __str__(self) -> str:
        named = (("missing", self.missing), ("unexpected", self.unexpected), ("of another shape", self.misshapen))
        return "; ".join(f"{len(keys)} {kind}: {_shortened(keys)}" for kind, keys in named if keys) or "none"


def load_state_dict(path: Path) -> LoadedWeights:
    """Read a `.safetensors` file, or a torch file with `weights_only=True`, onto the CPU."""
    if not path.is_file():
        remedy = "give the path of an existing file, as --weights or as the --model-arg that names it"
        raise DataError("the weights file does not exist", file=path, remedy=remedy)
    content = _read_safetensors(path) if path.suffix == ".safetensors" else read_torch(path)
    state = _unwrapped(content, path)
    check_numbers(state, path)
    return LoadedWeights(state, fingerprints.hash_file(path), path)


def check_numbers(state: Mapping[str, Tensor], path: Path) -> None:
    """Raise an error for weights that are NaN: answers would look like those of a bad network.

    Infinite values are let through, as masks of attention have them.
    """
    wrong = [key for key, value in state.items() if value.is_floating_point() and value.isnan().any()]
    if wrong:
        what = f"{len(wrong)} tensors hold NaN: {', '.join(wrong[:3])}"
        raise ModelError(
            what, file=path, remedy="download it again, or save it again from weights that did not overflow"
        )


def read_torch(path: Path) -> Any:
    """The content of a torch file on the CPU, read with `weights_only=True`."""
    torch = require("torch", extra="torch")
    with reading(
        path,
        "the file cannot be read as plain tensors, and hardlook never unpickles others, which could run any code",
        remedy="where you trust the file, load it once yourself and save its state dict as .safetensors",
    ):
        _check_costs(path)
        check_sums(path)
        return torch.load(path, map_location="cpu", weights_only=True)


def check_sums(path: Path) -> None:
    """Raise a `DataError` where a tensor's bytes do not have the checksum that the file has for them.

    Torch itself does not look at the checksums of its archives, and loads changed bits as other numbers. Files of torch
    before 1.6 have none.
    """
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                continue  # torch compresses nothing, and what it does not read need not be unpacked
            try:
                with archive.open(member) as stream:
                    while stream.read(_CHECKED_AT_ONCE):
                        pass
            except zipfile.BadZipFile:
                raise DataError(
                    f"the file is damaged: {member.filename} does not have its checksum",
                    file=path,
                    remedy="download or copy it again",
                ) from None


def check_keys(module: nn.Module, state: Mapping[str, Tensor]) -> KeyDifferences:
    """What the module wants and the state lacks, what the state has too much, and shapes that differ."""
    wanted = module.state_dict()
    misshapen = (
        f"{key} (network {tuple(wanted[key].shape)}, file {tuple(state[key].shape)})"
        for key in wanted
        if key in state and wanted[key].shape != state[key].shape
    )
    return KeyDifferences(
        missing=tuple(key for key in wanted if key not in state),
        unexpected=tuple(key for key in state if key not in wanted),
        misshapen=tuple(misshapen),
    )


def load_into(module: nn.Module, weights: LoadedWeights, *, ignore: tuple[str, ...] = ()) -> None:
    """Copy the weights into the module; any difference is an error, except file keys that begin with `ignore`."""
    state = {key: value for key, value in weights.state.items() if not (ignore and key.startswith(ignore))}
    if differences := check_keys(module, state):
        what = f"the weights do not fit {type(module).__name__}: {differences}"
        remedy = "give weights of this architecture, or rename the keys to the ones listed as missing"
        raise ModelError(what, file=weights.path, remedy=remedy)
    check_types(module, state, file=weights.path)
    module.load_state_dict(state)


def check_types(module: nn.Module, state: Mapping[str, Tensor], *, file: Path) -> None:
    """Raise a `ModelError` for whole or complex numbers where the module has floating point: copied, they differ."""
    wanted = module.state_dict()
    known = [key for key in wanted if key in state and wanted[key].is_floating_point()]
    wrong = [key for key in known if not state[key].is_floating_point()]
    if wrong:
        kind = "complex" if state[wrong[0]].is_complex() else "whole"
        what = f"{len(wrong)} weights are {kind} numbers: {', '.join(wrong[:3])} ({state[wrong[0]].dtype})"
        raise ModelError(what, file=file, remedy="give weights in floating point, not quantised ones")


def open_onnx(path: Path, threads: int, *, remedy: str) -> Any:
    """A session of onnxruntime on `threads` cores of the CPU; an error with `remedy` for a file that is no model."""
    onnxruntime = require("onnxruntime", extra="onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises classes of its own that share no public parent
        raise ModelError(f"not a model of onnxruntime: {error}", file=path, remedy=remedy) from error


def _read_safetensors(path: Path) -> Any:
    safetensors = require("safetensors.torch", extra="torch")
    with reading(path, "not a readable safetensors file", remedy="download or convert it again"):
        return safetensors.load_file(path, device="cpu")


class _ArrayNamedError(ValueError):
    """A pickle names a type that takes as much memory as it is told."""


def _check_costs(path: Path) -> None:
    """Raise an error for what costs far more memory or time than the file is large.

    Torch unpacks compressed parts, searches its error message in quadratic time for names of thousands of characters,
    and even where it reads weights only it fills a `bytearray(n)` and copies a container as often as it is told.
    """
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            # Torch finds the parts of an archive by names in any capitals.
            members = [member for member in list_parts(archive, path) if member.filename.lower().endswith(".pkl")]
            if sum(member.file_size for member in members) > _MAX_PICKLE_BYTES:
                raise ValueError(f"more than {_MAX_PICKLE_BYTES} bytes that are no tensors")
            pickles, count = [archive.read(member) for member in members], 1
    else:
        with path.open("rb") as stream:
            pickles, count = [stream.read(_MAX_PICKLE_BYTES)], _PICKLES - 1  # the keys are only names
        if pickles[0].startswith(b"PK"):
            raise ValueError("its end is missing, as of a download that stopped")
        if not pickles[0].startswith(b"\x80"):
            raise ValueError("it does not begin as a torch file does")
    longest = max(map(_find_longest_name, pickles), default=0)
    if longest > _LONGEST_NAME:
        raise ValueError(f"a name of {longest} characters")
    for one in pickles:
        check_costs(io.BytesIO(one), count)


def _find_longest_name(pickles: bytes) -> int:
    """The length of the longest text in the first pickles of a file, which are not executed."""
    stream, longest = io.BytesIO(pickles), 0
    try:
        for _ in range(_PICKLES):
            for _, argument, _ in pickletools.genops(stream):
                if isinstance(argument, str):
                    longest = max(longest, len(argument))
                    if argument in _ARRAYS:
                        raise _ArrayNamedError("it would make a bytearray, of which no weights consist")
    except (UnicodeDecodeError, _ArrayNamedError):
        raise
    except Exception:  # no pickle, or the tensors behind the last one: torch says what is wrong
        return longest
    return longest


def _unwrapped(content: Any, path: Path) -> Mapping[str, Tensor]:
    if isinstance(content, Mapping):
        content = next((content[key] for key in WRAPPERS if isinstance(content.get(key), Mapping)), content)
    torch = require("torch", extra="torch")
    if (
        isinstance(content, Mapping)
        and content
        and all(isinstance(key, str) and isinstance(value, torch.Tensor) for key, value in content.items())
    ):
        _check_layouts(content, path)
        return content
    what = f"the file holds no state dict (a mapping of names to tensors) but a {type(content).__name__}"
    remedy = f"save the state dict alone, or under one of the keys {', '.join(WRAPPERS)}"
    raise DataError(what, file=path, remedy=remedy)


def _check_layouts(state: Mapping[str, Tensor], path: Path) -> None:
    """Raise an error for tensors that are no plain array of numbers, or larger than what the file holds of them."""
    torch = require("torch", extra="torch")
    odd = [
        key
        for key, value in state.items()
        if value.layout != torch.strided or value.is_nested or value.device.type != "cpu"
    ]
    if odd:
        raise DataError(
            f"{len(odd)} tensors are no plain arrays (sparse, nested or without values): {_shortened(tuple(odd))}",
            file=path,
            remedy="save dense tensors",
        )
    large = [key for key, value in state.items() if value.numel() * value.itemsize > value.untyped_storage().nbytes()]
    if large:
        raise DataError(
            f"{len(large)} tensors are larger than what the file holds of them: {_shortened(tuple(large))}",
            file=path,
            remedy="save them after .contiguous(), which repeats what .expand() only shows repeated",
        )


def _shortened(keys: tuple[str, ...]) -> str:
    return ", ".join(keys[:SHOWN]) + (f", and {len(keys) - SHOWN} more" if len(keys) > SHOWN else "")
