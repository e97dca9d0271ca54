"""Two vocabularies in one numbering: the truth's words first, then those that only the model speaks.

>>> names, table = together(["cat", "traffic light"], ["sky", "Traffic_Light"])
>>> names, table.tolist()
(('cat', 'traffic light', 'sky'), [2, 1])
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, ModelError
from hardlook.labels.label_set import plain_name

BACKGROUND = "background"


def together(known: Sequence[str], spoken: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """All names, and for each spoken one its place among them; two known names that compare equal are refused."""
    places = {plain_name(name): place for place, name in enumerate(known)}
    if len(places) < len(known):
        twin = next(name for place, name in enumerate(known) if places[plain_name(name)] != place)
        raise DataError(f"two labels are called {twin!r}: case, spaces, _ and - do not count", remedy="rename one")
    names, table = list(known), []
    for name in spoken:
        if plain_name(name) not in places:
            places[plain_name(name)] = len(names)
            names.append(name)
        table.append(places[plain_name(name)])
    return tuple(names), np.array(table, np.int32)


def closed(known: Sequence[str], spoken: Sequence[str]) -> NDArray[np.int32]:
    """For each spoken name its place among the known ones, and last what "no label" becomes.

    A word that the data does not know is its background, where it has one: a model that also knows the sky is right
    to see it there. Without a background it is no label at all, -1.
    """
    places = {plain_name(name): place for place, name in enumerate(known)}
    unknown = places.get(BACKGROUND, -1)
    table = [places.get(plain_name(name), unknown) for name in spoken]
    if all(place == unknown for place in table):
        raise ModelError(
            f"no label of the model ({', '.join(spoken[:4])}...) is a label of the data ({', '.join(known[:4])}...)",
            remedy="closed mIoU needs one vocabulary: rename labels on either side, or run open-miou",
        )
    return np.array([*table, unknown], np.int32)


def translate(answer: NDArray[np.int32], table: NDArray[np.int32], nothing: int = -1) -> NDArray[np.int32]:
    """A label map in another numbering; what is outside the table becomes `nothing`."""
    padded = np.array([*table, nothing], np.int32)
    return padded[np.where((answer < 0) | (answer >= len(table)), len(table), answer)]
