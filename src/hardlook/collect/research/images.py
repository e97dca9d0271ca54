"""Dashboard pages on the images of a click study: a gallery of all tasks, and a page per image with its clicks.

Clicks are drawn over the picture by device and display mode, with the region's outline. Each class of click has a
shape and a colour that are visible on any picture and with any colour vision. The outline follows the edges of the
mask's pixels exactly.

>>> draw_mark(3, 4, 2, "near", full=True)
'<path class="mark near full" d="M3.0 2.0l2.0 2.0l-2.0 2.0l-2.0 -2.0z" stroke-width="0.7"/>'
>>> make_outline_path(np.array([[False, True, True], [False, True, False]]))
'M1 0h2M2 1h1M1 2h1M1 0v2M2 1v1M3 0v1'
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
import polars as pl
from markupsafe import Markup
from numpy.typing import NDArray

from hardlook.caching import LRUCache
from hardlook.collect.research.requests import Pairs, Parameters, paginate
from hardlook.collect.research.snapshot import Snapshot, select_counted, select_valid_batches
from hardlook.collect.study.folder import Study
from hardlook.collect.study.pictures import read_mask
from hardlook.collect.study.tasks import ClickTask
from hardlook.collect.web.pages import find_image_type
from hardlook.collect.web.refusals import RequestRefused
from hardlook.data.images import decode_picture
from hardlook.errors import DataError
from hardlook.report.formatting import format_count

ADDRESS, TASKS_PER_PAGE = "/research/images", 48
SORTS = {"fewest": "fewest valid answers first", "most": "most valid answers first", "order": "in the study's order"}
MAX_MARKS = 2000

# A noisy mask can have too many edges for a page; its outline is then drawn from a coarser mask.
MAX_RUNS = 20_000

CLASSES = {"inside": "inside the region", "near": "outside, within the click radius", "outside": "outside and too far"}
THUMBNAIL_PIXELS, MAX_THUMBNAIL_BYTES, _JPEG_QUALITY = 320, 32 * 2**20, 80


def build_gallery_view(snapshot: Snapshot, excluded: Collection[str], pairs: Pairs) -> dict[str, Any]:
    """The values of the template `images.html`: every task with its counts by display mode and device."""
    parameters = Parameters(pairs, ("q", "below", "sort", "page"))
    settings, text = snapshot.study.settings, parameters.get_text("q").casefold()
    below, sort = parameters.get_integer("below", 0, 1, 1_000_000), parameters.get_choice("sort", tuple(SORTS))
    tasks = [task for task in snapshot.study.tasks if isinstance(task, ClickTask) and not task.training]
    counts = count_answers(snapshot.answers, excluded)
    tables = {
        task: [
            (mode, [counts.get((task, mode, device), (0, 0)) for device in settings.devices]) for mode in settings.modes
        ]
        for task in (task.id for task in tasks)
    }
    valid = {task: [count for _, cells in table for count, _ in cells] for task, table in tables.items()}
    matching = [
        task for task in tasks if (not below or min(valid[task.id]) < below) and text in task.full_stem.casefold()
    ]
    if sort != "order":
        # Sorting is stable: ties stay in the study's order.
        matching.sort(key=lambda task: (min(valid[task.id]), sum(valid[task.id])), reverse=sort == "most")
    shown, listing = paginate(matching, parameters, ADDRESS, TASKS_PER_PAGE, noun="task", total=len(tasks))
    return {
        "cards": [
            {"name": name, "address": make_image_url(id), "picture": make_picture_url(id, "small"), "rows": tables[id]}
            for name, id in ((task.full_stem, task.id) for task in shown)
        ],
        "devices": settings.devices,
        "chosen": {"q": parameters.get_text("q"), "below": below or "", "sort": sort},
        "sorts": list(SORTS.items()),
        "target": settings.target_answers,
        **listing,
    }


def count_answers(answers: pl.DataFrame, excluded: Collection[str]) -> dict[tuple[str, str, str], tuple[int, int]]:
    """The numbers of valid and of all answers, by (task, display mode, device)."""
    keys = ("task", "mode", "device")
    counted = answers.select(*keys, select_counted(answers, excluded).alias("counts"))
    grouped = counted.group_by(keys).agg(pl.col("counts").sum(), pl.len().alias("answers"))
    return {(task, mode, device): (valid, total) for task, mode, device, valid, total in grouped.iter_rows()}


def make_image_url(task: str) -> str:
    """The path of a task's page.

    >>> make_image_url("t 1/..")
    '/research/images/t%201%2F..'
    """
    return f"{ADDRESS}/{quote(task, safe='')}"


def make_picture_url(task: str, size: Literal["small", "whole"]) -> str:
    """The path of a task's picture, reduced or in full size."""
    return f"/research/pictures/{quote(task, safe='')}/{size}"


