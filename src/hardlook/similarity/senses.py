"""Labels whose word has several meanings: what the choice of a sense does to similarity.

>>> from hardlook.similarity.labels import Label, LabelSet
>>> names = {"crane": "crane.n.04", "forklift": "forklift.n.01", "heron": "heron.n.02"}
>>> labels = LabelSet("yard", "file", tuple(Label(i, name, (), names[name]) for i, name in enumerate(names)))
>>> case = find_polysemy(labels, "path")[0]
>>> case.label, case.chosen, case.nearest, case.senses
('crane', 'crane.n.04', ('forklift', 0.125), 5)
>>> case.others[0].synset, case.others[0].nearest[0], case.others[0].largest.label
('crane.n.05', 'heron', 'heron')

What the corrected senses of a shipped set change: which pairs of labels, and by how much.

>>> found = compare_variants("voc20", "path")
>>> found.pairs, len(found.differences), found.largest[0].published != found.largest[0].corrected
(190, 4, True)
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hardlook.similarity.matrix import UNKNOWN
from hardlook.similarity.label_sets import SenseDifference, find_differences, list_label_sets, load_shipped_set
from hardlook.similarity.label_synsets import UnknownPolicy, assign_synsets
from hardlook.similarity.labels import Label, LabelSet, is_void_label, label_text
from hardlook.similarity.wordnet.measures import wordnet_similarity
from hardlook.similarity.wordnet.nouns import Nouns, Sense, load_nouns

_FEWEST_AT_ONCE = 256


@dataclass(frozen=True)
class Change:
    """The similarity to another label under the chosen sense, and under the other one."""

    label: str
    before: float
    after: float


@dataclass(frozen=True)
class OtherSense:
    """A sense that was not chosen.

    `mean_change` is the mean over all other labels of how far their similarity would move, in [0, 1]; `largest` the
    label where it moves most; `nearest` the label that would be most similar.
    """

    synset: str
    gloss: str
    mean_change: float
    largest: Change
    nearest: tuple[str, float]


@dataclass(frozen=True)
class PolysemyCase:
    """A label whose word has `senses` noun senses, of which `chosen` is the `rank`-th (None: a synset of other words).

    `others` come in the order of their mean change, greatest first.
    """

    label: str
    chosen: str
    gloss: str
    senses: int
    rank: int | None
    nearest: tuple[str, float]
    others: tuple[OtherSense, ...]


@dataclass(frozen=True)
class SharedWord:
    """Two labels that one word can name, though they have different senses: crane and crane."""

    word: str
    first: tuple[str, str | None]
    second: tuple[str, str | None]
    rows: tuple[int, int]


def find_polysemy(labels: LabelSet, measure: str, unknown: UnknownPolicy = "hypernym") -> tuple[PolysemyCase, ...]:
    """The labels that have a sense and whose word has others, by the greatest mean change, under a WordNet measure.

    A label's word is its wording (`hardlook.similarity.labels`), its senses are those of WordNet's nouns.
    """
    nouns = load_nouns()
    labels = LabelSet(labels.name, labels.variant, tuple(label for label in labels if not is_void_label(label)))
    nodes = assign_synsets(labels, nouns, unknown).nodes
    words = [nouns.senses(label_text(label)) for label in labels]
    asked = [
        (row, sense) for row, senses in enumerate(words) for sense in senses if nodes[row] not in (UNKNOWN, sense.index)
    ]
    if not asked or len(labels) < 2:
        return ()
    own = wordnet_similarity(measure, nodes.tolist())
    rows = _against_labels(measure, [sense.index for _, sense in asked], nodes)
    others: dict[int, list[OtherSense]] = {}
    for (row, sense), similar in zip(asked, rows, strict=True):
        others.setdefault(row, []).append(_other_sense(labels, row, sense, own[row], similar))
    cases = [_case(labels, row, words[row], int(nodes[row]), own[row], found, nouns) for row, found in others.items()]
    return tuple(sorted(cases, key=lambda case: -case.others[0].mean_change))


def find_shared_words(labels: LabelSet) -> tuple[SharedWord, ...]:
    """Pairs of labels with a name or alias in common but not their sense; case, spaces, `_` and `-` do not count."""
    owners: dict[str, dict[int, str]] = {}
    for row, label in enumerate(labels):
        for word in (label.name, *label.aliases):
            owners.setdefault(re.sub(r"[\s_-]+", "", word).casefold(), {}).setdefault(row, word)
    found: dict[tuple[int, int], SharedWord] = {}
    for named in owners.values():
        for first, second in combinations(named, 2):
            one, other = labels.labels[first], labels.labels[second]
            if _sense(one) != _sense(other):
                pair = SharedWord(named[first], (one.name, _sense(one)), (other.name, _sense(other)), (first, second))
                found.setdefault((first, second), pair)
    return tuple(found.values())


def _against_labels(measure: str, senses: list[int], nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """(A, K) similarity of A senses to K labels, in parts no larger than the labels' own matrix four times over."""
    step = max(len(nodes), _FEWEST_AT_ONCE)
    parts = []
    for start in range(0, len(senses), step):
        part = senses[start : start + step]
        parts.append(wordnet_similarity(measure, [*part, *nodes.tolist()])[: len(part), len(part) :])
    return np.concatenate(parts)


