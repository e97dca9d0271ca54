"""The images that tasks are drawn from, as numbers: concept, context and content of each.

>>> table = image_table(["dog", "cat", "cat"], ["snow", "snow", "grass"], ["hash a", "hash b", "hash a"])
>>> table.concepts, table.concept.tolist(), table.context.tolist(), table.content.tolist()
(('cat', 'dog'), [1, 0, 0], [1, 1, 0], [0, 1, 0])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError

Numbers = NDArray[np.int64]
MODES = ("blind", "iid", "ood", "swapped", "shared")
"""How the contexts of a task's supports and queries relate."""
BLIND_SUPPORTS = ("ours", "paper")
"""`ours`: blind keeps the supports of the other modes; `paper`: it draws its own without regard to context."""


@dataclass(frozen=True, eq=False)
class ImageTable:
    """One row an image, (n,) int64 each.

    `concept` and `context` are indices into the sorted names `concepts` and `contexts`; equal numbers in `content`
    mean equal files.
    """

    concepts: tuple[str, ...]
    contexts: tuple[str, ...]
    concept: Numbers
    context: Numbers
    content: Numbers

    def __post_init__(self) -> None:
        lengths = {name: len(getattr(self, name)) for name in ("concept", "context", "content")}
        if len(set(lengths.values())) > 1:
            counted = ", ".join(f"{count} of {name}" for name, count in lengths.items())
            raise DataError(f"an image table needs one number an image in every column, it has {counted}")
        for column, names in (("concept", self.concepts), ("context", self.contexts)):
            numbers = getattr(self, column)
            if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(names):
                raise DataError(
                    f"the column {column!r} of an image table must lie in 0..{len(names) - 1}, "
                    f"it reaches from {numbers.min()} to {numbers.max()}"
                )

    def __len__(self) -> int:
        """How many images there are."""
        return len(self.concept)


def image_table(concepts: Sequence[str], contexts: Sequence[str], contents: Sequence[str]) -> ImageTable:
    """The table of images whose concept, context and content (a hash, say) are given by name, in their order.

    Contents are numbered as they first appear, so that the hash in use leaves no trace in what is drawn.
    """
    concept_names, concept = _numbered(concepts)
    context_names, context = _numbered(contexts)
    first: dict[str, int] = {}
    content = np.array([first.setdefault(name, len(first)) for name in contents], dtype=np.int64)
    return ImageTable(concept_names, context_names, concept, context, content)


def _numbered(names: Sequence[str]) -> tuple[tuple[str, ...], Numbers]:
    ordered = tuple(sorted(set(names)))
    number = {name: position for position, name in enumerate(ordered)}
    return ordered, np.array([number[name] for name in names], dtype=np.int64)
