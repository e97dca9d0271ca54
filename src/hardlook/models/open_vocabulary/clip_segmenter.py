"""What segmenters on CLIP share: where parameters come from, vectors of words, sizes of images, batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import PIL.Image

from hardlook.errors import ModelError, OptionError
from hardlook.extras import require
from hardlook.fingerprints import hash_sources
from hardlook.models.identity import sources_of
from hardlook.models.interactive.sam_session import check_device_and_batch
from hardlook.models.open_vocabulary import text_features
from hardlook.models.open_vocabulary.free_words import FreeWords
from hardlook.models.open_vocabulary.text_features import TOKENIZER_FILES, encode_words, make_encoder, open_tokenizer
from hardlook.models.roles import Image
from hardlook.models.torch_inference import Precision
from hardlook.models.transformers_folder import check_folder
from hardlook.reading import reading

if TYPE_CHECKING:
    from torch import Tensor, nn

    from hardlook.networks.open_vocabulary.clip_text import CLIP

RANDOM = "random:"
_FOLDER_REMEDY = "--model-arg clip=FOLDER of a CLIP in transformers' layout, or a file of OpenAI's or open_clip's names"

Reading = Literal["ours", "released"]


@dataclass(frozen=True)
class Parameters:
    """Where parameters come from: the files of a network and of CLIP, or, for tries without files, a seed and a size.

    >>> Parameters.parse("random:7", None, None, "tiny").describe()
    'random parameters of seed 7'
    """

    files: tuple[Path, ...]
    tokenizer: Path | None
    seed: int | None = None
    size: str = ""

    @classmethod
    def parse(cls, weights: str | Path, clip: Path | None, tokenizer: Path | None, size: str) -> Parameters:
        """`weights` and `clip` are paths, or `weights` is `random:SEED` and `size` the name of a network's size.

        `clip` may be a folder in transformers' layout, which has a tokenizer too.
        """
        if str(weights).startswith(RANDOM):
            seed = str(weights).removeprefix(RANDOM)
            if not seed.isdecimal() or int(seed) >= 2**63:
                raise OptionError(f"weights={weights} has no seed", remedy=f"write weights={RANDOM}1")
            if clip is not None:
                remedy = "leave clip out, or give a file as weights"
                raise OptionError(f"weights={weights} and clip={clip} are both given", remedy=remedy)
            return cls((), tokenizer, int(seed), size)
        if size:
            raise OptionError("a file tells its size", remedy=f"leave size out, or give weights={RANDOM}1")
        if clip is not None and (folder := Path(clip).expanduser()).is_dir():
            clip = _find_weights(folder)
            tokenizer = tokenizer or (folder if all((folder / name).is_file() for name in TOKENIZER_FILES) else None)
        return cls(tuple(Path(one).expanduser() for one in (weights, clip) if one is not None), tokenizer)

    def describe(self) -> str:
        """The names of the files, or the seed."""
        if self.seed is not None:
            return f"random parameters of seed {self.seed}"
        return " and ".join(path.name for path in self.files)


def _find_weights(folder: Path) -> Path:
    """The file of weights of a CLIP in transformers' layout, with the quick GELU of OpenAI's."""
    config, quick, parts = read_clip_folder(folder)
    if len(parts) > 1:
        raise OptionError(f"the weights in {folder} are in several parts", remedy="save them as one file")
    if not quick:
        remedy = "give OpenAI's CLIP of this size, whose GELU is the quick one"
        raise ModelError("a CLIP with the exact GELU, which the network was not trained on", file=config, remedy=remedy)
    return parts[0]


def read_clip_folder(folder: Path) -> tuple[Path, bool, tuple[Path, ...]]:
    """Of a CLIP in transformers' layout the settings and whether its GELU is the quick one, and the weights' parts."""
    config, *parts = check_folder(folder, ("clip",), remedy=_FOLDER_REMEDY)
    with reading(config, "not the settings of a CLIP", remedy=_FOLDER_REMEDY):
        settings = json.loads(config.read_text(encoding="utf-8"))
        towers = [dict(settings.get(f"{kind}_config") or {}) for kind in ("vision", "text")]
        widths = (768, 512)  # transformers' own, where a file leaves them out
        for tower, width, heads in zip(towers, widths, (12, 8), strict=True):
            own = int(tower.get("hidden_size", width))
            if own != 64 * int(tower.get("num_attention_heads", heads)):
                raise ValueError(f"{own} channels in {tower.get('num_attention_heads', heads)} heads, not of 64 each")
        kinds = {str(tower.get("hidden_act", "quick_gelu")) for tower in towers}
        if len(kinds) > 1 or not kinds <= {"quick_gelu", "gelu"}:
            raise ValueError(f"activations {', '.join(sorted(kinds))}")
    return config, kinds == {"quick_gelu"}, tuple(path for path in parts if path.suffix != ".json")


class ClipSegmenter:
    """A network with CLIP's text tower on a device, `text` (names, D) the unit vectors of its words' names.

    `tower` has the text tower and `parameters` say where it comes from. Images are resized so that the shorter side is
    `shorter` pixels and the longer one at most `longer`.
    """

    def __init__(
        self,
        network: nn.Module,
        tower: CLIP,
        words: FreeWords,
        parameters: Parameters,
        *,
        sides: tuple[int, int],
        device: str,
        precision: Precision,
        batch: int,
    ) -> None:
        self.labels: Sequence[str] = words.labels
        self.templates = words.templates
        self.device = device
        self._words, self._precision, self._batch = words, precision, batch
        self._shorter, self._longer = sides
        self._network: Any = network.to(device)
        tokenize, files = open_tokenizer(parameters.tokenizer, random=parameters.seed is not None)
        self.weights_files: tuple[Path, ...] = (*words.files, *parameters.files, *files)
        # Vectors that other code made are not taken from the cache.
        code = hash_sources(sorted({*sources_of(type(tower)), Path(text_features.__file__)}))
        whose = [type(network).__name__, parameters.seed, parameters.size, code, *parameters.files, *files]
        encode = make_encoder(tower, tokenize, device, precision)
        self.text = encode_words(words, encode, tower=whose, device=device, precision=precision)

    def fingerprint(self) -> str:
        """A hash of this code and the network's."""
        return hash_sources(sorted({*sources_of(type(self)), *sources_of(type(self._network))}))

    def _stack(self, images: Sequence[Image]) -> Tensor:
        """Images of one size, resized, as one tensor (B, 3, h, w) uint8 on the device."""
        import torch

        resized = [resize_image(image, self._shorter, self._longer) for image in images]
        return torch.from_numpy(np.stack(resized)).movedim(3, 1).to(self.device)


