"""The similarity matrix of a run's labels.

>>> labels = find_labels(["cat", "dog", "background"], ())
>>> [label.synset for label in labels]
['cat.n.01', 'dog.n.01', None]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, HardlookError, OptionError
from hardlook.harness.scorecard import LeftOut
from hardlook.open_vocabulary.options import SimilarityOptions
from hardlook.similarity.free_words.phrases import parse_class_name
from hardlook.similarity.label_sets import WORDS, list_label_sets, load_label_set
from hardlook.similarity.labels import VOID_NAMES, Label, LabelSet, normalise_name
from hardlook.similarity.matrix import UNKNOWN
from hardlook.similarity.matrix_files import open_matrix, read_matrix
from hardlook.similarity.measures import compute_pair_similarity, compute_similarity
from hardlook.similarity.pair_measures import PairSimilarity, among_rows
from hardlook.similarity.wordnet.nouns import load_nouns
from hardlook.world.vocabulary import LABELS

WORLD = LabelSet(
    "planted-world",
    "corrected",
    tuple(Label(i, label.name, (), label.synset, isthing=label.thing) for i, label in enumerate(LABELS)),
)


# Up to this many labels the similarity is a matrix (134 MB), above it a function of the pairs that occur.
MAX_MATRIX_LABELS = 4096

Matrix = NDArray[np.float64]
Treated = tuple[tuple[str, str], ...]
Result = TypeVar("Result")


@dataclass(frozen=True)
class LabelSimilarity:
    """(K, K) similarity of a run's labels, and notes on labels that needed a special treatment."""

    matrix: Matrix
    notes: tuple[LeftOut, ...]


@dataclass(frozen=True)
class LabelPairs:
    """The similarity of a run's labels as a function of two arrays (n,) of label numbers, and notes as above."""

    pairs: PairSimilarity
    notes: tuple[LeftOut, ...]


def compute_label_similarity(
    names: Sequence[str],
    options: SimilarityOptions,
    own: LabelSet | None = None,
    *,
    every: Sequence[str] | None = None,
    more_names: bool = False,
) -> LabelSimilarity:
    """The similarity of names, looked up in `options.labels`, the predictions' labels, the planted world and VOC.

    Without `options.labels` the senses of `own` count, those that the data's json states. Names of the data that none
    of these has are then looked up in the smallest shipped label set that has all names, such as coco80 for COCO's
    json. A matrix from a file has the labels `every` where `names` are only those of them that occur; `more_names` says
    that it may name any others.
    """

    def read(labels: LabelSet, path: Path) -> Matrix:
        if every is not None:
            pairs, rows = _open_among(labels, every, path, options), np.arange(len(labels))
            return np.stack([pairs(np.full_like(rows, row), rows) for row in rows])
        return read_matrix(path, labels, asymmetric=options.asymmetric, more_names=more_names).values

    def compute(labels: LabelSet) -> tuple[Matrix, Treated]:
        known, places = _speak(labels)
        result = compute_similarity(
            known, options.measure, source=options.source, unknown=options.unknown, seed=options.seed
        )
        return _spread(result.matrix, places), result.treated

    return LabelSimilarity(*_compute(names, options, own, read, compute))


def compute_label_pairs(
    names: Sequence[str], options: SimilarityOptions, *, every: Sequence[str] | None = None
) -> LabelPairs:
    """As `compute_label_similarity`, for so many labels that no matrix fits into memory.

    A matrix from a file may name other labels too: with very many labels, those that occur nowhere are left out.
    """

    def read(labels: LabelSet, path: Path) -> PairSimilarity:
        if every is not None:
            return _open_among(labels, every, path, options)
        return open_matrix(path, labels, asymmetric=options.asymmetric, more_names=True)

    def compute(labels: LabelSet) -> tuple[PairSimilarity, Treated]:
        known, places = _speak(labels)
        result = compute_pair_similarity(
            known, options.measure, source=options.source, unknown=options.unknown, seed=options.seed
        )
        return _spread_pairs(result.pairs, places), result.treated

    return LabelPairs(*_compute(names, options, None, read, compute))


def _open_among(labels: LabelSet, every: Sequence[str], path: Path, options: SimilarityOptions) -> PairSimilarity:
    """The matrix of a file for labels that are some of `every`; its rows are in their order if it names none."""
    whole = find_labels(every, _load_sets(options, every, None))
    places = {name: place for place, name in enumerate(every)}
    pairs = open_matrix(path, whole, asymmetric=options.asymmetric, more_names=True)
    return among_rows(pairs, [places[label.name] for label in labels])


