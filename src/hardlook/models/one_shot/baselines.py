"""One-shot segmenters that use neither training nor the support: the baselines that any other must beat.

>>> picture = np.zeros((4, 8, 3), np.uint8)
>>> models = Empty(), WholeImage(), CenterBox()
>>> [int(model.segment_queries([picture], [[]])[0].sum()) for model in models]
[0, 32, 8]

`SaliencyOnly` looks at the query alone.

>>> from hardlook.world.planted import PlantedWorld
>>> scene = PlantedWorld(seed=1, count=1, salient=True)[0]
>>> [found] = SaliencyOnly(model="planted-saliency").segment_queries([scene.image], [[]])
>>> bool(found[scene.salient].mean() > 0.9), bool(found[~scene.salient].mean() < 0.1)
(True, True)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from hardlook.caching import GIBIBYTE, ArrayCache
from hardlook.errors import OptionError
from hardlook.models.answer_checks import check_answers
from hardlook.models.content_keys import ContentKeys
from hardlook.models.named_model import OuterModel, build_inner
from hardlook.models.roles import Image, Mask, Support, check_supports


class Empty:
    """Finds nothing in any query, which is right wherever the support shows nothing of the query."""

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask (H, W) per query, all False."""
        return [np.zeros(query.shape[:2], bool) for query in queries]


class WholeImage:
    """Takes every pixel of every query; its IoU is the target's share of the picture."""

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask (H, W) per query, all True."""
        return [np.ones(query.shape[:2], bool) for query in queries]


class CenterBox:
    """Takes a box in the middle of every query, whose sides are `share` of the picture's (0 to 1, 0 excluded)."""

    def __init__(self, share: float = 0.5) -> None:
        if not 0 < share <= 1:
            raise OptionError(f"share {share} makes no box", remedy="share is above 0 and at most 1")
        self.share = share

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask (H, W) per query; borders fall between pixels, and the box has at least one."""
        return [self._box(*query.shape[:2]) for query in queries]

    def _box(self, height: int, width: int) -> Mask:
        mask = np.zeros((height, width), bool)
        mask[self._middle(height), self._middle(width)] = True
        return mask

    def _middle(self, side: int) -> slice:
        start = min(round((1 - self.share) / 2 * side), side - 1)
        return slice(start, max(round((1 + self.share) / 2 * side), start + 1))


class SaliencyOnly(OuterModel):
    """Pixels of the query whose saliency is above `threshold`.

    `model` is any saliency model by name, `model_args` its arguments (`threads=2`). Masks of images seen before are
    kept, up to `memory` bytes.
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
            raise OptionError(f"threshold {threshold} is outside the range of saliency", remedy="give 0 to 1")
        super().__init__(build_inner(model, "saliency", model_args, device=device))
        self._cache, self._keys = ArrayCache(memory), ContentKeys()
        self.threshold = threshold

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask (H, W) per query; copies, so that a caller may write into them."""
        check_supports(queries, supports)
        key = self._keys.key_function()
        masks = [self._cache.get_or_create(key(query), functools.partial(self._mask, query)) for query in queries]
        return [mask.copy() for mask in masks]

    def _mask(self, image: Image) -> Mask:
        # Alone, so that the mask depends on nothing but the image.
        model = self._inner.model
        [saliency] = check_answers("saliency", model, model.saliency([image]), [image])
        return np.asarray(saliency > self.threshold)
