r"""A table of labels to edit: one row each, the candidates of open ones as comments below it.

>>> from hardlook.labels.candidates import ask_about
>>> from hardlook.wordnet import load_nouns
>>> text = write_mapping(ask_about([Label(0, "forklift"), Label(1, "wheel loader")], load_nouns()))
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
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hardlook.labels.candidates import Candidate, Question
from hardlook.labels.label_set import Label

_COLUMNS = ("id", "category_id", "name", "aliases", "isthing", "synset", "hypernym", "status")
_HEAD = (
    "# Fill in `synset`, or `hypernym` where WordNet has no such thing, and set `status` to chosen.\n"
    "# proposed: the only sense WordNet has, confirm it; choose: several, none taken; absent: none found.\n"
)


def write_mapping(questions: Iterable[Question]) -> str:
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


def keep_choices(labels: Sequence[Label], earlier: Iterable[Label]) -> tuple[Label, ...]:
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
