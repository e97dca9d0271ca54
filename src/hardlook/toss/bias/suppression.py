"""Blurring what is salient in an image, for SSSI (selective saliency suppression at inference).

It is meant for targets that are known not to be salient: the distractor loses its detail and the rest of the image
stays as it is. The edge of the blurred region is hard, at the mask's edge. A feathered edge would either change
pixels outside the region or leave a sharp rim of the salient object inside it.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.models.roles import Image, Mask
from hardlook.world.signature import has_signature, read_signature, write_signature

SIGMA_SHARE = 0.1


def suppress_salient(
    image: NDArray[np.uint8], salience_mask: NDArray[np.bool_], *, sigma_share: float = SIGMA_SHARE
) -> NDArray[np.uint8]:
    """The image with its salient region taken from a wide Gaussian blur of the whole image.

    `image` (H, W, 3) uint8; `salience_mask` (H, W) bool, True where the saliency map exceeds .5. The Gaussian's
    standard deviation is `sigma_share` of the image's diagonal (.1: 62 pixels in an image of 500 x 375), the kernel
    reaches three of them, and the image is mirrored at its border. Pixels outside the mask are the input's, bit for
    bit; the input is left alone.

    >>> image = np.zeros((20, 30, 3), np.uint8)
    >>> image[8:12, 10:20] = 200
    >>> blurred = suppress_salient(image, image[..., 0] > 0)
    >>> int(blurred.max()) < 100, bool((blurred[:8] == 0).all())
    (True, True)
    """
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or 0 in image.shape:
        raise ValueError(f"image: expected (H, W, 3) of uint8, got {image.shape} of {image.dtype}")
    if salience_mask.shape != image.shape[:2] or salience_mask.dtype != np.bool_:
        raise ValueError(
            f"salience_mask: expected {image.shape[:2]} of bool, got {salience_mask.shape} of {salience_mask.dtype}"
        )
    if not sigma_share > 0:
        raise ValueError(f"sigma_share: expected more than 0, got {sigma_share}")
    blurred = image.copy()
    if not salience_mask.any():
        return blurred
    sigma = sigma_share * float(np.hypot(*image.shape[:2]))
    reach = int(np.ceil(3 * sigma))
    # Only what the kernel can reach from the region is blurred; a wide kernel over a whole photograph is slow.
    rows, columns = _find_window(salience_mask, reach)
    window = image[rows, columns].astype(np.float32)
    smooth = cv2.GaussianBlur(window, (2 * reach + 1, 2 * reach + 1), sigma, borderType=cv2.BORDER_REFLECT)
    inside = salience_mask[rows, columns]
    blurred[rows, columns][inside] = np.rint(smooth[inside]).astype(np.uint8)
    return blurred


def _find_window(mask: NDArray[np.bool_], reach: int) -> tuple[slice, slice]:
    """The mask's bounding box with `reach` pixels on each side, cut at the image's border."""
    sides = []
    for axis in (1, 0):
        places = np.flatnonzero(mask.any(axis=axis))
        sides.append(slice(max(int(places[0]) - reach, 0), int(places[-1]) + 1 + reach))
    return sides[0], sides[1]


def suppress_image(image: Image, salient: Mask, sigma: float) -> Image:
    """The image (H, W, 3) with its salient region (H, W) blurred.

    Planted models read a picture's signature and not its pixels: there the objects stay what they are and are no
    longer salient.
    """
    blurred = suppress_salient(image, salient, sigma_share=sigma)
    if not has_signature(image):
        return blurred
    truth = read_signature(image)
    return write_signature(blurred, truth.classes, truth.instances, np.zeros_like(truth.salient))
