"""Two label sets as one, for models that answer in other words than the truth is written in.

>>> from hardlook.labels.label_set import Label, LabelSet
>>> truth = LabelSet("truth", "file", (Label(0, "cat", (), "cat.n.01"), Label(1, "crane", (), "crane.n.05")))
>>> words = LabelSet("words", "file", (Label(0, "crane", (), "crane.n.04"), Label(1, "Cat", (), "cat.n.01")))
>>> both = union(truth, words)
>>> both.labels.names, both.second.tolist()
(('cat', 'crane', 'crane (crane.n.04)'), [2, 0])
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hardlook.labels.label_set import Label, LabelSet


@dataclass(frozen=True, eq=False)
class LabelUnion:
    """The labels of both sets, and the row in them of each label of the first (Ka,) and of the second set (Kb,)."""

    labels: LabelSet
    first: NDArray[np.int64]
    second: NDArray[np.int64]


def union(first: LabelSet, second: LabelSet) -> LabelUnion:
    """All labels of the first set, then those of the second that it has not; ids are the new rows.

    Labels of the same name (case, spaces, `_` and `-` do not count) and the same sense are one. Of the same name and
    another sense, the second's name gets its sense in brackets. Two names of one sense stay two labels, which measures
    on senses find alike.
    """
    rows: list[Label] = []
    places: dict[tuple[str, str | None], int] = {}
    taken: set[str] = set()
    found: list[NDArray[np.int64]] = []
    for labels in (first, second):
        where = []
        for label in labels:
            key = (_plain(label.name), label.synset or label.hypernym)
            if key not in places:
                name = label.name
                if _plain(name) in taken:
                    name = f"{name} ({key[1] or labels.name})"
                taken.add(_plain(label.name))
                places[key] = len(rows)
                rows.append(replace(label, id=len(rows), name=name, category_id=None))
            where.append(places[key])
        found.append(np.array(where, np.int64))
    variants = dict.fromkeys((first.variant, second.variant))
    return LabelUnion(LabelSet(f"{first.name}+{second.name}", "+".join(variants), tuple(rows)), found[0], found[1])


def _plain(name: str) -> str:
    return "".join(letter for letter in name if letter not in " _-\t").casefold()
