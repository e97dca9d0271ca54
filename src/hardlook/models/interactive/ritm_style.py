"""Any predictor with RITM's interface as a promptable segmenter: RITM, SimpleClick, CFR-ICL and their kin.

The interface: `set_input_image(image)`, `get_prediction(clicker)` that gives a probability map (H, W), and where there
are some `get_states()` and `set_states(states)`. Such a predictor remembers its last map and its zoom-in crop; here
each prompt carries that memory in its state, so that trajectories may take turns in any order. A predictor without
states is shown all clicks again from the first.

>>> import sys, types
>>> class Nearest:
...     def set_input_image(self, image): self.shape = image.shape[:2]
...     def get_prediction(self, clicker, prev_mask=None):
...         rows, columns = np.indices(self.shape)
...         row, column = clicker.get_clicks()[-1].coords
...         return 1 / (1 + abs(rows - row) + abs(columns - column))
>>> sys.modules["my_factory"] = types.SimpleNamespace(nearest=Nearest)
>>> model = RitmStyle(predictor="my_factory:nearest")
>>> click = Clicks(np.array([[1, 0]], np.float32), np.array([True]))
>>> model.open(np.zeros((1, 4, 3), np.uint8)).predict([click])[0].mask.tolist()
[[True, True, True, False]]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from hardlook.errors import OptionError
from hardlook.fingerprint import of_sources, of_value
from hardlook.models.interactive.ritm_clicks import predictor_clicks
from hardlook.models.interactive.ritm_factory import made
from hardlook.models.interactive.ritm_memory import Memory, Predictor
from hardlook.models.interactive.ritm_settings import FAMILIES, settings_of
from hardlook.models.roles import Clicks, Image, Prompted
from hardlook.models.sources import sources_of


class RitmStyle:
    """A predictor of another repository, made by a factory of yours.

    `predictor`: the factory as package.module:factory; `predictor_args`: its arguments as key=value with commas
    between, or as a JSON object; `family`: one of RClicks' families, which gives `threshold` (.49) and
    `first_click_twice` where they are not said; `colours`: the order of the channels that the predictor expects;
    `replay`: show all clicks from the first even if the predictor has states.
    """

    def __init__(
        self,
        predictor: str,
        predictor_args: str = "",
        family: str = "ritm",
        threshold: float | None = None,
        first_click_twice: bool | None = None,
        colours: Literal["rgb", "bgr"] = "rgb",
        replay: bool = False,
    ) -> None:
        settings = settings_of(family)
        self.threshold = settings.threshold if threshold is None else threshold
        if not 0 <= self.threshold < 1:
            raise OptionError(f"threshold {self.threshold} is no probability", remedy="give .49 or so")
        if colours not in ("rgb", "bgr"):
            raise OptionError(f"there is no order of colours {colours!r}", remedy="colours is rgb or bgr")
        twice = settings.first_click_twice if first_click_twice is None else first_click_twice
        factory = made(predictor, predictor_args)
        self._predictor = Predictor(factory.predictor, predictor, twice=twice, replay=replay)
        self._flipped = colours == "bgr"
        self._sources = factory.sources
        self.weights_files: tuple[Path, ...] = factory.weights_files
        self.device = str(getattr(factory.predictor, "device", ""))
        memory = "its own states given back" if self._predictor.keeps_states else "all clicks replayed from the first"
        self.conduct = (
            f"{predictor}, a predictor with RITM's interface: the whole network at every click, no encoding shared; "
            f"threshold {self.threshold:g}; first click predicted {'twice' if twice else 'once'}; {memory}; "
            f"RClicks drives {family} with {FAMILIES[family].words()}"
        )

    def fingerprint(self) -> str:
        """A hash of this code, the factory's and the predictor's."""
        return of_value([of_sources(sources_of(type(self))), of_sources(self._sources)])

    def open(self, image: Image) -> RitmSession:
        """The image as the predictor wants it; nothing is computed before the first click."""
        # A copy of its own: the predictor may keep it, and torch wants arrays that could be written.
        shown = np.array(image[..., ::-1] if self._flipped else image, order="C")
        return RitmSession(self._predictor, shown, self.threshold)


class RitmSession:
    """An image that the predictor is shown again whenever another was in between."""

    def __init__(self, predictor: Predictor, image: Image, threshold: float) -> None:
        self._predictor, self._image, self._threshold = predictor, image, threshold

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask a prompt, one after the other; an empty prompt has an empty mask."""
        return [self._one(prompt) for prompt in prompts]

    def _one(self, prompt: Clicks) -> Prompted:
        shape = (self._image.shape[0], self._image.shape[1])
        clicks = predictor_clicks(prompt, shape)
        if not clicks:
            return Prompted(np.zeros(shape, bool))
        memory = prompt.state if isinstance(prompt.state, Memory) else None
        chance, after = self._predictor.after(self._image, clicks, memory)
        return Prompted(np.asarray(chance > self._threshold), after)
