"""Published checkpoints of interactive networks: tensors and settings, read without running what a file names.

A file of the released repositories is a dictionary of `state_dict` and `config`: the class of the network as text, and
its arguments. It is read by torch with `weights_only`; where it pickles more than that takes (SimpleClick's hold a
loss module in their settings, AdaptiveClick's a whole configuration), by `hardlook.networks.inert_pickles`. The class's
text is compared with those known here and never imported.
"""

from __future__ import annotations

import importlib
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook import fingerprints
from hardlook.errors import DataError, ModelError, OptionError
from hardlook.extras import require
from hardlook.networks.inert_pickles import PLAIN_NAMES, InertArchive, Record, StoredTensor, list_names
from hardlook.networks.loading import WRAPPERS, LoadedWeights, check_keys, load_into, load_state_dict, read_torch
from hardlook.reading import reading

if TYPE_CHECKING:
    from torch import Tensor, nn

FAMILIES: Mapping[str, tuple[str, str]] = {
    "ritm": ("hardlook.networks.interactive.ritm:RITM", "hrnet18"),
    "simpleclick": ("hardlook.networks.interactive.simpleclick:SimpleClick", "vit_base"),
    "cfr-icl": ("hardlook.networks.interactive.simpleclick:SimpleClick", "vit_huge"),
    "focalclick": ("hardlook.networks.interactive.focalclick:FocalClick", "hrnet18s"),
    "cdnet": ("hardlook.networks.interactive.cdnet:CDNet", "resnet34"),
    "gpcis": ("hardlook.networks.interactive.gpcis:GPCIS", "resnet50"),
    "adaptiveclick": ("hardlook.networks.interactive.adaptiveclick:AdaptiveClick", "vit_base"),
}
"""Network and usual size by family.

A network has `build(size)`, which raises `KeyError` for a size that its module's `SIZES` lacks, and
`from_checkpoint(arguments, state)`. `logit_layer`, the layer that gives the logits, is for `fit_to_noise`.
"""

CLASSES: Mapping[str, str] = {
    "isegm.model.is_hrnet_model.HRNetModel": "ritm",
    "isegm.model.is_plainvit_model.PlainVitModel": "simpleclick",
    "isegm.model.is_segformer_model.SegFormerModel": "focalclick",
    "isegm.model.is_deeplab_model.DeeplabModel": "cdnet",
    "isegm.model.is_gp_resnet50.GpModel": "gpcis",
    "isegm.model.is_adaptiveclick_model.AdaptiveClickModel": "adaptiveclick",
}
"""Family by the class that a checkpoint names."""

_ENTRIES = (
    ("refiner.", "focalclick"),
    ("feature_extractor.FDM.", "cdnet"),
    ("pixel_decoder.", "adaptiveclick"),
    ("omega_var", "gpcis"),
    ("patch_embed_coords.", "simpleclick"),
    ("feature_extractor.ocr_distri_head.", "ritm"),
)
"""Family by the start of an entry, the first that is there: FocalClick's files name RITM's class."""

_SAME_NETWORK = {"cfr-icl": "simpleclick"}
_MAX_VALUES, _MAX_DEPTH = 10_000, 12


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint: `state` by name on the CPU, the network's class as text ("" if not told) and its arguments.

    `inert` are the dotted names of classes and functions in the file that were not looked up.
    """

    path: Path
    sha256: str
    state: Mapping[str, Tensor] = field(repr=False)
    class_name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    inert: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The family of the network, by its entries and else by its class."""
        for start, family in _ENTRIES:
            if any(name.startswith(start) for name in self.state):
                return family
        if self.class_name in CLASSES:
            return CLASSES[self.class_name]
        raise ModelError(
            f"the checkpoint is of no network known here ({self.class_name or 'it names no class'})",
            file=self.path,
            remedy=f"give a checkpoint of {', '.join(FAMILIES)}",
        )


def read_checkpoint(path: Path) -> Checkpoint:
    """Tensors and settings of a published checkpoint, or the tensors of a `.safetensors` file."""
    if path.suffix == ".safetensors" or not path.is_file():
        loaded = load_state_dict(path)
        return Checkpoint(path, loaded.sha256, _strip_prefix(loaded.state))
    with reading(
        path,
        "not a checkpoint that can be read without running what it names",
        remedy="download it again from its authors, or save its state dict as .safetensors where you trust it",
    ):
        content, inert = _read(path)
        state, config = _split(_unwrap(content))
        class_name, arguments = _read_config(config)
    return Checkpoint(path, fingerprints.hash_file(path), _strip_prefix(state), class_name, arguments, inert)


