"""From a run's label names to their similarity matrix.

>>> labels = named_labels(["cat", "dog", "background"], ())
>>> [label.synset for label in labels]
['cat.n.01', 'dog.n.01', None]
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.open_labels.options import OpenLabelOptions
from hardlook.contract.scorecard import LeftOut
from hardlook.errors import DataError, HardlookError, OptionError
from hardlook.labels.label_set import Label, LabelSet, plain_name
from hardlook.labels.load import load_label_set
from hardlook.labels.matrix_files import read_matrix
from hardlook.labels.measures import similarity_of
from hardlook.world.vocabulary import LABELS

WORLD = LabelSet(
    "planted-world",
    "corrected",
    tuple(Label(i, label.name, (), label.synset, isthing=label.thing) for i, label in enumerate(LABELS)),
)


@dataclass(frozen=True)
class LabelSimilarity:
    """(K, K) similarity of a run's labels, and what had to be done to get it."""

    matrix: NDArray[np.float64]
    notes: tuple[LeftOut, ...]


def label_similarity(names: Sequence[str], labels: str | None, options: OpenLabelOptions) -> LabelSimilarity:
    """The similarity that the options choose, for the labels of a run.

    `labels` is the truth's label set; names are looked up there, then among the predictions' labels, then in the
    planted world and VOC.
    """
    sets = _sets(labels, options)
    found = named_labels(names, sets)
    if options.similarity is not None:
        return LabelSimilarity(read_matrix(options.similarity, found).values, ())
    result = similarity_of(found, options.measure, source=options.source, unknown=options.unknown, seed=options.seed)
    notes = (*_notes(result.treated), *_doubts(names, sets, own_data=bool(options.data or options.gt)))
    return LabelSimilarity(result.matrix, notes)


def similarity_in_use(
    names: Sequence[str], used: NDArray[np.bool_], labels: str | None, options: OpenLabelOptions
) -> NDArray[np.float64]:
    """(K, K) similarity where the list may hold words of other runs; `used` (K,) says which this run uses.

    Another model's words may have no sense under this run's options. They are then strange to every label, which no
    score of this run can notice. A word that the run does use is refused as ever.

    >>> used = np.array([True, True, False])
    >>> similarity_in_use(["cat", "dog", "glorp"], used, None, OpenLabelOptions())
    array([[1. , 0.2, 0. ],
           [0.2, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    try:
        return label_similarity(names, labels, options).matrix
    except HardlookError:
        rows = np.flatnonzero(used)
        if len(rows) == len(names):
            raise
    matrix = np.eye(len(names))
    matrix[np.ix_(rows, rows)] = label_similarity([names[row] for row in rows.tolist()], labels, options).matrix
    return matrix


def free_similarities(
    names: Sequence[str], labels: str | None, options: OpenLabelOptions
) -> dict[str, NDArray[np.float64]]:
    """The measures of `--compare`, to show what the choice does: re-scoring is free.

    Beside a matrix of the user's own they are made only where the measures know all labels.
    """
    found = named_labels(names, _sets(labels, options))
    made = {}
    for name in options.compare:
        try:
            made[name] = similarity_of(found, name, unknown=options.unknown, seed=options.seed).matrix
        except HardlookError:
            if options.similarity is None:
                raise
    return made


def named_labels(names: Sequence[str], sets: Sequence[LabelSet]) -> LabelSet:
    """Each name as a label, with the sense that the first set which knows it gives; unknown names have none.

    Names that no set knows are looked up in the planted world and in VOC, which is counted (`label_similarity`).
    """
    labels = []
    for row, name in enumerate(names):
        found = next((label for one in (*sets, *_fallback()) if (label := _find(one, name))), Label(row, name))
        labels.append(replace(found, id=row, name=name, category_id=None))
    title = "+".join(one.name for one in sets) or WORLD.name
    return LabelSet(title, sets[0].variant if sets else WORLD.variant, tuple(labels))


def _find(labels: LabelSet, name: str) -> Label | None:
    try:
        return labels.find(name)
    except OptionError:
        return None


def _fallback() -> tuple[LabelSet, ...]:
    return WORLD, load_label_set("voc20")


def kinds_of(names: Sequence[str], labels: str | None, options: OpenLabelOptions) -> dict[str, NDArray[np.bool_]]:
    """Masks (K,) of things and of stuff, those that have any; labels that do not say are in neither."""
    found = named_labels(names, _sets(labels, options))
    kinds = {"things": True, "stuff": False}
    masks = {kind: np.array([label.isthing is wanted for label in found], np.bool_) for kind, wanted in kinds.items()}
    return {kind: mask for kind, mask in masks.items() if mask.any()}


def read_class_sets(path: Path, names: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    """Sets of classes from a JSON file {"seen": ["cat", ...], ...}, each as a mask (K,) over `names`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        sets = {str(name): [str(member) for member in members] for name, members in document.items()}
    except FileNotFoundError:
        raise DataError("there is no such file", file=path, remedy="give --class-sets FILE.json") from None
    except (ValueError, AttributeError, TypeError) as error:
        remedy = 'write {"seen": ["cat", "dog"], "unseen": ["owl"]}'
        raise DataError(f"not a table of class sets ({error})", file=path, remedy=remedy) from None
    places = {plain_name(name): row for row, name in enumerate(names)}
    masks = {}
    for name, members in sets.items():
        strange = [member for member in members if plain_name(member) not in places]
        if strange:
            raise DataError(
                f"{len(strange)} classes of the set {name!r} are not labels of the run: {', '.join(strange[:5])}",
                file=path,
                remedy="use the label set's own names",
            )
        masks[name] = np.zeros(len(names), np.bool_)
        masks[name][[places[plain_name(member)] for member in members]] = True
    return masks


def _sets(labels: str | None, options: OpenLabelOptions) -> list[LabelSet]:
    asked = [name for name in (labels, options.pred_labels) if name]
    return [_load(name, options.variant) for name in asked]


def _load(name: str, variant: str) -> LabelSet:
    return load_label_set(name, variant)


def _notes(treated: Sequence[tuple[str, str]]) -> tuple[LeftOut, ...]:
    ways: dict[str, list[str]] = {}
    for label, how in treated:
        ways.setdefault(how.split(":")[0], []).append(label)
    return tuple(
        LeftOut("labels with a special treatment", len(names), how, tuple(names[:5])) for how, names in ways.items()
    )


def _doubts(names: Sequence[str], sets: Sequence[LabelSet], *, own_data: bool) -> list[LeftOut]:
    """Senses that nobody chose for these data, and names that two sets give different senses."""
    notes = []
    nowhere = [name for name in names if not any(_find(one, name) for one in sets)]
    borrowed = [name for name in nowhere if any(_find(one, name) for one in _fallback())]
    if own_data and borrowed:
        why = "no --labels names them: their senses are those of the planted world or VOC"
        notes.append(LeftOut("borrowed senses", len(borrowed), why, tuple(borrowed[:5])))
    if len(sets) == 2:
        both = [(name, _find(sets[0], name), _find(sets[1], name)) for name in names]
        split = [name for name, one, other in both if one and other and one.synset != other.synset]
        if split:
            why = "truth and predictions give the name two senses; it counts as one label, in the truth's sense"
            notes.append(LeftOut("names with two senses", len(split), why, tuple(split[:5])))
    return notes
