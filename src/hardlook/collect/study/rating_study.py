"""A study of ratings made whole: measures, pairs of labels, pictures of a run, tasks, and what was left out.

>>> import tempfile
>>> plan = RatingPlan(measures=("path", "wup"), pairs=4)
>>> settings = StudySettings(kind="ratings", title="Pairs", devices=("any",), training_tasks=1)
>>> study = rating_study(Path(tempfile.mkdtemp()) / "study", plan, settings)
>>> len(study.items), len({item.subject for item in study.items}), len(study.training)
(8, 4, 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook import __version__
from hardlook.collect.study.folder import SETTINGS, Study, make_study
from hardlook.collect.study.rating_pictures import draw_pictures
from hardlook.collect.study.rating_tasks import DrawnThings, draw_pairs, tasks_of, training_pairs
from hardlook.collect.study.settings import StudySettings
from hardlook.errors import DataError, OptionError
from hardlook.labels.label_set import LabelSet
from hardlook.labels.load import load_label_set
from hardlook.labels.measures import find_measure, similarity_of
from hardlook.labels.unknown import Unknown

MADE = "hardlook.study-made/1"
DEFAULT_LABELS = "voc20"
DEFAULT_MEASURES = ("path", "wup", "lin", "lesk")


@dataclass(frozen=True)
class RatingPlan:
    """What is rated: `pairs` of the label set `labels`, and `pictures` of the run in the folder `run`.

    Without labels there are pairs of VOC's twenty, or none where a run is given. `sources` are vectors or model folders
    by measure. `unknown` as in `hardlook.labels.measures`.
    """

    labels: str | None = None
    variant: str = "corrected"
    measures: tuple[str, ...] = DEFAULT_MEASURES
    sources: Mapping[str, Path] = field(default_factory=dict)
    unknown: Unknown = "hypernym"
    pairs: int = 40
    run: Path | None = None
    pictures: int = 20
    seed: int = 0

    @property
    def label_set(self) -> str | None:
        """The labels to pair, if any."""
        return self.labels or (None if self.run else DEFAULT_LABELS)


def rating_study(path: Path, plan: RatingPlan, settings: StudySettings) -> Study:
    """Draw pairs and pictures, write them with their tasks into the folder `path`, and return the study.

    A folder that holds a study is refused before anything is written.
    """
    if (path / SETTINGS).exists():
        raise DataError("there is a study here already", file=path, remedy="choose another folder, or delete this one")
    _check(plan)
    similarities = _Similarities(plan)
    pairs, pictures = DrawnThings((), 0), DrawnThings((), 0)
    if plan.label_set and plan.pairs:
        labels = load_label_set(plan.label_set, plan.variant)
        pairs = draw_pairs(labels, similarities(labels), plan.pairs, plan.seed)
    if plan.run and plan.pictures:
        pictures = draw_pictures(path, plan.run, similarities, plan.pictures, plan.seed)
    things = (*pairs.things, *pictures.things)
    if not things:
        raise OptionError("there is nothing to rate", remedy="ask for pairs, or give a run with pictures")
    tasks = [*training_pairs(settings.training_tasks), *tasks_of(things, settings.question)]
    made: dict[str, Any] = {
        "schema": MADE,
        "hardlook": __version__,
        "data": {"labels": plan.label_set, "variant": plan.variant, "run": plan.run and plan.run.name},
        "seed": plan.seed,
        "pairs": {"asked": plan.pairs if plan.label_set else 0, "drawn": len(pairs.things), "of": pairs.candidates},
        "pictures": {"asked": plan.pictures if plan.run else 0, "drawn": len(pictures.things)}
        | {"of": pictures.candidates},
        "measures": similarities.described,
        "values": {thing.subject: dict(thing.values) for thing in things},
        "left_out": [*pairs.left_out, *pictures.left_out],
    }
    return make_study(path, settings, tasks, made=made)


class _Similarities:
    """Similarity of any labels under the measures of a plan; `described` says for `made.json` what each was made of.

    `treated` there holds the labels that a measure did not simply look up, and what was done about each.
    """

    def __init__(self, plan: RatingPlan) -> None:
        self.plan = plan
        self.described: dict[str, dict[str, Any]] = {}

    def __call__(self, labels: LabelSet) -> dict[str, NDArray[np.float64]]:
        found: dict[str, NDArray[np.float64]] = {}
        plan = self.plan
        for name in plan.measures:
            result = similarity_of(labels, name, source=plan.sources.get(name), unknown=plan.unknown, seed=plan.seed)
            found[name] = result.matrix
            before = self.described.get(name, {"treated": {}})["treated"]
            self.described[name] = {
                "description": result.description,
                "fingerprint": result.fingerprint,
                "treated": before | dict(result.treated),
            }
        return found


def _check(plan: RatingPlan) -> None:
    """Refuse measures that are none, come twice, or whose sources belong to no measure, before anything is read."""
    for name in plan.measures:
        find_measure(name)
    if not plan.measures or len(set(plan.measures)) < len(plan.measures):
        raise OptionError(f"--measures {','.join(plan.measures)}: expected different measures", remedy="name each once")
    strange = sorted(set(plan.sources) - set(plan.measures))
    if strange:
        raise OptionError(f"--source {strange[0]}: this is none of the measures", remedy="add it to --measures")
