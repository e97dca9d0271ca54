"""The clickability network and its checkpoints: an image and two masks in, the chance of a click at each place out.

SegNeXt that sees the object's and the error's mask beside the image, as in "RClicks" (2024).

>>> import torch
>>> tiny = Architecture(dims=(8, 8, 16, 16), depths=(1, 1, 1, 1), mlp_ratios=(2, 2, 2, 2), head=32)
>>> network = build_network(tiny).eval()
>>> chance = network(torch.zeros(2, 3, 64, 64), torch.eye(64).expand(2, 2, 64, 64)).detach()
>>> tuple(chance.shape), float(chance.min()), float(chance.max()) > 0.99
((2, 64, 64), 0.0, True)

A checkpoint is one safetensors file with the architecture as JSON in its header, the folder of a training, or a folder
of parts that hold some of the tensors each. The authors' file (a torch file, or safetensors without our header) is read
as SegNeXt-B at 416 x 416.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import DataError, ModelError
from hardlook.extras import require
from hardlook.networks.loading import LoadedWeights, load_into, load_state_dict
from hardlook.networks.segnext import SEGNEXT_B, Architecture, build_light_ham, build_mscan
from hardlook.randomness import generator
from hardlook.reading import reading

if TYPE_CHECKING:
    from torch import Tensor, nn

MASK_CHANNELS = 16
FIRST_SCALE = 0.05
EPSILON = 1e-9


def build_network(architecture: Architecture = SEGNEXT_B, seed: int = 0) -> nn.Module:
    """The network with random weights, equal for equal seeds; torch's own random state stays as it was.

    Its call takes images (N, 3, S, S) normalised as ImageNet's and masks (N, 2, S, S) in [0, 1], the object's and
    the error's, and gives maps (N, S, S) float32, each scaled to [0, 1].
    """
    import torch
    import torch.nn.functional as functional
    from torch import nn

    class Scale(nn.Module):
        """A learnt factor, at least 0; it starts small, since the backbone was trained on images alone."""

        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.full((1,), FIRST_SCALE))

        def forward(self, x: Tensor) -> Tensor:
            """The same shape."""
            return x * self.scale.abs()

    class ClickabilityNetwork(nn.Module):
        """Masks through three convolutions, added after the backbone's stem; decoder; scaling."""

        def __init__(self) -> None:
            super().__init__()
            self.maps_transform = nn.Sequential(
                nn.Conv2d(2, MASK_CHANNELS, 1),
                nn.ReLU(),
                nn.Conv2d(MASK_CHANNELS, MASK_CHANNELS, 3, 2, 1),
                nn.ReLU(),
                nn.Conv2d(MASK_CHANNELS, architecture.dims[0], 3, 2, 1),
                Scale(),
            )
            self.backbone = build_mscan(architecture)
            self.decode_head = build_light_ham(architecture, seed)

        def forward(self, image: Tensor, masks: Tensor) -> Tensor:
            """(N, S, S) in [0, 1] from (N, 3, S, S) and (N, 2, S, S)."""
            coarse = self.decode_head(self.backbone(image, self.maps_transform(masks))).float()
            fine = functional.interpolate(coarse, size=image.shape[2:], mode="bilinear", align_corners=True)
            return scale_maps(fine[:, 0])

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(generator(seed, "clickability", "weights").integers(2**62)))
        network = ClickabilityNetwork()
        _initialise(network)
    return network


def scale_maps(maps: Tensor) -> Tensor:
    """Maps (N, H, W) shifted and stretched to [0, 1] each; a constant map becomes 0.

    >>> import torch
    >>> scale_maps(torch.tensor([[[1.0, 3.0], [2.0, 5.0]]])).tolist()
    [[[0.0, 0.5], [0.25, 1.0]]]
    """
    low, high = maps.amin((1, 2), keepdim=True), maps.amax((1, 2), keepdim=True)
    return (maps - low) / (high - low + EPSILON)


def count_parameters(network: nn.Module) -> int:
    """The number of trained parameters."""
    return sum(parameter.numel() for parameter in network.parameters())


def _initialise(network: nn.Module) -> None:
    from torch import nn

    for part in ("backbone", "decode_head"):
        for layer in network.get_submodule(part).modules():
            if isinstance(layer, nn.Conv2d):
                outputs = layer.kernel_size[0] * layer.kernel_size[1] * layer.out_channels // layer.groups
                nn.init.normal_(layer.weight, std=math.sqrt(2 / outputs))
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
    nn.init.normal_(network.get_parameter("decode_head.conv_seg.weight"), std=0.01)


WRAPPED = re.compile(r"^(module\.)?(encoder_decoder\.)?")
CASCADED = re.compile(r"^decode_head\.0\.")

