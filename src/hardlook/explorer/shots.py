"""The pictures of a unit on its page: where each is fetched, its words, its labels and its clicks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from hardlook.contract.sections import Picture
from hardlook.errors import HardlookError
from hardlook.explorer.addresses import picture_address
from hardlook.explorer.library import Library
from hardlook.explorer.refusals import in_words
from hardlook.explorer.run_index import ListedRun
from hardlook.report.markup import plain
from hardlook.report.numerals import counted
from hardlook.report.thumbnails import label_colour, labels_present

MOST_LABELS = 24


def shots_of(library: Library, run: ListedRun, row: Mapping[str, Any], overlay: bool) -> dict[str, Any]:
    """The pictures, or the reason why there are none: data may have moved since the run."""
    try:
        pictures = library.pictures(run, row)
    except Exception as error:
        # A benchmark reads files of any kind here; whatever breaks, the record can still be shown.
        if not isinstance(error, HardlookError | OSError):
            logging.getLogger(__name__).exception("no pictures of %r", row["unit"])
        return {"pictures": [], "reason": in_words(error, library.root)}
    shown = [_shot(run, str(row["unit"]), number, picture, overlay) for number, picture in enumerate(pictures)]
    return {"pictures": shown, "reason": "" if shown else "the unit has none"}


def _shot(run: ListedRun, unit: str, number: int, picture: Picture, overlay: bool) -> dict[str, Any]:
    height, width = picture.image.shape[:2]
    radius = max(width, height) / 40
    return {
        "address": picture_address(run.key, unit, number, overlay=overlay),
        "label": plain(picture.label) or "picture",
        "words": _words(picture, unit, overlay),
        "width": width,
        "height": height,
        "labels": _labels(picture) if overlay else [],
        "radius": radius if picture.ordered else radius / 3,
        "points": [(x + 0.5, y + 0.5, positive) for x, y, positive in picture.points] if overlay else [],
        "ordered": picture.ordered,
    }


def _words(picture: Picture, unit: str, overlay: bool) -> str:
    """The picture in words: what it is, of which unit, and what is painted over it."""
    words = [f"{plain(picture.label) or 'picture'} of {unit}"]
    if overlay and picture.mask is not None:
        words.append(f"a mask over {picture.mask.mean():.1%} of the image")
    if overlay and picture.label_map is not None:
        words.append("labels: " + (", ".join(name for name, _ in _labels(picture)) or "none"))
    if overlay and picture.points:
        positive = sum(point[2] for point in picture.points)
        words.append(f"{counted(positive, 'positive click')}, {len(picture.points) - positive} negative")
    return "; ".join(words)


def _labels(picture: Picture) -> list[tuple[str, str]]:
    """The labels that are there, largest first, with their colours."""
    found = labels_present(picture)[:MOST_LABELS]
    return [(_name(picture, label), "rgb({},{},{})".format(*label_colour(label))) for label in found]


def _name(picture: Picture, label: int) -> str:
    return str(picture.label_names[label]) if label < len(picture.label_names) else f"label {label}"
