"""The overview page: how far the study is by device and display mode, and how many answers arrive per hour."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import polars as pl
from markupsafe import Markup
from numpy.typing import NDArray

from hardlook.collect.research.requests import Pairs, Parameters
from hardlook.collect.research.snapshot import Snapshot
from hardlook.collect.study.folder import Study
from hardlook.harness.rounding import format_percent
from hardlook.report.charts.drawing import SMALL, fit_scale, label, segment, svg_drawing, y_axis
from hardlook.report.charts.palette import ACCENT, MUTED, RULE
from hardlook.report.formatting import format_count, format_number
from hardlook.report.markup import element

HOURS = 48
_TOP, _TALL, _LEFT, _RIGHT = 34.0, 120.0, 52.0, 8.0
WIDTHS = (720.0, 340.0)


def build_overview_view(snapshot: Snapshot, excluded: Collection[str], pairs: Pairs) -> dict[str, Any]:
    """The values of the template `overview.html`, which has no parameters."""
    Parameters(pairs, ())
    participants = snapshot.participants
    done = {name: participants[name].count() for name in ("trained", "finished")}
    counts = count_by_hour(snapshot.answers["received"].to_numpy(), snapshot.taken)
    return {
        "rows": build_progress_rows(snapshot.study, snapshot.progress),
        "people": {"joined": len(participants), **done},
        "trains": bool(snapshot.study.training),
        "batches": count_batches(snapshot.batches),
        "answers": format_number(len(snapshot.answers), 0),
        "excluded": len(excluded),
        "hours": HOURS,
        "charts": [Markup(draw_hours(counts, key=f"hours-{place}", width=width)) for place, width in enumerate(WIDTHS)],
    }


def build_progress_rows(study: Study, progress: pl.DataFrame) -> list[dict[str, Any]]:
    """One row per display mode and device, then their total: answers that count, awaited and wanted, tasks done."""
    target, mode_of = study.settings.target_answers, {item.id: item.mode for item in study.items}
    modes = study.settings.modes if study.settings.kind == "clicks" else ("",)
    # In the order of the settings, and with a row for what has no answer yet.
    sums = {(mode, device): np.zeros(4, np.int64) for mode in modes for device in study.settings.devices}
    for item, device, pending, valid in progress.select("item", "device", "pending", "valid").iter_rows():
        place = mode_of.get(item, "?"), device
        if place in sums:
            sums[place] += (valid, pending, 1, valid >= target)
    rows = [_row(mode, device, counts, target) for (mode, device), counts in sums.items()]
    return [*rows, _row("all", "all", np.sum(list(sums.values()), axis=0), target)] if len(rows) > 1 else rows


def _row(mode: str, device: str, counts: NDArray[np.int64], target: int) -> dict[str, Any]:
    valid, pending, items, done = counts.tolist()
    wanted = items * target
    share = min(valid / wanted, 1.0) if wanted else 0.0
    return {
        "mode": mode,
        "device": device,
        "valid": format_number(valid, 0),
        "pending": format_number(pending, 0),
        "wanted": format_number(wanted, 0),
        "items": format_number(items, 0),
        "done": format_number(done, 0),
        "percent": format_percent(share),
        "width": round(200 * share, 1),
        "awaited": round(200 * min(pending / wanted, 1 - share), 1) if wanted else 0.0,
    }


def count_batches(batches: pl.DataFrame) -> dict[str, int]:
    """Batches by state, and how many of the closed ones do not count."""
    states = batches["state"].to_list()
    invalid = batches.filter(pl.col("state") != "open", ~pl.col("valid"))
    return {**{state: states.count(state) for state in ("open", "complete", "returned")}, "invalid": len(invalid)}


def count_by_hour(received: NDArray[np.float64], now: float, hours: int = HOURS) -> NDArray[np.int64]:
    """Counts (hours,) of answers in each of the last hours, the oldest first; the last one ends now.

    `received` (N,) and `now` are seconds. An answer from a clock ahead of ours counts as of the last hour.

    >>> count_by_hour(np.array([0.0, 3600.0, 7100.0]), now=7200.0, hours=3).tolist()
    [0, 1, 2]
    """
    ago = np.maximum(np.ceil((now - received) / 3600).astype(np.int64) - 1, 0)
    counts = np.bincount(ago[ago < hours], minlength=hours)
    return counts[::-1].astype(np.int64)


def draw_hours(counts: NDArray[np.int64], *, key: str, width: float) -> str:
    """A bar chart of answers per hour as SVG with a text alternative; empty without answers."""
    if not counts.sum():
        return ""
    base, wide = _TOP + _TALL, (width - _LEFT - _RIGHT) / len(counts)
    scale = fit_scale([0, int(counts.max())], start=base, stop=_TOP, ticks=3)
    bars = "".join(
        f"M{_LEFT + place * wide + 0.5:.1f} {base:.1f}V{min(scale.at(count), base - 1):.1f}h{wide - 1:.1f}V{base:.1f}z"
        for place, count in enumerate(counts.tolist())
        if count
    )
    parts = [y_axis(scale, _LEFT, width - _RIGHT, "answers per hour"), element("path", d=bars, fill=ACCENT)]
    parts.append(segment(_LEFT, base, width - _RIGHT, base, RULE))
    for ago in range(0, len(counts) + 1, 12 if width > 500 else 24):
        time = "now" if not ago else f"{ago} h ago"
        anchor = "end" if not ago else "start" if ago == len(counts) else "middle"
        x = width - _RIGHT - ago * wide
        parts.append(label(x, base + 16, time, size=SMALL, anchor=anchor, fill=MUTED))
    return svg_drawing(key, width, base + 24, "Answers per hour", describe_hours(counts), *parts)


def describe_hours(counts: NDArray[np.int64]) -> str:
    """The text alternative of the chart.

    >>> describe_hours(np.array([0, 4, 1]))
    '5 answers in the last 3 hours, 1 in the last hour; the most in an hour were 4.'
    """
    latest, most = format_number(int(counts[-1]), 0), format_number(int(counts.max()), 0)
    counted = f"{format_count(int(counts.sum()), 'answer')} in the last {len(counts)} hours"
    return f"{counted}, {latest} in the last hour; the most in an hour were {most}."
