"""What people click on in a second round: the error of the best prediction that is still imperfect enough.

For every instance the best prediction over all runs, courses and rounds is taken whose IoU is at most a limit. Its
error is what it misses (fn) or has in excess (fp), by the benchmark's own rule: the one with the larger inscribed
circle, a tie being fp. Ignored pixels belong to neither.

Predictions come from finished RClicks runs or from folders of masks. A run records every click and its pixel counts but
no mask in between. So a mask is replayed: the run's model opens the image and gets the course's clicks one by one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.collect.study.click_regions import ClickRegion
from hardlook.collect.study.folder import Progress, start_progress
from hardlook.collect.study.instances import ClickableInstance, PlantedInstance
from hardlook.data.click_names import ClickType, FullStem, format_full_stem
from hardlook.data.images import is_image_name
from hardlook.data.left_out import MAX_EXAMPLES, LeftOutNotes
from hardlook.data.previous_masks import PreviousMasks
from hardlook.errors import DataError, OptionError, RunError
from hardlook.harness.runs.folder import RunFolder
from hardlook.models.answer_checks import CheckedSession
from hardlook.models.roles import Clicks, Mask, Session
from hardlook.rclicks.clicks.courses import Instance
from hardlook.rclicks.clicks.error_regions import GroundTruth, MaskComparison, choose_error, compare_masks
from hardlook.rclicks.clicks.simulation import request_masks
from hardlook.rclicks.clicks.simulation_runner import run_simulations

MAX_IOU = 0.95
ErrorChoice = Literal["largest", "both"]
_BENCHMARK = "rclicks"
_COLUMNS = ("unit", "width", "height", "rounds", "x", "y", "positive", "intersection", "union")
_LEFT_OUT = "instances without an error to click on"


class ErrorRegions:
    """The regions of a second round, found one by one while iterating; `facts` is complete after that.

    `masks` are finished `hardlook run rclicks` folders or folders of masks. `limit` is the largest IoU of a prediction
    that is still corrected; `errors` is `largest` (one region per instance) or `both` (fn and fp where there are both).
    `describe` gives descriptions for the text mode.
    """

    def __init__(
        self,
        instances: Iterable[ClickableInstance],
        masks: Sequence[Path],
        *,
        limit: float = MAX_IOU,
        errors: ErrorChoice = "largest",
        describe: Callable[[ClickableInstance], str] = lambda instance: "",
        progress: Progress | None = None,
    ) -> None:
        if not masks:
            remedy = "pass --masks RUN, a finished `hardlook run rclicks`"
            raise OptionError("a second round without masks", remedy=remedy)
        self.methods: list[Method] = []
        for path in masks:
            self.methods += [RunPredictions(path)] if (path / "run.json").is_file() else open_stored_masks(path)
        if not 0 <= limit <= 1 or errors not in ("largest", "both"):
            raise OptionError(f"a limit of {limit} and errors {errors!r}", remedy="a limit in [0, 1]; largest or both")
        self.instances, self.limit, self.errors = tuple(instances), limit, errors
        self.describe, self.progress = describe, progress
        self._reset()

    def __iter__(self) -> Iterator[ClickRegion]:
        """Instance after instance; one with both errors gives fn before fp."""
        self._reset()
        advance = start_progress(self.progress, len(self.instances))
        for clickable in self.instances:
            target = clickable.read_target()
            names = (clickable.dataset, clickable.full_stem)
            instance = Instance(*names, clickable.read(), target.mask, target.ignore)
            yield from self._find_regions(clickable, instance)
            advance(1, 0)

    @property
    def facts(self) -> Mapping[str, Any]:
        """For `made.json`: which predictions were taken, what was left out, and which replays differ."""
        return {
            "masks": [method.facts for method in self.methods],
            "limit": self.limit,
            "errors": self.errors,
            "chosen": dict(sorted(self._taken.items())),
            "click_types": dict(sorted(self._types.items())),
            "replays_that_differ": {"count": len(self._differing), "examples": self._differing[:MAX_EXAMPLES]},
            "left_out": [asdict(note) for note in self._notes.summarize()],
        }

    def _reset(self) -> None:
        self._notes = LeftOutNotes("")
        self._taken: Counter[str] = Counter()
        self._types: Counter[str] = Counter()
        self._differing: list[str] = []

    def _find_regions(self, clickable: ClickableInstance, instance: Instance) -> Iterator[ClickRegion]:
        truth, unit = GroundTruth.of(instance.target, instance.ignore), f"{instance.dataset}/{instance.name}"
        chosen = self._choose(instance, clickable.image_key, truth)
        if isinstance(chosen, str):
            self._notes.add(_LEFT_OUT, chosen, unit)
            return
        kinds = choose_click_types(chosen, self.errors)
        if not kinds:
            self._notes.add(_LEFT_OUT, "the best prediction has no wrong pixel that was not clicked", unit)
            return
        self._taken[chosen.method] += 1
        # Ignored pixels get the truth's value, so that the difference of the two masks is the same error.
        previous = (chosen.mask & ~instance.ignore) | (instance.target & instance.ignore)
        for kind in kinds:
            self._types[kind] += 1
            image_stem, object_stem = clickable.image_stem, clickable.object_stem
            parts = FullStem(image_stem, object_stem, chosen.method, kind, "pc", chosen.prediction.number)
            stems = (image_stem, object_stem, format_full_stem(parts))
            region = truth.target & ~chosen.mask if kind == "fn" else chosen.mask & ~truth.covered
            yield ClickRegion(
                clickable.dataset,
                *stems,
                instance.image,
                instance.target,
                region,
                clickable.image_key,
                self.describe(clickable),
                chosen.method,
                kind,
                previous=previous,
                exact=isinstance(clickable, PlantedInstance),
            )

    def _choose(self, instance: Instance, image: str, truth: GroundTruth) -> ChosenPrediction | str:
        """The best prediction within the limit whose mask is within it too; else the reason why there is none."""
        known = [(method, one) for method in self.methods for one in method.predictions(instance)]
        if not known:
            return "no method predicted them"
        for method, prediction in sort_best_first(known):
            if prediction.iou > self.limit:
                continue
            mask = method.mask(instance, image, prediction)
            found = compare_masks(truth, mask)
            if (found.intersection, found.union) != (prediction.intersection, prediction.union):
                where = f"{instance.dataset}/{instance.name} by {method.name} after {prediction.number}"
                self._differing.append(where)
            if found.intersection / found.union <= self.limit:
                return ChosenPrediction(method.name, prediction, mask, found)
        return f"every prediction is better than {self.limit:g}"


@dataclass(frozen=True)
class ChosenPrediction:
    """A prediction whose error is to be clicked: its method, its mask (H, W) and the comparison with the truth."""

    method: str
    prediction: Prediction
    mask: Mask = field(repr=False)
    comparison: MaskComparison = field(repr=False)


def sort_best_first(known: Sequence[tuple[Method, Prediction]]) -> list[tuple[Method, Prediction]]:
    """Predictions by descending IoU; of equal ones the one with fewer clicks, then the one that came first.

    >>> [one.number for _, one in sort_best_first([(None, Prediction(1, 2, 3)), (None, Prediction(2, 4, 1))])]
    [1, 3]
    """
    return sorted(known, key=lambda pair: (-pair[1].iou, pair[1].number))


def choose_click_types(chosen: ChosenPrediction, errors: ErrorChoice) -> tuple[ClickType, ...]:
    """Which errors of a prediction are to be clicked; () where nothing is left to click."""
    if errors == "both":
        regions: dict[ClickType, object] = {"fn": chosen.comparison.missing, "fp": chosen.comparison.surplus}
        return tuple(kind for kind, region in regions.items() if region is not None)
    choice = choose_error(chosen.comparison, np.asarray(chosen.prediction.clicks[:, :2], np.int64))
    return () if choice is None else ("fn" if choice.positive else "fp",)


@dataclass(frozen=True)
class Prediction:
    """One recorded mask of a method: pixel counts without ignored pixels, and the clicks that led to it.

    `clicks` (k, 3) int64: row, column, and 1 for a positive click. `number` is the round, 0 if unknown.

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


