"""Hyper-parameters as published, in one place; each learner's defaults come from here.

Where the published code differs from the paper, the paper is the default and the code's value is an argument of the
learner: the code of Baseline and Baseline++ also dampens the momentum by .9, and that of Baseline++
learns a length for each class's vector, which is then no cosine any more.

>>> BASELINE.epochs, BASELINE.batch, BASELINE.count_steps(supports=25)
(100, 4, 700)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hardlook.errors import OptionError


@dataclass(frozen=True)
class Descent:
    """How a head is trained on a task's supports: stochastic gradient descent on the mean cross-entropy of a batch.

    `rate` the step size; `weight_decay` times the weights is added to the gradient; `dampening` takes that share off
    the gradient that enters the momentum; `epochs` passes over the supports, each in a new order; `batch` supports
    per step (the last of a pass may have fewer); `steps` is the number of steps, 0 for as many as the epochs take.
    """

    rate: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 1e-3
    dampening: float = 0.0
    epochs: int = 100
    batch: int = 4
    steps: int = 0

    def __post_init__(self) -> None:
        right = self.epochs >= 1 and self.batch >= 1 and self.steps >= 0 and self.rate > 0 and 0 <= self.dampening <= 1
        if not right:
            raise OptionError(
                f"epochs {self.epochs}, batch {self.batch}, steps {self.steps}, rate {self.rate} and dampening "
                f"{self.dampening} train no head",
                remedy="epochs and batch are at least 1, steps at least 0, rate above 0, dampening from 0 to 1",
            )

    def count_steps(self, supports: int) -> int:
        """How many steps the training takes on `supports` supports."""
        return self.steps or self.epochs * -(-supports // self.batch)


BASELINE = Descent()
"""Baseline's head at test time, which Baseline++ and Neg-Cosine share."""

BASELINE_PP_SCALE = 2.0
NEG_COSINE_MARGIN, NEG_COSINE_SCALE = -0.02, 30.0
RFS_C = 1.0
R2D2_LAMBDA = 50.0
NEIGHBOURS = 1
SOFT_K_MEANS_STEPS = 1
DN4_NEIGHBOURS = 3

MATCHING_SCALE = 1.0
"""The paper has the softmax of plain cosines; code in use multiplies them by 100 first."""

LP_FT_STEPS, LP_FT_RATE = 10, 1e-3
"""Ours: fine-tuning steps on all supports at once, and their size; the paper searched its own for each dataset."""

COVAMNET_QUERY: Literal["channels", "descriptors", "centred"] = "channels"
"""As in the authors' code; the trained weights of the cells have no counterpart on a frozen encoder."""

FRN_ALPHA, FRN_BETA, FRN_LEAST_LAMBDA = 0.0, 0.0, 1e-6
"""Where the paper's learning starts: lambda = n / C, rho = 1; the authors' code adds the least lambda."""

DEEPBDC_DIMENSION, DEEPBDC_FLOOR = 640, 1e-5
"""Channels after reduction (ResNet-12), and what the authors' code adds under the root."""

PROPAGATION_NEIGHBOURS, PROPAGATION_ALPHA = 20, 0.99

PROPAGATION_SIGMA = 0.1
"""Ours: TPN learns it. Chosen on Caltech-101 with EfficientNet-Lite0, where .075 to .15 do as well."""

BD_CSPN_EPSILON, BD_CSPN_CONFIDENT = 10.0, 8

LAPLACIAN_NEIGHBOURS, LAPLACIAN_STEPS = 3, 20
LAPLACIAN_WEIGHT = 0.7
"""The paper chooses the weight on validation data for each dataset and shot; .7 is in use for miniImageNet, 5 shots."""

TIM_STEPS, TIM_RATE, TIM_TEMPERATURE = 1000, 1e-4, 15.0
TIM_SUPERVISION, TIM_CONDITIONAL = 0.1, 0.1

PT_MAP_POWER, PT_MAP_PENALTY, PT_MAP_RATE, PT_MAP_STEPS = 0.5, 10.0, 0.2, 20
"""Rate and steps as in the authors' code."""