class TaskPictures:
    """Pictures of a study's tasks, found by task id and never by a path; up to 32 MiB of thumbnails are cached."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._thumbnails: LRUCache[bytes] = LRUCache(MAX_THUMBNAIL_BYTES, len)

    def whole(self, task: str) -> tuple[bytes, str]:
        """The content of the picture's file and its media type."""
        content = self._file(task).read_bytes()
        media_type = find_image_type(content)
        if not media_type:
            raise _no_picture("The picture of this task is in no known format.")
        return content, media_type

    def small(self, task: str) -> bytes:
        """A JPEG of at most 320 pixels per side."""
        return self._thumbnails.get_or_create(task, lambda: _make_thumbnail(self._file(task)))

    def _file(self, task: str) -> Path:
        entry = self.study.by_id.get(task)
        if entry is None or not entry.image:
            raise _no_picture("There is no such picture.")
        path = self.study.file(entry.image)
        if not path.is_file():
            raise _no_picture("The picture of this task is gone from the study's folder.")
        return path


def _make_thumbnail(path: Path) -> bytes:
    import cv2

    try:
        pixels = decode_picture(path.read_bytes(), cv2.IMREAD_COLOR)
    except DataError:
        pixels = None
    if pixels is None:
        raise _no_picture("The picture of this task cannot be read.")
    height, width = pixels.shape[:2]
    factor = min(1.0, THUMBNAIL_PIXELS / max(height, width))
    size = max(1, round(width * factor)), max(1, round(height * factor))
    small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    _, jpeg = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
    return jpeg.tobytes()


def _no_picture(message: str) -> RequestRefused:
    return RequestRefused(404, "no-picture", message)


def build_image_view(snapshot: Snapshot, excluded: Collection[str], pairs: Pairs, task_id: str) -> dict[str, Any]:
    """The values of the template `image.html`, for a click task."""
    task = snapshot.study.by_id.get(task_id)
    if not isinstance(task, ClickTask) or task.training:
        raise RequestRefused(404, "nowhere", "There is no such image in this study.")
    settings = snapshot.study.settings
    parameters = Parameters(pairs, ("device", "mode", "outline"))
    device = parameters.get_choice("device", settings.devices, "")
    mode = parameters.get_choice("mode", settings.modes, "")
    outlined = parameters.get_choice("outline", ("yes", "no")) == "yes"
    clicks = snapshot.answers.filter(pl.col("task") == task.id)
    clicks = clicks.with_columns(
        select_counted(clicks, excluded).alias("counts"),
        select_valid_batches(clicks, excluded).alias("batch_counts"),
        _classify_clicks().alias("class"),
    )
    panels = [
        _build_panel(clicks.filter((pl.col("mode") == m) & (pl.col("device") == d)), task, m, d)
        for m in settings.modes
        for d in settings.devices
        if (not mode or m == mode) and (not device or d == device)
    ]
    try:
        mask = read_mask(snapshot.study.file(task.mask), (task.width, task.height))
    except (DataError, OSError):
        mask = None
    order = list(dict.fromkeys(item.task for item in snapshot.study.items))
    index = order.index(task.id)
    return {
        "task": task,
        "picture": make_picture_url(task.id, "whole"),
        "outline": make_outline_path(mask) if mask is not None and outlined else "",
        "no_mask": mask is None,
        "panels": panels,
        "legend": [(name, words, Markup(draw_mark(8, 8, 6, name, full=True))) for name, words in CLASSES.items()],
        "hollow": Markup(draw_mark(8, 8, 6, "inside", full=False)),
        "radius": settings.click_radius,
        "before": make_image_url(order[index - 1]) if index else "",
        "after": make_image_url(order[index + 1]) if index + 1 < len(order) else "",
        "chosen": {"device": device, "mode": mode, "outline": "yes" if outlined else "no"},
        "devices": settings.devices,
        "modes": settings.modes,
        "gallery": ADDRESS,
        "name": task.full_stem,
    }


