"""A query with its salient region blurred, and how salient its target is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hardlook.benchmarks.one_shot_pairs.pairs import OneShotPair
from hardlook.benchmarks.one_shot_pairs.salience import with_salient
from hardlook.benchmarks.one_shot_pairs.shelf import Shelf
from hardlook.bias.blurring import suppress_salient
from hardlook.metrics.mask_attributes import mask_iou
from hardlook.models.roles import Image, Mask
from hardlook.world.signature import is_signed, read, sign

SUPPRESSED = "suppressed"


def with_salience(pair: OneShotPair, sigma: float, shelf: Shelf) -> OneShotPair:
    """The read pair with the saliency mask of its query and the salience of its target, blurred where it is to be."""
    asked = with_salient(pair, shelf)
    image, salient, settings = asked.image, asked.salient, asked.settings
    assert image is not None and asked.truth is not None and salient is not None
    marked = replace(asked, slices={**pair.slices, "salience": mask_iou(asked.truth.mask, salient)})
    if pair.slices["condition"] != SUPPRESSED:
        return marked
    place = (settings.key, settings.size, settings.source.image_of(pair.query), settings.saliency, sigma, "blurred")
    return replace(marked, image=shelf.get(place, lambda: suppressed_image(image, salient, sigma)))


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
