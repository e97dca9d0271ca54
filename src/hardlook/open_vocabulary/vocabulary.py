"""Vocabularies: joining the labels of truth and model, and those of several runs, into one numbering.

Labels are compared by name; case, spaces, `_` and `-` do not count. The truth's labels come first and keep their
numbers; labels that only the model knows follow.

>>> names, places = join_labels(["cat", "traffic light"], ["sky", "Traffic_Light"])
>>> names, places.tolist()
(('cat', 'traffic light', 'sky'), [2, 1])

Runs on the same truth start with the same labels, those of the truth. Their joint list is what all start with, then
every other label by name.

>>> names, tables = join_run_labels([["cat", "sky", "tiger", "ox"], ["cat", "sky", "Ox", "ape"]], truth_counts=[2, 1])
>>> names, [table.tolist() for table in tables]
(('cat', 'sky', 'Ox', 'ape', 'tiger'), [[0, 1, 4, 2], [0, 1, 2, 3]])
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, ModelError
from hardlook.reading import read_name
from hardlook.similarity.labels import normalise_name

BACKGROUND = "background"


def join_labels(truth: Sequence[str], predicted: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """All names, each in one line, and the place of each predicted one; two equal names in the truth are an error."""
    places = {normalise_name(name): place for place, name in enumerate(truth)}
    if len(places) < len(truth):
        duplicate = next(name for place, name in enumerate(truth) if places[normalise_name(name)] != place)
        raise DataError(f"two labels are called {duplicate!r}: case, spaces, _ and - do not count", remedy="rename one")
    names, table = list(map(read_name, truth)), []
    for name in predicted:
        if normalise_name(name) not in places:
            places[normalise_name(name)] = len(names)
            names.append(read_name(name))
        table.append(places[normalise_name(name)])
    return tuple(names), np.array(table, np.int32)


def map_to_closed_labels(truth: Sequence[str], predicted: Sequence[str]) -> NDArray[np.int32]:
    """For each predicted label its place among the truth's, and as last entry what "no label" becomes.

    A label that the truth does not have becomes the background, where there is one: a model that also knows the sky
    is right to see it there. Without a background it is not a label, -1.
    """
    places = {normalise_name(name): place for place, name in enumerate(truth)}
    unknown = places.get(BACKGROUND, -1)
    table = [places.get(normalise_name(name), unknown) for name in predicted]
    if all(place == unknown for place in table):
        raise ModelError(
            f"no label of the model ({', '.join(predicted[:4])}...) is a label of the data ({', '.join(truth[:4])}...)",
            remedy="closed mIoU needs one vocabulary: rename labels on either side, or run open-miou",
        )
    return np.array([*table, unknown], np.int32)


def relabel_map(label_map: NDArray[np.int32], table: NDArray[np.int32], no_label: int = -1) -> NDArray[np.int32]:
    """A label map in another numbering; numbers outside the table become `no_label`."""
    padded = np.array([*table, no_label], np.int32)
    return padded[np.where((label_map < 0) | (label_map >= len(table)), len(table), label_map)]


def join_run_labels(
    lists: Sequence[Sequence[str]], truth_counts: Sequence[int]
) -> tuple[tuple[str, ...], list[NDArray[np.int64]]]:
    """The joint list of labels, and for each run a table (K,) with the place of each of its labels in it.

    `truth_counts` are how many labels, from the first, certainly belong to the truth in each list; these must be equal
    in all lists, else a `DataError` names the first that differ.
    """
    check_same_truth(lists, max(truth_counts, default=0))
    equal = [len({names[place] for names in lists}) == 1 for place in range(min(map(len, lists)))]
    shared = lists[0][: [*equal, False].index(False)]
    shared_names = {normalise_name(name) for name in shared}
    rest: dict[str, str] = {}
    for name in sorted({name for names in lists for name in names[len(shared) :]}):
        if normalise_name(name) not in shared_names:
            rest.setdefault(normalise_name(name), name)
    joint = (*shared, *rest.values())
    places = {normalise_name(name): place for place, name in enumerate(joint)}
    return joint, [np.array([places[normalise_name(name)] for name in names], np.int64) for names in lists]


def check_same_truth(lists: Sequence[Sequence[str]], count: int) -> None:
    """Raise an error where the first `count` labels differ between runs; it names the labels of both.

    >>> check_same_truth([["cat", "sky"], ["cat", "sea"]], 2)
    Traceback (most recent call last):
    ...
    hardlook.errors.DataError: the runs differ in their true labels: label 2 is 'sky' in run 1 and 'sea' in run 2
      remedy: compare runs on the same data, with the same --labels
    """
    for number, names in enumerate(lists[1:], 2):
        for place in range(count):
            one, other = (repr(labels[place]) if place < len(labels) else "missing" for labels in (lists[0], names))
            if one != other:
                what = f"label {place + 1} is {one} in run 1 and {other} in run {number}"
                remedy = "compare runs on the same data, with the same --labels"
                raise DataError(f"the runs differ in their true labels: {what}", remedy=remedy)