OPTIONAL_ENDINGS = ("num_batches_tracked", "decode_head.hamburger.ham.bases")
"""What a file may lack: a count that inference never reads, and bases that some releases draw at every call."""


def rename_tensor(key: str) -> str:
    """Our name for a tensor of published SegNeXt weights; one that is ours already, or not known, stays.

    Our names are MMSegmentation's without what wraps the network. The authors' checkpoint puts `encoder_decoder.`
    before the two halves and numbers its only decoder; SegNeXt's first release named the depth filter twice.

    >>> rename_tensor("module.encoder_decoder.decode_head.0.conv_seg.weight")
    'decode_head.conv_seg.weight'
    >>> rename_tensor("encoder_decoder.backbone.block1.0.mlp.dwconv.dwconv.bias")
    'backbone.block1.0.mlp.dwconv.bias'
    """
    return CASCADED.sub("decode_head.", WRAPPED.sub("", key)).replace(".dwconv.dwconv.", ".dwconv.")


def rename_state(state: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state under our names, completed from `wanted` where a file may lack a tensor."""
    given = {rename_tensor(key): value for key, value in state.items()}
    return given | {key: value for key, value in wanted.items() if key.endswith(OPTIONAL_ENDINGS) and key not in given}


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> None:
    """Write tensors and a header; a run that is killed meanwhile leaves the earlier file.

    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensors(Path(folder) / "one.safetensors", {"a": torch.zeros(2)}, {"made": "here"})
    ...     read_header(Path(folder) / "one.safetensors")
    {'made': 'here'}
    """
    safetensors = require("safetensors.torch", extra="torch")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.part")
    copies = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    beside.write_bytes(safetensors.save(copies, dict(header)))
    beside.replace(path)


def read_header(path: Path) -> dict[str, str]:
    """The text fields beside the tensors; none for a torch file."""
    if path.suffix != ".safetensors":
        return {}
    safetensors = require("safetensors", extra="torch")
    with (
        reading(path, "not a readable safetensors file", remedy="copy or make it again"),
        safetensors.safe_open(path, framework="pt") as file,
    ):
        return dict(file.metadata() or {})


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
    # The header takes about a hundred bytes per tensor.
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
    architecture, size = _read_settings(files[0], header)
    with reading(files[0], "the header gives no number of parts", remedy="copy it again"):
        expected = int(header.get("parts", "1"))
    if len(files) != expected:
        raise ModelError(f"expected {expected} parts, found {len(files)}", file=path, remedy="copy all parts there")
    state: dict[str, Tensor] = {}
    for file in files:
        state |= load_state_dict(file).state
    # Before it is built: a header can describe a network of any size.
    if architecture.count_least_parameters() > (count := sum(value.numel() for value in state.values())):
        what = f"the header describes a larger network than the {count} numbers in the file"
        raise DataError(what, file=files[0], remedy="copy or train it again")
    network = build_network(architecture)
    load_into(network, LoadedWeights(rename_state(state, network.state_dict()), "", path))
    return LoadedNetwork(network.eval().requires_grad_(False), architecture, size, files)


def load_backbone(network: nn.Module, path: Path) -> None:
    """Start the backbone from MSCAN weights trained on ImageNet (MMSegmentation's file); the classifier is left out."""
    weights = load_state_dict(path)
    whole = any(key.startswith(("backbone.", "encoder_decoder.")) for key in weights.state)
    state = weights.state if whole else {f"backbone.{key}": value for key, value in weights.state.items()}
    wanted = {key: value for key, value in network.state_dict().items() if key.startswith("backbone.")}
    ours = {key: value for key, value in rename_state(state, wanted).items() if key in wanted or not whole}
    bare = {key.removeprefix("backbone."): value for key, value in ours.items()}
    load_into(network.get_submodule("backbone"), LoadedWeights(bare, weights.sha256, path), ignore=("head.",))


def _header(architecture: Architecture, size: int) -> dict[str, str]:
    settings = {"format": FORMAT, "architecture": architecture.to_json(), "size": size}
    return {HEADER: json.dumps(settings, sort_keys=True)}


def _read_settings(file: Path, header: dict[str, str]) -> tuple[Architecture, int]:
    if HEADER not in header:
        return SEGNEXT_B, SIZE
    with reading(file, "the header describes no network", remedy="copy or train it again"):
        settings: dict[str, Any] = json.loads(header[HEADER])
        return Architecture.from_json(settings["architecture"]), int(settings["size"])


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
        remedy = "train some with `hardlook clicks train`, or give the authors' checkpoint"
        raise ModelError("there are no clickability weights at this path", file=path, remedy=remedy)
    return files
