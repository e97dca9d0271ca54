"""Features of a frozen backbone, computed once for each image.

Without augmentation an image looks the same in every step, and a frozen backbone makes the same of it. Such a training
needs one pass of the backbone for each image, and then only steps of what is trained.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hardlook.errors import OptionError
from hardlook.fingerprints import hash_array, hash_value
from hardlook.networks.one_shot.network import BACKBONE_PARTS, Features, OneShotNetwork


class FeatureStore(Protocol):
    """Arrays by key that outlive a training, such as files."""

    def read(self, key: str) -> Mapping[str, NDArray[Any]] | None:
        """The arrays of a key; None where there are none."""

    def write(self, key: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep the arrays of a key."""


class FrozenFeatures:
    """What the frozen backbone of a network makes of images, by their row, kept in memory in float32.

    Images go through the backbone one by one, so that the features do not depend on what else is in a batch. With a
    `store` those of other trainings with the same backbone are found again. `computed` counts passes of the backbone.
    """

    def __init__(self, network: OneShotNetwork, store: FeatureStore | None = None) -> None:
        if not network.frozen:
            what = f"features=cached: {type(network).__name__} trains its backbone"
            raise OptionError(what, remedy=suggest_freezing(type(network)))
        self.network, self.store, self.computed = network, store, 0
        self._kept: dict[int, Features] = {}
        self._backbone = ""

    def take(self, rows: NDArray[np.int64], images: Tensor) -> Features:
        """The features (n, ...) of the images (n, 3, H, W) with these rows."""
        for place, row in enumerate(rows.tolist()):
            if row not in self._kept:
                self._kept[row] = self.find(images[place : place + 1])
        each = [self._kept[row] for row in rows.tolist()]
        return tuple(torch.cat(parts) for parts in zip(*each, strict=True))

    def find(self, image: Tensor) -> Features:
        """The features of one image (1, 3, H, W), from the store where it has them."""
        key = self._name(image) if self.store is not None else ""
        if self.store is not None and (stored := self.store.read(key)) is not None:
            return tuple(torch.from_numpy(stored[name]).to(image.device) for name in sorted(stored))
        self.computed += 1
        with torch.autocast(image.device.type, enabled=False):
            found = self.network.run_backbone(image)
        if self.store is not None:
            self.store.write(key, {str(level): one.cpu().numpy() for level, one in enumerate(found)})
        return found

    def _name(self, image: Tensor) -> str:
        """A hash of the pixels that the backbone sees and of its weights."""
        if not self._backbone:
            state = self.network.state_dict()
            frozen = [state[name] for name in sorted(state) if name.partition(".")[0] in BACKBONE_PARTS]
            kind = type(self.network).__name__
            self._backbone = hash_value([kind, [hash_array(one.cpu().numpy()) for one in frozen]])
        return hash_value([self._backbone, hash_array(image.cpu().numpy())])


def suggest_freezing(kind: type[OneShotNetwork]) -> str:
    """What to do about a network that trains its backbone: freeze it where it can be, or compute its features."""
    leave = "leave features=computed for this network"
    if "frozen" in inspect.signature(kind.__init__).parameters:
        return f"{leave}, or keep the backbone's weights with option.frozen=yes"
    return leave
