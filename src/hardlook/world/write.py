"""A planted world on disk, in the layout of a dataset people know.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp()) / "world"
>>> written = write_world(folder, "voc", seed=0, count=4)
>>> sorted(path.name for path in written.iterdir())
['ImageSets', 'JPEGImages', 'SegmentationClass', 'SegmentationObject', 'classes.txt', 'world.json']
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from hardlook.errors import DataError, OptionError
from hardlook.world.layouts import coco_panoptic, concept_context, fss, isegm, voc
from hardlook.world.layouts.pictures import IMAGE_FORMATS
from hardlook.world.planted import VERSION, PlantedWorld
from hardlook.world.scene import DEFAULT_SIZE

RECORD = "world.json"
LAYOUTS: dict[str, tuple[Callable[[PlantedWorld, Path, str], None], tuple[str, ...]]] = {
    "voc": (voc.write_voc, voc.ENTRIES),
    "concept-context": (concept_context.write_concept_context, concept_context.ENTRIES),
    "coco-panoptic": (coco_panoptic.write_coco_panoptic, coco_panoptic.ENTRIES),
    "isegm": (isegm.write_isegm, isegm.ENTRIES),
    "fss": (fss.write_fss, fss.ENTRIES),
}


def write_world(
    directory: Path | str,
    layout: str,
    seed: int = 0,
    count: int = 96,
    size: tuple[int, int] = DEFAULT_SIZE,
    image_format: str = "png",
    *,
    correlation: float = 0.0,
    salient: bool | None = None,
    distractors: int | None = None,
    border: int = 0,
    overwrite: bool = False,
) -> Path:
    """Write `count` scenes to `directory` in a layout of `LAYOUTS` and return the directory.

    `image_format` "png" keeps the signature that planted models read; "jpg" does not. `border` is VOC's ring of
    ignored pixels. In "concept-context" subjects are salient unless asked otherwise: a picture filed under cat
    should be about the cat. A directory that holds something else is refused unless `overwrite`, and even then
    only what the layout itself writes is replaced. The record `world.json` comes last, so a directory without it
    is not a finished world.
    """
    directory = Path(directory)
    if layout not in LAYOUTS:
        raise OptionError(f"no layout {layout!r}", remedy=f"one of {', '.join(LAYOUTS)}")
    if image_format not in IMAGE_FORMATS:
        raise OptionError(f"no image format {image_format!r}", remedy=f"one of {', '.join(IMAGE_FORMATS)}")
    if border and layout != "voc":
        raise OptionError(f"a border of ignored pixels in layout {layout!r}", remedy="only voc has one")
    if layout == "concept-context" and salient is None:
        salient = True
    world = PlantedWorld(seed, count, size, correlation, salient, distractors)
    _refuse_foreign(directory, overwrite)
    write, _ = LAYOUTS[layout]
    if border:
        write = partial(voc.write_voc, border=border)
    directory.mkdir(parents=True, exist_ok=True)
    # Beside the target, not in the system's temporary folder: a rename must not cross file systems.
    draft = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.resolve().parent))
    try:
        write(world, draft, image_format)
        _replace(directory, draft, layout)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    record = {
        "world": "planted", "version": VERSION, "layout": layout, "image_format": image_format, "border": border,
        "options": asdict(world), "fingerprint": world.fingerprint(),
    }  # fmt: skip
    (directory / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return directory


def _layout_found(directory: Path) -> str | None:
    """The layout of the planted world that the directory holds, if it holds one."""
    try:
        record = json.loads((directory / RECORD).read_text(encoding="utf-8"))
        return str(record["layout"]) if record["world"] == "planted" and record["layout"] in LAYOUTS else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _refuse_foreign(directory: Path, overwrite: bool) -> None:
    if directory.exists() and not directory.is_dir():
        raise DataError("there is a file of this name", file=directory, remedy="choose another folder")
    if overwrite or not directory.is_dir() or not any(directory.iterdir()):
        return
    if found := _layout_found(directory):
        raise DataError(f"a planted world ({found}) lies here already", file=directory, remedy="give --overwrite")
    raise DataError(
        "the folder holds something else", file=directory, remedy="choose an empty folder, or allow overwriting"
    )


def _replace(directory: Path, draft: Path, layout: str) -> None:
    """Put the draft's entries in place of this layout's and of those of the world that was here; the rest stays."""
    stale = {layout, _layout_found(directory) or layout}
    (directory / RECORD).unlink(missing_ok=True)
    for name in sorted({name for known in stale for name in LAYOUTS[known][1]}):
        old = directory / name
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)
    for new in sorted(draft.iterdir()):
        new.rename(directory / new.name)
