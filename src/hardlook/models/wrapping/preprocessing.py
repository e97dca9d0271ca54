"""From images to a network's inputs, and what must be known to bring its answers back to the image's size.

>>> plain = Preprocess(None).prepare(np.full((2, 4, 3), 255, np.uint8))
>>> plain.inputs[""].shape, float(plain.inputs[""].max()), plain.input_size
((1, 3, 2, 4), 1.0, (2, 4))
>>> squashed = Preprocess({"size": (8, 6), "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)})
>>> made = squashed.prepare(np.zeros((2, 4, 3), np.uint8))
>>> made.inputs[""].shape, float(made.inputs[""].max()), made.image_size, made.input_size
((1, 3, 8, 6), -1.0, (2, 4), (8, 6))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.errors import ModelError, OptionError
from hardlook.models.roles import Image
from hardlook.models.wrapping.network_calls import NetworkCalls, find_distributions

_RESAMPLING = {
    "nearest": PIL.Image.Resampling.NEAREST,
    "box": PIL.Image.Resampling.BOX,
    "bilinear": PIL.Image.Resampling.BILINEAR,
    "bicubic": PIL.Image.Resampling.BICUBIC,
    "lanczos": PIL.Image.Resampling.LANCZOS,
}
_KEYS = ("size", "mean", "std", "interpolation")
# Packages whose transforms take Pillow's images.
_PIL_PACKAGES = ("torchvision", "timm", "open_clip", "clip")

Size = tuple[int, int]


@dataclass(frozen=True)
class Prepared:
    """One image as the network's inputs, each (1, ...), and its sizes as (height, width).

    `inputs` has the empty name for an input that is given by position. The image fills the top left `content_size` of
    the `input_size`; the rest is padding.
    """

    inputs: Mapping[str, NDArray[Any]]
    image_size: Size
    input_size: Size
    content_size: Size


class Preprocess:
    """What makes an image a network's input: `preprocess` as `wrap` takes it.

    With `whole` it must show the network the whole image, because answers are to be brought back to its size.
    """

    def __init__(self, preprocess: Any = None, *, whole: bool = False) -> None:
        self.preprocess = preprocess
        if isinstance(preprocess, Mapping):
            _check_settings(preprocess)
        elif preprocess is not None and not callable(preprocess):
            what = f"preprocess is a {type(preprocess).__name__}"
            raise OptionError(what, remedy=f"None, a function of an image, or a dict of {', '.join(_KEYS)}")
        if whole and (crop := _find_crop(preprocess)):
            raise OptionError(
                f"the preprocessing cuts the image ({crop}), so answers cannot be brought back to its size",
                remedy="pass preprocessing that resizes the whole image, such as preprocess={'size': (512, 512)}",
            )

    @property
    def libraries(self) -> tuple[str, ...]:
        """Distributions whose version can change what the network is given."""
        if self.preprocess is None:
            return ()
        package = str(getattr(self.preprocess, "__module__", None) or "").partition(".")[0]
        return ("pillow", *find_distributions(package))

    def prepare(self, image: Image) -> Prepared:
        """The network's inputs of an image, which is not changed."""
        size = (image.shape[0], image.shape[1])
        if self.preprocess is None:
            return _make_prepared({"": _to_float(image)}, size)
        if isinstance(self.preprocess, Mapping):
            return _make_prepared({"": _resize_and_normalise(image, self.preprocess)}, size)
        if processor := find_image_processor(self.preprocess):
            made = processor(images=_to_pil(image), return_tensors="np")
            return _make_prepared({name: np.asarray(value) for name, value in made.items()}, size)
        made = self.preprocess(_to_pil(image) if _takes_pil(self.preprocess) else np.array(image, order="C"))
        named = made if isinstance(made, Mapping) else {"": made}
        return _make_prepared({name: self._to_input(value) for name, value in named.items()}, size)

    def _to_input(self, value: Any) -> NDArray[Any]:
        if isinstance(value, PIL.Image.Image):
            value = _to_float(np.asarray(value.convert("RGB")))
        if hasattr(value, "detach"):
            value = value.detach().cpu().float() if value.is_floating_point() else value.detach().cpu()
        array = np.asarray(value)
        if array.ndim not in (3, 4) or (array.ndim == 4 and len(array) != 1) or array.dtype.kind not in "fiub":
            raise ModelError(
                f"preprocess gives {array.dtype} of shape {array.shape}, expected (C, h, w)",
                remedy="return an array or tensor of one image, channels first",
            )
        return array[None] if array.ndim == 3 else array


