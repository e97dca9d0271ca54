"""How a clickability network is trained; the defaults are the published ones.

>>> settings = TrainingSettings(epochs=2)
>>> [round(learning_rate(settings, step, steps=20), 5) for step in (0, 1, 2, 11, 19)]
[0.005, 0.01, 0.01, 0.005, 8e-05]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from hardlook.errors import OptionError
from hardlook.rclicks.training.target_maps import SIGMA, MaskSigma

Precision = Literal["auto", "float32", "bfloat16", "float16"]

# Side of the smallest grid: its last stage has a 32nd of it, and a batch norm over one cell of one sample fails.
SMALLEST = 64


@dataclass(frozen=True)
class TrainingSettings:
    """What the weights at the end depend on, beside the samples and the network's measures.

    Adam at `lr` with batches of `batch`, over `epochs`; the rate rises for the share `warm_up` of the steps and falls
    to 0 along a cosine. `backbone_rate` multiplies the rate of the backbone: with ImageNet weights at the start, .1
    keeps more of them. `clip` bounds the gradient's length (None: no bound): from random weights the published rate
    can diverge. `size` is the grid, `flip` mirrors half of the samples, `sigma` and `mask_sigma` are those of the
    click maps. `precision`: auto is bfloat16 (or float16 with a scaler) on a GPU and float32 elsewhere.
    """

    epochs: int = 20
    batch: int = 16
    lr: float = 0.01
    warm_up: float = 0.1
    backbone_rate: float = 1.0
    clip: float | None = None
    size: int = 416
    flip: bool = True
    sigma: float = SIGMA
    mask_sigma: MaskSigma = "released"
    precision: Precision = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch) < 1:
            raise OptionError(f"epochs {self.epochs}, batch {self.batch}", remedy="epochs and batch are at least 1")
        if self.size < SMALLEST:
            raise OptionError(
                f"a grid of {self.size} pixels leaves the network's last stage nothing to normalise over",
                remedy=f"size is at least {SMALLEST}",
            )
        if not (self.lr > 0 and 0 <= self.warm_up < 1 and (self.clip is None or self.clip > 0)):
            raise OptionError(
                f"lr {self.lr}, warm_up {self.warm_up}, clip {self.clip}",
                remedy="lr and clip are above 0, warm_up from 0 to below 1",
            )
        if not (0 <= self.backbone_rate < math.inf and 0 < self.sigma < math.inf and self.lr < math.inf):
            raise OptionError(
                f"backbone_rate {self.backbone_rate}, sigma {self.sigma}, lr {self.lr}",
                remedy="finite numbers: backbone_rate at least 0, sigma and lr above 0",
            )
        for name, value, known in (
            ("mask_sigma", self.mask_sigma, get_args(MaskSigma)),
            ("precision", self.precision, get_args(Precision)),
        ):
            if value not in known:
                raise OptionError(f"{name} {value!r} is not known", remedy=f"one of {', '.join(known)}")


def learning_rate(settings: TrainingSettings, step: int, steps: int) -> float:
    """The rate of step `step` of `steps`, from 0."""
    rising = int(settings.warm_up * steps)
    if step < rising:
        return settings.lr * ((step + 1) / rising)
    return settings.lr * 0.5 * (1 + math.cos(math.pi * (step - rising) / (steps - rising)))
