"""The page of one image: its clicks drawn over the picture by device and display mode, with the region's outline.

Each kind of click has a shape and a colour that stand out on any picture and in any colour vision. The outline runs
along the edges of the mask's pixels, so that it fits a click to the pixel.

>>> draw_mark(3, 4, 2, "near", full=True)
'<path class="mark near full" d="M3.0 2.0l2.0 2.0l-2.0 2.0l-2.0 -2.0z" stroke-width="0.7"/>'
>>> outline_path(np.array([[False, True, True], [False, True, False]]))
'M1 0h2M2 1h1M1 2h1M1 0v2M2 1v1M3 0v1'
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import polars as pl
from markupsafe import Markup
from numpy.typing import NDArray

from hardlook.collect.research.gallery import ADDRESS, TaskPictures, describe_task, image_address, picture_address
from hardlook.collect.research.requests import Pairs, Parameters
from hardlook.collect.research.snapshot import Snapshot, select_counted, select_valid_batches
from hardlook.collect.study.tasks import ClickTask
from hardlook.collect.web.refusals import RequestRefused
from hardlook.report.formatting import format_count

MAX_MARKS = 2000

# A speckled mask has more edges than a page can hold; its outline is then drawn from a coarser mask.
MAX_RUNS = 20_000

CLASSES = {
    "inside": "inside the region",
    "near": "outside, within the click radius",
    "outside": "outside and too far",
}


def image_view(
    snapshot: Snapshot, excluded: Collection[str], pictures: TaskPictures, task_id: str, pairs: Pairs
) -> dict[str, Any]:
    """The values of the template `image.html`, for a click task."""
    task = snapshot.study.by_id.get(task_id)
    if not isinstance(task, ClickTask) or task.training:
        raise RequestRefused(404, "nowhere", "There is no such image in this study.")
    settings = snapshot.study.settings
    parameters = Parameters(pairs, ("device", "mode", "outline"))
    device = parameters.choice("device", settings.devices, "")
    mode = parameters.choice("mode", settings.modes, "")
    outlined = parameters.choice("outline", ("yes", "no")) == "yes"
    clicks = snapshot.answers.filter(pl.col("task") == task.id)
    clicks = clicks.with_columns(
        select_counted(clicks, excluded).alias("counts"),
        select_valid_batches(clicks, excluded).alias("batch_counts"),
        _click_class().alias("class"),
    )
    panels = [
        _panel(clicks.filter((pl.col("mode") == shown) & (pl.col("device") == used)), task, shown, used)
        for shown in settings.modes
        for used in settings.devices
        if (not mode or shown == mode) and (not device or used == device)
    ]
    mask = pictures.mask(task.id)
    order = list(dict.fromkeys(item.task for item in snapshot.study.items))
    place = order.index(task.id)
    return {
        "task": task,
        "picture": picture_address(task.id),
        "width": task.width,
        "height": task.height,
        "outline": outline_path(mask) if mask is not None and outlined else "",
        "no_mask": mask is None,
        "panels": panels,
        "legend": [(name, words, Markup(draw_mark(8, 8, 6, name, full=True))) for name, words in CLASSES.items()],
        "hollow": Markup(draw_mark(8, 8, 6, "inside", full=False)),
        "radius": settings.click_radius,
        "before": image_address(order[place - 1]) if place else "",
        "after": image_address(order[place + 1]) if place + 1 < len(order) else "",
        "asked": {"device": device, "mode": mode, "outline": "yes" if outlined else "no"},
        "devices": settings.devices,
        "modes": settings.modes,
        "gallery": ADDRESS,
        "name": describe_task(task),
    }


def _click_class() -> pl.Expr:
    """Inside, near or outside; a click that was never judged is outside."""
    inside, near = pl.col("inside").fill_null(False), pl.col("near").fill_null(False)
    return pl.when(inside).then(pl.lit("inside")).when(near).then(pl.lit("near")).otherwise(pl.lit("outside"))


def _panel(clicks: pl.DataFrame, task: ClickTask, mode: str, device: str) -> dict[str, Any]:
    counts = {name: int((clicks["class"] == name).sum()) for name in CLASSES}
    valid, size = int(clicks["counts"].sum()), max(task.width, task.height) / 90
    # Clicks of batches that count are drawn last, so that they lie on top.
    drawn = clicks.sort("batch_counts").tail(MAX_MARKS).select("x", "y", "class", "batch_counts")
    marks = [draw_mark(x, y, size, kind, full=full) for x, y, kind, full in drawn.drop_nulls(["x", "y"]).iter_rows()]
    listed = ", ".join(f"{count} {name}" for name, count in counts.items())
    clicked = f"{format_count(len(clicks), 'click')} on {device} in the display mode {mode}"
    return {
        "mode": mode,
        "device": device,
        "counts": counts,
        "clicks": len(clicks),
        "valid": valid,
        "cut": len(clicks) > MAX_MARKS and MAX_MARKS,
        "marks": Markup("".join(marks)),
        "words": f"{clicked}: {listed}; {valid} count.",
    }


def draw_mark(x: float, y: float, size: float, kind: str, *, full: bool) -> str:
    """The SVG mark of a click at (x, y), `size` from centre to edge; hollow where its batch does not count."""
    # A cross has more edge for its size than the others have, and needs a wider one to stand out.
    width = size * (0.6 if kind == "outside" and full else 0.35 if full else 0.5)
    shared = f'class="mark {kind} {"full" if full else "hollow"}"'
    if kind == "inside":
        return f'<circle {shared} cx="{x:.1f}" cy="{y:.1f}" r="{size * 0.8:.1f}" stroke-width="{width:.1f}"/>'
    if kind == "near":
        step = f"{size:.1f}"
        path = f"M{x:.1f} {y - size:.1f}l{step} {step}l-{step} {step}l-{step} -{step}z"
    else:
        path = _cross_path(x, y, size * 0.85, size * 0.25)
    return f'<path {shared} d="{path}" stroke-width="{width:.1f}"/>'


def _cross_path(x: float, y: float, arm: float, thick: float) -> str:
    """A cross as a closed shape, so that it has a fill and an edge as the other marks have."""
    quarter = [(-arm, -arm + thick), (-arm + thick, -arm), (0.0, -thick)]
    corners: list[tuple[float, float]] = []
    for _ in range(4):
        corners += quarter
        quarter = [(-down, across) for across, down in quarter]
    return "M" + "L".join(f"{x + across:.1f} {y + down:.1f}" for across, down in corners) + "z"


def outline_path(mask: NDArray[np.bool_], max_runs: int = MAX_RUNS) -> str:
    """The SVG path of a mask (H, W) in its own coordinates: x right, y down, from the upper left corner.

    A mask with more than `max_runs` straight runs is halved in size until it has fewer; its outline then fits within
    a cell of that size.
    """
    cell = 1
    while True:
        across, down = _edge_runs(mask), _edge_runs(mask.T)
        if len(across) + len(down) <= max_runs or min(mask.shape) == 1:
            break
        mask, cell = _halve(mask), cell * 2
    parts = [f"M{start * cell} {line * cell}h{length * cell}" for line, start, length in across.tolist()]
    parts += [f"M{line * cell} {start * cell}v{length * cell}" for line, start, length in down.tolist()]
    return "".join(parts)


def _edge_runs(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Straight pieces (N, 3) of the outline between two rows: line, start, length."""
    rows, columns = mask.shape
    padded = np.zeros((rows + 2, columns), np.int8)
    padded[1:-1] = mask
    edges = np.zeros((rows + 1, columns + 2), np.int8)
    edges[:, 1:-1] = np.abs(np.diff(padded, axis=0))
    turns = np.diff(edges, axis=1)
    line, start = np.nonzero(turns == 1)
    _, stop = np.nonzero(turns == -1)
    return np.stack([line, start, stop - start], axis=1).astype(np.int64)


def _halve(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """A mask of half the size: True where any of four pixels was."""
    rows, columns = (-(-size // 2) for size in mask.shape)
    padded = np.zeros((rows * 2, columns * 2), np.bool_)
    padded[: mask.shape[0], : mask.shape[1]] = mask
    return np.asarray(padded.reshape(rows, 2, columns, 2).any(axis=(1, 3)))
