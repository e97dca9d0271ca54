"""RFS: logistic regression on features of length 1.

Tian, Wang, Krishnan, Tenenbaum and Isola, "Rethinking few-shot image classification: a good embedding is all you
need?", ECCV 2020.

>>> corners = np.eye(2, dtype=np.float32)
>>> Logistic().classify([Episode(corners, np.array([0, 1]), 3 * corners, ways=2)])[0].argmax(1).tolist()
[0, 1]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.logistic_regression import fitted
from hardlook.models.few_shot.published_settings import RFS_C
from hardlook.models.few_shot.stacking import Stack, in_stacks
from hardlook.models.few_shot.vector_geometry import unit
from hardlook.models.registry import register
from hardlook.models.roles import Episode


@register("logistic", role="few-shot-learner", summary="RFS: logistic regression on unit features", licence="MIT")
class Logistic:
    """Scores are the logits of a multinomial regression with intercept; `c` above 0 is the inverse of the penalty."""

    accepts = "features"
    transductive = False
    flags = ("GL", "TT")

    def __init__(self, c: float = RFS_C) -> None:
        if not c > 0:
            raise OptionError(f"c {c} leaves no weight", remedy="c is above 0")
        self.c = c

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 logits an episode."""
        return in_stacks(episodes, self._scores, form=self.accepts)

    def _scores(self, stack: Stack) -> NDArray[np.float32]:
        weight, intercept = fitted(unit(stack.support), stack.labels, stack.ways, self.c)
        turned = weight.astype(np.float32).transpose(0, 2, 1)
        logits: NDArray[np.float32] = unit(stack.query) @ turned + intercept.astype(np.float32)[:, None]
        return logits