class RunPredictions:
    """The predictions of one run folder; its model is built when the first mask is needed.

    `name` names the method in full stems. Instances with one `image` key show the same image.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = RunFolder(path).read_manifest()
        if (name := self.manifest["benchmark"]["name"]) != _BENCHMARK:
            remedy = "pass the folder of a finished `hardlook run rclicks`"
            raise RunError(f"a run of {name}, which has no clicks", file=path, remedy=remedy)
        if not RunFolder(path).scores_path.is_file():
            remedy = "run its `hardlook run rclicks` again, which resumes"
            raise RunError("the run is not finished", file=path, remedy=remedy)
        self.name = format_method_name(self.manifest["model"]["name"])
        self._opened: tuple[str, Session] | None = None

    def predictions(self, instance: Instance) -> Sequence[Prediction]:
        """Course after course, round after round, without rounds that have no click; () for an unknown instance."""
        row = self._records.get(f"{instance.dataset}/{instance.name}")
        if row is None:
            return ()
        if (row["height"], row["width"]) != instance.shape:
            height, width = instance.shape
            what = f"the run saw {row['width']}x{row['height']} pixels, the image has {width}x{height}"
            remedy = "pass the data that the run was made on"
            raise DataError(what, file=self.path, unit=instance.name, remedy=remedy)
        rounds = row["rounds"]
        clicks, counts = (
            np.stack([np.asarray(row[name], np.int64).reshape(-1, rounds) for name in names], axis=-1)
            for names in (("y", "x", "positive"), ("intersection", "union"))
        )
        return [
            Prediction(int(counts[course, number, 0]), int(counts[course, number, 1]), number + 1, rows[: number + 1])
            for course, rows in enumerate(clicks)
            for number in range(rounds)
            if rows[number, 0] >= 0
        ]

    def mask(self, instance: Instance, image: str, prediction: Prediction) -> Mask:
        """The mask after the prediction's clicks; an image stays open while its instances are processed."""
        if self._opened is None or self._opened[0] != image:
            self._opened = None  # free the old image before the next is opened
            self._opened = (image, CheckedSession(self._model, instance.image))
        return replay_clicks(self._opened[1], instance, prediction.clicks)

    @property
    def facts(self) -> Mapping[str, Any]:
        """Which run it is, for `made.json`."""
        model, answers = self.manifest["model"], self.manifest["answers"]["fingerprint"]
        return {"method": self.name, "model": model["name"], "args": model["args"], "answers": answers}

    @cached_property
    def _records(self) -> dict[str, dict[str, Any]]:
        from hardlook.harness.registry import find_benchmark
        from hardlook.harness.runs.record_store import read_records

        schema, answers = find_benchmark(_BENCHMARK).schema, self.manifest["answers"]["fingerprint"]
        records = read_records(RunFolder(self.path), schema, answers, _COLUMNS)
        return {row["unit"]: row for row in records.iter_rows(named=True)}

    @cached_property
    def _model(self) -> Any:
        from hardlook.harness.runs.evaluation import Job, build_worker

        model, parts = self.manifest["model"], self.manifest["answers"].get("parts", {})
        return build_worker(Job(_BENCHMARK, model["name"], dict(model["args"]), int(parts.get("threads", 1)))).model


