"""segmentation-models-pytorch's networks as semantic segmenters: `smp:unet-resnet34` with weights=FILE and classes=...

Iakubovskii, "Segmentation Models Pytorch", 2019. The library has decoders and encoders and no trained segmenters, so
the weights are yours. An image is padded at its right and lower edge to what the network can divide, or resized to
`size`; the padding is cut off again.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.families import Family
from hardlook.models.families.network_weights import (
    choose_weights,
    fit_state,
    name_model,
    read_checkpoint,
    read_class_names,
    require_library,
    seeded_torch,
    suggest_name,
)
from hardlook.models.roles import Image
from hardlook.models.torch_inference import Precision
from hardlook.models.wrapping.wrapped_models import WrapOptions, WrappedSemanticSegmenter

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

_HEAD = "segmentation_head.0.weight"


class SmpSegmenter(WrappedSemanticSegmenter):
    """A network of segmentation-models-pytorch, with the file of its weights."""

    def __init__(self, network: Any, options: WrapOptions, files: tuple[Path, ...]) -> None:
        self._files = files
        super().__init__(network, options)

    @property
    def libraries(self) -> tuple[str, ...]:
        """Distributions whose version can change the answers."""
        named = ("segmentation_models_pytorch", "timm", "torch", "torchvision", "pillow")
        return tuple(sorted({*super().libraries, *named}))

    @property
    def weights_files(self) -> tuple[Path, ...]:
        """The file of the weights; none where they are random."""
        return self._files


class PaddedInput:
    """From an image to an input whose sides a network can divide: colours normalised, edges filled with their mean."""

    def __init__(
        self, stride: int, size: tuple[int, int] | None, mean: tuple[float, ...], std: tuple[float, ...]
    ) -> None:
        self.stride, self.size, self.mean, self.std = stride, size, mean, std

    def __call__(self, image: Image) -> dict[str, NDArray[Any]]:
        """The input (3, h, w) float32, and the height and width that the image fills of it."""
        if self.size is not None and self.size != image.shape[:2]:
            resized = PIL.Image.fromarray(image).resize((self.size[1], self.size[0]), PIL.Image.Resampling.BILINEAR)
            image = np.asarray(resized)
        height, width = image.shape[:2]
        mean, std = (np.asarray(values, np.float32) for values in (self.mean, self.std))
        normalised = (image.astype(np.float32) / np.float32(255) - mean) / std
        rows, columns = (-(-length // self.stride) * self.stride for length in (height, width))
        padded = np.zeros((3, rows, columns), np.float32)
        padded[:, :height, :width] = normalised.transpose(2, 0, 1)
        return {"": padded, "reshaped_input_sizes": np.array([[[height, width]]])}


def build_segmenter(
    name: str,
    classes: tuple[str, ...],
    weights: Path | None = None,
    random: int | None = None,
    size: tuple[int, int] | None = None,
    mean: tuple[float, ...] = IMAGENET_MEAN,
    std: tuple[float, ...] = IMAGENET_STD,
    threshold: float = 0.5,
    device: str = "cpu",
    precision: Precision = "float32",
    batch_size: int | None = None,
) -> SmpSegmenter:
    """The segmenter of that name, `DECODER-ENCODER`.

    `classes` are the names of its classes in order, with commas, or a text file with one per line; a network of one
    channel has two, that of its background first, and `threshold` divides them. `weights` is a state dict, `random` the
    seed of random weights, `size` (height, width) that images are resized to.
    """
    shown = f"smp:{name}"
    if weights is None and random is None:
        what = f"{shown} has no weights of its own"
        raise OptionError(what, remedy="weights=FILE for a checkpoint of yours, or random=SEED for random weights")
    origin = choose_weights(shown, weights=weights, random=random, pretrained=False)
    for key, values in (("mean", mean), ("std", std)):
        if len(values) != 3 or (key == "std" and not all(values)):
            raise OptionError(f"{shown}: {key} is {values}", remedy="three numbers, for red, green and blue")
    if size is not None and min(size) < 1:
        raise OptionError(f"{shown}: size is {size}", remedy="height,width in pixels")
    smp = require_library("segmentation_models_pytorch", extra="smp")
    decoder, encoder = _split(smp, name)
    names = read_class_names(classes) or ()
    state = read_checkpoint(weights).state if weights is not None else None
    channels = int(state[_HEAD].shape[0]) if state is not None and _HEAD in state else len(names)
    single = channels == 1 and len(names) == 2
    if channels != len(names) and not single:
        raise OptionError(
            f"the weights of {shown} have {channels} classes, and `classes` has {len(names)} names",
            remedy="one name for each class in order; for one channel two names, that of the background first",
        )
    with seeded_torch(random):
        network = smp.create_model(decoder, encoder, encoder_weights=None, in_channels=3, classes=channels)
    if state is not None and weights is not None:
        fit_state(network, state, weights, ignore=("classification_head.",))
    stride = int(network.encoder.output_stride) if network.requires_divisible_input_shape else 1
    options = WrapOptions(
        preprocess=PaddedInput(stride, size, mean, std),
        classes=names,
        device=device,
        precision=precision,
        batch_size=batch_size,
        name=name_model(shown, origin, random),
        threshold=threshold,
        activation="sigmoid" if single else None,
    )
    return SmpSegmenter(network.eval().requires_grad_(False), options, () if weights is None else (weights,))


def _split(smp: Any, name: str) -> tuple[str, str]:
    decoder, _, encoder = name.partition("-")
    timm_encoder = encoder.startswith("tu-") and len(encoder) > len("tu-")
    if decoder not in smp.MODEL_ARCHITECTURES_MAPPING or not (
        encoder in smp.encoders.get_encoder_names() or timm_encoder
    ):
        raise suggest_name("smp", name, list_names())
    return decoder, encoder


def list_names(pattern: str = "*") -> list[str]:
    """Names DECODER-ENCODER that fit the pattern; encoders of timm are named `tu-NAME` and not listed."""
    smp = require_library("segmentation_models_pytorch", extra="smp")
    encoders = smp.encoders.get_encoder_names()
    names = (f"{decoder}-{encoder}" for decoder in smp.MODEL_ARCHITECTURES_MAPPING for encoder in encoders)
    return [name for name in sorted(names) if fnmatchcase(name, pattern)]


FAMILY = Family(
    prefix="smp",
    summary="A network of segmentation-models-pytorch with weights of yours.",
    extra="smp",
    roles=("semantic-segmenter",),
    list_names=list_names,
    find_roles=lambda name: ("semantic-segmenter",),
    build=build_segmenter,
)
