"""Clickability weights on disk: tensors as safetensors, the network's measures as JSON in the same file's header.

A checkpoint is one file, the folder of a training, or a folder of parts that hold some of the tensors each. The
authors' file (a torch file, or safetensors without our header) is read as SegNeXt-B at 416 x 416.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import DataError, ModelError
from hardlook.models.click_models.clickability.architecture import SEGNEXT_B, Architecture
from hardlook.models.click_models.clickability.key_names import renamed_state
from hardlook.models.click_models.clickability.network import build_network
from hardlook.models.click_models.clickability.tensor_file import read_header, write_tensors
from hardlook.models.weights.loading import LoadedWeights, load_into, load_state_dict

if TYPE_CHECKING:
    from torch import Tensor, nn

HEADER = "hardlook-clickability"
FORMAT = 1
SIZE = 416
NAME = "clickability.safetensors"
"""The best network in the folder of a training."""
HALF_LIMIT = 65_000.0


@dataclass(frozen=True)
class LoadedNetwork:
    """A network in evaluation mode, the grid it was trained on, and the files its weights came from."""

    network: nn.Module
    architecture: Architecture
    size: int
    files: tuple[Path, ...]


def save_checkpoint(
    network: nn.Module, path: Path, architecture: Architecture, *, size: int = SIZE, half: bool = False
) -> None:
    """Write the weights to one file; `half` stores matrices as float16: half the bytes, three digits."""
    write_tensors(path, _stored(network, half), _header(architecture, size))


def save_parts(
    network: nn.Module, folder: Path, architecture: Architecture, *, size: int = SIZE, limit: int = 15 * 2**20
) -> tuple[Path, ...]:
    """Write the weights, matrices as float16, in parts of at most `limit` bytes; the parts' paths, in order."""
    parts: list[dict[str, Tensor]] = [{}]
    filled = 0
    # The header takes about a hundred bytes a tensor.
    for key, value in _stored(network, half=True).items():
        cost = value.numel() * value.element_size() + 256
        if filled + cost > limit and parts[-1]:
            parts.append({})
            filled = 0
        parts[-1][key] = value
        filled += cost
    paths = [folder / f"clickability-{number}-of-{len(parts)}.safetensors" for number in range(1, len(parts) + 1)]
    for path, part in zip(paths, parts, strict=True):
        write_tensors(path, part, _header(architecture, size) | {"parts": str(len(parts))})
    return tuple(paths)


def load_network(path: Path) -> LoadedNetwork:
    """The network of a checkpoint; whatever is missing, left over or of another shape is listed in the error."""
    files = _files(path)
    header = read_header(files[0])
    architecture, size = _described(files[0], header)
    _check_parts(files, header, path)
    network = build_network(architecture)
    state: dict[str, Tensor] = {}
    for file in files:
        state |= load_state_dict(file).state
    load_into(network, LoadedWeights(renamed_state(state, network.state_dict()), "", path))
    return LoadedNetwork(network.eval().requires_grad_(False), architecture, size, files)


def load_backbone(network: nn.Module, path: Path) -> None:
    """Start the backbone from MSCAN weights trained on ImageNet (MMSegmentation's file); the classifier is left out."""
    weights = load_state_dict(path)
    whole = any(key.startswith(("backbone.", "encoder_decoder.")) for key in weights.state)
    state = weights.state if whole else {f"backbone.{key}": value for key, value in weights.state.items()}
    wanted = {key: value for key, value in network.state_dict().items() if key.startswith("backbone.")}
    ours = {key: value for key, value in renamed_state(state, wanted).items() if key in wanted or not whole}
    bare = {key.removeprefix("backbone."): value for key, value in ours.items()}
    load_into(network.get_submodule("backbone"), LoadedWeights(bare, weights.sha256, path), ignore=("head.",))


def _header(architecture: Architecture, size: int) -> dict[str, str]:
    settings: dict[str, Any] = {"format": FORMAT, "architecture": architecture.to_json(), "size": size}
    return {HEADER: json.dumps(settings, sort_keys=True)}


def _described(file: Path, header: dict[str, str]) -> tuple[Architecture, int]:
    if HEADER not in header:
        return SEGNEXT_B, SIZE
    try:
        settings: dict[str, Any] = json.loads(header[HEADER])
        return Architecture.from_json(settings["architecture"]), int(settings["size"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"the header describes no network: {error}", file=file, remedy="copy or train it again"
        ) from error


def _stored(network: nn.Module, half: bool) -> dict[str, Tensor]:
    state: dict[str, Tensor] = network.state_dict()
    # Statistics of normalisations outgrow float16, and are few; weights are many, and small.
    return {
        key: value.half() if half and value.ndim > 1 and float(value.abs().max()) < HALF_LIMIT else value
        for key, value in state.items()
    }


def _files(path: Path) -> tuple[Path, ...]:
    path = path / NAME if (path / NAME).is_file() else path
    files = tuple(sorted(path.glob("*.safetensors"))) if path.is_dir() else (path,)
    if not files or not files[0].is_file():
        raise ModelError(
            "there are no clickability weights at this path",
            file=path,
            remedy="train some with `hardlook clicks train`, or give the authors' checkpoint",
        )
    return files


def _check_parts(files: tuple[Path, ...], header: dict[str, str], path: Path) -> None:
    expected = int(header.get("parts", "1"))
    if len(files) != expected:
        raise ModelError(f"expected {expected} parts, found {len(files)}", file=path, remedy="copy all parts there")