def run_in_batches(
    calls: NetworkCalls, prepared: Sequence[Prepared], batch_size: int, method: str = ""
) -> Iterator[tuple[list[int], list[Prepared], Any]]:
    """Call the network with images of equal inputs together: their places, the inputs, and what it answers for them.

    At most `batch_size` images are one call, or as many as a file fixes; then the last image fills the batch, and there
    are more inputs than places.
    """
    fixed = calls.input_shape
    size = fixed[0] if fixed and fixed[0] is not None else batch_size
    keys = []
    for one in prepared:
        _check_fixed(fixed, one)
        keys.append([(name, value.shape, value.dtype.str) for name, value in sorted(one.inputs.items())])
    for places in group_places(keys, size):
        filled = places + places[-1:] * (size - len(places)) if fixed and fixed[0] is not None else places
        named = {
            name: np.concatenate([prepared[place].inputs[name] for place in filled])
            for name in prepared[places[0]].inputs
        }
        yield places, [prepared[place] for place in filled], calls(method=method, named=named)


def group_places(keys: Sequence[Any], size: int) -> Iterator[list[int]]:
    """Places of equal keys, at most `size` together, in the order in which the keys come first.

    >>> list(group_places(["a", "b", "a", "a"], 2))
    [[0, 2], [3], [1]]
    """
    groups: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(repr(key), []).append(place)
    for members in groups.values():
        yield from (members[start : start + size] for start in range(0, len(members), size))


def find_image_processor(preprocess: Any) -> Callable[..., Any] | None:
    """The image processor of transformers that `preprocess` is or has, known by its bases; None for anything else."""
    bases = {base.__name__ for base in type(preprocess).__mro__}
    if "ProcessorMixin" in bases:
        return getattr(preprocess, "image_processor", None)
    return preprocess if bases & {"ImageProcessingMixin", "FeatureExtractionMixin"} else None


def scale_points(points: NDArray[np.float32], prepared: Prepared) -> NDArray[np.float32]:
    """Points (n, 2) of (x, y) in the image's pixels as points in the input's pixels; centres of pixels are whole.

    >>> made = Prepared({}, (2, 2), (4, 4), (4, 4))
    >>> scale_points(np.array([[0, 1]], np.float32), made).tolist()
    [[0.5, 2.5]]
    """
    (height, width), (rows, columns) = prepared.image_size, prepared.content_size
    factor = np.array([columns / width, rows / height], np.float64)
    return np.asarray((np.asarray(points, np.float64).reshape(-1, 2) + 0.5) * factor - 0.5, np.float32)


def resize_mask(mask: NDArray[np.bool_], prepared: Prepared) -> NDArray[np.float32]:
    """A mask (H, W) of the image at the input's size, (h, w) float32 of 0 and 1: the nearest pixel, 0 in padding."""
    (height, width), (rows, columns) = prepared.image_size, prepared.content_size
    nearest_row = np.arange(rows) * height // rows
    nearest_column = np.arange(columns) * width // columns
    resized = np.zeros(prepared.input_size, np.float32)
    resized[:rows, :columns] = mask[nearest_row[:, None], nearest_column]
    return resized


def _check_fixed(fixed: Sequence[int | None], one: Prepared) -> None:
    shape = next(iter(one.inputs.values())).shape
    wrong = len(fixed) != len(shape) or any(
        length is not None and length != came for length, came in zip(fixed[1:], shape[1:], strict=True)
    )
    if fixed and wrong:
        lengths = " x ".join("any" if length is None else str(length) for length in fixed[1:])
        raise ModelError(
            f"the network's file takes inputs of {lengths}, and preprocessing gives {' x '.join(map(str, shape[1:]))}",
            remedy=f"pass preprocess={{'size': ({', '.join(lengths.split(' x ')[1:])})}} and its mean and std",
        )


