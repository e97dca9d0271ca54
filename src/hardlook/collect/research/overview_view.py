"""The first page: how far the study is, by device and display mode, and how fast it goes."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from hardlook.collect.research.hourly import HOURS, answers_by_hour, draw_hours
from hardlook.collect.research.snapshot import Snapshot
from hardlook.collect.study.folder import Study
from hardlook.report.numerals import numeral

WIDTHS = (720.0, 340.0)


def overview_view(snapshot: Snapshot, excluded: int) -> dict[str, Any]:
    """What the template `overview.html` shows; `excluded` counts participants whom the rules leave out."""
    counts = answers_by_hour(snapshot.answers["received"].to_numpy(), snapshot.taken)
    return {
        "rows": progress_rows(snapshot.study, snapshot.progress),
        "people": people(snapshot.participants),
        "trains": bool(snapshot.study.training),
        "batches": batch_counts(snapshot.batches),
        "answers": numeral(len(snapshot.answers), 0),
        "excluded": excluded,
        "hours": HOURS,
        "charts": [Markup(draw_hours(counts, key=f"hours-{place}", width=width)) for place, width in enumerate(WIDTHS)],
    }


def progress_rows(study: Study, progress: pl.DataFrame) -> list[dict[str, Any]]:
    """A row for each display mode and device: answers that count, that are awaited and wanted, tasks that are done.

    The last row is of all of them, where there are several.
    """
    target, mode_of = study.settings.target_answers, {item.id: item.mode for item in study.items}
    sums: dict[tuple[str, str], list[int]] = {}
    # In the order of the settings, and with a row for what has no answer yet.
    modes = study.settings.modes if study.settings.kind == "clicks" else ("",)
    for mode in modes:
        for device in study.settings.devices:
            sums[mode, device] = [0, 0, 0, 0]
    for item, device, pending, valid in progress.select("item", "device", "pending", "valid").iter_rows():
        found = sums.get((mode_of.get(item, "?"), device))
        if found is not None:
            found[0] += valid
            found[1] += pending
            found[2] += 1
            found[3] += valid >= target
    rows = [_row(mode, device, counts, target) for (mode, device), counts in sums.items()]
    if len(rows) > 1:
        totals = [sum(column) for column in zip(*sums.values(), strict=True)]
        rows.append(_row("all", "all", totals, target))
    return rows


def _row(mode: str, device: str, counts: list[int], target: int) -> dict[str, Any]:
    valid, pending, items, done = counts
    wanted = items * target
    share = min(valid / wanted, 1.0) if wanted else 0.0
    return {
        "mode": mode,
        "device": device,
        "valid": numeral(valid, 0),
        "pending": numeral(pending, 0),
        "wanted": numeral(wanted, 0),
        "items": numeral(items, 0),
        "done": numeral(done, 0),
        "percent": f"{100 * share:.0f} %",
        "width": round(200 * share, 1),
        "awaited": round(200 * min(pending / wanted, 1 - share), 1) if wanted else 0.0,
    }


def people(participants: pl.DataFrame) -> dict[str, int]:
    """How many joined, how many of them finished the training round, and how many all that was asked of them."""
    return {
        "joined": len(participants),
        "trained": len(participants) - participants["trained"].null_count(),
        "finished": len(participants) - participants["finished"].null_count(),
    }


def batch_counts(batches: pl.DataFrame) -> dict[str, int]:
    """How many batches are open, complete and returned, and how many of the closed ones count or do not."""
    states, valid = batches["state"].to_list(), batches["valid"].to_list()
    closed = [worth for state, worth in zip(states, valid, strict=True) if state != "open"]
    counts = {state: states.count(state) for state in ("open", "complete", "returned")}
    return {**counts, "valid": sum(map(bool, closed)), "invalid": len(closed) - sum(map(bool, closed))}
