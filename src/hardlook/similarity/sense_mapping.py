r"""Map a new vocabulary to WordNet senses: candidates per label, a table to edit, and questions on a terminal.

>>> from hardlook.similarity.wordnet.nouns import load_nouns
>>> labels = find_candidates([Label(0, "crane"), Label(1, "forklift")], load_nouns())
>>> [(one.label.name, one.state) for one in labels]
[('crane', 'choose'), ('forklift', 'proposed')]
>>> labels[0].candidates[3].sense.name, labels[0].candidates[3].neighbours
('crane.n.04', (('forklift', 0.125),))

The table has one row per label, the candidates of open ones as comments below it.

>>> text = format_mapping(find_candidates([Label(0, "forklift"), Label(1, "wheel loader")], load_nouns()))
>>> print("\n".join(line[:60] for line in text.splitlines()[2:]))
id,category_id,name,aliases,isthing,synset,hypernym,status
0,,forklift,,,forklift.n.01,,proposed
#   forklift.n.01: a small industrial vehicle with a power o
1,,wheel loader,,,,,choose
#   hypernym stevedore.n.01: a laborer who loads and unloads
#   hypernym loader.n.02: an attendant who loads guns for so
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import typer

from hardlook.errors import OptionError
from hardlook.similarity.graph_measures import path_matrix
from hardlook.similarity.label_files import STATUSES
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.labels import Label
from hardlook.similarity.wordnet.nouns import Nouns, Sense, load_nouns

_NEIGHBOURS = 3
_COLUMNS = ("id", "category_id", "name", "aliases", "isthing", "synset", "hypernym", "status")
_INSTRUCTIONS = (
    "# Fill in `synset`, or `hypernym` where WordNet has no such thing, and set `status` to chosen.\n"
    "# proposed: the only sense WordNet has, confirm it; choose: several, none taken; absent: none found.\n"
)
_PROMPT = "number, synset name, `h` before either for a hypernym, enter to leave open, q to stop"


@dataclass(frozen=True)
class Candidate:
    """A possible sense, the nearest labels and their path similarity; `as_hypernym`: of the name's last words."""

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


def map_label_file(names: Path, out: Path, *, interactive: bool) -> dict[str, int]:
    """Write the table of the labels in the file `names` to `out`, keeping choices already there; count the states."""
    nouns = load_nouns()
    labels = load_label_set(names, nouns=nouns).labels
    if out.is_file():
        labels = restore_choices(labels, load_label_set(out, nouns=nouns).labels)
    mapped = find_candidates(labels, nouns)
    if interactive:
        mapped = prompt_for_senses(mapped, nouns)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(format_mapping(mapped), encoding="utf-8")
    states = [one.state for one in mapped]
    return {state: states.count(state) for state in STATUSES}


def find_candidates(labels: Iterable[Label], nouns: Nouns) -> tuple[LabelCandidates, ...]:
    """The candidates of every label; labels with a chosen or proposed sense are neighbours of the others."""
    found = [_find_label_candidates(label, nouns) for label in labels]
    with_sense = [one.label for one in found if one.label.sense]
    return tuple(add_neighbours(one, with_sense, nouns) for one in found)


def add_neighbours(open_label: LabelCandidates, with_sense: Sequence[Label], nouns: Nouns) -> LabelCandidates:
    """The same label with the nearest of the labels that have a sense, by path similarity, beside each candidate."""
    others = [label for label in with_sense if label.name != open_label.label.name]
    if not others or open_label.state in ("chosen", "absent"):
        return open_label
    own = [candidate.sense.index for candidate in open_label.candidates]
    nodes = [nouns.index(label.sense or "") for label in others]
    similarity = path_matrix(nouns.graph, np.array([*own, *nodes]))[: len(own), len(own) :]
    candidates = []
    for candidate, row in zip(open_label.candidates, similarity, strict=True):
        nearest = np.argsort(-row, kind="stable")[:_NEIGHBOURS]
        names = tuple((others[place].name, float(row[place])) for place in nearest)
        candidates.append(replace(candidate, neighbours=names))
    return replace(open_label, candidates=tuple(candidates))


def restore_choices(labels: Sequence[Label], earlier: Iterable[Label]) -> tuple[Label, ...]:
    """The labels with the senses that an earlier table gives to the same names."""
    known = {label.name: label for label in earlier}
    restored = []
    for label in labels:
        before = known.get(label.name)
        if before is not None and not label.sense:
            label = replace(label, synset=before.synset, hypernym=before.hypernym, proposed=before.proposed)
        restored.append(label)
    return tuple(restored)


def format_mapping(labels: Iterable[LabelCandidates]) -> str:
    """The text of the table; `load_label_set` reads it, and `hardlook labels map` resumes from it."""
    out = io.StringIO()
    out.write(_INSTRUCTIONS)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in labels:
        label = one.label
        thing = "" if label.isthing is None else int(label.isthing)
        category = "" if label.category_id is None else label.category_id
        cells = (label.id, category, label.name, "|".join(label.aliases), thing, label.synset, label.hypernym)
        writer.writerow((*cells, one.state))
        if one.state != "chosen":
            out.writelines(f"#   {describe_candidate(candidate)}\n" for candidate in one.candidates)
    return out.getvalue()


