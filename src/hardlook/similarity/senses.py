"""How the choice of senses affects similarity: polysemous labels, shared words, published and corrected variants.

>>> from hardlook.similarity.labels import Label
>>> names = {"crane": "crane.n.04", "forklift": "forklift.n.01", "heron": "heron.n.02"}
>>> labels = LabelSet("yard", "file", tuple(Label(i, name, (), names[name]) for i, name in enumerate(names)))
>>> case = find_polysemy(labels, "path")[0]
>>> case.label, case.chosen, case.nearest, case.senses
('crane', 'crane.n.04', ('forklift', 0.125), 5)
>>> case.others[0].synset, case.others[0].nearest[0], case.others[0].largest.label
('crane.n.05', 'heron', 'heron')
>>> comparison = compare_variants("voc20", "path")
>>> comparison.pairs, len(comparison.differences), comparison.largest[0].published != comparison.largest[0].corrected
(190, 4, True)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hardlook.similarity.label_sets import SenseDifference, find_differences, find_shipped_set, load_shipped_set
from hardlook.similarity.label_synsets import UnknownPolicy, assign_synsets
from hardlook.similarity.labels import LabelSet, is_void_label, label_text, normalise_name
from hardlook.similarity.matrix import UNKNOWN
from hardlook.similarity.wordnet.measures import wordnet_similarity
from hardlook.similarity.wordnet.nouns import Sense, load_nouns

MAX_PAIRS_PER_LABEL = 3
_MIN_BATCH = 256
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Change:
    """The similarity to another label under the chosen sense, and under the other one."""

    label: str
    before: float
    after: float


@dataclass(frozen=True)
class OtherSense:
    """A sense not chosen: the `mean_change` of similarity in [0, 1], the `largest`, and the label then `nearest`."""

    synset: str
    gloss: str
    mean_change: float
    largest: Change
    nearest: tuple[str, float]


@dataclass(frozen=True)
class PolysemyCase:
    """A label whose word has `senses` noun senses, `chosen` the `rank`-th (None: another word); `others` by change."""

    label: str
    chosen: str
    gloss: str
    senses: int
    rank: int | None
    nearest: tuple[str, float]
    others: tuple[OtherSense, ...]


@dataclass(frozen=True)
class SharedWord:
    """Two labels, as (name, sense), with a word in common but different senses: crane and crane."""

    word: str
    first: tuple[str, str | None]
    second: tuple[str, str | None]
    rows: tuple[int, int]


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

    `pairs` counts the pairs of different labels that both have a published sense; `without` are the labels that have
    none. `changed` of the pairs have another similarity; `mean_change` is over all pairs, in [0, 1]. `largest` holds
    the pairs with the largest change, each changed label at most three times.
    """

    measure: str
    differences: tuple[SenseDifference, ...]
    without: tuple[str, ...]
    pairs: int
    changed: int
    mean_change: float
    largest: tuple[ChangedPair, ...]


def find_polysemy(labels: LabelSet, measure: str, unknown: UnknownPolicy = "hypernym") -> tuple[PolysemyCase, ...]:
    """Labels whose word (`label_text`) has noun senses that were not chosen, by their mean change, largest first."""
    nouns = load_nouns()
    labels = LabelSet(labels.name, labels.variant, tuple(label for label in labels if not is_void_label(label)))
    nodes = assign_synsets(labels, nouns, unknown).nodes
    senses = [nouns.senses(label_text(label)) for label in labels]
    not_chosen = [
        (row, sense) for row, own in enumerate(senses) for sense in own if nodes[row] not in (UNKNOWN, sense.index)
    ]
    if not not_chosen or len(labels) < 2:
        return ()
    chosen = wordnet_similarity(measure, nodes.tolist())
    similarities = _compare_with_labels(measure, [sense.index for _, sense in not_chosen], nodes)
    others: dict[int, list[OtherSense]] = {}
    for (row, sense), similarity in zip(not_chosen, similarities, strict=True):
        others.setdefault(row, []).append(_describe_other_sense(labels, row, sense, chosen[row], similarity))
    cases = []
    for row, found in others.items():
        node = int(nodes[row])
        numbers = [sense.index for sense in senses[row]]
        cases.append(
            PolysemyCase(
                label=labels.names[row],
                chosen=nouns.name(node),
                gloss=nouns.gloss(node),
                senses=len(numbers),
                rank=numbers.index(node) + 1 if node in numbers else None,
                nearest=_find_nearest(labels, row, chosen[row]),
                others=tuple(sorted(found, key=lambda other: -other.mean_change)),
            )
        )
    return tuple(sorted(cases, key=lambda case: -case.others[0].mean_change))


