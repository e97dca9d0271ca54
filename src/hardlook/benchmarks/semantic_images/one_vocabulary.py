"""Several runs in one list of labels, so that what they add up has the same columns.

Runs on the same truth begin with the same labels, the truth's; after these each has the words of its own model. The
common list is what all begin with, then every other word by name. Words pair as in `together`: case, spaces, `_` and
`-` do not count.

>>> names, tables = one_list([["cat", "sky", "tiger", "ox"], ["cat", "sky", "Ox", "ape"]], truths=[2, 1])
>>> names, [table.tolist() for table in tables]
(('cat', 'sky', 'Ox', 'ape', 'tiger'), [[0, 1, 4, 2], [0, 1, 2, 3]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.labels.label_set import plain_name

if TYPE_CHECKING:
    import polars as pl

Table = NDArray[np.int64]
_REMEDY = "compare runs on the same data, with the same --labels"


def one_list(lists: Sequence[Sequence[str]], truths: Sequence[int]) -> tuple[tuple[str, ...], list[Table]]:
    """The common names, and for each list a table (K,) with the place of each of its labels among them.

    `truths` says of each list how many labels, from its first, are surely the truth's; these must be the same ones
    in all lists, else a `DataError` names the first that differ.
    """
    refuse_other_truths(lists, max(truths, default=0))
    first = lists[0]
    alike = [len({names[place] for names in lists}) == 1 for place in range(min(map(len, lists)))]
    head = first[: [*alike, False].index(False)]
    begun = {plain_name(name) for name in head}
    rest: dict[str, str] = {}
    for name in sorted({name for names in lists for name in names[len(head) :]}):
        if plain_name(name) not in begun:
            rest.setdefault(plain_name(name), name)
    joined = (*head, *rest.values())
    places = {plain_name(name): place for place, name in enumerate(joined)}
    return joined, [np.array([places[plain_name(name)] for name in names], np.int64) for names in lists]


def refuse_other_truths(lists: Sequence[Sequence[str]], truths: int) -> None:
    """Refuse lists that differ among their first `truths` labels; the error names the labels of both.

    >>> refuse_other_truths([["cat", "sky"], ["cat", "sea"]], 2)
    Traceback (most recent call last):
    ...
    hardlook.errors.DataError: the runs have other true labels: label 2 is 'sky' in run 1 and 'sea' in run 2
      remedy: compare runs on the same data, with the same --labels
    """
    for number, names in enumerate(lists[1:], 2):
        for place in range(truths):
            one, other = (repr(known[place]) if place < len(known) else "missing" for known in (lists[0], names))
            if one != other:
                what = (
                    f"the runs have other true labels: label {place + 1} is {one} in run 1 and {other} in run {number}"
                )
                raise DataError(what, remedy=_REMEDY)


def relabelled(lists: pl.Series, change: Callable[[Table], Table]) -> pl.Series:
    """A column of lists of integers with every number changed by `change`, which maps (n,) to (n,).

    >>> import polars as pl
    >>> relabelled(pl.Series("labels", [[0, 1], [], [1]]), lambda labels: labels + 5).to_list()
    [[5, 6], [], [6]]
    """
    import polars as pl

    rows = np.arange(len(lists))
    # An empty list explodes to a null.
    numbers = change(lists.explode().drop_nulls().to_numpy().astype(np.int64))
    flat = pl.DataFrame({"row": np.repeat(rows, lists.list.len().to_numpy()), lists.name: numbers})
    filled = pl.DataFrame({"row": rows}).join(
        flat.group_by("row", maintain_order=True).agg(lists.name), on="row", how="left", maintain_order="left"
    )
    empty = pl.lit([], pl.List(pl.Int64))
    return filled.select(pl.coalesce(lists.name, empty).alias(lists.name)).to_series()