def replay_clicks(session: Session, instance: Instance, clicks: NDArray[np.int64]) -> Mask:
    """The mask (H, W) after the last of `clicks` (k, 3), k >= 1, given to an opened image one after the other.

    >>> from hardlook.models.roles import Prompted
    >>> class Counting:
    ...     def predict(self, prompts):
    ...         [prompt] = prompts
    ...         seen = (prompt.state or 0) + 1
    ...         return [Prompted(np.full((1, 3), seen == len(prompt.points) == 2), state=seen)]
    >>> frame = np.ones((1, 3), bool)
    >>> instance = Instance("mine", "cat", np.zeros((1, 3, 3), np.uint8), frame, ~frame)
    >>> replay_clicks(Counting(), instance, np.array([[0, 0, 1], [0, 2, 0]])).tolist()
    [[True, True, True]]
    """

    def simulate() -> Any:
        state, mask = None, np.zeros(instance.shape, bool)
        for number in range(1, len(clicks) + 1):
            so_far = clicks[:number]
            prompt = Clicks(so_far[:, 1::-1].astype(np.float32), so_far[:, 2].astype(bool), state)
            [answer] = yield from request_masks([prompt], instance)
            state, mask = answer.state, answer.mask
        return mask

    masks: list[Mask] = run_simulations([(session, simulate())], overlap=False)
    return masks[0]