def _compute(
    names: Sequence[str],
    options: SimilarityOptions,
    own: LabelSet | None,
    read: Callable[[LabelSet, Path], Result],
    compute: Callable[[LabelSet], tuple[Result, Treated]],
) -> tuple[Result, tuple[LeftOut, ...]]:
    sets = _load_sets(options, names, own)
    found = _name_data(find_labels(names, sets), options)
    if options.similarity is not None:
        return read(found, options.similarity), ()
    try:
        result, treated = compute(found)
    except DataError as error:
        if options.labels:
            raise
        known = "coco80 for COCO, its own json for LVIS"
        remedy = f"name the label set that has the senses with --labels ({known}); else {error.remedy}"
        raise DataError(error.what, file=error.file, remedy=remedy) from None
    listed = _list_labels(names)
    doubtful = _note_doubtful_senses(listed, sets, own_data=_has_data(options))
    if shipped := _find_shipped_set(options, listed, own):
        why = f"no --labels: all names of the data are labels of {shipped.name}"
        doubtful.append(LeftOut(f"labels with the senses of {shipped.name}", len(listed), why, kept=True))
    if own and not options.labels:
        why = "no --labels: the categories of the data's json state their synsets"
        doubtful.append(LeftOut("labels with the senses of the data's json", len(own), why, kept=True))
    return result, (*_note_treatments(treated), *doubtful)


def check_similarity(
    names: Sequence[str], options: SimilarityOptions, own: LabelSet | None = None, *, complete: bool
) -> None:
    """Raise an error, before units are evaluated, for labels without a sense or a matrix that cannot be used.

    `complete` says that the names are all labels of the run; else a model may add its own, which a matrix may name.
    """
    if options.asymmetric and options.similarity is None:
        remedy = "give the matrix as --similarity FILE, or leave the option out"
        raise OptionError("--asymmetric says how a matrix is meant, and there is none", remedy=remedy)
    if options.similarity is not None:
        found = _name_data(find_labels(names, _load_sets(options, names, own)), options)
        look = open_matrix if len(names) > MAX_MATRIX_LABELS else read_matrix
        look(options.similarity, found, asymmetric=options.asymmetric, more_names=not complete)
    elif len(names) > MAX_MATRIX_LABELS:
        compute_label_pairs(names, options)
    else:
        compute_label_similarity(names, options, own)