def check_options(
    reading: str, sides: tuple[int, int], device: str, batch: int, precision: Precision, usual: tuple[int, int]
) -> None:
    """An error for options that no network takes, before any file is read; `usual` are the sides in its remedy."""
    require("torch", extra="torch")
    check_device_and_batch(device, batch, precision)
    if reading not in ("ours", "released"):
        raise OptionError(f"reading is {reading!r}", remedy="ours or released")
    if not 1 <= sides[0] <= sides[1]:
        raise OptionError(
            f"no image has sides of {sides[0]} and {sides[1]}", remedy=f"shorter={usual[0]} longer={usual[1]}"
        )


def resize_image(image: Image, shorter: int, longer: int) -> Image:
    """The image with a shorter side of `shorter` pixels, unless the longer one would exceed `longer`.

    >>> resize_image(np.zeros((30, 40, 3), np.uint8), 60, 90).shape, resize_image(np.zeros((10, 40, 3), np.uint8), 60,
    ... 90).shape
    ((60, 80, 3), (23, 90, 3))
    """
    height, width = image.shape[:2]
    # In the steps of detectron2, so that half pixels are rounded alike.
    scale = shorter / min(height, width)
    sides = (width * scale, float(shorter)) if height < width else (float(shorter), height * scale)
    if (most := max(sides)) > longer:
        sides = (sides[0] * (longer / most), sides[1] * (longer / most))
    size = (max(1, int(sides[0] + 0.5)), max(1, int(sides[1] + 0.5)))
    return np.array(PIL.Image.fromarray(image).resize(size, PIL.Image.Resampling.BILINEAR))


def group_by_size(images: Sequence[Image], most: int) -> Iterator[list[int]]:
    """Places of at most `most` images of one size, which may go through a network together.

    >>> tall, wide = np.zeros((4, 3, 3), np.uint8), np.zeros((3, 4, 3), np.uint8)
    >>> list(group_by_size([tall, wide, tall, tall, wide], 2))
    [[0, 2], [3], [1, 4]]
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, image in enumerate(images):
        groups.setdefault(image.shape, []).append(place)
    for places in groups.values():
        for start in range(0, len(places), most):
            yield places[start : start + most]