def read_outline(path: Path) -> Checkpoint:
    """A checkpoint without the values of its tensors, which are on torch's meta device; the file is not hashed.

    Takes also files of SAM and its kin.
    """
    if path.suffix == ".safetensors":
        return Checkpoint(path, "", _strip_prefix(_read_header(path)))
    with reading(
        path,
        "not a checkpoint that can be read without running what it names",
        remedy="download it again from its authors, or save its state dict as .safetensors where you trust it",
    ):
        if zipfile.is_zipfile(path):
            with InertArchive(path) as archive:
                content, inert = archive.content, tuple(sorted(archive.names - PLAIN_NAMES))
        else:
            content, inert = _read(path)
        state, config = _split(_without_values(_unwrap(content)))
        class_name, arguments = _read_config(config)
    return Checkpoint(path, "", _strip_prefix(state), class_name, arguments, inert)


def check_outline(outline: Checkpoint) -> nn.Module:
    """The network of a checkpoint without values, on the meta device; an error where the tensors do not fit it."""
    import torch

    found = outline.family
    with (
        reading(outline.path, f"not a checkpoint of {found}", remedy="give a published file", kind=ModelError),
        torch.device("meta"),
    ):
        network: nn.Module = _network_class(found).from_checkpoint(outline.arguments, outline.state)
    if differences := check_keys(network, outline.state):
        raise ModelError(
            f"the tensors do not fit {found}: {differences}", file=outline.path, remedy="give a published file"
        )
    return network


def build_network(checkpoint: Checkpoint, family: str | None = None) -> nn.Module:
    """The network of a checkpoint with its parameters, in evaluation mode; an error where `family` is another."""
    found = checkpoint.family
    if family is not None and _SAME_NETWORK.get(family, family) != found:
        raise ModelError(
            f"the checkpoint is of the family {found}, not {family}", file=checkpoint.path, remedy=f"--model {found}"
        )
    _check_numbers(checkpoint)
    # Before memory is taken: one small tensor of a file can ask for a network of any width.
    check_outline(checkpoint)
    with reading(checkpoint.path, f"not a checkpoint of {found}", remedy="give a published file", kind=ModelError):
        network: nn.Module = _network_class(found).from_checkpoint(checkpoint.arguments, checkpoint.state)
    load_into(network, LoadedWeights(checkpoint.state, checkpoint.sha256, checkpoint.path))
    return network.eval().requires_grad_(False)


def _check_numbers(checkpoint: Checkpoint) -> None:
    """Raise an error for values that are no numbers: every mask would be empty, and look like a bad network's."""
    wrong = [
        name for name, value in checkpoint.state.items() if value.is_floating_point() and not value.isfinite().all()
    ]
    if wrong:
        raise ModelError(
            f"{len(wrong)} tensors hold values that are not finite: {', '.join(wrong[:3])}",
            file=checkpoint.path,
            remedy="download it again, or save it again from weights that did not overflow",
        )