def compute_used_similarity(
    names: Sequence[str],
    used: NDArray[np.bool_],
    options: SimilarityOptions,
    own: LabelSet | None = None,
    *,
    every: Sequence[str] | None = None,
) -> Matrix:
    """(K, K) similarity where the list may hold labels of other runs; `used` (K,) says which this run uses.

    Labels of another model may have no sense under this run's options. Their similarity to every label is then 0,
    which changes no score of this run. A label without a sense that the run does use is an error as always. `every` is
    as in `compute_label_similarity`.

    >>> used = np.array([True, True, False])
    >>> compute_used_similarity(["cat", "dog", "glorp"], used, SimilarityOptions())
    array([[1. , 0.2, 0. ],
           [0.2, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    try:
        return compute_label_similarity(names, options, own, every=every, more_names=True).matrix
    except HardlookError:
        rows = np.flatnonzero(used)
        if len(rows) == len(names):
            raise
    matrix, some = np.eye(len(names)), [names[row] for row in rows.tolist()]
    matrix[np.ix_(rows, rows)] = compute_label_similarity(some, options, own, more_names=True).matrix
    return matrix


def compute_used_pairs(
    names: Sequence[str],
    used: NDArray[np.bool_],
    options: SimilarityOptions,
    *,
    every: Sequence[str] | None = None,
) -> PairSimilarity:
    """As `compute_used_similarity`, for so many labels that no matrix fits into memory."""
    try:
        return compute_label_pairs(names, options, every=every).pairs
    except HardlookError:
        rows = np.flatnonzero(used)
        if len(rows) == len(names):
            raise
    places = np.where(used, np.cumsum(used) - 1, UNKNOWN)
    return among_rows(compute_label_pairs([names[row] for row in rows.tolist()], options).pairs, places)


def compute_compared_similarities(
    names: Sequence[str], options: SimilarityOptions, own: LabelSet | None = None
) -> dict[str, Matrix]:
    """The matrices of `--compare` by measure; `glove=FILE` names the source of one that needs it.

    Beside a matrix from a file, measures that do not know all labels are left out.
    """

    def compute(labels: LabelSet, measure: str, given: dict[str, Any]) -> Matrix:
        known, places = _speak(labels)
        return _spread(compute_similarity(known, measure, **given).matrix, places)

    return _compare(names, options, own, compute)


def compute_compared_pairs(names: Sequence[str], options: SimilarityOptions) -> dict[str, PairSimilarity]:
    """As `compute_compared_similarities`, for so many labels that no matrix fits into memory."""

    def compute(labels: LabelSet, measure: str, given: dict[str, Any]) -> PairSimilarity:
        known, places = _speak(labels)
        return _spread_pairs(compute_pair_similarity(known, measure, **given).pairs, places)

    return _compare(names, options, None, compute)


def _compare(
    names: Sequence[str],
    options: SimilarityOptions,
    own: LabelSet | None,
    compute: Callable[[LabelSet, str, dict[str, Any]], Result],
) -> dict[str, Result]:
    found = _name_data(find_labels(names, _load_sets(options, names, own)), options)
    results = {}
    for word in options.compare:
        name, _, source = word.partition("=")
        given: dict[str, Any] = {"source": Path(source)} if source else {}
        try:
            results[name] = compute(found, name, {"unknown": options.unknown, "seed": options.seed, **given})
        except HardlookError:
            if options.similarity is None:
                raise
    return results


def find_labels(names: Sequence[str], sets: Sequence[LabelSet]) -> LabelSet:
    """Each name with its sense in the first set that has it, then in the planted world or VOC; else without one.

    The class of free words has the sense that its name states.
    """
    labels = []
    for row, name in enumerate(names):
        if (free := parse_class_name(name)) is not None:
            labels.append(Label(row, name, (), free.synset))
            continue
        known = (label for one in (*sets, *_fallback_sets()) if (label := find_label(one, name)))
        labels.append(replace(next(known, Label(row, name)), id=row, name=name, category_id=None))
    title = "+".join(one.name for one in sets) or WORLD.name
    return LabelSet(title, sets[0].variant if sets else WORLD.variant, tuple(labels))


def find_label_senses(names: Sequence[str], options: SimilarityOptions, own: LabelSet | None = None) -> dict[int, int]:
    """By the index of a synset in WordNet, the place of the first label with this sense; free words are no labels."""
    nouns, listed = load_nouns(), _list_labels(names)
    senses: dict[int, int] = {}
    for place, label in enumerate(find_labels(listed, _load_sets(options, listed, own))):
        if label.synset is not None:
            senses.setdefault(nouns.index(label.synset), place)
    return senses


def merge_label_senses(
    names: Sequence[str], options: SimilarityOptions, own: LabelSet | None = None
) -> NDArray[np.int64]:
    """(K,) for each name its own place, or for a class of free words that of the label with its sense.

    >>> merge_label_senses(["dog", "car", "automobile (car.n.01)", "crane (crane.n.05)"], SimilarityOptions()).tolist()
    [0, 1, 1, 3]
    """
    return place_by_sense(names, find_label_senses(names, options, own))


def place_by_sense(names: Sequence[str], senses: Mapping[int, int]) -> NDArray[np.int64]:
    """(K,) for each name its own place, or for a class of free words that of its synset in `senses`."""
    nouns, table = load_nouns(), np.arange(len(names))
    for place, name in enumerate(names):
        if (free := parse_class_name(name)) is not None and free.synset is not None:
            table[place] = senses.get(nouns.index(free.synset), place)
    return table


def _speak(labels: LabelSet) -> tuple[LabelSet, NDArray[np.int64]]:
    """The labels as a measure takes them, free words by their noun alone; and (K,) the place of each, -1 for none.

    Phrases without a sense are left out: their similarity to all others is 0 under every measure.
    """
    spoken: list[Label] = []
    places = np.full(len(labels), UNKNOWN, np.int64)
    for row, label in enumerate(labels):
        free = parse_class_name(label.name)
        if free is None or free.synset is not None:
            places[row] = len(spoken)
            spoken.append(label if free is None else replace(label, name=free.noun))
    return replace(labels, labels=tuple(spoken)), places


def _spread(matrix: Matrix, places: NDArray[np.int64]) -> Matrix:
    """(K, K) the similarity of all labels, from that of the labels that have places."""
    rows = np.flatnonzero(places != UNKNOWN)
    if len(rows) == len(places):
        return matrix
    spread = np.eye(len(places))
    spread[np.ix_(rows, rows)] = matrix
    return spread


def _spread_pairs(pairs: PairSimilarity, places: NDArray[np.int64]) -> PairSimilarity:
    return among_rows(pairs, places) if (places == UNKNOWN).any() else pairs


def _list_labels(names: Sequence[str]) -> list[str]:
    """The names without the classes of free words, which state their sense."""
    return [name for name in names if parse_class_name(name) is None]


def find_kinds(names: Sequence[str], options: SimilarityOptions) -> dict[str, NDArray[np.bool_]]:
    """Masks (K,) of things and of stuff, those that are not empty; labels of unknown kind are in neither."""
    found = find_labels(names, _load_sets(options, names))
    kinds = {"things": True, "stuff": False}
    masks = {kind: np.array([label.isthing is wanted for label in found], np.bool_) for kind, wanted in kinds.items()}
    return {kind: mask for kind, mask in masks.items() if mask.any()}


def make_own_labels(synsets: Mapping[str, str]) -> LabelSet | None:
    """The labels of a json that states the synset of each category, by name; None where it states none.

    A synset that WordNet 3.0 does not have is not a sense, as in `read_lvis_labels`.

    >>> [(label.synset, label.stated) for label in make_own_labels({"cat": "cat.n.01", "glorp": "glorp.n.01"})]
    [('cat.n.01', None), (None, 'glorp.n.01')]
    """
    nouns, labels = load_nouns(), []
    for row, (name, stated) in enumerate(synsets.items()):
        try:
            synset = nouns.name(nouns.index(stated))
        except OptionError:
            synset = None
        labels.append(Label(row, name, (), synset, isthing=True, stated=None if synset else stated))
    return LabelSet("the data's json", "its synsets", tuple(labels)) if labels else None


def find_label(labels: LabelSet, name: str) -> Label | None:
    """The label of that name or alias, or None."""
    try:
        return labels.find(name)
    except OptionError:
        return None


def _fallback_sets() -> tuple[LabelSet, ...]:
    return WORLD, load_label_set("voc20")


def _load_sets(options: SimilarityOptions, names: Sequence[str], own: LabelSet | None = None) -> list[LabelSet]:
    """The label sets that names are looked up in, the first first; `own` are the senses of the data's json."""
    names = _list_labels(names)
    predicted = [_keep_senses(one) for one in _load_given(options.pred_labels, options)]
    given = _load_given(options.labels, options) + predicted
    if own and not options.labels:
        return [own, *given]
    shipped = _find_shipped_set(options, names, own)
    return [shipped, *given] if shipped else given


