"""A dataset of concepts in planted contexts, as files: `split/concept/context/image` and `manifest.csv`.

The settings come first (`contexts.json`), each picture appears whole, the manifest comes last: a folder without one
is unfinished, and the same call finishes it. The same seed gives the same bytes.

>>> import tempfile
>>> from hardlook.world.write import write_world
>>> folder = Path(tempfile.mkdtemp())
>>> world = write_world(folder / "world", "concept-context", count=12, size=(96, 72))
>>> made = plant_contexts(world / "test", folder / "planted", Planting(("snow", "fog"), correlation=0.5))
>>> made.images, made.written, plant_contexts(world / "test", folder / "planted", made.planting).written
(6, 6, 0)
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import cv2

from hardlook import fingerprint
from hardlook.contexts.class_folders import mask_path, read_class_folders, read_mask
from hardlook.contexts.looks.apply import LOOKS, VERSION, WITH_MASKS, dress
from hardlook.contexts.looks.shades import Pixels
from hardlook.contexts.plan import PlannedImage, SplitBy, plan_contexts
from hardlook.contexts.whole_files import put_whole
from hardlook.data.images import read_image
from hardlook.errors import DataError, OptionError
from hardlook.randomness import generator

RECORD, MANIFEST = "contexts.json", "manifest.csv"
QUALITY = 95
Moved = Callable[[int, int], None]


@dataclass(frozen=True)
class Planting:
    """The settings: contexts by name, the dial of training, how strong the looks are, and how files are written."""

    contexts: tuple[str, ...]
    correlation: float = 0.8
    strength: float = 1.0
    split_by: SplitBy = "concept"
    fewest: int = 1
    image_format: str = "jpg"
    seed: int = 0

    def __post_init__(self) -> None:
        known = [*LOOKS, *WITH_MASKS]
        if unknown := [name for name in self.contexts if name not in known]:
            raise OptionError(f"no context {unknown[0]!r}", remedy=f"there are {', '.join(known)}")
        if not 0 <= self.strength <= 1:
            raise OptionError(f"strength {self.strength}", remedy="a number from 0 to 1")
        if self.image_format not in ("jpg", "png"):
            raise OptionError(f"no image format {self.image_format!r}", remedy="jpg or png")
        if self.split_by not in ("concept", "image"):
            raise OptionError(f"no way to split by {self.split_by!r}", remedy="concept or image")


@dataclass(frozen=True)
class Planted:
    """What was made: all images, how many this call wrote, and what was left out and why."""

    planting: Planting
    rows: tuple[PlannedImage, ...]
    written: int
    small_concepts: tuple[str, ...]
    without_mask: int

    @property
    def images(self) -> int:
        """How many images the folder holds."""
        return len(self.rows)


def plant_contexts(
    source: Path,
    out: Path,
    planting: Planting,
    *,
    masks: Path | None = None,
    progress: Callable[[int, int], Moved] | None = None,
) -> Planted:
    """Write the class folders at `source` to `out` in planted contexts; continues where it was stopped.

    grass and water need `masks`, a folder with `class/stem.png`; images without a mask are then left out. Concepts
    with fewer than `planting.fewest` images are left out. `progress` starts a bar over (total, done) images.
    """
    folders = read_class_folders(source)
    folders, without_mask = _masked(folders, planting, masks)
    small = tuple(concept for concept, names in folders.items() if len(names) < planting.fewest)
    kept = {concept: names for concept, names in folders.items() if concept not in small}
    if not kept:
        raise DataError(f"no concept has {planting.fewest} images", file=source, remedy="give a smaller --fewest")
    plan = plan_contexts(
        kept, planting.contexts, correlation=planting.correlation, seed=planting.seed, split_by=planting.split_by
    )
    _claim(out, source, masks, planting)
    files = {one: out / f"{one.place}.{planting.image_format}" for one in plan}
    missing = [one for one in plan if not files[one].is_file()]
    moved = progress(len(plan), len(plan) - len(missing)) if progress else (lambda units, failed: None)
    for one in missing:
        put_whole(files[one], _encoded(_made(one, source, masks, planting), planting.image_format))
        moved(1, 0)
    put_whole(out / MANIFEST, _manifest(plan, planting.image_format))
    return Planted(planting, plan, len(missing), small, without_mask)


def _masked(
    folders: dict[str, tuple[str, ...]], planting: Planting, masks: Path | None
) -> tuple[dict[str, tuple[str, ...]], int]:
    wanting = [name for name in planting.contexts if name in WITH_MASKS]
    if not wanting:
        return folders, 0
    if masks is None:
        raise OptionError(f"{wanting[0]} needs masks of the objects", remedy="give --masks, or leave it out")
    found = {concept: tuple(n for n in names if mask_path(masks, n)) for concept, names in folders.items()}
    total = sum(map(len, folders.values()))
    left = {concept: names for concept, names in found.items() if names}
    if not left:
        raise DataError("no image has a mask here", file=masks, remedy="name masks as class/stem.png")
    return left, total - sum(map(len, left.values()))


def _claim(out: Path, source: Path, masks: Path | None, planting: Planting) -> None:
    """Write down what is made here; refuse a folder that holds something else."""
    record = {
        "made": "planted contexts",
        "looks": VERSION,
        "planting": {**asdict(planting), "contexts": list(planting.contexts)},
        "source": fingerprint.of_data(source, without=out),
        "masks": fingerprint.of_data(masks, without=out) if masks else "",
    }
    path = out / RECORD
    if path.is_file():
        if json.loads(path.read_text(encoding="utf-8")) != record:
            remedy = "choose another folder, or give the settings and data that it was begun with"
            raise DataError("other contexts were planted here", file=path, remedy=remedy)
    elif out.is_dir() and any(out.iterdir()):
        raise DataError("the folder holds something else", file=out, remedy="choose an empty folder")
    else:
        put_whole(path, (json.dumps(record, indent=1) + "\n").encode())


def _made(one: PlannedImage, source: Path, masks: Path | None, planting: Planting) -> Pixels:
    image, mask = read_image(source / one.source), None
    if one.context in WITH_MASKS and masks and (path := mask_path(masks, one.source)):
        mask = read_mask(path)
        if mask.shape != image.shape[:2]:
            raise DataError(f"the mask is {mask.shape}, its image {image.shape[:2]}", file=path, remedy="redraw it")
    # Keyed by image and look alone: another dial or split moves images between contexts and changes no picture.
    rng = generator(planting.seed, "planting", "look", one.source, one.context)
    return dress(image, one.context, rng, mask=mask, strength=planting.strength)


def _encoded(image: Pixels, image_format: str) -> bytes:
    options = [cv2.IMWRITE_JPEG_QUALITY, QUALITY] if image_format == "jpg" else []
    done, data = cv2.imencode(f".{image_format}", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)
    if not done:
        raise DataError(f"a picture of {image.shape} cannot be stored as {image_format}")
    return bytes(data)


def _manifest(plan: tuple[PlannedImage, ...], image_format: str) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("path", "concept", "context", "split", "source"))
    writer.writerows((f"{one.place}.{image_format}", one.concept, one.context, one.split, one.source) for one in plan)
    return text.getvalue().encode()
