"""An encoder that shows what it was given: the image's size, and its mean colours in a grid."""

import cv2
import numpy as np

from hardlook.models.roles import Features


class PixelEncoder:
    dimension = 14

    def encode(self, images):
        grids = [cv2.resize(image, (2, 2), interpolation=cv2.INTER_AREA).reshape(-1) for image in images]
        rows = [[*image.shape[:2], *grid] for image, grid in zip(images, grids, strict=True)]
        return Features(np.array(rows, np.float32))


class ImageLearner:
    """Works on images; fails on any that is not 84 x 84."""

    accepts = "images"

    def classify(self, episodes):
        assert all(image.shape == (84, 84, 3) for one in episodes for image in [*one.support, *one.query])
        return [np.zeros((len(one.query), one.ways), np.float32) for one in episodes]
