"""The participants: how good the answers of each are, sortable, with flags on those to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import polars as pl

from hardlook.collect.research.excluding import left_out, worth_a_look
from hardlook.collect.research.paging import page_of
from hardlook.collect.research.parameters import Asked, Pairs
from hardlook.collect.research.snapshot import Snapshot
from hardlook.collect.results.exclusions import ExclusionRules, excluded
from hardlook.collect.web.codes import completion_code
from hardlook.report.numerals import NOTHING, counted, numeral

ADDRESS, SIZE = "/research/participants", 100


@dataclass(frozen=True)
class Column:
    """A column of the table: its key in the frame, its title, what it means, and how its values are written."""

    key: str
    title: str
    meaning: str
    form: str = "count"


NUMBER = Column("number", "participant", "the number that a participant goes by in every file")
COLUMNS = (
    NUMBER,
    Column("device", "device", "the device that the participant confirmed", "text"),
    Column("answers", "answers", "answers that were stored"),
    Column("inside", "inside", "share of clicks inside the region", "share"),
    Column("near", "valid place", "share of clicks inside or within the click radius", "share"),
    Column("reaction_ms", "reaction", "median milliseconds from the time that clicks count to the click", "ms"),
    Column("early", "early", "clicks before their time"),
    Column("late_ms", "lateness", "median milliseconds between a phase's planned and its measured duration", "ms"),
    Column("batches", "batches", "batches that were handed out"),
    Column("valid_batches", "valid", "batches that count"),
    Column("dropped_batches", "dropped", "complete batches that do not count"),
    Column("given_up_batches", "given up", "batches that were left unfinished and returned"),
    Column("hidden", "out of sight", "times that the page was hidden"),
    Column("reshown", "shown again", "answers whose pictures were asked for more than once"),
)
_OF_CLICKS = frozenset({"inside", "near", "early", "late_ms", "device"})


def columns_of(kind: str) -> tuple[Column, ...]:
    """The columns that mean something in a study of that kind.

    >>> [column.key for column in columns_of("ratings")][:3]
    ['number', 'answers', 'reaction_ms']
    """
    return tuple(column for column in COLUMNS if kind == "clicks" or column.key not in _OF_CLICKS)


def participants_view(snapshot: Snapshot, rules: ExclusionRules, pairs: Pairs) -> dict[str, Any]:
    """What the template `participants.html` shows."""
    columns = columns_of(snapshot.study.settings.kind)
    keys = tuple(column.key for column in columns)
    asked = Asked(pairs, ("q", "flagged", "sort", "order", "page"))
    sort, order = asked.choice("sort", keys), asked.choice("order", ("up", "down"))
    out = left_out(snapshot, rules)
    doubtful = excluded(snapshot.quality, worth_a_look(snapshot.study.settings))
    frame = _found(snapshot, asked.text("q"))
    flagged = asked.choice("flagged", ("yes",), "") == "yes"
    if flagged:
        frame = frame.filter(pl.col("participant").is_in([*out, *doubtful]))
    frame = frame.sort(sort, "number", descending=[order == "down", False], nulls_last=True)
    rows, pager = page_of(list(frame.iter_rows(named=True)), asked, ADDRESS, SIZE)
    return {
        "columns": [_heading(column, asked, sort, order) for column in columns],
        "rows": [_row(row, columns, out, doubtful) for row in rows],
        "pager": pager,
        "counted": counted(len(frame), "participant"),
        "of": len(snapshot.quality),
        "left_out": len(out),
        "doubtful": len(doubtful.keys() - out.keys()),
        "asked": {"q": asked.text("q"), "flagged": flagged, "sort": sort, "order": order},
    }


def _found(snapshot: Snapshot, text: str) -> pl.DataFrame:
    """The participant of that number, id or completion code; everybody without a text."""
    frame = snapshot.quality
    if not text:
        return frame
    code = text.replace("-", "").replace(" ", "").upper()
    known = [name for name in frame["participant"] if completion_code(snapshot.study.secret, name) == code]
    number = pl.col("number").cast(pl.String)
    return frame.filter((number == text) | pl.col("participant").is_in([text, *known]))


def _heading(column: Column, asked: Asked, sort: str, order: str) -> dict[str, Any]:
    here = column.key == sort
    turned = "down" if here and order == "up" else "up"
    return {
        "title": column.title,
        "meaning": column.meaning,
        "number": column.form != "text",
        "sorted": ("ascending" if order == "up" else "descending") if here else "none",
        "address": asked.address(ADDRESS, sort=column.key, order=turned, page=""),
    }


def _row(
    row: dict[str, Any], columns: tuple[Column, ...], out: dict[str, str], doubtful: dict[str, str]
) -> dict[str, Any]:
    name = row["participant"]
    return {
        "cells": [(written(row[column.key], column.form), column.form != "text") for column in columns],
        "finished": row["finished"],
        "out": out.get(name, ""),
        "doubtful": "" if name in out else doubtful.get(name, ""),
        "exclude": "/research/rules?" + urlencode({"add": row["number"]}),
    }


def written(value: Any, form: str) -> str:
    """A value as the table shows it.

    >>> written(0.934, "share"), written(1234.5, "ms"), written(None, "share"), written("pc", "text")
    ('93.4 %', '1234 ms', '\N{EN DASH}', 'pc')
    """
    if value is None:
        return NOTHING
    if form == "share":
        return f"{100 * value:.1f} %"
    if form == "ms":
        return f"{numeral(value, 0)} ms"
    return numeral(value, 0) if form == "count" else str(value)
