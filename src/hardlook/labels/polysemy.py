"""Labels whose word has several meanings: what the choice of a sense does to similarity.

>>> from hardlook.labels.label_set import Label, LabelSet
>>> names = {"crane": "crane.n.04", "forklift": "forklift.n.01", "heron": "heron.n.02"}
>>> labels = LabelSet("yard", "file", tuple(Label(i, name, (), names[name]) for i, name in enumerate(names)))
>>> case = polysemy_cases(labels, "path")[0]
>>> case.label, case.chosen, case.nearest, case.senses
('crane', 'crane.n.04', ('forklift', 0.125), 5)
>>> case.others[0].synset, case.others[0].nearest[0], case.others[0].largest.label
('crane.n.05', 'heron', 'heron')
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hardlook.labels.label_set import Label, LabelSet
from hardlook.labels.unknown import NOWHERE, Unknown, place
from hardlook.labels.wording import has_no_meaning, wording
from hardlook.wordnet.measures import wordnet_similarity
from hardlook.wordnet.nouns import Nouns, Sense, load_nouns

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


def polysemy_cases(labels: LabelSet, measure: str, unknown: Unknown = "hypernym") -> tuple[PolysemyCase, ...]:
    """The labels that have a sense and whose word has others, by the greatest mean change, under a WordNet measure.

    A label's word is its wording (`hardlook.labels.wording`), its senses are those of WordNet's nouns.
    """
    nouns = load_nouns()
    labels = LabelSet(labels.name, labels.variant, tuple(label for label in labels if not has_no_meaning(label)))
    nodes = place(labels, nouns, unknown).nodes
    words = [nouns.senses(wording(label)) for label in labels]
    asked = [
        (row, sense) for row, senses in enumerate(words) for sense in senses if nodes[row] not in (NOWHERE, sense.index)
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


def shared_words(labels: LabelSet) -> tuple[SharedWord, ...]:
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
