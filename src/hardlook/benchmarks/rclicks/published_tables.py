"""Published numbers of RClicks about clicks and click models, in our names.

From "RClicks: Realistic Click Simulation for Benchmarking Interactive Segmentation" (NeurIPS 2024), Tables 1, 2, 3, 5,
6, 7 and 8, as printed. KS is the share of tests with p > .05; PL1 and WD are relative to the object's size, lower is
better; NSS and PDE, higher is better. The scores of checkpoints are in `published`.

What does not fit is kept as printed: the paper divides WD by width and height in its words and by the box's diagonal
in its numbers; it calls its network five times as fast as SAM, which Table 5 makes 6.5.

>>> CLICK_MODELS["tetris"]["clickability"].ks, CLICK_MODELS["tetris"]["uniform"].ks
(0.55, 0.1)
>>> CLICK_COUNTS["grabcut"].all, SIGMAS[5].pl1, COSTS["Clickability model"].parameters
(5822, 0.397, 27.59)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class ClickModelResult:
    """A click model against people's clicks."""

    ks: float
    pl1: float
    wd: float
    nss: float
    pde: float


@dataclass(frozen=True)
class ClickSetResult:
    """Two sets of people's clicks against each other."""

    ks: float
    pl1: float
    wd: float


@dataclass(frozen=True)
class ClickCounts:
    """Clicks of a dataset: on the whole object, and on errors of a mask."""

    first: int
    later: int

    @property
    def all(self) -> int:
        """Both."""
        return self.first + self.later


@dataclass(frozen=True)
class Cost:
    """A network's millions of parameters, GFLOPs, GB, milliseconds with what is printed behind the +-, and side."""

    parameters: float
    gflops: float
    memory: float
    milliseconds: float
    spread: float
    side: int


