"""A pair as a unit: which query, which supports, what is done to them; after reading, the arrays themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hardlook.benchmarks.one_shot_pairs.asked_models import AskedModel
from hardlook.data.class_masks import ClassMask, ClassMasks
from hardlook.models.roles import Image, Mask, Support

Shown = Literal["as it is", "no mask", "no image", "nothing"]
"""What becomes of the supports: unchanged; the mask emptied; the image made black; both."""


@dataclass(frozen=True)
class PairSettings:
    """What all pairs of a list share. `size` 0 leaves images as they are; `key` names the source in caches.

    `saliency` and `encoder` are asked beside the model under test, where a benchmark wants to know.
    """

    source: ClassMasks
    key: str
    listing: str
    size: int = 0
    seed: int = 0
    keep_prediction: bool = True
    predictions: Path | None = None
    saliency: AskedModel | None = None
    encoder: AskedModel | None = None


Labels = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class OneShotPair:
    """One unit: `query` and `supports` are tokens, `slices` its labels; a `transform` other than 0 moves the query."""

    settings: PairSettings
    query: str
    supports: tuple[str, ...]
    slices: Labels
    transform: int = 0
    shown: Shown = "as it is"
    image: Image | None = field(default=None, repr=False)
    truth: ClassMask | None = field(default=None, repr=False)
    support: tuple[Support, ...] = field(default=(), repr=False)
    predicted: Mask | None = field(default=None, repr=False)
    salient: Mask | None = field(default=None, repr=False)
    similarity: float = -2.0
