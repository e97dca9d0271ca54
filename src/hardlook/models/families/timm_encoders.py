"""timm's networks as encoders: `timm:resnet50.a1_in1k`, `timm:vit_small_patch14_dinov2`.

Wightman, "PyTorch image models", 2019. A network's vector is what its classifier would be given, its map the last one
before pooling (the patch tokens of a transformer); images are prepared by the transform of the network's data config.
"""

from __future__ import annotations

import inspect
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hardlook.errors import ModelError, OptionError
from hardlook.models.families import Family
from hardlook.models.families.downloads import fetch_from_hub, fetch_url
from hardlook.models.families.network_weights import (
    Origin,
    choose_weights,
    name_model,
    read_checkpoint,
    require_library,
    seeded_torch,
    suggest_name,
)
from hardlook.models.torch_inference import Precision
from hardlook.models.wrapping.wrapped_models import WrapOptions, WrappedEncoder

_HUB_FILES = ("model.safetensors", "pytorch_model.bin")


class TimmEncoder(WrappedEncoder):
    """A network of timm as an encoder, with the files its weights came from."""

    def __init__(self, features: TimmFeatures, options: WrapOptions, files: tuple[Path, ...]) -> None:
        self._files = files
        super().__init__(features, options)

    @property
    def libraries(self) -> tuple[str, ...]:
        """Distributions whose version can change the answers."""
        return tuple(sorted({*super().libraries, "timm", "torch", "torchvision", "pillow"}))

    @property
    def weights_files(self) -> tuple[Path, ...]:
        """The file of the weights; none where they are random."""
        return self._files


class TimmFeatures:
    """A call of the network that gives its vector and its map, or the map of one `layer`."""

    def __init__(self, network: Any, layer: int | None) -> None:
        self.network, self.layer = network, layer

    def __call__(self, images: Any) -> dict[str, Any]:
        """`pooler_output` (N, D) and `last_hidden_state` (N, C, h, w); the latter alone for a chosen layer."""
        if self.layer is not None:
            [chosen] = self.network(images)
            return {"last_hidden_state": _channels_first(chosen, self.network, self.network.feature_info.channels()[0])}
        features = self.network.forward_features(images)
        spatial = self._find_map(features, images)
        found = {} if spatial is None else {"last_hidden_state": spatial}
        if "pre_logits" in inspect.signature(self.network.forward_head).parameters:
            pooled = self.network.forward_head(features, pre_logits=True)
            found["pooler_output"] = pooled.mean(dim=(2, 3)) if pooled.ndim == 4 else pooled
        return found

    def _find_map(self, features: Any, images: Any) -> Any:
        """The features as maps (N, C, h, w); None where they have no grid."""
        if not hasattr(features, "ndim"):
            return None
        if features.ndim == 4:
            return _channels_first(features, self.network, self.network.num_features)
        if features.ndim != 3:
            return None
        for rows, columns in _list_grids(self.network, images.shape[2:]):
            # Tokens of the class and registers come first; not all networks say how many.
            before = features.shape[1] - rows * columns
            if before in (getattr(self.network, "num_prefix_tokens", 0), 0, 1, 2):
                return features[:, before:].transpose(1, 2).reshape(len(features), -1, rows, columns)
        return None


def _channels_first(maps: Any, network: Any, channels: int) -> Any:
    """Maps (N, C, h, w) of a network that may give (N, h, w, C)."""
    last = str(getattr(getattr(network, "output_fmt", ""), "value", getattr(network, "output_fmt", ""))) == "NHWC"
    if last or (maps.shape[1] != channels and maps.shape[3] == channels):
        return maps.permute(0, 3, 1, 2)
    return maps


