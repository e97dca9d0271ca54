"""The rules of exclusion: a form, whom other rules would leave out, and what would remain; saved only when asked to."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import polars as pl
from pydantic import ValidationError

from hardlook.collect.research.excluding import left_out
from hardlook.collect.research.parameters import Asked, Pairs
from hardlook.collect.research.refusals import shortened
from hardlook.collect.research.snapshot import Snapshot
from hardlook.collect.research.task_counts import counting
from hardlook.collect.results.exclusions import ExclusionRules, unknown_names
from hardlook.report.numerals import numeral

ADDRESS = "/research/rules"
NUMBERS = tuple(name for name in ExclusionRules.model_fields if name != "participants")
# What is long enough for a hundred ids and short enough for an address.
MOST_NAMES = 3300
MOST_LISTED = 500
_OF_ANY_KIND = ("least_reaction_ms", "least_answers")


def rules_view(snapshot: Snapshot, saved: ExclusionRules, pairs: Pairs) -> dict[str, Any]:
    """What the template `rules.html` shows: the saved rules, or the ones that the address proposes beside them."""
    asked = Asked(pairs, (*NUMBERS, "participants", "add", "saved"))
    proposed, problem = saved, ""
    given = {name: asked.values.get(name, "") for name in (*NUMBERS, "participants")}
    proposing = any(name in asked.values for name in given)
    if proposing:
        try:
            proposed = rules_from(asked)
        except ValueError as error:
            problem = str(error)
    elif asked.text("add"):
        proposing = True
        proposed = saved.model_copy(update={"participants": (*saved.participants, asked.text("add", 64))})
    out, before = left_out(snapshot, proposed), left_out(snapshot, saved)
    return {
        "fields": _fields(proposed, given if problem else {}, snapshot.study.settings.kind),
        "names": given["participants"] if problem else "\n".join(proposed.participants),
        "most_names": MOST_NAMES,
        "problem": problem,
        "proposing": proposing and not problem,
        "changed": proposed != saved,
        "saved": asked.choice("saved", ("yes",), "") == "yes" and not proposing,
        "kept": [(name, value) for name, value in written(proposed).items()],
        "out": _people(snapshot, out),
        "out_count": len(out),
        "before_count": len(before),
        "unknown": unknown_names(snapshot.quality, proposed),
        "remaining": remaining(snapshot, before, out),
    }


def rules_from(asked: Asked) -> ExclusionRules:
    """The rules in a form's fields, empty ones off; a `ValueError` says which cannot be.

    >>> rules_from(Asked([("least_inside", "0.6"), ("participants", "3, 4")], (*NUMBERS, "participants"))).set_rules()
    {'least_inside': 0.6, 'participants': ('3', '4')}
    """
    values: dict[str, Any] = {name: asked.text(name, 40) for name in NUMBERS}
    values = {name: value for name, value in values.items() if value}
    names = re.split(r"[\s,;]+", asked.text("participants", MOST_NAMES))
    try:
        return ExclusionRules(**values, participants=tuple(dict.fromkeys(filter(None, names))))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "the rules"
        came = shortened(str(first.get("input", "")))
        raise ValueError(f"{in_words(name)}: {first['msg']}, not {came}.") from None


def written(rules: ExclusionRules) -> dict[str, str]:
    """The rules as the fields of a form.

    >>> written(ExclusionRules(least_answers=5))["least_answers"], written(ExclusionRules())["least_inside"]
    ('5', '')
    """
    values = rules.model_dump()
    fields = {name: "" if values[name] is None else f"{values[name]:.12g}" for name in NUMBERS}
    return {**fields, "participants": " ".join(rules.participants)}


def remaining(snapshot: Snapshot, before: Collection[str], after: Collection[str]) -> list[dict[str, str]]:
    """By device: answers that count with no rule, with the saved rules and with the proposed ones, and those wanted."""
    answers, settings = snapshot.answers, snapshot.study.settings
    wanted = len(snapshot.study.items) * settings.target_answers
    sums = [answers.filter(counting(answers, out))["device"].value_counts() for out in ((), before, after)]
    counts = [dict(found.iter_rows()) for found in sums]
    rows = [(device, *(count.get(device, 0) for count in counts), wanted) for device in settings.devices]
    if len(rows) > 1:
        totals = pl.DataFrame(rows, orient="row").drop("column_0").sum().row(0)
        rows.append(("all", *totals))
    names = ("device", "none", "before", "after", "wanted")
    return [dict(zip(names, (row[0], *(numeral(number, 0) for number in row[1:])), strict=True)) for row in rows]


def in_words(name: str) -> str:
    """A rule's name as the form shows it.

    >>> in_words("least_reaction_ms")
    'least reaction ms'
    """
    return name.replace("_", " ")


def _fields(rules: ExclusionRules, given: dict[str, str], kind: str) -> list[dict[str, str]]:
    shown = [name for name in NUMBERS if kind == "clicks" or name in _OF_ANY_KIND]
    values = {**written(rules), **given}
    about = {name: field.description or "" for name, field in ExclusionRules.model_fields.items()}
    return [{"name": name, "title": in_words(name), "about": about[name], "value": values[name]} for name in shown]


def _people(snapshot: Snapshot, out: dict[str, str]) -> list[dict[str, Any]]:
    frame = snapshot.quality.filter(pl.col("participant").is_in(list(out))).head(MOST_LISTED)
    rows = frame.select("number", "participant", "device", "answers").iter_rows()
    return [
        {"number": number, "device": device or "", "answers": numeral(answers, 0), "why": out[name]}
        for number, name, device, answers in rows
    ]