def build_random(family: str, size: str | None = None, *, seed: int = 0) -> nn.Module:
    """A network with random parameters of a seed, in evaluation mode: for tests of everything but good masks."""
    import torch

    network_class, chosen = _network_class(family), size or FAMILIES[family][1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            network: nn.Module = network_class.build(chosen)
        except KeyError:
            sizes = getattr(sys.modules[network_class.__module__], "SIZES", ())
            raise OptionError(f"{family} has no size {chosen!r}", remedy=f"one of {', '.join(sizes)}") from None
        fit_to_noise(network)
    return network.eval().requires_grad_(False)


def fit_to_noise(network: nn.Module) -> None:
    """Make a random network's masks depend on its clicks, and be neither empty nor full on most pictures.

    Batch normalisation gets the statistics of noise, clicks the weight of the picture, and the logits of noise a mean
    of -.5 and a standard deviation of 1.5.
    """
    import torch

    layers = [layer for layer in network.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    network.eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name == "maps_transform.3.scale":
                parameter.fill_(1)
            if name == "patch_embed_coords.proj.weight":
                parameter.mul_(10)
        if layers:
            for layer in layers:
                layer.momentum = 1.0
                layer.train()
            _answer_noise(network)
            for layer in layers:
                layer.momentum = 0.1
                layer.eval()
        last = getattr(network, "logit_layer", None)
        if last is not None:
            logits = _answer_noise(network)
            factor = 1.5 / logits.std()
            last.weight *= factor
            last.bias *= factor
            last.bias -= logits.mean() * factor + 0.5


def _answer_noise(network: nn.Module) -> Tensor:
    import torch

    channels, side = 4 if getattr(network, "with_prev_mask", True) else 3, min(getattr(network, "side", 192), 224)
    # Coarse and fine, bright and dark, as photographs are.
    scales = [
        torch.nn.functional.interpolate(torch.randn(4, channels, cells, cells), (side, side), mode="bilinear")
        for cells in (1, 4, 16, 64)
    ]
    pictures = (0.5 + 0.2 * torch.stack(scales).sum(0)).clamp(0, 1)
    points = torch.tensor([[[0.4, 0.6, 0], [0.8, 0.2, 1]]]).expand(4, -1, -1) * torch.tensor([side, side, 1.0])
    answer: Any = network(pictures, points)
    logits: Tensor = answer["instances"] if isinstance(answer, Mapping) else answer
    return logits


def _network_class(family: str) -> Any:
    module, _, name = FAMILIES[family][0].partition(":")
    return getattr(importlib.import_module(module), name)


def _read(path: Path) -> tuple[Any, tuple[str, ...]]:
    """The content with tensors, and the names that were left inert."""
    if not zipfile.is_zipfile(path):  # torch before 1.6
        with path.open("rb") as stream:
            if stream.read(2) == b"PK":
                raise ValueError("its end is missing, as of a download that stopped")
        if more := list_names(path) - PLAIN_NAMES:
            raise ValueError(f"it is older than torch 1.6 and names {', '.join(sorted(more))[:200]}")
        return read_torch(path), ()
    with InertArchive(path) as archive:
        if archive.names <= PLAIN_NAMES:
            return read_torch(path), ()
        content = archive.content
        if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
            state = content["state_dict"]
            content = {**content, "state_dict": {name: _read_tensor(archive, name, state[name]) for name in state}}
        return content, tuple(sorted(archive.names - PLAIN_NAMES))


def _read_tensor(archive: InertArchive, name: Any, stored: Any) -> Tensor:
    if not isinstance(stored, StoredTensor):
        raise ValueError(f"the entry {str(name)[:200]} of its state dict is no tensor")
    return archive.read_tensor(stored)


def _unwrap(content: Any) -> Any:
    """A file's content with the tensors below `state_dict`, also where they are below `model` or one level deeper."""
    if not isinstance(content, Mapping):
        return content
    if "state_dict" not in content:
        content = next(({"state_dict": content[key]} for key in WRAPPERS if _is_mapping(content, key)), content)
    if _is_mapping(content, "state_dict") and set(content["state_dict"]) == {"state_dict"}:
        content = {**content, "state_dict": content["state_dict"]["state_dict"]}
    return content


def _split(content: Any) -> tuple[Mapping[str, Tensor], Any]:
    """The state dict and the settings of a file's content."""
    import torch

    if isinstance(content, list):
        raise DataError("the checkpoint is one of several stages", remedy="give one with a single network")
    state = content.get("state_dict", content) if isinstance(content, Mapping) else None
    if not isinstance(state, Mapping) or not state:
        raise DataError("the file holds no state dict", remedy="give a file with the keys state_dict and config")
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise DataError(f"the entry {str(name)[:200]} of the state dict is no tensor", remedy="give another file")
    return state, content.get("config") if state is not content else None


def _read_config(config: Any) -> tuple[str, dict[str, Any]]:
    """The class as text, and the arguments that are plain values: texts, numbers, lists and dictionaries of them."""
    if not isinstance(config, Mapping):
        return "", {}
    class_name, given = config.get("class", ""), config.get("params", {})
    budget = [_MAX_VALUES]
    arguments = {
        name: _plain(argument.get("value"), budget)
        for name, argument in (given.items() if isinstance(given, Mapping) else ())
        if isinstance(name, str) and isinstance(argument, Mapping)
    }
    return class_name if isinstance(class_name, str) else "", arguments


def _plain(value: Any, budget: list[int], depth: int = 0) -> Any:
    """A value without records and tensors, which become None; a dictionary's subclass becomes a dictionary."""
    budget[0] -= 1
    if budget[0] < 0 or depth > _MAX_DEPTH:
        raise ValueError("its settings are too large or too deep")
    if isinstance(value, Record) and value.items:
        value = value.items
    if isinstance(value, list | tuple):
        return [_plain(one, budget, depth + 1) for one in value]
    if isinstance(value, Mapping):
        return {key: _plain(one, budget, depth + 1) for key, one in value.items() if isinstance(key, str)}
    return value if isinstance(value, str | int | float | bool) else None


def _read_header(path: Path) -> Mapping[str, Tensor]:
    """The shapes in a `.safetensors` file as tensors without values."""
    import torch

    with reading(path, "not a readable safetensors file", remedy="download or convert it again"):
        opened: Any = require("safetensors", extra="torch").safe_open(path, framework="pt")
        with opened as file:
            names = list(file.keys())
            return {name: torch.empty(file.get_slice(name).get_shape(), device="meta") for name in names}


def _without_values(content: Any) -> Any:
    """A file's content with tensors on the meta device in its state dict."""
    import torch

    def empty(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to("meta")
        return torch.empty(value.size, device="meta") if isinstance(value, StoredTensor) else value

    if not isinstance(content, Mapping):
        return content
    if _is_mapping(content, "state_dict"):
        return {**content, "state_dict": {name: empty(value) for name, value in content["state_dict"].items()}}
    return {name: empty(value) for name, value in content.items()}


def _is_mapping(content: Mapping[Any, Any], key: str) -> bool:
    return isinstance(content.get(key), Mapping)


def _strip_prefix(state: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Names without the `module.` of parallel training and the `state_dict.` of dictionaries that were flattened."""
    for prefix in ("state_dict.", "module."):
        if all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): value for name, value in state.items()}
    return state