def _list_grids(network: Any, size: Any) -> list[tuple[int, int]]:
    """Rows and columns that the tokens of an input may have, by what the network says of its patches."""
    height, width = size
    strides = {info["reduction"] for info in getattr(network, "feature_info", ()) if info.get("reduction")}
    patch = getattr(getattr(network, "patch_embed", None), "patch_size", None)
    sides = [(stride, stride) for stride in strides] + ([tuple(patch)] if isinstance(patch, tuple | list) else [])
    return [(height // down, width // across) for down, across in sides] + [
        (-(-height // down), -(-width // across)) for down, across in sides
    ]


def build_encoder(
    name: str,
    layer: int | None = None,
    weights: Path | None = None,
    pretrained: bool = True,
    random: int | None = None,
    size: int | None = None,
    device: str = "cpu",
    precision: Precision = "float32",
    batch_size: int | None = None,
) -> TimmEncoder:
    """The encoder of that name.

    `layer` is an index of timm's `features_only`: then the map is that layer's and the vector its average. `weights` is
    a checkpoint of your own, `random` the seed of random weights, `size` another side of the input in pixels.
    """
    shown = f"timm:{name}"
    origin = choose_weights(shown, weights=weights, random=random, pretrained=pretrained)
    timm = require_library("timm", extra="timm")
    _check_name(timm, name)
    files: tuple[Path, ...] = ()
    if origin == "file" and weights is not None:
        files = (weights,)
    elif origin == "pretrained":
        files = (_locate_pretrained(timm, name),)
    options = _list_network_options(timm, name, layer, size)
    network = _create(timm, name, origin, files, random, options).eval().requires_grad_(False)
    data = timm.data.resolve_data_config({"img_size": size} if size else {}, model=network)
    transform = timm.data.create_transform(**data, is_training=False)
    wrapping = WrapOptions(
        preprocess=transform,
        device=device,
        precision=precision,
        batch_size=batch_size,
        name=name_model(shown, origin, random),
        arrays="torch",
    )
    return TimmEncoder(TimmFeatures(network, layer), wrapping, files)


def _check_name(timm: Any, name: str) -> None:
    architecture, _, tag = name.partition(".")
    known = timm.is_model(architecture)
    try:
        known = known and not (tag and timm.models.get_pretrained_cfg(name) is None)
    except RuntimeError:  # a tag that the architecture does not have
        known = False
    if not known:
        raise suggest_name("timm", name, [*timm.list_models(), *timm.list_pretrained()])


def _list_network_options(timm: Any, name: str, layer: int | None, size: int | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if layer is not None:
        options.update(features_only=True, out_indices=(layer,))
    known = timm.models.get_pretrained_cfg(name)
    if size is not None:
        if size < 1:
            raise OptionError(f"size={size} of timm:{name} is not a size", remedy="the side of the input in pixels")
        if known is not None and known.fixed_input_size:
            options["img_size"] = size
    return options


def _locate_pretrained(timm: Any, name: str) -> Path:
    """The file of timm's weights, downloaded where it is not on this machine."""
    known = timm.models.get_pretrained_cfg(name)
    if known is not None and known.hf_hub_id:
        files = (known.hf_hub_filename,) if known.hf_hub_filename else _HUB_FILES
        return fetch_from_hub(known.hf_hub_id, files, extra="timm")
    if known is None or not known.url:
        raise ModelError(
            f"timm has no weights for {name!r}",
            remedy=f'weights=FILE, random=SEED, or a name of `hardlook models --family timm "{name.split("_")[0]}*"`',
        )
    return fetch_url(known.url if isinstance(known.url, str) else known.url[0])


def _create(
    timm: Any, name: str, origin: Origin, files: tuple[Path, ...], random: int | None, options: dict[str, Any]
) -> Any:
    """The network with its weights; what timm raises becomes an error that says what was asked for."""
    known, overlay = timm.models.get_pretrained_cfg(name), dict[str, Any]()
    if origin != "random":
        if origin == "pretrained" and known is not None and known.custom_load:
            overlay["file"] = str(files[0])
        else:
            overlay["state_dict"] = dict(read_checkpoint(files[0]).state)
    if origin == "file":
        # An encoder needs no classifier, and that of an own checkpoint may have any number of classes.
        named = known.classifier if known is not None else None
        heads = () if not named else (named,) if isinstance(named, str) else tuple(named)
        for head in heads:
            overlay["state_dict"].pop(f"{head}.weight", None)
            overlay["state_dict"].pop(f"{head}.bias", None)
        overlay["num_classes"] = 0
    try:
        with seeded_torch(random):
            return timm.create_model(
                name, pretrained=origin != "random", pretrained_cfg_overlay=overlay or None, **options
            )
    except Exception as error:  # timm's networks raise whatever their parts raise
        asked = ", ".join(f"{key}={value}" for key, value in options.items())
        raise ModelError(
            f"timm cannot make {name}{f' with {asked}' if asked else ''}: {str(error).strip() or type(error).__name__}",
            file=files[0] if files else None,
            remedy="weights of this architecture, and a layer that timm's features_only has",
        ) from error


def list_names(pattern: str = "*") -> list[str]:
    """Timm's names that fit the pattern: architectures, and with a tag those that have weights."""
    timm = require_library("timm", extra="timm")
    return [name for name in sorted({*timm.list_models(), *timm.list_pretrained()}) if fnmatchcase(name, pattern)]


FAMILY = Family(
    prefix="timm",
    summary="A network of timm: pooled vector and last map, or the map of one layer.",
    extra="timm",
    roles=("encoder",),
    list_names=list_names,
    find_roles=lambda name: ("encoder",),
    build=build_encoder,
)