def describe_candidate(candidate: Candidate) -> str:
    """One line: the synset, its gloss, its words, its count in tagged texts, and the nearest labels."""
    sense = candidate.sense
    words = ", ".join(word.replace("_", " ") for word in sense.lemmas)
    near = ", ".join(f"{name} {f'{value:.2f}'.removeprefix('0')}" for name, value in candidate.neighbours)
    about = f"{words}; used {sense.count} times" + (f"; near {near}" if near else "")
    return f"{'hypernym ' if candidate.as_hypernym else ''}{sense.name}: {sense.gloss} ({about})"


def prompt_for_senses(labels: Sequence[LabelCandidates], nouns: Nouns) -> tuple[LabelCandidates, ...]:
    """Ask for the sense of every open label, on standard error; those left open, and all after `q` or Ctrl-C, stay."""
    answered = list(labels)
    open_places = [place for place, one in enumerate(answered) if one.state != "chosen"]
    for number, place in enumerate(open_places, 1):
        one = add_neighbours(answered[place], [one.label for one in answered if one.state == "chosen"], nouns)
        aliases = f" ({', '.join(one.label.aliases)})" if one.label.aliases else ""
        typer.echo(f"\n{number}/{len(open_places)}  {one.label.name}{aliases}: {one.state}", err=True)
        for rank, candidate in enumerate(one.candidates, 1):
            typer.echo(f"  {rank}  {describe_candidate(candidate)}", err=True)
        try:
            label = _prompt_for_sense(one, nouns)
        except (typer.Abort, KeyboardInterrupt):
            break
        if label is not None:
            answered[place] = LabelCandidates(label, "chosen", ())
    return tuple(answered)


def _prompt_for_sense(one: LabelCandidates, nouns: Nouns) -> Label | None:
    while True:
        answer = str(typer.prompt(_PROMPT, default="", show_default=False, err=True)).strip()
        if answer == "q":
            raise typer.Abort
        if not answer:
            return None
        try:
            return _apply_answer(one, answer, nouns)
        except OptionError as error:
            typer.echo(f"{error.what}: {error.remedy}", err=True)


def _apply_answer(one: LabelCandidates, answer: str, nouns: Nouns) -> Label:
    # "h2" and "h street_sign.n.01" mean a hypernym; a plain "hat.n.01" begins with h too and is a name.
    as_hypernym = answer[:1] == "h" and (answer[1:].isdecimal() or answer[1:2] == " ")
    wanted = answer[1:].strip() if as_hypernym else answer
    if wanted.isdecimal():
        if not 1 <= int(wanted) <= len(one.candidates):
            raise OptionError(f"no candidate {wanted}", remedy=f"1 to {len(one.candidates)}, or a synset's name")
        candidate = one.candidates[int(wanted) - 1]
        synset, as_hypernym = candidate.sense.name, as_hypernym or candidate.as_hypernym
    else:
        synset = nouns.name(nouns.index(wanted))
    if as_hypernym:
        return replace(one.label, synset=None, hypernym=synset, proposed=False)
    return replace(one.label, synset=synset, hypernym=None, proposed=False)


def _find_label_candidates(label: Label, nouns: Nouns) -> LabelCandidates:
    if label.sense and not label.proposed:
        return LabelCandidates(label, "chosen", ())
    candidates = _find_own_senses(label, nouns) or _find_senses_of_last_words(label, nouns)
    if label.sense:
        return LabelCandidates(label, "proposed", candidates)
    if len(candidates) == 1 and not candidates[0].as_hypernym:
        return LabelCandidates(replace(label, synset=candidates[0].sense.name, proposed=True), "proposed", candidates)
    return LabelCandidates(label, "choose" if candidates else "absent", candidates)


def _find_own_senses(label: Label, nouns: Nouns) -> tuple[Candidate, ...]:
    # A sense that several of a label's words share is more likely meant: ADE20K's names are lists of synonyms.
    votes: dict[int, int] = {}
    senses: dict[int, Sense] = {}
    for word in dict.fromkeys((label.name, *label.aliases)):
        for sense in nouns.senses(word):
            senses.setdefault(sense.index, sense)
            votes[sense.index] = votes.get(sense.index, 0) + 1
    return tuple(Candidate(senses[index]) for index in sorted(senses, key=lambda index: -votes[index]))


def _find_senses_of_last_words(label: Label, nouns: Nouns) -> tuple[Candidate, ...]:
    words = re.split(r"[\s_-]+", label.name)
    for start in range(1, len(words)):
        if senses := nouns.senses(" ".join(words[start:])):
            return tuple(Candidate(sense, as_hypernym=True) for sense in senses)
    return ()
