"""The questions of `hardlook labels map` on a terminal: candidates with glosses and neighbours, one choice a name.

They go to standard error, so that standard output holds the result alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import typer

from hardlook.errors import OptionError
from hardlook.labels.candidates import Question, with_neighbours
from hardlook.labels.label_set import Label
from hardlook.labels.mapping_file import describe_candidate
from hardlook.wordnet.nouns import Nouns

_HOW = "number, synset name, `h` before either for a hypernym, enter to leave open, q to stop"


def ask_for_senses(questions: Sequence[Question], nouns: Nouns) -> tuple[Question, ...]:
    """The questions after the user's choices; those left open, and all after `q` or Ctrl-C, stay as they were."""
    answered = list(questions)
    waiting = [place for place, question in enumerate(answered) if question.state != "chosen"]
    for turn, place in enumerate(waiting, 1):
        settled = [question.label for question in answered if question.state == "chosen"]
        question = with_neighbours(answered[place], settled, nouns)
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
        answered[place] = Question(label, "chosen", ())
    return tuple(answered)


def _choose(question: Question, nouns: Nouns) -> Label | None:
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


def _apply(question: Question, answer: str, nouns: Nouns) -> Label:
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