def _classify_clicks() -> pl.Expr:
    """Inside, near or outside; a click without these flags is outside."""
    inside, near = pl.col("inside").fill_null(False), pl.col("near").fill_null(False)
    return pl.when(inside).then(pl.lit("inside")).when(near).then(pl.lit("near")).otherwise(pl.lit("outside"))


def _build_panel(clicks: pl.DataFrame, task: ClickTask, mode: str, device: str) -> dict[str, Any]:
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
        "description": f"{clicked}: {listed}; {valid} count.",
    }


def draw_mark(x: float, y: float, size: float, kind: str, *, full: bool) -> str:
    """The SVG mark of a click at (x, y), `size` from centre to edge; hollow where its batch does not count."""
    # A cross is thinner than the other marks, and needs a wider stroke to be visible.
    width = size * (0.6 if kind == "outside" and full else 0.35 if full else 0.5)
    shared = f'class="mark {kind} {"full" if full else "hollow"}"'
    if kind == "inside":
        return f'<circle {shared} cx="{x:.1f}" cy="{y:.1f}" r="{size * 0.8:.1f}" stroke-width="{width:.1f}"/>'
    if kind == "near":
        step = f"{size:.1f}"
        path = f"M{x:.1f} {y - size:.1f}l{step} {step}l-{step} {step}l-{step} -{step}z"
    else:
        path = _make_cross_path(x, y, size * 0.85, size * 0.25)
    return f'<path {shared} d="{path}" stroke-width="{width:.1f}"/>'


def _make_cross_path(x: float, y: float, arm: float, thick: float) -> str:
    """The SVG path of a cross as a closed shape, so that it has a fill and a stroke like the other marks."""
    quarter = [(-arm, -arm + thick), (-arm + thick, -arm), (0.0, -thick)]
    corners: list[tuple[float, float]] = []
    for _ in range(4):
        corners += quarter
        quarter = [(-down, across) for across, down in quarter]
    return "M" + "L".join(f"{x + across:.1f} {y + down:.1f}" for across, down in corners) + "z"


def make_outline_path(mask: NDArray[np.bool_], max_runs: int = MAX_RUNS) -> str:
    """The SVG path of a mask (H, W) in its own coordinates: x right, y down, from the upper left corner.

    A mask with more than `max_runs` straight segments is halved in size until it has fewer; its outline is then exact
    to a cell of that size.
    """
    cell = 1
    while True:
        across, down = _find_edge_segments(mask), _find_edge_segments(mask.T)
        if len(across) + len(down) <= max_runs or min(mask.shape) == 1:
            break
        # Half the size: True where any of four pixels is.
        padded = np.pad(mask, [(0, size % 2) for size in mask.shape])
        mask, cell = np.asarray(padded.reshape(len(padded) // 2, 2, -1, 2).any(axis=(1, 3))), cell * 2
    parts = [f"M{start * cell} {line * cell}h{length * cell}" for line, start, length in across.tolist()]
    parts += [f"M{line * cell} {start * cell}v{length * cell}" for line, start, length in down.tolist()]
    return "".join(parts)


def _find_edge_segments(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The horizontal segments (N, 3) of the outline: row, first column, length."""
    edges = np.abs(np.diff(np.pad(mask.astype(np.int8), ((1, 1), (0, 0))), axis=0))
    turns = np.diff(np.pad(edges, ((0, 0), (1, 1))), axis=1)
    line, start = np.nonzero(turns == 1)
    _, stop = np.nonzero(turns == -1)
    return np.stack([line, start, stop - start], axis=1).astype(np.int64)