def _compare_with_labels(measure: str, senses: list[int], nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """(A, K) similarity of A senses to K labels, in batches of at most four times the labels' own matrix."""
    step = max(len(nodes), _MIN_BATCH)
    parts = []
    for start in range(0, len(senses), step):
        part = senses[start : start + step]
        parts.append(wordnet_similarity(measure, [*part, *nodes.tolist()])[: len(part), len(part) :])
    return np.concatenate(parts)


def _describe_other_sense(
    labels: LabelSet, row: int, sense: Sense, before: NDArray[np.float64], after: NDArray[np.float64]
) -> OtherSense:
    changes = np.abs(after - before)
    changes[row] = 0.0
    most = int(np.argmax(changes))
    largest = Change(labels.names[most], float(before[most]), float(after[most]))
    mean = float(changes.sum() / (len(labels) - 1))
    return OtherSense(sense.name, sense.gloss, mean, largest, _find_nearest(labels, row, after))


def _find_nearest(labels: LabelSet, row: int, similarity: NDArray[np.float64]) -> tuple[str, float]:
    others = similarity.copy()
    others[row] = -1.0
    best = int(np.argmax(others))
    return labels.names[best], float(others[best])


def find_shared_words(labels: LabelSet) -> tuple[SharedWord, ...]:
    """Pairs of labels with a name or alias in common but not their sense; case, spaces, `_` and `-` are ignored."""
    owners: dict[str, dict[int, str]] = {}
    for row, label in enumerate(labels):
        for word in (label.name, *label.aliases):
            owners.setdefault(normalise_name(word), {}).setdefault(row, word)
    pairs: dict[tuple[int, int], SharedWord] = {}
    for words in owners.values():
        for rows in combinations(words, 2):
            one, other = (labels.labels[row] for row in rows)
            if one.sense != other.sense:
                pair = SharedWord(words[rows[0]], (one.name, one.sense), (other.name, other.sense), rows)
                pairs.setdefault(rows, pair)
    return tuple(pairs.values())


def has_published_senses(labels: LabelSet) -> bool:
    """Whether the labels are a shipped set with published senses."""
    return labels.variant != "file" and "published" in find_shipped_set(labels.name).variants


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
    changes = np.abs(after[rows, columns] - before[rows, columns])
    with_difference = {difference.label for difference in differences}
    listed: Counter[str] = Counter()
    largest: list[ChangedPair] = []
    for one in np.argsort(-changes, kind="stable"):
        if len(largest) == count or changes[one] <= _ROUNDING:
            break
        cell = rows[one], columns[one]
        first, second = (published.names[row] for row in cell)
        causes = with_difference & {first, second}
        if all(listed[label] < MAX_PAIRS_PER_LABEL for label in causes):
            listed.update(causes)
            largest.append(ChangedPair(first, second, float(before[cell]), float(after[cell])))
    return VariantComparison(
        measure=measure,
        differences=differences,
        without=tuple(label.name for label, node in zip(published, old.nodes, strict=True) if node == UNKNOWN),
        pairs=len(changes),
        changed=int((changes > _ROUNDING).sum()),
        mean_change=float(changes.mean()) if len(changes) else 0.0,
        largest=tuple(largest),
    )
