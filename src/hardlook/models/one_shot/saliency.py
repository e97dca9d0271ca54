"""Salient objects of the query, whatever the support shows: the floor that a one-shot segmenter must rise above.

>>> from hardlook.world.planted import PlantedWorld
>>> scene = PlantedWorld(seed=1, count=1, salient=True)[0]
>>> [found] = SaliencyOnly(model="planted-saliency").segment_queries([scene.image], [[]])
>>> bool(found[scene.salient].mean() > 0.9), bool(found[~scene.salient].mean() < 0.1)
(True, True)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hardlook.errors import OptionError
from hardlook.models.inner_model import build_inner
from hardlook.models.one_shot.bounded_store import GIBIBYTE, BoundedStore
from hardlook.models.one_shot.content_keys import ContentKeys
from hardlook.models.one_shot.described_images import check_lengths
from hardlook.models.roles import Image, Mask, Support


class SaliencyOnly:
    """Pixels of the query whose salience is above `threshold`.

    `model` is any saliency model by name, `model_args` its arguments (`threads=2`). Each image is looked at once
    while `memory` bytes of masks last.
    """

    def __init__(
        self,
        model: str = "u2netp",
        model_args: str = "",
        device: str = "",
        threshold: float = 0.5,
        memory: int = GIBIBYTE,
    ) -> None:
        if not 0 <= threshold <= 1:
            raise OptionError(f"threshold {threshold} is no salience", remedy="threshold goes from 0 to 1")
        self._inner = build_inner(model, "saliency", model_args, device=device)
        self._store, self._keys = BoundedStore(memory), ContentKeys()
        self.threshold = threshold
        self.weights_files: tuple[Path, ...] = self._inner.weights_files
        self.device = self._inner.device

    def fingerprint(self) -> str:
        """A hash of this code and of the saliency model, its arguments and its code."""
        return self._inner.fingerprint_within(self)

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask (H, W) a query; a copy each, so that a caller may write into it."""
        check_lengths(queries, supports)
        with self._keys.one_call() as key:
            masks = [self._store.array((key(query),), functools.partial(self._mask, query)) for query in queries]
        return [mask.copy() for mask in masks]

    def _mask(self, image: Image) -> Mask:
        # Alone, so that the mask depends on nothing but the image.
        [salience] = self._inner.model.saliency([image])
        return np.asarray(salience > self.threshold)
