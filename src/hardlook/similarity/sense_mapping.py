r"""Help with a new vocabulary: the senses a name may have, and which labels already chosen lie nearest to each.

>>> from hardlook.similarity.wordnet.nouns import load_nouns
>>> questions = find_candidates([Label(0, "crane"), Label(1, "forklift")], load_nouns())
>>> [(question.label.name, question.state) for question in questions]
[('crane', 'choose'), ('forklift', 'proposed')]
>>> questions[0].candidates[3].sense.name, questions[0].candidates[3].neighbours
('crane.n.04', (('forklift', 0.125),))

A table of labels to edit: one row each, the candidates of open ones as comments below it.

>>> from hardlook.similarity.sense_mapping import find_candidates
>>> from hardlook.similarity.wordnet.nouns import load_nouns
>>> text = format_mapping(find_candidates([Label(0, "forklift"), Label(1, "wheel loader")], load_nouns()))
>>> print("\n".join(line[:60] for line in text.splitlines()[2:]))
id,category_id,name,aliases,isthing,synset,hypernym,status
0,,forklift,,,forklift.n.01,,proposed
#   forklift.n.01: a small industrial vehicle with a power o
1,,wheel loader,,,,,choose
#   hypernym stevedore.n.01: a laborer who loads and unloads
#   hypernym loader.n.02: an attendant who loads guns for so

The questions of `hardlook labels map` on a terminal: candidates with glosses and neighbours, one choice a name.

They go to standard error, so that standard output holds the result alone.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import typer

from hardlook.errors import OptionError
from hardlook.similarity.graph_measures import path_matrix
from hardlook.similarity.labels import Label
from hardlook.similarity.wordnet.nouns import Nouns, Sense

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
class LabelCandidates:
    """A label and its candidates.

    `state` is `chosen` (the label has a synset or a hypernym already), `proposed` (one sense only, filled in and
    marked), `choose` (several, none taken) or `absent` (WordNet has neither the name nor its last words as a whole).
    """

    label: Label
    state: str
    candidates: tuple[Candidate, ...]


def find_candidates(labels: Iterable[Label], nouns: Nouns) -> tuple[LabelCandidates, ...]:
    """A question for each label; what it proposes and what was chosen count as neighbours of the others."""
    asked = [_question(label, nouns) for label in labels]
    settled = [question.label for question in asked if question.label.synset or question.label.hypernym]
    return tuple(add_neighbours(question, settled, nouns) for question in asked)


def add_neighbours(question: LabelCandidates, settled: Sequence[Label], nouns: Nouns) -> LabelCandidates:
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


def _question(label: Label, nouns: Nouns) -> LabelCandidates:
    settled = label.synset or label.hypernym
    if settled and not label.proposed:
        return LabelCandidates(label, "chosen", ())
    candidates = _own_senses(label, nouns) or _senses_of_last_words(label, nouns)
    if settled:
        return LabelCandidates(label, "proposed", candidates)
    if len(candidates) == 1 and not candidates[0].as_hypernym:
        return LabelCandidates(replace(label, synset=candidates[0].sense.name, proposed=True), "proposed", candidates)
    return LabelCandidates(label, "choose" if candidates else "absent", candidates)


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


_COLUMNS = ("id", "category_id", "name", "aliases", "isthing", "synset", "hypernym", "status")

_HEAD = (
    "# Fill in `synset`, or `hypernym` where WordNet has no such thing, and set `status` to chosen.\n"
    "# proposed: the only sense WordNet has, confirm it; choose: several, none taken; absent: none found.\n"
)


def format_mapping(questions: Iterable[LabelCandidates]) -> str:
    """The text of the table; `load_label_set` reads it, and `hardlook labels map` goes on from it."""
    out = io.StringIO()
    out.write(_HEAD)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for question in questions:
        label = question.label
        thing = "" if label.isthing is None else int(label.isthing)
        category = "" if label.category_id is None else label.category_id
        cells = (label.id, category, label.name, "|".join(label.aliases), thing, label.synset, label.hypernym)
        writer.writerow((*cells, question.state))
        if question.state != "chosen":
            out.writelines(f"#   {describe_candidate(candidate)}\n" for candidate in question.candidates)
    return out.getvalue()


def describe_candidate(candidate: Candidate) -> str:
    """One line: the synset, its gloss, its words, how often texts use it, and the nearest labels."""
    sense = candidate.sense
    words = ", ".join(word.replace("_", " ") for word in sense.lemmas)
    near = ", ".join(f"{name} {_short(value)}" for name, value in candidate.neighbours)
    about = f"{words}; used {sense.count} times" + (f"; near {near}" if near else "")
    return f"{'hypernym ' if candidate.as_hypernym else ''}{sense.name}: {sense.gloss} ({about})"


def restore_choices(labels: Sequence[Label], earlier: Iterable[Label]) -> tuple[Label, ...]:
    """The labels with the senses that an earlier table gives to the same names."""
    known = {label.name: label for label in earlier}
    kept = []
    for label in labels:
        before = known.get(label.name)
        if before is None or label.synset or label.hypernym:
            kept.append(label)
        else:
            kept.append(replace(label, synset=before.synset, hypernym=before.hypernym, proposed=before.proposed))
    return tuple(kept)


def _short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


_HOW = "number, synset name, `h` before either for a hypernym, enter to leave open, q to stop"


def prompt_for_senses(questions: Sequence[LabelCandidates], nouns: Nouns) -> tuple[LabelCandidates, ...]:
    """The questions after the user's choices; those left open, and all after `q` or Ctrl-C, stay as they were."""
    answered = list(questions)
    waiting = [place for place, question in enumerate(answered) if question.state != "chosen"]
    for turn, place in enumerate(waiting, 1):
        settled = [question.label for question in answered if question.state == "chosen"]
        question = add_neighbours(answered[place], settled, nouns)
        aliases = f" ({', '.join(question.label.aliases)})" if question.label.aliases else ""
        typer.echo(f"\n{turn}/{len(waiting)}  {question.label.name}{aliases}: {question.state}", err=True)
        for number, candidate in enumerate(question.candidates, 1):
            typer.echo(f"  {number}  {describe_candidate(candidate)}", err=True)
        try:
            label = _choose(question, nouns)
        except (typer.Abort, KeyboardInterrupt):
            break
        if label is None:
            continue
        answered[place] = LabelCandidates(label, "chosen", ())
    return tuple(answered)


