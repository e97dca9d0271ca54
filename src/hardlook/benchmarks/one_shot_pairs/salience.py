"""What is salient in a query, and how much of it a predicted mask takes."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import cv2
import numpy as np

from hardlook.benchmarks.one_shot_pairs.asked_models import AskedModel
from hardlook.benchmarks.one_shot_pairs.pairs import OneShotPair
from hardlook.benchmarks.one_shot_pairs.shelf import Shelf
from hardlook.bias.salient_masks import THRESHOLD, SalientMasks, default_folder
from hardlook.contract.records import Column
from hardlook.models.roles import Image, Mask
from hardlook.world.signature import is_signed

NOT_ASKED = -1
SALIENT_COUNTS: tuple[Column, ...] = (
    Column("salient", "int", "pixels of the saliency model's mask of the query; -1 where it was not asked"),
    Column("predicted_salient", "int", "pixels predicted and salient; -1 where it was not asked"),
    Column("truth_salient", "int", "pixels true and salient; -1 where it was not asked"),
    Column("found_salient", "int", "pixels predicted, true and salient; -1 where it was not asked"),
)


@lru_cache(maxsize=2)
def salient_masks(asked: AskedModel) -> SalientMasks:
    """The saliency model with its masks on disk, built once a process."""
    return SalientMasks(asked.built("saliency").model, asked.identity("saliency"), default_folder())


def with_salient(pair: OneShotPair, shelf: Shelf) -> OneShotPair:
    """The read pair with the saliency mask of its query, asked for once an image."""
    settings, image = pair.settings, pair.image
    assert settings.saliency is not None and image is not None and not pair.transform
    asked = settings.saliency
    place = (settings.key, settings.size, settings.source.image_of(pair.query), asked, "salient")
    return replace(pair, salient=shelf.get(place, lambda: _mask(asked, image)))


def salient_counts(pair: OneShotPair, mask: Mask) -> dict[str, Any]:
    """The columns of `SALIENT_COUNTS` for a predicted mask (H, W)."""
    if pair.salient is None:
        return {column.name: NOT_ASKED for column in SALIENT_COUNTS}
    assert pair.truth is not None
    both = {"salient": pair.salient, "predicted_salient": mask & pair.salient}
    both["truth_salient"] = pair.truth.mask & pair.salient
    both["found_salient"] = mask & both["truth_salient"]
    return {name: cv2.countNonZero(part.view(np.uint8)) for name, part in both.items()}


def _mask(asked: AskedModel, image: Image) -> Mask:
    if is_signed(image):
        # Planted scenes are drawn anew by every run, so their masks are not worth a file.
        return np.asarray(asked.built("saliency").model.saliency([image])[0] > THRESHOLD, np.bool_)
    return salient_masks(asked).masks([image])[0]
