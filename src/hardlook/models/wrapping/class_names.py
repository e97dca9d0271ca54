"""Names of a network's classes: given, or read from the network, and turned into the labels of a role.

>>> names = ClassNames.of(["__background__", "cat", "N/A", "dog"])
>>> names.labels, names.table.tolist()
(('background', 'cat', 'dog'), [0, 1, -1, 2])
>>> detected = names.without_background()
>>> detected.labels, detected.table.tolist()
(('cat', 'dog'), [-1, 0, -1, 1])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError, OptionError

BACKGROUND = "__background__"
UNUSED = "N/A"

_REMEDY = "pass classes=[...], one name for each class of the network, in the order of its outputs"


@dataclass(frozen=True)
class ClassNames:
    """`names` of the network's classes in the order of its outputs, the `labels` of the role, and how they map.

    `table` (K,) int32 gives the place in `labels` of each class, -1 for a class that is none: `N/A`, which lists of
    COCO's classes have in their gaps. Classes of one name are one label. `__background__` is the label `background`.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    table: NDArray[np.int32]

    @classmethod
    def of(cls, names: Sequence[str], dropped: Sequence[str] = (UNUSED,)) -> ClassNames:
        """The labels and the table of a list of names."""
        places: dict[str, int] = {}
        table = []
        for name in names:
            label = "background" if name == BACKGROUND else name
            table.append(-1 if name in dropped else places.setdefault(label, len(places)))
        return cls(tuple(names), tuple(places), np.array(table, np.int32))

    def without_background(self) -> ClassNames:
        """The same for detections and segments, of which `__background__` is none."""
        return ClassNames.of(self.names, (UNUSED, BACKGROUND))

    def check_count(self, count: int, what: str) -> None:
        """Raise an error unless the network has as many classes as there are names."""
        if count != len(self.names):
            raise ModelError(
                f"{what} has {count} classes, and `classes` has {len(self.names)} names "
                f"({', '.join(self.names[:3])}{', ...' if len(self.names) > 3 else ''})",
                remedy=_REMEDY,
            )

    def to_labels(self, classes: NDArray[Any]) -> NDArray[np.int32]:
        """Numbers of classes as numbers of labels, in any shape; -1 and 255 are not labels."""
        numbers = np.asarray(classes)
        nothing = (numbers < 0) | (numbers == 255) if len(self.names) <= 255 else numbers < 0
        if ((numbers >= len(self.names)) & ~nothing).any():
            raise ModelError(
                f"the network answers class {int(numbers[~nothing].max())}, and `classes` has {len(self.names)} names "
                f"for 0 to {len(self.names) - 1}",
                remedy=_REMEDY,
            )
        padded = np.append(self.table, np.int32(-1))
        return np.asarray(padded[np.where(nothing, len(self.names), numbers).astype(np.intp)], np.int32)


def find_class_names(network: Any, classes: Sequence[str] | Mapping[int, str] | None) -> ClassNames:
    """The names that are given, or those that the network has: `config.id2label`, or `weights.meta["categories"]`."""
    found = classes if classes is not None else _read_names(network)
    if found is None:
        raise OptionError("the names of the network's classes are not known", remedy=_REMEDY)
    if isinstance(found, str):
        raise OptionError(f"classes is the text {found!r}", remedy=_REMEDY)
    if isinstance(found, Mapping):
        numbered = {int(number): name for number, name in found.items()}
        found = [numbered.get(number, UNUSED) for number in range(max(numbered, default=-1) + 1)]
    names = list(found)
    if not names or not all(isinstance(name, str) for name in names):
        raise OptionError(f"classes is not a list of names: {names[:3]}", remedy=_REMEDY)
    return ClassNames.of(names)


def _read_names(network: Any) -> Any:
    named = getattr(getattr(network, "config", None), "id2label", None)
    # Without names transformers makes some up.
    if named and not all(str(name) == f"LABEL_{number}" for number, name in named.items()):
        return named
    meta = getattr(getattr(network, "weights", None), "meta", None)
    return meta.get("categories") if isinstance(meta, Mapping) else None


def find_things(names: ClassNames, things: Sequence[str] | Sequence[bool] | None) -> tuple[bool, ...]:
    """Which labels are countable: `things` are their names, or a flag for each class of the network.

    >>> find_things(ClassNames.of(["sky", "cat"]), ["cat"])
    (False, True)
    """
    remedy = "pass things=[...]: the names of the classes that can be counted, or True or False for each class"
    if things is None:
        raise OptionError("which classes are things and which are stuff is not known", remedy=remedy)
    given = list(things)
    if given and all(isinstance(thing, bool | np.bool_) for thing in given):
        if len(given) != len(names.names):
            raise OptionError(f"things has {len(given)} flags for {len(names.names)} classes", remedy=remedy)
        countable = {name for name, flag in zip(names.names, given, strict=True) if flag}
    else:
        countable = {str(thing) for thing in given}
        if unknown := sorted(countable - set(names.names)):
            raise OptionError(f"things names {unknown[0]!r}, which is not a class of the network", remedy=remedy)
    return tuple(label in countable for label in names.labels)
