"""The pages on participants: the quality of each one's answers with flags, and the rules that exclude them.

The rules page is a form. It shows which participants other rules would exclude and how many answers would remain; it
saves only on request.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import polars as pl
from pydantic import ValidationError

from hardlook.collect.research.requests import Pairs, Parameters, paginate, shorten
from hardlook.collect.research.snapshot import Snapshot, select_counted
from hardlook.collect.results.exclusion_rules import ExclusionRules, find_excluded, find_unknown_participants
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.web.tokens import derive_completion_code
from hardlook.harness.rounding import format_percent
from hardlook.report.formatting import MISSING, format_number

PARTICIPANTS_ADDRESS, ROWS_PER_PAGE = "/research/participants", 100

# Seeing a picture and moving a hand takes more than a sixth of a second; a slow machine shows pictures two frames late.
MIN_REACTION_MS, MAX_LATENESS_MS, MAX_EARLY_SHARE, MAX_DROPPED_BATCHES = 150.0, 100.0, 0.3, 1
NUMBERS = tuple(name for name in ExclusionRules.model_fields if name != "participants")

# Long enough for a hundred ids and short enough for an address.
MAX_NAMES_LENGTH = 3300
MAX_LISTED = 500
_RULES_OF_ANY_KIND = ("least_reaction_ms", "least_answers", "most_quick_batches", "most_failed_checks")


@dataclass(frozen=True)
class Column:
    """A column of the table: its key in the frame, its title, what it means, and how its values are written."""

    key: str
    title: str
    meaning: str
    form: str = "count"


COLUMNS = (
    Column("number", "participant", "the participant's number in every file"),
    Column("device", "device", "the device that the participant confirmed", "text"),
    Column("pointer_conflicts", "other pointer", "answers by touch on a computer, or by mouse on a phone"),
    Column("answers", "answers", "answers that were stored"),
    Column("inside", "inside", "share of clicks inside the region", "share"),
    Column("near", "valid place", "share of clicks inside or within the click radius", "share"),
    Column("reaction_ms", "reaction", "median milliseconds from the time that clicks count to the click", "ms"),
    Column("early", "early", "clicks before their time"),
    Column("late_ms", "lateness", "median milliseconds between a phase's planned and its measured duration", "ms"),
    Column("batches", "batches", "batches that were assigned"),
    Column("valid_batches", "valid", "batches that count"),
    Column("dropped_batches", "dropped", "complete batches that do not count"),
    Column("given_up_batches", "given up", "batches that were left unfinished and returned"),
    Column("quick_batches", "too quick", "batches that were done in less time than they take"),
    Column("failed_checks", "failed checks", "attention checks that were answered wrongly"),
    Column("hidden", "out of sight", "times that the page was hidden"),
    Column("reshown", "shown again", "answers whose pictures were requested more than once"),
)

_CLICK_COLUMNS = frozenset({"inside", "near", "early", "late_ms", "device", "pointer_conflicts"})


def list_columns(kind: str) -> tuple[Column, ...]:
    """The columns that mean something in a study of that kind.

    >>> [column.key for column in list_columns("ratings")][:3]
    ['number', 'answers', 'reaction_ms']
    """
    return tuple(column for column in COLUMNS if kind == "clicks" or column.key not in _CLICK_COLUMNS)


def build_participants_view(snapshot: Snapshot, excluded: Mapping[str, str], pairs: Pairs) -> dict[str, Any]:
    """The values of the template `participants.html`; `excluded` are participants by id with the reasons."""
    columns = list_columns(snapshot.study.settings.kind)
    keys = tuple(column.key for column in columns)
    parameters = Parameters(pairs, ("q", "flagged", "sort", "order", "page", "deleted"))
    sort, order = parameters.get_choice("sort", keys), parameters.get_choice("order", ("up", "down"))
    flags = find_excluded(snapshot.quality, flagging_rules(snapshot.study.settings))
    frame = _search(snapshot, parameters.get_text("q"))
    flagged = parameters.get_choice("flagged", ("yes",), "") == "yes"
    if flagged:
        frame = frame.filter(pl.col("participant").is_in([*excluded, *flags]))
    frame = frame.sort(sort, "number", descending=[order == "down", False], nulls_last=True)
    people, total = list(frame.iter_rows(named=True)), len(snapshot.quality)
    rows, listing = paginate(people, parameters, PARTICIPANTS_ADDRESS, ROWS_PER_PAGE, noun="participant", total=total)
    return {
        "columns": [_heading(column, parameters, sort, order) for column in columns],
        "rows": [_row(row, columns, excluded, flags) for row in rows],
        "left_out": len(excluded),
        "deleted": parameters.get_integer("deleted", 0, 1, 10_000_000),
        "doubtful": len(flags.keys() - excluded.keys()),
        **listing,
        "chosen": {"q": parameters.get_text("q"), "flagged": flagged, "sort": sort, "order": order},
    }


def _search(snapshot: Snapshot, text: str) -> pl.DataFrame:
    """The participant with that number, id or completion code; all participants for an empty text."""
    frame = snapshot.quality
    if not text:
        return frame
    code = text.replace("-", "").replace(" ", "").upper()
    known = [name for name in frame["participant"] if derive_completion_code(snapshot.study.secret, name) == code]
    number = pl.col("number").cast(pl.String)
    return frame.filter((number == text) | pl.col("participant").is_in([text, *known]))


def _heading(column: Column, parameters: Parameters, sort: str, order: str) -> dict[str, Any]:
    here = column.key == sort
    reverse = "down" if here and order == "up" else "up"
    return {
        "title": column.title,
        "meaning": column.meaning,
        "number": column.form != "text",
        "sorted": ("ascending" if order == "up" else "descending") if here else "none",
        "address": parameters.build_address(PARTICIPANTS_ADDRESS, sort=column.key, order=reverse, page=""),
    }


def _row(
    row: dict[str, Any], columns: tuple[Column, ...], excluded: Mapping[str, str], flags: Mapping[str, str]
) -> dict[str, Any]:
    name = row["participant"]
    return {
        "cells": [(format_cell(row[column.key], column.form), column.form != "text") for column in columns],
        "finished": row["finished"],
        "out": excluded.get(name, ""),
        "doubtful": "" if name in excluded else flags.get(name, ""),
        "exclude": "/research/rules?" + urlencode({"add": row["number"]}),
        "delete": f"{PARTICIPANTS_ADDRESS}/{row['number']}/delete",
    }


def format_cell(value: Any, form: str) -> str:
    """A value as the table shows it.

    >>> format_cell(0.934, "share"), format_cell(1234.5, "ms"), format_cell(None, "share"), format_cell("pc", "text")
    ('93.4 %', '1234 ms', '\N{EN DASH}', 'pc')
    """
    if value is None:
        return MISSING
    if form == "share":
        return format_percent(value, 1)
    if form == "ms":
        return f"{format_number(value, 0)} ms"
    return format_number(value, 0) if form == "count" else str(value)


def flagging_rules(settings: StudySettings) -> ExclusionRules:
    """Limits past which a participant is flagged, but not excluded.

    >>> flagging_rules(StudySettings(kind="clicks", title="Cups")).least_inside
    0.7
    """
    return ExclusionRules(
        least_inside=settings.least_inside if settings.kind == "clicks" else None,
        least_reaction_ms=MIN_REACTION_MS,
        most_early_share=MAX_EARLY_SHARE,
        most_late_ms=MAX_LATENESS_MS,
        most_dropped_batches=MAX_DROPPED_BATCHES,
        most_quick_batches=0,
        most_failed_checks=0,
        most_pointer_conflicts=0.0,
    )


def build_rules_view(snapshot: Snapshot, saved: ExclusionRules, pairs: Pairs) -> dict[str, Any]:
    """The values of the template `rules.html`: the saved rules, or the ones that the address proposes beside them."""
    parameters = Parameters(pairs, (*NUMBERS, "participants", "add", "saved"))
    proposed, problem = saved, ""
    given = {name: parameters.values.get(name, "") for name in (*NUMBERS, "participants")}
    proposing = any(name in parameters.values for name in given)
    if proposing:
        try:
            proposed = parse_rules_form(parameters)
        except ValueError as error:
            problem = str(error)
    elif parameters.get_text("add"):
        proposing = True
        proposed = saved.model_copy(update={"participants": (*saved.participants, parameters.get_text("add", 64))})
    after, before = find_excluded(snapshot.quality, proposed), find_excluded(snapshot.quality, saved)
    return {
        "fields": _fields(proposed, given if problem else {}, snapshot.study.settings.kind),
        "names": given["participants"] if problem else "\n".join(proposed.participants),
        "most_names": MAX_NAMES_LENGTH,
        "problem": problem,
        "proposing": proposing and not problem,
        "changed": proposed != saved,
        "saved": parameters.get_choice("saved", ("yes",), "") == "yes" and not proposing,
        "kept": list(format_rules(proposed).items()),
        "out": _excluded_rows(snapshot, after),
        "out_count": len(after),
        "before_count": len(before),
        "unknown": find_unknown_participants(snapshot.quality, proposed),
        "remaining": count_remaining(snapshot, before, after),
    }


def parse_rules_form(parameters: Parameters) -> ExclusionRules:
    """The rules in a form's fields, empty ones off; a `ValueError` names an invalid one.

    >>> parameters = Parameters([("least_inside", "0.6"), ("participants", "3, 4")], (*NUMBERS, "participants"))
    >>> parse_rules_form(parameters).active_rules()
    {'least_inside': 0.6, 'participants': ('3', '4')}
    """
    values: dict[str, Any] = {name: value for name in NUMBERS if (value := parameters.get_text(name, 40))}
    names = re.split(r"[\s,;]+", parameters.get_text("participants", MAX_NAMES_LENGTH))
    try:
        return ExclusionRules(**values, participants=tuple(dict.fromkeys(filter(None, names))))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "the rules"
        value = shorten(str(first.get("input", "")))
        raise ValueError(f"{name.replace('_', ' ')}: {first['msg']}, not {value}.") from None


def format_rules(rules: ExclusionRules) -> dict[str, str]:
    """The rules as the fields of a form.

    >>> format_rules(ExclusionRules(least_answers=5))["least_answers"], format_rules(ExclusionRules())["least_inside"]
    ('5', '')
    """
    values = rules.model_dump()
    fields = {name: "" if values[name] is None else f"{values[name]:.12g}" for name in NUMBERS}
    return {**fields, "participants": " ".join(rules.participants)}


def count_remaining(snapshot: Snapshot, before: Collection[str], after: Collection[str]) -> list[dict[str, str]]:
    """Answers that count per device without rules, with the saved and the proposed rules, and the number wanted."""
    answers, settings = snapshot.answers, snapshot.study.settings
    wanted = len(snapshot.study.items) * settings.target_answers
    devices = [answers.filter(select_counted(answers, out))["device"].to_list() for out in ((), before, after)]
    used: tuple[str, ...] = settings.devices
    rows = {device: [*(counted.count(device) for counted in devices), wanted] for device in used}
    if len(rows) > 1:
        rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    names = ("none", "before", "after", "wanted")
    return [
        {"device": device, **{name: format_number(count, 0) for name, count in zip(names, counts, strict=True)}}
        for device, counts in rows.items()
    ]


def _fields(rules: ExclusionRules, given: dict[str, str], kind: str) -> list[dict[str, str]]:
    values = {**format_rules(rules), **given}
    shown = [name for name in NUMBERS if kind == "clicks" or name in _RULES_OF_ANY_KIND]
    about = {name: ExclusionRules.model_fields[name].description or "" for name in shown}
    return [{"name": n, "title": n.replace("_", " "), "about": about[n], "value": values[n]} for n in shown]


def _excluded_rows(snapshot: Snapshot, excluded: Mapping[str, str]) -> list[dict[str, Any]]:
    frame = snapshot.quality.filter(pl.col("participant").is_in(list(excluded))).head(MAX_LISTED)
    return [
        {
            "number": row["number"],
            "device": row["device"] or "",
            "answers": format_number(row["answers"], 0),
            "why": excluded[row["participant"]],
        }
        for row in frame.iter_rows(named=True)
    ]
