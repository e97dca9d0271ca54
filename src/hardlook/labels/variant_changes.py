"""What the corrected senses of a shipped set change: which pairs of labels, and by how much.

>>> found = compare_variants("voc20", "path")
>>> found.pairs, len(found.differences), found.largest[0].published != found.largest[0].corrected
(190, 4, True)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from hardlook.labels.label_set import LabelSet
from hardlook.labels.shipped import Difference, find_differences, list_label_sets, read_shipped
from hardlook.labels.unknown import NOWHERE, place
from hardlook.wordnet.measures import wordnet_similarity
from hardlook.wordnet.nouns import load_nouns

MOST_A_LABEL = 3
_ROUNDING = 1e-12


@dataclass(frozen=True)
class ChangedPair:
    """Two labels and their similarity under the published and under the corrected senses."""

    first: str
    second: str
    published: float
    corrected: float


@dataclass(frozen=True)
class VariantComparison:
    """The two variants of a set under one measure.

    `pairs` are those compared: of different labels that both have a published sense; `without` are the labels that
    have none. `changed` of the pairs have another similarity; `mean_change` is over all pairs, in [0, 1]. `largest`
    holds the most changed pairs, each changed label at most three times.
    """

    measure: str
    differences: tuple[Difference, ...]
    without: tuple[str, ...]
    pairs: int
    changed: int
    mean_change: float
    largest: tuple[ChangedPair, ...]


def has_two_variants(labels: LabelSet) -> bool:
    """Whether the labels are a shipped set with published senses."""
    return labels.variant != "file" and any(
        shipped.name == labels.name and "published" in shipped.variants for shipped in list_label_sets()
    )


def compare_variants(name: str, measure: str, *, count: int = 30) -> VariantComparison:
    """The variants of the shipped set `name` under a WordNet measure, with the `count` most changed pairs."""
    nouns = load_nouns()
    published, corrected = read_shipped(name, "published"), read_shipped(name, "corrected")
    old, new = place(published, nouns, "zero"), place(corrected, nouns, "hypernym")
    before = wordnet_similarity(measure, old.nodes.tolist())
    after = wordnet_similarity(measure, new.nodes.tolist())
    differences = find_differences(name)
    rows, columns = np.triu_indices(len(published), 1)
    known = (old.nodes[rows] != NOWHERE) & (old.nodes[columns] != NOWHERE)
    rows, columns = rows[known], columns[known]
    moved = np.abs(after[rows, columns] - before[rows, columns])
    suspects = {difference.label for difference in differences}
    shown: Counter[str] = Counter()
    largest: list[ChangedPair] = []
    for one in np.argsort(-moved, kind="stable"):
        first, second = published.names[rows[one]], published.names[columns[one]]
        blamed = suspects & {first, second}
        if len(largest) == count or moved[one] <= _ROUNDING:
            break
        if all(shown[label] < MOST_A_LABEL for label in blamed):
            shown.update(blamed)
            cell = rows[one], columns[one]
            largest.append(ChangedPair(first, second, float(before[cell]), float(after[cell])))
    without = tuple(label.name for label, node in zip(published, old.nodes, strict=True) if node == NOWHERE)
    changed = int((moved > _ROUNDING).sum())
    mean = float(moved.mean()) if len(moved) else 0.0
    return VariantComparison(measure, differences, without, len(moved), changed, mean, tuple(largest))