def _make_prepared(inputs: Mapping[str, NDArray[Any]], image_size: Size) -> Prepared:
    inputs = {name: value.astype(np.float32) if value.dtype.kind == "f" else value for name, value in inputs.items()}
    images = inputs.get("", inputs.get("pixel_values"))
    if images is None:
        raise ModelError(
            f"preprocess gives the names {', '.join(map(repr, inputs))} and no 'pixel_values'",
            remedy="return an array or tensor of one image, or a dict with pixel_values",
        )
    if images.ndim != 4:
        raise ModelError(f"preprocess gives an input of shape {images.shape}, expected (1, C, h, w)")
    last = images.shape[1] not in (1, 3) and images.shape[3] in (1, 3)
    input_size = (images.shape[1], images.shape[2]) if last else (images.shape[2], images.shape[3])
    return Prepared(inputs, image_size, input_size, _find_content(inputs, input_size))


def _find_content(inputs: Mapping[str, NDArray[Any]], input_size: Size) -> Size:
    if "reshaped_input_sizes" in inputs:
        height, width = np.asarray(inputs["reshaped_input_sizes"]).reshape(-1)[:2].tolist()
        return int(height), int(width)
    mask = inputs.get("pixel_mask")
    if mask is None or mask.ndim != 3 or mask.shape[1:] != input_size or not mask.any():
        return input_size
    rows, columns = np.flatnonzero(mask[0].any(axis=1)), np.flatnonzero(mask[0].any(axis=0))
    return int(rows[-1]) + 1, int(columns[-1]) + 1


def _to_float(image: Image) -> NDArray[np.float32]:
    """(1, 3, H, W) float32 in [0, 1]."""
    return np.ascontiguousarray(image.transpose(2, 0, 1)[None]).astype(np.float32) / np.float32(255)


def _to_pil(image: Image) -> PIL.Image.Image:
    return PIL.Image.fromarray(np.ascontiguousarray(image))


def _resize_and_normalise(image: Image, settings: Mapping[str, Any]) -> NDArray[np.float32]:
    if (size := _read_size(settings.get("size"))) is not None and size != image.shape[:2]:
        how = _RESAMPLING[settings.get("interpolation", "bilinear")]
        image = np.asarray(_to_pil(image).resize((size[1], size[0]), how))
    values = _to_float(image)
    mean, std = (np.array(settings.get(name, default), np.float32) for name, default in (("mean", 0), ("std", 1)))
    return (values - mean.reshape(-1, 1, 1)) / std.reshape(-1, 1, 1)


def _read_size(size: Any) -> Size | None:
    if size is None:
        return None
    if isinstance(size, int):
        return size, size
    height, width = size
    return int(height), int(width)


def _check_settings(settings: Mapping[str, Any]) -> None:
    if unknown := [name for name in settings if name not in _KEYS]:
        raise OptionError(f"preprocess has no setting {unknown[0]!r}", remedy=f"its settings are {', '.join(_KEYS)}")
    try:
        size = _read_size(settings.get("size"))
    except (TypeError, ValueError):
        size = (0, 0)
    if size is not None and min(size) < 1:
        raise OptionError(f"size is {settings['size']!r}", remedy="a whole number, or (height, width)")
    if (how := settings.get("interpolation", "bilinear")) not in _RESAMPLING:
        raise OptionError(f"there is no interpolation {how!r}", remedy=f"one of {', '.join(_RESAMPLING)}")
    for name in ("mean", "std"):
        values = np.asarray(settings.get(name, 1.0), dtype=np.float64)
        if values.size not in (1, 3) or not np.isfinite(values).all() or (name == "std" and not values.all()):
            raise OptionError(f"{name} is {settings[name]!r}", remedy="one number, or three for red, green and blue")


def _takes_pil(preprocess: Any) -> bool:
    package = type(preprocess).__module__.partition(".")[0]
    return package in _PIL_PACKAGES or isinstance(getattr(preprocess, "transforms", None), list | tuple)


def _find_crop(preprocess: Any) -> str:
    """The part of a preprocessing that cuts or pads images; empty if none is known."""
    processor = find_image_processor(preprocess)
    if processor is not None and getattr(processor, "do_center_crop", False):
        return "do_center_crop"
    if _takes_pil(preprocess) and getattr(preprocess, "crop_size", None):
        return "crop_size"
    parts = getattr(preprocess, "transforms", None)
    names = [type(part).__name__ for part in parts] if isinstance(parts, list | tuple) else []
    return next((name for name in names if "Crop" in name or "Pad" in name), "")
