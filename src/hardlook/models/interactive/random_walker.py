"""The random walker: a pixel belongs to the side whose click a walker from it reaches first; no weights.

Grady, "Random walks for image segmentation", PAMI 2006. Steps are likely between like colours: the weight of two
neighbours is exp(-beta d^2 / (10 s sqrt 3)), d their distance in RGB from 0 to 1 and s the standard deviation of all
values, as scikit-image scales it. The chance of reaching a positive click is a harmonic function: one sparse system per
prompt, solved exactly.

>>> from hardlook.models.roles import Clicks
>>> picture = np.full((40, 60, 3), 30, np.uint8)
>>> picture[10:30, 15:45] = (200, 80, 20)
>>> click = Clicks(np.array([[30, 20]], np.float32), np.array([True]))
>>> [answer] = RandomWalker().open(picture).predict([click])
>>> bool(answer.mask[10:30, 15:45].all()), int(answer.mask.sum())
(True, 600)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from hardlook.errors import OptionError
from hardlook.models.interactive.click_seeds import SeededSession, check_sizes, shrink
from hardlook.models.roles import Image

# No edge is cut off entirely, so that one click reaches every pixel and the system has one solution.
FAINTEST = 1e-10


class RandomWalker:
    """A mask from the clicks alone: where a walker reaches a positive click before any other seed.

    `beta` is how much colours count; `size` the working frame's longest side in pixels; `radius` of a click's disc, as
    a share of that side. Beyond the frame lies background: `border` is the weight of the step out of it, 0 for no way
    out. Without it positive clicks alone would take the whole frame. Negative clicks alone give an empty mask.
    """

    def __init__(self, beta: float = 1000.0, size: int = 160, radius: float = 0.02, border: float = 0.001) -> None:
        check_sizes(size, radius)
        if beta < 0 or border < 0:
            raise OptionError(f"beta {beta} and border {border} must be 0 or more")
        self.beta, self.size, self.radius, self.border = beta, size, radius, border
        self.conduct = (
            f"random walker on a frame of at most {size} px, beta {beta:g}; discs of {radius:g} of its longest side "
            f"around the clicks; background beyond the frame at weight {border:g}; no earlier mask is used"
        )

    def open(self, image: Image) -> SeededSession:
        """The picture's graph, built once for all prompts."""
        small = shrink(image, self.size)
        graph = laplacian(small, self.beta, self.border)
        return SeededSession(
            image.shape[:2], small.shape[:2], self.radius, lambda seeds: arrival_chances(graph, seeds.seed)
        )


def laplacian(image: Image, beta: float, border: float) -> Any:
    """The graph Laplacian (h w, h w) of an image (h, w, 3): pixels in reading order, four neighbours each.

    `border` is added for each side of the frame that a pixel lies on.

    >>> laplacian(np.zeros((1, 3, 3), np.uint8), beta=1.0, border=0.0).toarray().round(3).tolist()
    [[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]
    """
    values = image.astype(np.float64) / 255
    height, width = image.shape[:2]
    spread = float(values.std())
    scale = beta / (10 * spread * np.sqrt(3)) if spread > 0 else 0.0
    weights = [np.exp(-scale * (np.diff(values, axis=axis) ** 2).sum(axis=2)).ravel() + FAINTEST for axis in (0, 1)]
    number = np.arange(height * width).reshape(height, width)
    first = np.concatenate([number[:-1].ravel(), number[:, :-1].ravel()])
    second = np.concatenate([number[1:].ravel(), number[:, 1:].ravel()])
    weight = np.concatenate(weights)
    ends = (np.concatenate([first, second]), np.concatenate([second, first]))
    steps = sparse.csr_matrix((np.concatenate([weight, weight]), ends), shape=(number.size, number.size))
    out = np.zeros((height, width))
    for edge in (np.s_[0, :], np.s_[-1, :], np.s_[:, 0], np.s_[:, -1]):
        out[edge] += border
    return (sparse.diags(np.asarray(steps.sum(axis=0)).ravel() + out.ravel()) - steps).tocsr()


def arrival_chances(graph: Any, seed: NDArray[np.int8]) -> NDArray[np.float64]:
    """The chance (h, w), in [0, 1], that a walker from each pixel meets a positive seed first.

    `graph` is the Laplacian of an image, `seed` (h, w) 1 and -1 at seeds and 0 elsewhere, with at least one seed.

    >>> line = laplacian(np.zeros((1, 5, 3), np.uint8), beta=1.0, border=0.0)
    >>> arrival_chances(line, np.array([[1, 0, 0, 0, -1]], np.int8)).round(3).tolist()
    [[1.0, 0.75, 0.5, 0.25, 0.0]]
    """
    flat = seed.ravel()
    chance = (flat > 0).astype(np.float64)
    free, fixed = np.flatnonzero(flat == 0), np.flatnonzero(flat)
    if free.size:
        rows = graph[free]
        # Pivots stay on the diagonal and columns in an order for symmetric matrices: half the time of the default.
        solver = splu(
            rows[:, free].tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
        chance[free] = np.clip(solver.solve(-(rows[:, fixed] @ chance[fixed])), 0, 1)
    return chance.reshape(seed.shape)
