"""Predictions of finished RClicks runs: what is recorded of each, and its mask, made again by the run's own model.

Records keep every click and its counts but no mask in between. So a mask is replayed: the run's model opens the image
and is shown the course's clicks one by one, with its state passed on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hardlook.clicks.asking import ask
from hardlook.clicks.instance import Instance
from hardlook.clicks.together import run_together
from hardlook.errors import DataError, RunError
from hardlook.models.roles import Clicks, Mask, Session
from hardlook.runs.folder import RunFolder

BENCHMARK = "rclicks"
_COLUMNS = ("unit", "width", "height", "rounds", "x", "y", "positive", "intersection", "union")


@dataclass(frozen=True)
class Prediction:
    """One mask of a method, as it is recorded: counts in pixels without ignored ones, and the clicks that led to it.

    `clicks` (k, 3) int64: row, column, and 1 for a positive click. `number` is the round, 0 where none is known.

    >>> Prediction(19, 20, 3).iou
    0.95
    """

    intersection: int
    union: int
    number: int
    clicks: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 3), np.int64), repr=False)

    @property
    def iou(self) -> float:
        """In [0, 1]."""
        return self.intersection / self.union


class Method(Protocol):
    """Something that has predicted masks of instances; `name` has no underscore."""

    name: str

    def predictions(self, instance: Instance) -> Sequence[Prediction]:
        """Every prediction of this instance, in a fixed order; none where the method did not see it."""

    def mask(self, instance: Instance, image: str, prediction: Prediction) -> Mask:
        """The mask (H, W) of one of them; instances with one `image` key show the same image."""


def method_name(name: str) -> str:
    """A method's name as it stands in file names and full stems.

    >>> method_name("mobile_sam"), method_name("package.models:MySegmenter")
    ('mobile-sam', 'package.models-MySegmenter')
    """
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.") or "method"


class PlayedRun:
    """The predictions of one run folder; its model is made when the first mask is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = RunFolder(path).read_manifest()
        self._refuse()
        self.name = method_name(self.manifest["model"]["name"])
        self._opened: tuple[str, Session] | None = None

    def predictions(self, instance: Instance) -> Sequence[Prediction]:
        """Course after course, round after round; rounds that were not clicked are none."""
        row = self._records.get(f"{instance.dataset}/{instance.name}")
        if row is None:
            return ()
        if (row["height"], row["width"]) != instance.shape:
            raise DataError(
                f"the run saw {row['width']}x{row['height']} pixels, the image has {instance.shape[1]}x"
                f"{instance.shape[0]}",
                file=self.path,
                unit=instance.name,
                remedy="give the data that the run was made on",
            )
        rounds = row["rounds"]
        clicks, counts = (
            np.stack([np.asarray(row[name], np.int64).reshape(-1, rounds) for name in names], axis=-1)
            for names in (("y", "x", "positive"), ("intersection", "union"))
        )
        return [
            Prediction(int(counts[course, number, 0]), int(counts[course, number, 1]), number + 1, played[: number + 1])
            for course, played in enumerate(clicks)
            for number in range(rounds)
            if played[number, 0] >= 0
        ]

    def mask(self, instance: Instance, image: str, prediction: Prediction) -> Mask:
        """The clicks again, one by one; an image stays open while its instances are asked about."""
        if self._opened is None or self._opened[0] != image:
            self._opened = None  # let go of the old image before the next is opened
            self._opened = (image, self._model.open(instance.image))
        return replay(self._opened[1], instance, prediction.clicks)

    @property
    def facts(self) -> Mapping[str, Any]:
        """Which run it is, for `made.json`."""
        model, answers = self.manifest["model"], self.manifest["answers"]["fingerprint"]
        return {"method": self.name, "model": model["name"], "args": model["args"], "answers": answers}

    @cached_property
    def _records(self) -> dict[str, dict[str, Any]]:
        from hardlook.benchmarks import find_benchmark
        from hardlook.runs.record_store import read_records

        schema, answers = find_benchmark(BENCHMARK).schema, self.manifest["answers"]["fingerprint"]
        records = read_records(RunFolder(self.path), schema, answers, _COLUMNS)
        return {row["unit"]: row for row in records.iter_rows(named=True)}

    @cached_property
    def _model(self) -> Any:
        from hardlook.runs.worker import Job, open_worker

        model, parts = self.manifest["model"], self.manifest["answers"].get("parts", {})
        return open_worker(Job(BENCHMARK, model["name"], dict(model["args"]), int(parts.get("threads", 1)))).model

    def _refuse(self) -> None:
        ran = self.manifest["benchmark"]["name"]
        if ran != BENCHMARK:
            remedy = "give the folder of a finished `hardlook run rclicks`"
            raise RunError(f"a run of {ran}, which has no clicks", file=self.path, remedy=remedy)
        if not RunFolder(self.path).scores_path.is_file():
            remedy = "give its `hardlook run rclicks` again, which goes on where it stopped"
            raise RunError("the run is not finished", file=self.path, remedy=remedy)


def replay(session: Session, instance: Instance, clicks: NDArray[np.int64]) -> Mask:
    """The mask (H, W) after the last of `clicks` (k, 3), k >= 1, shown to an opened image one after the other.

    >>> from hardlook.models.roles import Prompted
    >>> class Counting:
    ...     def predict(self, prompts):
    ...         [prompt] = prompts
    ...         seen = (prompt.state or 0) + 1
    ...         return [Prompted(np.full((1, 3), seen == len(prompt.points) == 2), state=seen)]
    >>> frame = np.ones((1, 3), bool)
    >>> instance = Instance("mine", "cat", np.zeros((1, 3, 3), np.uint8), frame, ~frame)
    >>> replay(Counting(), instance, np.array([[0, 0, 1], [0, 2, 0]])).tolist()
    [[True, True, True]]
    """

    def playing() -> Any:
        state, mask = None, np.zeros(instance.shape, bool)
        for made in range(1, len(clicks) + 1):
            so_far = clicks[:made]
            prompt = Clicks(so_far[:, 1::-1].astype(np.float32), so_far[:, 2].astype(bool), state)
            [answer] = yield from ask([prompt], instance)
            state, mask = answer.state, answer.mask
        return mask

    answered: list[Mask] = run_together([(session, playing())], overlap=False)
    return answered[0]
