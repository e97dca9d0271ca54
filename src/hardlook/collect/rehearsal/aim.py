"""How a simulated participant answers: clicks drawn from a click model, now and then anywhere; ratings near the value.

Answers depend on the seed, the participant's number and the task alone, so that a rehearsal can be run again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.clicks.click_distribution import ClickDistribution, click_distribution
from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import ClickTask, RatingTask, ReviewTask, Task
from hardlook.data.images import read_image
from hardlook.data.label_maps import read_label_map
from hardlook.models.registry import build
from hardlook.models.roles import ClickModel
from hardlook.randomness import generator


class Aim:
    """Answers to tasks; `careless` is the share of clicks that go anywhere, `clicks` names a click model."""

    def __init__(self, study: Study, *, clicks: str = "distance", careless: float = 0.0, seed: int = 0) -> None:
        self._study, self._careless, self._seed = study, careless, seed
        self._model: ClickModel | None = build(clicks, "click-model") if study.settings.kind == "clicks" else None
        self.chances = lru_cache(maxsize=256)(self._chances)

    def answer(self, participant: int, task: Task) -> Mapping[str, Any]:
        """The fields of an answer that say something: x and y, or a value."""
        rng = generator(self._seed, "rehearsal", participant, task.id)
        if isinstance(task, ClickTask):
            anywhere = rng.random() < self._careless
            size = np.array([task.width, task.height], float)
            x, y = rng.random(2) * size if anywhere else self.chances(task.id).draw(rng, 1)[0] + 0.5
            return {"x": float(x), "y": float(y)}
        if isinstance(task, ReviewTask):
            return {"value": int(rng.random() < 0.8)}
        assert isinstance(task, RatingTask)
        return {"value": int(np.clip(round(1 + 9 * task.value + rng.normal()), 1, 10))}

    def _chances(self, task_id: str) -> ClickDistribution:
        task = self._study.by_id[task_id]
        assert isinstance(task, ClickTask) and self._model is not None
        image = read_image(self._study.file(task.image))
        mask: NDArray[np.bool_] = read_label_map(self._study.file(task.mask)) > 0
        return click_distribution(self._model.click_map(image, mask, mask, task.click_type != "fp"), mask)