# Table 1: display modes against clicks made after a text description.
DISPLAY_MODES: Mapping[str, ClickSetResult] = MappingProxyType(
    {
        "Object CutOut": ClickSetResult(0.58, 0.242, 0.042),
        "Shifted CutOut": ClickSetResult(0.56, 0.246, 0.046),
        "Silhouette Mask": ClickSetResult(0.41, 0.246, 0.048),
        "Highlighted Instance": ClickSetResult(0.37, 0.258, 0.051),
    }
)
# Table 2.
CLICK_COUNTS: Mapping[str, ClickCounts] = MappingProxyType(
    {
        "grabcut": ClickCounts(2395, 3427),
        "berkeley": ClickCounts(4859, 6937),
        "davis": ClickCounts(16975, 23687),
        "coco-mval": ClickCounts(38097, 53926),
        "tetris": ClickCounts(123023, 202218),
    }
)
# Table 5.
COSTS: Mapping[str, Cost] = MappingProxyType(
    {
        "RITM HRNet-32": Cost(31.95, 83, 0.217, 42, 2.0, 400),
        "SimpleClick ViT-H": Cost(659.39, 1461, 2.785, 41, 2.3, 448),
        "SAM ViT-H": Cost(641.09, 5473, 5.745, 150, 2.7, 1024),
        "Clickability model": Cost(27.59, 64, 0.378, 23, 0.9, 416),
    }
)
# The paper's UD, DT, SI, SM and its own network. Its saliency is a fixation network, on the object's crop as it is
# (SI) or with grey around the object (SM).
MODELS = ("uniform", "distance", "saliency grey=false", "saliency", "clickability")
_TABLE_6 = {
    "grabcut": (
        (0.15, 0.55, 0.16, 2.44, 4.06e-05),
        (0.22, 0.49, 0.14, 3.94, 7.75e-05),
        (0.10, 0.52, 0.17, 2.27, 4.64e-05),
        (0.14, 0.52, 0.16, 2.75, 5.30e-05),
        (0.50, 0.40, 0.10, 5.63, 2.12e-04),
    ),
    "berkeley": (
        (0.16, 0.54, 0.16, 3.39, 1.20e-04),
        (0.23, 0.48, 0.14, 5.28, 2.13e-04),
        (0.11, 0.51, 0.17, 3.08, 1.38e-04),
        (0.17, 0.51, 0.15, 3.69, 1.50e-04),
        (0.50, 0.39, 0.09, 7.29, 4.99e-04),
    ),
    "davis": (
        (0.15, 0.56, 0.17, 4.31, 6.49e-05),
        (0.25, 0.49, 0.14, 6.68, 1.21e-04),
        (0.11, 0.53, 0.17, 3.96, 7.22e-05),
        (0.16, 0.53, 0.16, 4.50, 7.84e-05),
        (0.48, 0.41, 0.10, 8.55, 2.53e-04),
    ),
    "coco-mval": (
        (0.20, 0.79, 0.21, 6.08, 4.04e-04),
        (0.26, 0.73, 0.19, 8.34, 5.74e-04),
        (0.16, 0.73, 0.22, 6.26, 5.12e-04),
        (0.21, 0.74, 0.20, 6.80, 5.14e-04),
        (0.50, 0.61, 0.14, 10.44, 7.29e-04),
    ),
    "tetris": (
        (0.10, 0.57, 0.17, 3.99, 1.36e-05),
        (0.14, 0.52, 0.16, 6.45, 2.76e-05),
        (0.09, 0.51, 0.16, 4.13, 1.66e-05),
        (0.13, 0.51, 0.15, 4.79, 1.83e-05),
        (0.55, 0.40, 0.08, 9.11, 4.69e-05),
    ),
}
# Table 6; of TETRIS the 500 images of its validation part. Table 3 repeats four of these five rows.
CLICK_MODELS: Mapping[str, Mapping[str, ClickModelResult]] = MappingProxyType(
    {
        dataset: MappingProxyType({name: ClickModelResult(*row) for name, row in zip(MODELS, rows, strict=True)})
        for dataset, rows in _TABLE_6.items()
    }
)
# Table 7: the network trained on click maps of this sigma, in pixels of a 1920x1080 frame; TETRIS, validation part.
SIGMAS: Mapping[float, ClickModelResult] = MappingProxyType(
    {
        0.01: ClickModelResult(0.48, 0.408, 0.09, 8.61, 4.44e-05),
        0.25: ClickModelResult(0.46, 0.416, 0.10, 8.58, 4.40e-05),
        0.5: ClickModelResult(0.49, 0.411, 0.09, 8.87, 4.70e-05),
        1: ClickModelResult(0.51, 0.407, 0.09, 8.94, 4.86e-05),
        2: ClickModelResult(0.53, 0.399, 0.09, 9.05, 4.83e-05),
        5: ClickModelResult(0.55, 0.397, 0.08, 9.11, 4.69e-05),
        10: ClickModelResult(0.51, 0.403, 0.09, 8.87, 4.17e-05),
        20: ClickModelResult(0.51, 0.403, 0.09, 8.24, 3.11e-05),
        30: ClickModelResult(0.48, 0.404, 0.09, 7.71, 2.48e-05),
        60: ClickModelResult(0.37, 0.424, 0.10, 6.60, 1.67e-05),
        90: ClickModelResult(0.31, 0.439, 0.10, 6.06, 1.40e-05),
        120: ClickModelResult(0.26, 0.453, 0.11, 5.69, 1.26e-05),
    }
)
# Table 8: PC against mobile. PL1 and WD are wrong, since (x, x) entered for the clicks on PCs; KS is right.
DEVICES: Mapping[str, ClickSetResult] = MappingProxyType(
    {
        "grabcut": ClickSetResult(0.63, 0.54, 0.26),
        "berkeley": ClickSetResult(0.64, 0.79, 0.41),
        "davis": ClickSetResult(0.62, 1.08, 0.58),
        "coco-mval": ClickSetResult(0.68, 2.22, 1.15),
        "tetris": ClickSetResult(0.70, 0.70, 0.41),
    }
)
