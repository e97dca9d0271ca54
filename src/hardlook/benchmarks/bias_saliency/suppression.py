"""A query with its salient region blurred, and how salient its target is."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from hardlook.benchmarks.one_shot_pairs.pairs import OneShotPair
from hardlook.benchmarks.one_shot_pairs.shelf import Shelf
from hardlook.bias.blurring import suppress_salient
from hardlook.bias.salient_masks import SalientMasks, default_folder
from hardlook.metrics.mask_attributes import mask_iou
from hardlook.models.identity import identify
from hardlook.models.registry import build
from hardlook.models.roles import Image, Mask
from hardlook.world.signature import is_signed, read, sign

SUPPRESSED = "suppressed"


@lru_cache(maxsize=2)
def salient_masks(name: str) -> SalientMasks:
    """The saliency model of that name with its masks on disk, built once a process."""
    model = build(name, role="saliency")
    return SalientMasks(model, model_fingerprint(name), default_folder())


@lru_cache(maxsize=8)
def model_fingerprint(name: str) -> str:
    """What the saliency masks depend on."""
    return identify(build(name, role="saliency"), name=name, role="saliency").fingerprint()


def with_salience(pair: OneShotPair, name: str, sigma: float, shelf: Shelf) -> OneShotPair:
    """The read pair with the salience of its target among its labels, its query blurred where it is to be."""
    assert pair.image is not None and pair.truth is not None
    image, settings = pair.image, pair.settings
    place = (settings.key, settings.size, settings.source.image_of(pair.query), name)
    salient = shelf.get((*place, "salient"), lambda: salient_masks(name).masks([image])[0])
    slices = {**pair.slices, "salience": mask_iou(pair.truth.mask, salient)}
    if pair.slices["condition"] != SUPPRESSED:
        return replace(pair, slices=slices)
    blurred = shelf.get((*place, sigma, "blurred"), lambda: suppressed_image(image, salient, sigma))
    return replace(pair, slices=slices, image=blurred)


def suppressed_image(image: Image, salient: Mask, sigma: float) -> Image:
    """The image (H, W, 3) with its salient region (H, W) blurred.

    Planted models read a picture's signature and not its looks: there the objects stay what they are and are salient
    no more.
    """
    blurred = suppress_salient(image, salient, sigma_share=sigma)
    if not is_signed(image):
        return blurred
    truth = read(image)
    return sign(blurred, truth.classes, truth.instances, np.zeros_like(truth.salient))
