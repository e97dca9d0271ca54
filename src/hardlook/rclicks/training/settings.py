"""Settings for training a clickability network; the defaults are the published ones.

>>> settings = TrainingSettings(epochs=2)
>>> [round(compute_learning_rate(settings, step, steps=20), 5) for step in (0, 1, 2, 11, 19)]
[0.005, 0.01, 0.01, 0.005, 8e-05]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from hardlook.errors import OptionError
from hardlook.rclicks.training.target_maps import SIGMA, MaskSigma

Precision = Literal["auto", "float32", "bfloat16", "float16"]
# In pixels: the last stage has a 32nd of the input's side, and a batch norm over one cell of one sample fails.
MIN_SIZE = 64


@dataclass(frozen=True)
class TrainingSettings:
    """What the final weights depend on, beside the samples and the architecture.

    Adam with learning rate `lr` and batches of `batch` samples, over `epochs`; the rate rises linearly over the share
    `warm_up` of the steps and falls to 0 along a cosine. `backbone_rate` multiplies the rate of the backbone: below 1,
    ImageNet weights change less. `clip` is the maximum norm of the gradient (None: no clipping): from random weights,
    training at the published rate can diverge. `size` is the side of the input in pixels, `flip` mirrors half of the
    samples, `sigma` and `mask_sigma` are those of the click maps. `precision`: auto is bfloat16 (or float16 with a
    scaler) on a GPU and float32 elsewhere.
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
        checks = {
            "epochs": (self.epochs >= 1, "at least 1"),
            "batch": (self.batch >= 1, "at least 1"),
            "lr": (0 < self.lr < math.inf, "above 0 and finite"),
            "warm_up": (0 <= self.warm_up < 1, "from 0 to below 1"),
            "clip": (self.clip is None or self.clip > 0, "above 0, or None"),
            "backbone_rate": (0 <= self.backbone_rate < math.inf, "at least 0 and finite"),
            "sigma": (0 < self.sigma < math.inf, "above 0 and finite"),
            "mask_sigma": (self.mask_sigma in get_args(MaskSigma), f"one of {', '.join(get_args(MaskSigma))}"),
            "precision": (self.precision in get_args(Precision), f"one of {', '.join(get_args(Precision))}"),
        }
        for name, (is_valid, expected) in checks.items():
            if not is_valid:
                raise OptionError(f"{name} {getattr(self, name)!r}", remedy=f"{name} is {expected}")
        if self.size < MIN_SIZE:
            what = f"a grid of {self.size} pixels leaves the network's last stage nothing to normalise over"
            raise OptionError(what, remedy=f"size is at least {MIN_SIZE}")


def compute_learning_rate(settings: TrainingSettings, step: int, steps: int) -> float:
    """The learning rate at step `step` (from 0) of `steps`."""
    from hardlook.training.schedules import compute_cosine

    return compute_cosine(settings.lr, step, steps, int(settings.warm_up * steps))
