"""torchvision's networks: `torchvision:deeplabv3_resnet50`, `torchvision:maskrcnn_resnet50_fpn`, `...:resnet50`.

A name may end with one of its weights, as `resnet50.IMAGENET1K_V1`; else they are torchvision's default ones. Images
are prepared by the transform of the weights, labels are their categories. Segmentation networks are semantic
segmenters, detectors instance segmenters (boxes of detectors without masks are filled), classifiers encoders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hardlook.errors import ModelError, OptionError
from hardlook.models.families import Family
from hardlook.models.families.downloads import fetch_url
from hardlook.models.families.network_weights import (
    Origin,
    choose_weights,
    fit_state,
    name_model,
    read_checkpoint,
    read_class_names,
    require_library,
    seeded_torch,
    suggest_name,
)
from hardlook.models.torch_inference import Precision
from hardlook.models.wrapping.wrapped_models import (
    WrapOptions,
    WrappedEncoder,
    WrappedInstanceSegmenter,
    WrappedModel,
    WrappedSemanticSegmenter,
)

_ROLES = {"segmentation": "semantic-segmenter", "detection": "instance-segmenter"}
_NO_ROLE = ("quantization", "video", "optical_flow")

# The part of a classifier whose output is its last map; the first that a network has.
_MAP_PARTS = (
    "permute", "layer4", "trunk_output", "features", "layers", "conv5", "inception5b", "Mixed_7c", "encoder", "blocks"
)  # fmt: skip


class _TorchvisionModel(WrappedModel):
    """What the three roles share: the files of the weights, and the libraries."""

    files: tuple[Path, ...] = ()

    @property
    def libraries(self) -> tuple[str, ...]:
        """Distributions whose version can change the answers."""
        return tuple(sorted({*super().libraries, "torch", "torchvision", "pillow"}))

    @property
    def weights_files(self) -> tuple[Path, ...]:
        """The file of the weights; none where they are random."""
        return self.files


class TorchvisionEncoder(_TorchvisionModel, WrappedEncoder):
    """A classifier of torchvision as an encoder."""


class TorchvisionSemanticSegmenter(_TorchvisionModel, WrappedSemanticSegmenter):
    """A segmentation network of torchvision."""


class TorchvisionInstanceSegmenter(_TorchvisionModel, WrappedInstanceSegmenter):
    """A detector of torchvision."""


class ClassifierFeatures:
    """A call of a classifier that gives what its last linear layer is given, and the output of one part as the map."""

    def __init__(self, network: Any, layer: str) -> None:
        self.network, self.layer = network, layer

    def __call__(self, images: Any) -> dict[str, Any]:
        """`pooler_output` (N, D), and `last_hidden_state` (N, C, h, w) where the part gives maps or tokens."""
        import torch

        seen: dict[str, Any] = {}
        linear = [part for part in self.network.modules() if isinstance(part, torch.nn.Linear)]
        hooks = [
            self.network.get_submodule(self.layer).register_forward_hook(
                lambda part, given, answer: seen.__setitem__("last_hidden_state", answer)
            )
        ]
        if linear:
            hooks.append(
                linear[-1].register_forward_pre_hook(lambda part, given: seen.__setitem__("pooler_output", given[0]))
            )
        try:
            self.network(images)
        finally:
            for hook in hooks:
                hook.remove()
        return self._arrange(seen, images)

    def _arrange(self, seen: dict[str, Any], images: Any) -> dict[str, Any]:
        spatial = seen.pop("last_hidden_state", None)
        patch = getattr(self.network, "patch_size", None)
        if getattr(spatial, "ndim", 0) == 3 and isinstance(patch, int):
            rows, columns = images.shape[2] // patch, images.shape[3] // patch
            tokens = spatial[:, spatial.shape[1] - rows * columns :]
            spatial = tokens.transpose(1, 2).reshape(len(tokens), -1, rows, columns)
        if getattr(spatial, "ndim", 0) == 4:
            seen["last_hidden_state"] = spatial
        if not seen:
            raise ModelError(
                f"the part {self.layer!r} gives no map",
                remedy="layer=NAME of a part that gives (N, C, h, w), as named_modules() of the network lists them",
            )
        return seen


def build_model(
    name: str,
    weights: Path | None = None,
    classes: tuple[str, ...] | None = None,
    layer: str | None = None,
    size: int | None = None,
    pretrained: bool = True,
    random: int | None = None,
    threshold: float = 0.5,
    device: str = "cpu",
    precision: Precision = "float32",
    batch_size: int | None = None,
) -> Any:
    """The model of that name, in the role that its kind of network has.

    `weights` is a state dict of your own, `classes` the names of its classes (with commas, or a text file with one per
    line) where they are not those of torchvision's weights; `random` is the seed of random weights; `layer` the part of
    a classifier whose output is the encoder's map, such as `layer3`; `size` another length of the shorter side that a
    segmentation network is given.
    """
    shown = f"torchvision:{name}"
    origin = choose_weights(shown, weights=weights, random=random, pretrained=pretrained)
    [role] = find_roles(name)
    known = _find_weights(name)
    names = read_class_names(classes)
    if names is not None and (origin == "pretrained" or role == "encoder"):
        why = "is an encoder" if role == "encoder" else f"has the classes of {known}"
        raise OptionError(f"{shown} {why}", remedy="leave classes out; they go with weights=FILE")
    if layer is not None and role != "encoder":
        raise OptionError(f"{shown} is a {role}", remedy="leave layer out; it is for encoders")
    if size is not None and (role != "semantic-segmenter" or size < 1):
        raise OptionError(f"{shown}: size={size}", remedy="at least 1, and only for segmentation networks")
    if origin == "pretrained" and known is None:
        raise ModelError(f"torchvision has no weights for {name!r}", remedy="weights=FILE, or random=SEED")
    network, files = _create(name, origin, known, weights, random, names)
    transform = known.transforms() if known is not None else None
    if size is not None and transform is not None:
        transform.resize_size = [size]
    options = WrapOptions(
        preprocess=transform,
        device=device,
        precision=precision,
        batch_size=batch_size,
        name=name_model(shown, origin, random),
    )
    if role == "encoder":
        kind: Any = TorchvisionEncoder
        network = ClassifierFeatures(network, _find_map_part(network, name, layer))
        options = replace(options, arrays="torch")
    else:
        kind = TorchvisionSemanticSegmenter if role == "semantic-segmenter" else TorchvisionInstanceSegmenter
        options = replace(options, classes=names or _list_categories(known, shown), threshold=threshold)
    model = kind(network, options)
    model.files = files
    return model


def _create(
    name: str, origin: Origin, known: Any, weights: Path | None, random: int | None, names: Sequence[str] | None
) -> tuple[Any, tuple[Path, ...]]:
    """The network in evaluation mode, and the files of its weights."""
    models = require_library("torchvision", extra="torchvision").models
    architecture, files = name.partition(".")[0], tuple[Path, ...]()
    if origin == "pretrained":
        megabytes = known.meta.get("_file_size")
        files = (fetch_url(known.url, int(megabytes * 2**20) if megabytes else None),)
        read_checkpoint(files[0])  # torchvision would unpickle anything
        network = models.get_model(architecture, weights=known, progress=False)
        return network.eval().requires_grad_(False), files
    categories = names or (known.meta.get("categories") if known is not None else None)
    more: dict[str, Any] = {"num_classes": len(categories)} if categories else {}
    if find_roles(name) != ("encoder",):
        more["weights_backbone"] = None
    state, heads = None, tuple[str, ...]()
    if origin == "file" and weights is not None:
        files, state = (weights,), read_checkpoint(weights).state
        # Of training only; and an encoder's classifier may have any number of classes.
        heads = ("aux_classifier.", "aux1.", "aux2.", "AuxLogits.")
        if find_roles(name) == ("encoder",):
            more["num_classes"] = _count_classes(state, len(categories or ()) or 1000)
    if architecture in ("googlenet", "inception_v3"):
        # As with torchvision's weights, whose preprocessing these expect.
        more.update(init_weights=origin == "random", transform_input=known is not None, aux_logits=False)
    with seeded_torch(random):
        network = models.get_model(architecture, weights=None, **more)
    if state is not None and weights is not None:
        fit_state(network, state, weights, ignore=heads)
    return network.eval().requires_grad_(False), files


def _count_classes(state: Any, default: int) -> int:
    """The number of classes of a checkpoint: the rows of its last matrix."""
    matrices = [value for key, value in state.items() if value.ndim in (2, 4) and key.endswith("weight")]
    return int(matrices[-1].shape[0]) if matrices else default


def _find_map_part(network: Any, name: str, layer: str | None) -> str:
    parts = dict(network.named_modules())
    if layer is not None:
        if layer not in parts:
            remedy = f"one of {', '.join(key for key in parts if key and '.' not in key)}, or a part of these"
            raise OptionError(f"torchvision:{name} has no part {layer!r}", remedy=remedy)
        return layer
    found = next((part for part in _MAP_PARTS if part in parts), None)
    if found is None:
        raise ModelError(f"which part of torchvision:{name} gives its map is not known", remedy="pass layer=NAME")
    return f"blocks.{len(parts['blocks']) - 1}" if found == "blocks" else found


def _list_categories(known: Any, shown: str) -> Sequence[str]:
    categories = known.meta.get("categories") if known is not None else None
    if not categories:
        raise OptionError(f"the names of the classes of {shown} are not known", remedy="pass classes=NAME,NAME,...")
    return list(categories)


def _find_weights(name: str) -> Any:
    """The weights that a name means: those of its tag, or the default ones; None where there are none."""
    models = require_library("torchvision", extra="torchvision").models
    architecture, _, tag = name.partition(".")
    choices = models.get_model_weights(architecture)
    if not tag:
        return getattr(choices, "DEFAULT", None)
    if tag not in choices.__members__:
        raise suggest_name("torchvision", name, [f"{architecture}.{one}" for one in choices.__members__])
    return choices[tag]


def find_roles(name: str) -> tuple[str, ...]:
    """The role of a name, by the kind of its network."""
    models = require_library("torchvision", extra="torchvision").models
    architecture = name.partition(".")[0]
    if architecture not in models.list_models():
        raise suggest_name("torchvision", name, list_names())
    kind = models.get_model_builder(architecture).__module__.split(".")[2]
    if kind in _NO_ROLE:
        what = f"torchvision:{name} is a network of the kind {kind}, for which there is no role"
        raise ModelError(what, remedy="`hardlook models --family torchvision` lists those that can be run")
    return (_ROLES.get(kind, "encoder"),)


def list_names(pattern: str = "*") -> list[str]:
    """Torchvision's names that fit the pattern, alone and with each of their weights."""
    models = require_library("torchvision", extra="torchvision").models
    names = []
    for architecture in models.list_models():
        if models.get_model_builder(architecture).__module__.split(".")[2] in _NO_ROLE:
            continue
        tags = models.get_model_weights(architecture).__members__
        names += [architecture, *(f"{architecture}.{tag}" for tag in tags if tag != "DEFAULT")]
    return [name for name in sorted(names) if fnmatchcase(name, pattern)]


FAMILY = Family(
    prefix="torchvision",
    summary="A network of torchvision, with its own weights, labels and preprocessing.",
    extra="torchvision",
    roles=("encoder", "semantic-segmenter", "instance-segmenter"),
    list_names=list_names,
    find_roles=find_roles,
    build=build_model,
)
