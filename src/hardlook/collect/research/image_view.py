"""One task: its clicks drawn over the picture by device and display mode, with the outline of what was to be hit."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import polars as pl
from markupsafe import Markup

from hardlook.collect.research.gallery_view import ADDRESS, image_address, name_of, picture_address
from hardlook.collect.research.marks import CLASSES, mark
from hardlook.collect.research.outline import outline_path
from hardlook.collect.research.parameters import Asked, Pairs
from hardlook.collect.research.refusals import Refused
from hardlook.collect.research.snapshot import Snapshot
from hardlook.collect.research.task_counts import counting, standing
from hardlook.collect.research.task_pictures import TaskPictures
from hardlook.collect.study.tasks import ClickTask
from hardlook.report.numerals import counted

MOST_MARKS = 2000


def image_view(
    snapshot: Snapshot, excluded: Collection[str], pictures: TaskPictures, task_id: str, pairs: Pairs
) -> dict[str, Any]:
    """What the template `image.html` shows of a click task."""
    task = snapshot.study.by_id.get(task_id)
    if not isinstance(task, ClickTask) or task.training:
        raise Refused("There is no such image in this study.", 404)
    settings = snapshot.study.settings
    asked = Asked(pairs, ("device", "mode", "outline"))
    device = asked.choice("device", settings.devices, "")
    mode = asked.choice("mode", settings.modes, "")
    outlined = asked.choice("outline", ("yes", "no")) == "yes"
    clicks = snapshot.answers.filter(pl.col("task") == task.id)
    clicks = clicks.with_columns(
        counting(clicks, excluded).alias("counts"), standing(clicks, excluded).alias("stands"), _kind().alias("kind")
    )
    panels = [
        _panel(clicks.filter((pl.col("mode") == shown) & (pl.col("device") == used)), task, shown, used)
        for shown in settings.modes
        for used in settings.devices
        if (not mode or shown == mode) and (not device or used == device)
    ]
    mask = pictures.mask(task.id)
    before, after = _neighbours(snapshot, task.id)
    return {
        "task": task,
        "picture": picture_address(task.id),
        "width": task.width,
        "height": task.height,
        "outline": outline_path(mask) if mask is not None and outlined else "",
        "no_mask": mask is None,
        "panels": panels,
        "legend": [(name, words, Markup(mark(8, 8, 6, name, full=True))) for name, words in CLASSES.items()],
        "hollow": Markup(mark(8, 8, 6, "inside", full=False)),
        "radius": settings.click_radius,
        "before": before,
        "after": after,
        "asked": {"device": device, "mode": mode, "outline": "yes" if outlined else "no"},
        "devices": settings.devices,
        "modes": settings.modes,
        "gallery": ADDRESS,
        "name": name_of(task),
    }


def _kind() -> pl.Expr:
    """Inside, near or outside; a click that was never judged counts as outside."""
    inside, near = pl.col("inside").fill_null(False), pl.col("near").fill_null(False)
    return pl.when(inside).then(pl.lit("inside")).when(near).then(pl.lit("near")).otherwise(pl.lit("outside"))


def _panel(clicks: pl.DataFrame, task: ClickTask, mode: str, device: str) -> dict[str, Any]:
    counts = {name: int((clicks["kind"] == name).sum()) for name in CLASSES}
    valid, radius = int(clicks["counts"].sum()), max(task.width, task.height) / 90
    # Those of batches that count are drawn last, so that they lie on top.
    rows = clicks.sort("stands").tail(MOST_MARKS).select("x", "y", "kind", "stands").drop_nulls(["x", "y"]).iter_rows()
    said = ", ".join(f"{count} {name}" for name, count in counts.items())
    return {
        "mode": mode,
        "device": device,
        "counts": counts,
        "clicks": len(clicks),
        "valid": valid,
        "cut": len(clicks) > MOST_MARKS and MOST_MARKS,
        "marks": Markup("".join(mark(x, y, radius, kind, full=full) for x, y, kind, full in rows)),
        "words": f"{counted(len(clicks), 'click')} on {device} in the display mode {mode}: {said}; {valid} count.",
    }


def _neighbours(snapshot: Snapshot, task_id: str) -> tuple[str, str]:
    order = list(dict.fromkeys(item.task for item in snapshot.study.items))
    place = order.index(task_id)
    before = image_address(order[place - 1]) if place else ""
    return before, image_address(order[place + 1]) if place + 1 < len(order) else ""