def _other_sense(
    labels: LabelSet, row: int, sense: Sense, before: NDArray[np.float64], after: NDArray[np.float64]
) -> OtherSense:
    moved = np.abs(after - before)
    moved[row] = 0.0
    most = int(np.argmax(moved))
    change = Change(labels.names[most], float(before[most]), float(after[most]))
    mean = float(moved.sum() / (len(labels) - 1))
    return OtherSense(sense.name, sense.gloss, mean, change, _nearest(labels, row, after))


def _case(
    labels: LabelSet, row: int, senses: tuple[Sense, ...], node: int, own: NDArray[np.float64],
    others: list[OtherSense], nouns: Nouns,
) -> PolysemyCase:  # fmt: skip
    numbers = [sense.index for sense in senses]
    return PolysemyCase(
        labels.names[row],
        nouns.name(node),
        nouns.gloss(node),
        len(senses),
        numbers.index(node) + 1 if node in numbers else None,
        _nearest(labels, row, own),
        tuple(sorted(others, key=lambda other: -other.mean_change)),
    )


def _nearest(labels: LabelSet, row: int, similar: NDArray[np.float64]) -> tuple[str, float]:
    others = similar.copy()
    others[row] = -1.0
    best = int(np.argmax(others))
    return labels.names[best], float(others[best])


def _sense(label: Label) -> str | None:
    return label.synset or label.hypernym


MAX_PAIRS_PER_LABEL = 3

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
    differences: tuple[SenseDifference, ...]
    without: tuple[str, ...]
    pairs: int
    changed: int
    mean_change: float
    largest: tuple[ChangedPair, ...]


def has_published_senses(labels: LabelSet) -> bool:
    """Whether the labels are a shipped set with published senses."""
    return labels.variant != "file" and any(
        shipped.name == labels.name and "published" in shipped.variants for shipped in list_label_sets()
    )


def compare_variants(name: str, measure: str, *, count: int = 30) -> VariantComparison:
    """The variants of the shipped set `name` under a WordNet measure, with the `count` most changed pairs."""
    nouns = load_nouns()
    published, corrected = load_shipped_set(name, "published"), load_shipped_set(name, "corrected")
    old, new = assign_synsets(published, nouns, "zero"), assign_synsets(corrected, nouns, "hypernym")
    before = wordnet_similarity(measure, old.nodes.tolist())
    after = wordnet_similarity(measure, new.nodes.tolist())
    differences = find_differences(name)
    rows, columns = np.triu_indices(len(published), 1)
    known = (old.nodes[rows] != UNKNOWN) & (old.nodes[columns] != UNKNOWN)
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
        if all(shown[label] < MAX_PAIRS_PER_LABEL for label in blamed):
            shown.update(blamed)
            cell = rows[one], columns[one]
            largest.append(ChangedPair(first, second, float(before[cell]), float(after[cell])))
    without = tuple(label.name for label, node in zip(published, old.nodes, strict=True) if node == UNKNOWN)
    changed = int((moved > _ROUNDING).sum())
    mean = float(moved.mean()) if len(moved) else 0.0
    return VariantComparison(measure, differences, without, len(moved), changed, mean, tuple(largest))
