"""The learned click model: where people would click, by the clickability network.

>>> Clickability()
Traceback (most recent call last):
...
hardlook.errors.ModelError: the click model 'clickability' has no weights of its own
  remedy: train some with `hardlook clicks train`, or take the authors' checkpoint, and give path=FILE
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError, OptionError
from hardlook.extras import require
from hardlook.models.roles import Image, Mask
from hardlook.models.torch_inference import exact_inference
from hardlook.networks.clickability import load_network
from hardlook.rclicks.click_models.letterbox import Letterbox, Plane, image_on_grid, masks_on_grid

KEPT_IMAGES = 4


class Clickability:
    """The network's map of an image, its object and the error to correct.

    `path` is a checkpoint of `hardlook clicks train` (its file, its folder, a folder of parts) or the authors';
    `size` the grid (default: the checkpoint's own, 416); `batch` errors of one image pass the network at a time.
    """

    def __init__(self, path: Path | None = None, device: str = "cpu", size: int | None = None, batch: int = 16) -> None:
        if path is None:
            remedy = "train some with `hardlook clicks train`, or take the authors' checkpoint, and give path=FILE"
            raise ModelError("the click model 'clickability' has no weights of its own", remedy=remedy)
        if batch < 1 or (size is not None and size < 32):
            raise OptionError(f"size {size}, batch {batch}", remedy="size is at least 32 pixels, batch at least 1")
        require("torch", extra="torch")
        loaded = load_network(Path(path))
        self._network = loaded.network.to(device)
        self._size, self._batch = size or loaded.size, batch
        self.device = device
        self.weights_files: tuple[Path, ...] = loaded.files
        self._prepared: list[tuple[Image, Plane]] = []

    def click_map(self, image: Image, target: Mask, error: Mask, positive: bool) -> NDArray[np.float64]:
        """(H, W) float64 in [0, 1]; the network is given the error, and does not need its type."""
        return self.click_maps(image, target, [error], [positive])[0]

    def click_maps(
        self, image: Image, target: Mask, errors: Sequence[Mask], positives: Sequence[bool]
    ) -> list[NDArray[np.float64]]:
        """One map (H, W) per error of the same image and object."""
        import torch

        box = Letterbox.of(image.shape, self._size)
        seen = torch.from_numpy(self._on_grid(image, box)).to(self.device)
        maps: list[NDArray[np.float64]] = []
        for start in range(0, len(errors), self._batch):
            masks = np.stack([masks_on_grid(target, error, box) for error in errors[start : start + self._batch]])
            with exact_inference():
                answers = self._network(seen.expand(len(masks), -1, -1, -1), torch.from_numpy(masks).to(self.device))
                grids = answers.cpu().numpy()
            maps.extend(rescale(box.take(grid)) for grid in grids)
        return maps

    def _on_grid(self, image: Image, box: Letterbox) -> Plane:
        for kept, prepared in self._prepared:
            # Compared by content: an array may have been written to since.
            if np.array_equal(kept, image):
                return prepared
        prepared = image_on_grid(image, box)
        self._prepared = [*self._prepared[1 - KEPT_IMAGES :], (image.copy(), prepared)]
        return prepared


def rescale(plane: Plane) -> NDArray[np.float64]:
    """The plane rescaled to [0, 1]; all 1 where it is constant, since then all places are equally likely.

    >>> rescale(np.array([[1.0, 3.0]], np.float32)), rescale(np.array([[2.0, 2.0]], np.float32))
    (array([[0., 1.]]), array([[1., 1.]]))
    """
    exact = plane.astype(np.float64)
    low, high = exact.min(), exact.max()
    return np.ones_like(exact) if high == low else (exact - low) / (high - low)
