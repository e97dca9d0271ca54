"""A stateful predictor asked as if it had no state: what it remembers travels with the prompt.

RITM's predictors remember the last probability map, the zoom-in crop and the like. Before each prompt all of it is set
to what it was after the prompt's earlier clicks; afterwards it is copied out. So an answer depends on the image, the
clicks and the memory that came with them, whatever was asked in between.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.models.interactive.ritm_clicks import ClickList, PredictorClick
from hardlook.models.roles import Image


@dataclass(frozen=True)
class Memory:
    """What a predictor remembers after `clicks`: its own states, and its last map, which some states leave out."""

    clicks: tuple[PredictorClick, ...]
    states_and_map: tuple[Any, Any] = field(repr=False)


class Predictor:
    """A predictor with RITM's interface behind one pure method.

    `twice`: the first click is predicted twice, the second time with the first answer as previous map. `keeps_states`
    says whether its states are used; else every prompt replays its clicks.
    """

    def __init__(self, predictor: Any, name: str, *, twice: bool = False, replay: bool = False) -> None:
        lacking = [method for method in ("set_input_image", "get_prediction") if not hasattr(predictor, method)]
        if lacking:
            raise ModelError(
                f"{name!r} made a {type(predictor).__qualname__} without {' and '.join(lacking)}",
                remedy="give a factory that makes a predictor as RITM's isegm.inference.predictors has them",
            )
        self._predictor, self._name, self._twice = predictor, name, twice
        self.keeps_states = not replay and hasattr(predictor, "get_states") and hasattr(predictor, "set_states")
        self._shown: Image | None = None

    def after(
        self, image: Image, clicks: tuple[PredictorClick, ...], memory: Memory | None
    ) -> tuple[NDArray[Any], Memory | None]:
        """The probability map (H, W) after all `clicks`, and what to give back with the next one.

        `memory` is that of the first clicks, however many; without it they are replayed.
        """
        with _without_gradients():
            done = self._recall(image, clicks, memory if self.keeps_states else None)
            chance = np.zeros(image.shape[:2])
            for count in range(done + 1, len(clicks) + 1):
                chance = self._predict(ClickList(clicks[:count]), image)
            return chance, self._remember(clicks) if self.keeps_states else None

    def _recall(self, image: Image, clicks: tuple[PredictorClick, ...], memory: Memory | None) -> int:
        if memory is None:
            self._show(image)
            return 0
        done = len(memory.clicks)
        if done >= len(clicks) or memory.clicks != clicks[:done]:
            raise ModelError(
                f"expected the state of a prompt's earlier clicks, got that of {done} others for {len(clicks)} clicks",
                remedy="give back the state of the click before, or None",
            )
        if self._shown is not image:
            self._show(image)
        # A copy, since some predictors write into what they are given; one of both, since they may share an array.
        states, last_map = copy.deepcopy(memory.states_and_map)
        self._predictor.set_states(states)
        if hasattr(self._predictor, "prev_prediction"):
            self._predictor.prev_prediction = last_map
        return done

    def _show(self, image: Image) -> None:
        # A copy, since a predictor may write into it; setting an image also makes it forget what it knew.
        self._predictor.set_input_image(image.copy())
        self._shown = image

    def _predict(self, clicker: ClickList, image: Image) -> NDArray[Any]:
        chance = np.asarray(self._predictor.get_prediction(clicker))
        if self._twice and len(clicker) == 1:
            chance = np.asarray(self._predictor.get_prediction(clicker))
        if chance.shape != image.shape[:2]:
            raise ModelError(f"{self._name!r}: expected a map {image.shape[:2]}, got one of shape {chance.shape}")
        return chance

    def _remember(self, clicks: tuple[PredictorClick, ...]) -> Memory:
        kept = self._predictor.get_states(), getattr(self._predictor, "prev_prediction", None)
        return Memory(clicks, copy.deepcopy(kept))


def _without_gradients() -> contextlib.AbstractContextManager[Any]:
    # A predictor that runs on torch has imported it. Not inference mode: predictors that refine at each click
    # switch gradients on again inside.
    torch = sys.modules.get("torch")
    return torch.no_grad() if torch is not None else contextlib.nullcontext()
