"""Help with a new vocabulary: the senses a name may have, and which labels already chosen lie nearest to each.

>>> from hardlook.wordnet import load_nouns
>>> questions = ask_about([Label(0, "crane"), Label(1, "forklift")], load_nouns())
>>> [(question.label.name, question.state) for question in questions]
[('crane', 'choose'), ('forklift', 'proposed')]
>>> questions[0].candidates[3].sense.name, questions[0].candidates[3].neighbours
('crane.n.04', (('forklift', 0.125),))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hardlook.labels.label_set import Label
from hardlook.similarity.path import path_matrix
from hardlook.wordnet.nouns import Nouns, Sense

_NEIGHBOURS = 3


@dataclass(frozen=True)
class Candidate:
    """A sense a name may have, with the nearest labels already chosen and their path similarity.

    `as_hypernym`: the name itself is not in WordNet, and this is a sense of its last words, so at most its hypernym.
    """

    sense: Sense
    as_hypernym: bool = False
    neighbours: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Question:
    """A label and its candidates.

    `state` is `chosen` (the label has a synset or a hypernym already), `proposed` (one sense only, filled in and
    marked), `choose` (several, none taken) or `absent` (WordNet has neither the name nor its last words as a whole).
    """

    label: Label
    state: str
    candidates: tuple[Candidate, ...]


def ask_about(labels: Iterable[Label], nouns: Nouns) -> tuple[Question, ...]:
    """A question for each label; what it proposes and what was chosen count as neighbours of the others."""
    asked = [_question(label, nouns) for label in labels]
    settled = [question.label for question in asked if question.label.synset or question.label.hypernym]
    return tuple(with_neighbours(question, settled, nouns) for question in asked)


def with_neighbours(question: Question, settled: Sequence[Label], nouns: Nouns) -> Question:
    """The same question with the nearest of the settled labels, by path similarity, beside each candidate."""
    others = [label for label in settled if label.name != question.label.name]
    if not others or question.state in ("chosen", "absent"):
        return question
    own = [candidate.sense.index for candidate in question.candidates]
    nodes = [nouns.index(label.synset or label.hypernym or "") for label in others]
    similar = path_matrix(nouns.graph, np.array([*own, *nodes]))[: len(own), len(own) :]
    candidates = []
    for candidate, row in zip(question.candidates, similar, strict=True):
        nearest = np.argsort(-row, kind="stable")[:_NEIGHBOURS]
        names = tuple((others[place].name, float(row[place])) for place in nearest)
        candidates.append(replace(candidate, neighbours=names))
    return replace(question, candidates=tuple(candidates))


def _question(label: Label, nouns: Nouns) -> Question:
    settled = label.synset or label.hypernym
    if settled and not label.proposed:
        return Question(label, "chosen", ())
    candidates = _own_senses(label, nouns) or _senses_of_last_words(label, nouns)
    if settled:
        return Question(label, "proposed", candidates)
    if len(candidates) == 1 and not candidates[0].as_hypernym:
        return Question(replace(label, synset=candidates[0].sense.name, proposed=True), "proposed", candidates)
    return Question(label, "choose" if candidates else "absent", candidates)


def _own_senses(label: Label, nouns: Nouns) -> tuple[Candidate, ...]:
    # A sense that several of a label's words share is likelier meant: ADE20K's names are lists of synonyms.
    votes: dict[int, int] = {}
    senses: dict[int, Sense] = {}
    for word in dict.fromkeys((label.name, *label.aliases)):
        for sense in nouns.senses(word):
            senses.setdefault(sense.index, sense)
            votes[sense.index] = votes.get(sense.index, 0) + 1
    return tuple(Candidate(senses[index]) for index in sorted(senses, key=lambda index: -votes[index]))


def _senses_of_last_words(label: Label, nouns: Nouns) -> tuple[Candidate, ...]:
    words = re.split(r"[\s_-]+", label.name)
    for start in range(1, len(words)):
        if found := nouns.senses(" ".join(words[start:])):
            return tuple(Candidate(sense, as_hypernym=True) for sense in found)
    return ()
