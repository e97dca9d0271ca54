"""How the published evaluations bring images to a network and its answers back to the image.

Each repository has its own rule for sizes (`INPUT_RULES`) and HSNet's one for several supports (`vote`). Their mIoU and
FB-IoU are `class_iou` with `mean_of_defined` and `fb_iou` of `hardlook.metrics.one_shot`, on counts without ignored
pixels; in that of RPMM and PMM these are background.

>>> rule = INPUT_RULES["pfenet"]
>>> rule.find_inner_size(375, 500), rule.prepare(torch.zeros(3, 375, 500)).shape
((352, 472), torch.Size([3, 473, 473]))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from hardlook.networks.one_shot.network import IGNORED, IMAGENET_MEAN, IMAGENET_STD

Nearest = Literal["opencv", "torch", "pillow"]
"""Which position i of a mask is taken for position j of its resized form: those of the three libraries.

opencv, torch: floor(j source / target), in double and in single precision; pillow: floor((j + 1/2) source / target).
"""


@dataclass(frozen=True)
class InputRule:
    """How images of any size become squares of `size` pixels, and logits those of the image again.

    padded: the longer side is fitted and both are cut to multiples of 8; the image is in the top left corner, black
    around it. Otherwise the image is stretched to the square, with antialiasing.
    aligned: whether the released evaluation aligns the corners when it resizes logits.
    direct: logits go from the features' size to the image's at once, not by way of the square.
    """

    size: int
    padded: bool
    nearest: Nearest
    aligned: bool = True
    direct: bool = False

    def find_inner_size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the image within the square."""
        if not self.padded:
            return self.size, self.size
        longer = max(height, width)
        fitted = (self.size if side == longer else int(side * (self.size / longer)) for side in (height, width))
        inner = [max(8, side // 8 * 8) for side in fitted]
        return inner[0], inner[1]

    def prepare(self, image: Tensor) -> Tensor:
        """(3, size, size) normalised, of an image (3, H, W) in RGB from 0 to 255."""
        inner = self.find_inner_size(image.shape[-2], image.shape[-1])
        resized = (image if image.is_floating_point() else image.float())[None]
        if self.padded:
            resized = functional.interpolate(resized, inner, mode="bilinear")
        else:
            for size in ((image.shape[-2], inner[1]), inner):  # as Pillow: rows, then columns, both rounded to bytes
                resized = functional.interpolate(resized, size, mode="bilinear", antialias=True).round()
        square = functional.pad(resized[0], (0, self.size - inner[1], 0, self.size - inner[0]))
        mean, std = (square.new_tensor(values).view(3, 1, 1) * 255 for values in (IMAGENET_MEAN, IMAGENET_STD))
        return (square - mean) / std

    def prepare_mask(self, mask: Tensor) -> Tensor:
        """(size, size) of a mask (H, W), ignored around it."""
        height, width = self.find_inner_size(mask.shape[-2], mask.shape[-1])
        rows, columns = (
            choose_nearest(source, target, self.nearest, mask.device)
            for source, target in zip(mask.shape, (height, width), strict=True)
        )
        return functional.pad(mask[rows][:, columns], (0, self.size - width, 0, self.size - height), value=IGNORED)

    def restore(self, logits: Tensor, height: int, width: int, *, released: bool = False) -> Tensor:
        """Logits (B, 2, height, width) for images of that size, of logits (B, 2, size, size).

        With `released` as the repository does: a padded square is resized to a square of the longer side without
        regard to the multiples of 8, so that the mask is a little smaller than the object.
        """
        if released and self.padded:
            longer = max(height, width)
            whole = functional.interpolate(logits, (longer, longer), mode="bilinear", align_corners=self.aligned)
            return whole[..., :height, :width]
        inner = self.find_inner_size(height, width)
        kept = logits[..., : inner[0], : inner[1]]
        aligned = released and self.aligned
        return functional.interpolate(kept, (height, width), mode="bilinear", align_corners=aligned)


INPUT_RULES = {
    "pfenet": InputRule(473, padded=True, nearest="opencv"),
    "repri": InputRule(417, padded=True, nearest="opencv"),
    "hsnet": InputRule(400, padded=False, nearest="torch"),
    "rpmm": InputRule(481, padded=False, nearest="pillow", aligned=False, direct=True),
    "pmm": InputRule(481, padded=False, nearest="pillow", aligned=False, direct=True),
}
"""By network, with the size of its published evaluation."""


def choose_nearest(source: int, target: int, rule: Nearest, device: torch.device | None = None) -> Tensor:
    """(target,) positions of a side of `source` pixels.

    >>> choose_nearest(3, 6, "torch").tolist(), choose_nearest(6, 3, "pillow").tolist()
    ([0, 0, 1, 1, 2, 2], [1, 3, 5])
    """
    places = torch.arange(target, dtype=torch.float64)
    if rule == "opencv":
        found = places * (1 / (target / source))
    elif rule == "pillow":
        found = (places + 0.5) * (source / target)
    else:
        found = places.float() * (torch.tensor(source, dtype=torch.float32) / target)
    return found.floor().long().clamp(max=source - 1).to(device)


def vote(votes: Tensor, *, released: bool = False) -> Tensor:
    """Where K supports find the class: bool (B, H, W) of their votes (B, K, H, W), 0 or 1.

    More than half of the supports. With `released`, as HSNet and its paper have it: at least half of the most votes
    that a pixel of the image has.

    >>> votes = torch.tensor([[1, 1, 0], [1, 0, 0], [0, 0, 0]]).view(1, 3, 1, 3)
    >>> vote(votes).tolist(), vote(votes, released=True).tolist()
    ([[[True, False, False]]], [[[True, True, False]]])
    """
    count = votes.long().sum(1)
    if released:
        return 2 * count >= count.amax((1, 2), keepdim=True).clamp(min=1)
    return 2 * count > votes.shape[1]
