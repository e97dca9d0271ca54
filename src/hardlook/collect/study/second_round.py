"""What people click on in a second round: the error of the best prediction that still has one worth clicking.

Of every instance the best prediction over all runs, courses and rounds is taken whose IoU is at most a limit. Its
error is what it lacks (fn) or has too much (fp), by the benchmark's own rule: the one with the larger inscribed
circle, a tie being fp. Ignored pixels belong to neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hardlook.clicks.error_regions import Comparison, Truth, compare
from hardlook.clicks.instance import Instance
from hardlook.clicks.next_click import choose_error
from hardlook.collect.study.instances_to_click import ClickableInstance
from hardlook.collect.study.played_predictions import Method, PlayedRun, Prediction
from hardlook.collect.study.regions_to_click import Region
from hardlook.collect.study.stored_predictions import StoredMethod, stored_methods
from hardlook.data.full_stem import ClickType, FullStem, full_stem
from hardlook.data.object_instances.left_out import SHOWN, LeftOutNotes
from hardlook.errors import OptionError
from hardlook.models.roles import Mask

LIMIT = 0.95
Errors = Literal["largest", "both"]
Moved = Callable[[int, int], None]
_LEFT_OUT = "instances without an error to click on"


@dataclass(frozen=True)
class Chosen:
    """A prediction whose error is to be clicked: its method, its mask (H, W) and what that gets right and wrong."""

    method: str
    prediction: Prediction
    mask: Mask = field(repr=False)
    found: Comparison = field(repr=False)


class ErrorRegions:
    """The regions of a second round, made as they are asked for; `facts` is whole once all have been.

    `methods` are those whose predictions are compared.
    """

    def __init__(
        self,
        instances: Sequence[ClickableInstance],
        methods: Sequence[PlayedRun | StoredMethod],
        *,
        limit: float = LIMIT,
        errors: Errors = "largest",
        describe: Callable[[ClickableInstance], str] = lambda instance: "",
        exact: bool = False,
        progress: Callable[[int, int], Moved] | None = None,
    ) -> None:
        if not 0 <= limit <= 1 or errors not in ("largest", "both"):
            raise OptionError(f"a limit of {limit} and errors {errors!r}", remedy="a limit in [0, 1]; largest or both")
        self.instances, self.methods, self.limit, self.errors = instances, methods, limit, errors
        self.describe, self.exact, self.progress = describe, exact, progress
        self._begin()

    def __iter__(self) -> Iterator[Region]:
        """Instance after instance; one with both errors gives fn before fp."""
        self._begin()
        moved = self.progress(len(self.instances), 0) if self.progress else (lambda units, failed: None)
        for one in self.instances:
            target = one.read_target()
            instance = Instance(one.dataset, one.full_stem, one.read(), target.mask, target.ignore)
            yield from self._regions(one, instance)
            moved(1, 0)

    @property
    def facts(self) -> Mapping[str, Any]:
        """For `made.json`: which predictions were taken, what was left out, and where a replay differs."""
        return {
            "masks": [method.facts for method in self.methods],
            "limit": self.limit,
            "errors": self.errors,
            "chosen": dict(sorted(self._taken.items())),
            "click_types": dict(sorted(self._types.items())),
            "replays_that_differ": {"count": len(self._differing), "examples": self._differing[:SHOWN]},
            "left_out": [asdict(note) for note in self._notes.listed()],
        }

    def _begin(self) -> None:
        self._notes = LeftOutNotes("")
        self._taken: Counter[str] = Counter()
        self._types: Counter[str] = Counter()
        self._differing: list[str] = []

    def _regions(self, one: ClickableInstance, instance: Instance) -> Iterator[Region]:
        truth, unit = Truth.of(instance.target, instance.ignore), f"{instance.dataset}/{instance.name}"
        chosen = self._best(instance, one.image_key, truth)
        if isinstance(chosen, str):
            self._notes.add(_LEFT_OUT, chosen, unit)
            return
        kinds = click_types(chosen, self.errors)
        if not kinds:
            self._notes.add(_LEFT_OUT, "the best prediction has no wrong pixel that was not clicked", unit)
            return
        self._taken[chosen.method] += 1
        # Ignored pixels get the truth's value, so that whoever subtracts the two masks finds the same errors.
        previous = (chosen.mask & ~instance.ignore) | (instance.target & instance.ignore)
        for kind in kinds:
            self._types[kind] += 1
            number = chosen.prediction.number
            parts = FullStem(one.image_stem, one.object_stem, chosen.method, kind, "pc", number)
            yield Region(
                dataset=one.dataset,
                image_stem=one.image_stem,
                object_stem=one.object_stem,
                full_stem=full_stem(parts),
                image=instance.image,
                target=instance.target,
                region=truth.target & ~chosen.mask if kind == "fn" else chosen.mask & ~truth.covered,
                subject=one.image_key,
                description=self.describe(one),
                model_type=chosen.method,
                click_type=kind,
                previous=previous,
                exact=self.exact,
            )

    def _best(self, instance: Instance, image: str, truth: Truth) -> Chosen | str:
        """The best prediction within the limit whose mask is within it too; else why there is none."""
        known = [(method, one) for method in self.methods for one in method.predictions(instance)]
        if not known:
            return "no method predicted them"
        for method, prediction in best_first(known):
            if prediction.iou > self.limit:
                continue
            mask = method.mask(instance, image, prediction)
            found = compare(truth, mask)
            if (found.intersection, found.union) != (prediction.intersection, prediction.union):
                where = f"{instance.dataset}/{instance.name} by {method.name} after {prediction.number}"
                self._differing.append(where)
            if found.intersection / found.union <= self.limit:
                return Chosen(method.name, prediction, mask, found)
        return f"every prediction is better than {self.limit:g}"


def error_regions(
    instances: Iterable[ClickableInstance],
    masks: Sequence[Path],
    *,
    limit: float = LIMIT,
    errors: Errors = "largest",
    describe: Callable[[ClickableInstance], str] = lambda instance: "",
    exact: bool = False,
    progress: Callable[[int, int], Moved] | None = None,
) -> ErrorRegions:
    """The errors that a second round shows, from finished `hardlook run rclicks` folders or folders of masks.

    `limit` is the largest IoU of a prediction that is still corrected; `errors` is `largest` (one region an
    instance) or `both` (fn and fp where there are both). `describe` gives the text mode's words, `exact` keeps images
    to the pixel, `progress` starts a bar over (instances, done).
    """
    if not masks:
        raise OptionError("a second round without masks", remedy="give --masks RUN, a finished `hardlook run rclicks`")
    methods: list[PlayedRun | StoredMethod] = []
    for path in masks:
        methods += [PlayedRun(path)] if (path / "run.json").is_file() else stored_methods(path)
    return ErrorRegions(
        tuple(instances), methods, limit=limit, errors=errors, describe=describe, exact=exact, progress=progress
    )


def best_first(known: Sequence[tuple[Method, Prediction]]) -> list[tuple[Method, Prediction]]:
    """Predictions by falling IoU; of equal ones the one with fewer clicks, then the one that came first.

    >>> [one.number for _, one in best_first([(None, Prediction(1, 2, 3)), (None, Prediction(2, 4, 1))])]
    [1, 3]
    """
    return sorted(known, key=lambda pair: (-pair[1].iou, pair[1].number))


def click_types(chosen: Chosen, errors: Errors) -> tuple[ClickType, ...]:
    """Which errors of a prediction are to be clicked; () where nothing is left to click."""
    if errors == "both":
        kinds: tuple[tuple[ClickType, object], ...] = (("fn", chosen.found.missing), ("fp", chosen.found.surplus))
        return tuple(kind for kind, region in kinds if region is not None)
    choice = choose_error(chosen.found, np.asarray(chosen.prediction.clicks[:, :2], np.int64))
    return () if choice is None else ("fn" if choice.positive else "fp",)
