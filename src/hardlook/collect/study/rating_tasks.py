"""Things to rate and what measures make of them, as the tasks of a study.

In a `fit` study a thing becomes one task a measure, since a value is shown. All of them have one subject, and a
participant gets each subject once: with a second value in view, the same pair would be rated by comparing the two, and
not by what each says. So measures are compared on the same pairs, but by different people. In a `likeness` study no
value is shown, and a thing is one task; what each measure says of it is kept in `made.json`.

>>> pair = Rated("pair/cat/dog", "pair", ("cat", "dog"), {"path": 0.2, "wup": 0.857})
>>> [(task.id, task.measure, task.value) for task in tasks_of([pair], "fit")]
[('t000001', 'path', 0.2), ('t000002', 'wup', 0.857)]
>>> [(task.id, task.measure) for task in tasks_of([pair], "likeness")]
[('t000001', '')]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.collect.study.settings import Question
from hardlook.collect.study.spread_draws import spread_draw
from hardlook.collect.study.tasks import RatingTask
from hardlook.errors import OptionError
from hardlook.labels.label_set import LabelSet
from hardlook.labels.wording import has_no_meaning, wording
from hardlook.randomness import generator

EXAMPLES = 5
# The same two values before a pair that they fit and one that they do not; no measure made them, so none is favoured.
_TRAINING = ((("apple", "pear"), 0.8), (("apple", "bridge"), 0.8))


@dataclass(frozen=True)
class Rated:
    """A pair or a picture with the value in [0, 1] that each measure gives it; `labels` and `image` as in a task."""

    subject: str
    form: Literal["pair", "picture"]
    labels: tuple[str, ...]
    values: Mapping[str, float]
    image: str = ""


@dataclass(frozen=True)
class DrawnThings:
    """What is rated, out of how many `candidates`, and what was left out (rows of `made.json`)."""

    things: tuple[Rated, ...]
    candidates: int
    left_out: tuple[Mapping[str, Any], ...] = ()


def left_out(what: str, why: str, names: Sequence[str]) -> list[Mapping[str, Any]]:
    """A row of `made.json` about what was left out, or none.

    >>> left_out("labels", "they mean nothing", ["background"])
    [{'what': 'labels', 'count': 1, 'why': 'they mean nothing', 'examples': ['background']}]
    """
    row = {"what": what, "count": len(names), "why": why, "examples": list(names[:EXAMPLES])}
    return [row] if names else []


def draw_pairs(labels: LabelSet, matrices: Mapping[str, NDArray[np.float64]], count: int, seed: int = 0) -> DrawnThings:
    """Draw pairs of different labels, the same for all measures, with the values of each spread.

    `matrices` holds the (K, K) similarity of the set's K labels by measure. Labels that stand for none
    (`background`), and labels that read alike, are left out: nobody could tell what is meant.

    >>> from hardlook.labels.measures import similarity_of
    >>> from hardlook.labels.shipped import read_shipped
    >>> voc = read_shipped("voc20")
    >>> drawn = draw_pairs(voc, {"path": similarity_of(voc, "path").matrix}, 12)
    >>> len(drawn.things), drawn.candidates, drawn.left_out
    (12, 190, ())
    """
    words = [wording(label) for label in labels]
    empty = [has_no_meaning(label) for label in labels]
    twins = [words.count(word) > 1 and not none for word, none in zip(words, empty, strict=True)]
    kept = np.array([row for row in range(len(labels)) if not empty[row] and not twins[row]], np.int64)
    notes = left_out("labels", "they stand for no label", [n for n, no in zip(labels.names, empty, strict=True) if no])
    notes += left_out(
        "labels", "another label reads alike", [n for n, no in zip(labels.names, twins, strict=True) if no]
    )
    if len(kept) < 2:
        raise OptionError(f"{labels.name} has {len(kept)} labels to pair", remedy="give two labels at least")
    first, second = (kept[rows] for rows in np.triu_indices(len(kept), k=1))
    values = np.stack([matrix[first, second] for matrix in matrices.values()])
    rng = generator(seed, "rating pairs", labels.name, labels.variant, count)
    things = []
    for at in spread_draw(values, count, rng).tolist():
        a, b = int(first[at]), int(second[at])
        said = {name: float(value) for name, value in zip(matrices, values[:, at], strict=True)}
        things.append(Rated(f"pair/{labels.names[a]}/{labels.names[b]}", "pair", (words[a], words[b]), said))
    return DrawnThings(tuple(things), len(first), tuple(notes))


def tasks_of(things: Sequence[Rated], question: Question) -> list[RatingTask]:
    """The tasks of all things, in their order: one a measure for `fit`, one for `likeness`, which has no measure."""
    tasks: list[RatingTask] = []
    for thing in things:
        shown = thing.values.items() if question == "fit" else [("", 0.0)]
        for measure, value in shown:
            number = f"t{len(tasks) + 1:06d}"
            tasks.append(RatingTask(number, thing.subject, thing.form, thing.labels, measure, value, thing.image))
    return tasks


def training_pairs(count: int) -> list[RatingTask]:
    """At most two pairs for the training round, alike and not, with values that no measure gave.

    >>> [task.labels for task in training_pairs(2)]
    [('apple', 'pear'), ('apple', 'bridge')]
    """
    return [
        RatingTask(f"training-{row}", f"training/{row}", "pair", labels, "", value, training=True)
        for row, (labels, value) in enumerate(_TRAINING[:count])
    ]