def _choose(question: LabelCandidates, nouns: Nouns) -> Label | None:
    while True:
        answer = str(typer.prompt(_HOW, default="", show_default=False, err=True)).strip()
        if answer == "q":
            raise typer.Abort
        if not answer:
            return None
        try:
            return _apply(question, answer, nouns)
        except OptionError as error:
            typer.echo(f"{error.what}: {error.remedy}", err=True)


def _apply(question: LabelCandidates, answer: str, nouns: Nouns) -> Label:
    # "h2" and "h street_sign.n.01" ask for a hypernym; a plain "hat.n.01" begins with h too and is a name.
    as_hypernym = answer[:1] == "h" and (answer[1:].isdecimal() or answer[1:2] == " ")
    wanted = answer[1:].strip() if as_hypernym else answer
    if wanted.isdecimal():
        if not 1 <= int(wanted) <= len(question.candidates):
            raise OptionError(f"no candidate {wanted}", remedy=f"1 to {len(question.candidates)}, or a synset's name")
        candidate = question.candidates[int(wanted) - 1]
        synset, as_hypernym = candidate.sense.name, as_hypernym or candidate.as_hypernym
    else:
        synset = nouns.name(nouns.index(wanted))
    if as_hypernym:
        return replace(question.label, synset=None, hypernym=synset, proposed=False)
    return replace(question.label, synset=synset, hypernym=None, proposed=False)