def _keep_senses(labels: LabelSet) -> LabelSet:
    """Of a user's own file the labels with a sense or hypernym: plain words say nothing of those that others have."""
    if labels.variant != "file":
        return labels
    return replace(labels, labels=tuple(label for label in labels if label.sense))


def _load_given(name: str | None, options: SimilarityOptions) -> list[LabelSet]:
    """The label set or file of that name; none for words, which have no senses of their own."""
    labels = [load_label_set(name, options.variant)] if name else []
    return [one for one in labels if one.variant != WORDS]


def _find_shipped_set(options: SimilarityOptions, names: Sequence[str], own: LabelSet | None) -> LabelSet | None:
    """The smallest shipped set with all names of data without `--labels`, where the usual sets lack one of them."""
    if options.labels or own or not _has_data(options):
        return None
    given = _load_given(options.pred_labels, options)
    if all(any(find_label(one, name) for one in (*given, *_fallback_sets())) for name in names):
        return None
    wanted = {normalise_name(name) for name in names if not any(find_label(one, name) for one in given)} - VOID_NAMES
    for shipped in sorted(list_label_sets(), key=lambda one: one.size):
        labels = load_label_set(shipped.name, options.variant if options.variant in shipped.variants else "corrected")
        if wanted <= {normalise_name(name) for name in labels.names}:
            return labels
    return None


def _has_data(options: SimilarityOptions) -> bool:
    return bool(options.data or options.gt)


def _name_data(labels: LabelSet, options: SimilarityOptions) -> LabelSet:
    """The labels under a name that an error can use: without `--labels` they are the categories of the data."""
    if options.labels or options.pred_labels or not _has_data(options):
        return labels
    return replace(labels, name="the data", variant="no --labels")


def _note_treatments(treated: Sequence[tuple[str, str]]) -> tuple[LeftOut, ...]:
    ways: dict[str, list[str]] = {}
    for label, how in treated:
        ways.setdefault(how.split(":")[0], []).append(label)
    return tuple(
        LeftOut("labels with a special treatment", len(names), how, tuple(names[:5]), kept=True)
        for how, names in ways.items()
    )


def _note_doubtful_senses(names: Sequence[str], sets: Sequence[LabelSet], *, own_data: bool) -> list[LeftOut]:
    """Senses that were not chosen for these data, and names that have different senses in two sets."""
    notes = []
    missing = [name for name in names if not any(find_label(one, name) for one in sets)]
    borrowed = [name for name in missing if any(find_label(one, name) for one in _fallback_sets())]
    if own_data and borrowed:
        why = "no --labels names them: their senses are those of the planted world or VOC"
        notes.append(LeftOut("borrowed senses", len(borrowed), why, tuple(borrowed[:5]), kept=True))
    if len(sets) == 2:
        both = [(name, find_label(sets[0], name), find_label(sets[1], name)) for name in names]
        split = [name for name, one, other in both if one and other and one.synset != other.synset]
        if split:
            why = "truth and predictions give the name two senses; it counts as one label, in the truth's sense"
            notes.append(LeftOut("names with two senses", len(split), why, tuple(split[:5]), kept=True))
    return notes