class StoredMasks:
    """The masks of one method in a folder; an instance has one or none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = format_method_name(folder.resolve().name)
        self._masks = PreviousMasks(folder)

    def predictions(self, instance: Instance) -> Sequence[Prediction]:
        """The one stored mask, compared with the truth; () where there is none."""
        if self._masks.missing([instance.name], instance.dataset):
            return ()
        found = compare_masks(GroundTruth.of(instance.target, instance.ignore), self.mask(instance))
        return (Prediction(found.intersection, found.union, 0),)

    def mask(self, instance: Instance, image: str = "", prediction: Prediction | None = None) -> Mask:
        """The stored mask (H, W), of the image's size."""
        return self._masks.read(instance.name, instance.shape[::-1], instance.dataset)

    @property
    def facts(self) -> Mapping[str, Any]:
        """Where the masks come from, for `made.json`."""
        return {"method": self.name, "folder": self.folder.name}


Method = RunPredictions | StoredMasks


def open_stored_masks(folder: Path) -> list[StoredMasks]:
    """The methods of a folder, by name; a folder without any mask is a `DataError`.

    `DIR/METHOD/full_stem.png` holds masks of several methods, `DIR/full_stem.png` of one method, named as the folder.
    Datasets that share stems may each have a folder of their own below the method's.

    >>> import tempfile
    >>> import PIL.Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> for method in ("ritm", "cdnet_hr"):
    ...     (folder / method).mkdir()
    ...     PIL.Image.fromarray(np.array([[255, 0, 255]], np.uint8)).save(folder / method / "cat.png")
    >>> mask = np.array([[True, True, False]])
    >>> cat = Instance("mine", "cat", np.zeros((1, 3, 3), np.uint8), mask, np.zeros_like(mask))
    >>> [(one.name, [found.iou for found in one.predictions(cat)]) for one in open_stored_masks(folder)]
    [('cdnet-hr', [0.3333333333333333]), ('ritm', [0.3333333333333333])]
    """
    if not folder.is_dir():
        raise DataError("no such folder of masks or run", file=folder, remedy="check --masks")
    if _has_images(folder):
        return [StoredMasks(folder)]
    inner = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if runs := [path for path in inner if (path / "run.json").is_file()]:
        remedy = f"pass the runs themselves: {' '.join(f'--masks {path}' for path in runs[:3])}"
        raise DataError("a folder of runs, not a run", file=folder, remedy=remedy)
    methods = [
        StoredMasks(path)
        for path in inner
        if _has_images(path) or any(_has_images(inner) for inner in path.iterdir() if inner.is_dir())
    ]
    if not methods:
        remedy = "pass a finished `hardlook run rclicks`, or masks named METHOD/full_stem.png"
        raise DataError("no mask here", file=folder, remedy=remedy)
    return methods


def _has_images(folder: Path) -> bool:
    return any(is_image_name(path) for path in folder.iterdir())


def format_method_name(name: str) -> str:
    """A method's name as it appears in file names and full stems.

    >>> format_method_name("mobile_sam"), format_method_name("package.models:MySegmenter")
    ('mobile-sam', 'package.models-MySegmenter')
    """
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.") or "method"
