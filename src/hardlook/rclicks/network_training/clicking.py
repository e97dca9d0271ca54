"""Who clicks in a training: the simulated clicks of the benchmark, on the errors of the network that is trained.

>>> target = np.zeros((7, 9), bool)
>>> target[1:6, 1:6] = True
>>> session = TrainingClicks("centre").begin("first", np.zeros((7, 9, 3), np.uint8), target, target & False, 3)
>>> next(session), session.send(target & False)
([(3, 3, True)], [(3, 3, True), (2, 2, True)])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.roles import Mask, Prompted
from hardlook.rclicks.click_models import build_click_model
from hardlook.rclicks.clicks.courses import BASE, Course, Instance, Rules, make_clicking_groups
from hardlook.rclicks.clicks.simulation import simulate_clicks

if TYPE_CHECKING:
    from hardlook.training.interactive.trainee import Session

CENTRE = "centre"
GROUPS = 10
DATASET = "training"  # keys the random numbers, apart from those of the benchmark's datasets


class TrainingClicks:
    """Clicks of one course: `clicks` is centre or a click model by name, with its arguments.

    `group` from 1 to 10 draws from that clicking group, 0 from all of the model's mass. `seed` keys the draws.
    """

    def __init__(self, clicks: str, arguments: str = "", *, group: int = 0, seed: int = 0) -> None:
        if not 0 <= group <= GROUPS:
            raise OptionError(f"--click-group {group}", remedy=f"from 1 (the least probable) to {GROUPS}, or 0 for all")
        self.name = CENTRE if clicks == "center" else clicks
        if self.name == CENTRE and (group or arguments):
            given = "--click-group" if group else "--clicks-args"
            remedy = "--clicks uniform, distance, clickability or another click model"
            raise OptionError(f"{given}: the centre rule draws no clicks", remedy=remedy)
        self.arguments, self.group, self.seed = arguments, group, seed
        # The centre rule asks no click model.
        self._model = build_click_model("uniform" if self.name == CENTRE else clicks, arguments)
        self.course = _choose_course(self.name, group)

    def describe(self) -> dict[str, Any]:
        """Who clicks, by which a training is known: what a click model is made of, without its code."""
        if self.name == CENTRE:
            return {"clicks": CENTRE}
        settings = {"clicks": self.name, "arguments": self.arguments, "group": self.group or "all"}
        return {**settings, "weights": dict(self._model.identity.weights)}

    def begin(self, key: str, image: NDArray[np.uint8], target: Mask, ignore: Mask, clicks: int) -> Session:
        """All clicks (row, column, positive) so far, and again after each mask, as of a training's `Clicker`."""
        instance = Instance(DATASET, key, image, target, ignore)
        rules = Rules(rounds=clicks, seed=self.seed)
        simulation = simulate_clicks(instance, [self.course], self._model.model, rules)
        prompts = next(simulation)
        while True:
            pixels = zip(*prompts[0].pixels(instance.shape), prompts[0].positive.tolist(), strict=True)
            mask = yield [(int(row), int(column), bool(positive)) for row, column, positive in pixels]
            try:
                prompts = simulation.send([Prompted(mask)])
            except StopIteration:
                return


def _choose_course(clicks: str, group: int) -> Course:
    if clicks == CENTRE:
        return BASE
    return make_clicking_groups(GROUPS)[group - 1] if group else Course("all", 0.0, 1.0)
