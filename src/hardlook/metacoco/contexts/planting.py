"""Planting contexts: a dataset of class folders written again as `split/concept/context/image` and `manifest.csv`.

Which image gets which context is planned first, with a chosen correlation of context and concept. Counts are exact, not
drawn: a training concept of n images has round(correlation x n) of them in its favourite context, and the rest is
spread evenly over the others. A correlation below the even share, and test and validation concepts: all contexts alike.

The settings are written first (`contexts.json`), each image whole, the manifest last: a folder without one is
unfinished, and the same call resumes it. The same seed gives the same bytes.

>>> import tempfile
>>> from hardlook.world.layouts import write_world
>>> folder = Path(tempfile.mkdtemp())
>>> world = write_world(folder / "world", "concept-context", count=12, size=(96, 72))
>>> made = plant_contexts(world / "test", folder / "planted", PlantingOptions(("snow", "fog"), correlation=0.5))
>>> len(made.rows), made.written, plant_contexts(world / "test", folder / "planted", made.options).written
(6, 6, 0)
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np

from hardlook import fingerprints
from hardlook.data.images import is_image_name, read_image
from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.progress import StartProgress
from hardlook.metacoco.contexts.image_effects import EFFECTS, MASKED_EFFECTS, VERSION, Pixels, apply_effect
from hardlook.randomness import generator
from hardlook.reading import read_json

SplitBy = Literal["concept", "image"]

SHARES = {"train": 0.64, "test": 0.20, "val": 0.16}  # as the paper splits its 100 concepts
RECORD, MANIFEST = "contexts.json", "manifest.csv"
QUALITY = 95  # of JPEG
PLAN_VERSION = 2  # of the rule that gives images their contexts


@dataclass(frozen=True)
class PlantingOptions:
    """Contexts by name, their correlation with concepts in training, their strength, and how files are written."""

    contexts: tuple[str, ...]
    correlation: float = 0.8
    strength: float = 1.0
    split_by: SplitBy = "concept"
    fewest: int = 1
    image_format: str = "jpg"
    seed: int = 0

    def __post_init__(self) -> None:
        known = [*EFFECTS, *MASKED_EFFECTS]
        if unknown := [name for name in self.contexts if name not in known]:
            raise OptionError(f"no context {unknown[0]!r}", remedy=f"there are {', '.join(known)}")
        if not 0 <= self.strength <= 1:
            raise OptionError(f"strength {self.strength}", remedy="a number from 0 to 1")
        if self.image_format not in ("jpg", "png"):
            raise OptionError(f"no image format {self.image_format!r}", remedy="jpg or png")
        if self.split_by not in ("concept", "image"):
            raise OptionError(f"no way to split by {self.split_by!r}", remedy="concept or image")


@dataclass(frozen=True)
class PlantingResult:
    """All images of the folder, how many of them this call wrote, and what was left out."""

    options: PlantingOptions
    rows: tuple[PlannedImage, ...]
    written: int
    small_concepts: tuple[str, ...]
    without_mask: int


def plant_contexts(
    source: Path,
    out: Path,
    options: PlantingOptions,
    *,
    masks: Path | None = None,
    progress: StartProgress | None = None,
) -> PlantingResult:
    """Write the class folders at `source` to `out` in planted contexts; resumes where it was stopped.

    grass and water need `masks`, a folder with `class/stem.png`; images without a mask are then left out. Concepts
    with fewer than `options.fewest` images are left out. `progress` starts a bar over (total, done) images.
    """
    folders = read_class_folders(source)
    folders, without_mask = _drop_without_mask(folders, options, masks)
    small = tuple(concept for concept, names in folders.items() if len(names) < options.fewest)
    kept = {concept: names for concept, names in folders.items() if concept not in small}
    if not kept:
        raise DataError(f"no concept has {options.fewest} images", file=source, remedy="give a smaller --fewest")
    plan = plan_contexts(
        kept, options.contexts, correlation=options.correlation, seed=options.seed, split_by=options.split_by
    )
    _reserve_folder(out, source, masks, options)
    files = {one: out / f"{one.target}.{options.image_format}" for one in plan}
    missing = [one for one in plan if not files[one].is_file()]
    advance = progress(len(plan), len(plan) - len(missing)) if progress else (lambda units, failed: None)
    for one in missing:
        write_atomically(files[one], _encode(_make_image(one, source, masks, options), options.image_format))
        advance(1, 0)
    rows = [(f"{one.target}.{options.image_format}", one.concept, one.context, one.split, one.source) for one in plan]
    write_manifest(out / MANIFEST, ("path", "concept", "context", "split", "source"), rows)
    return PlantingResult(options, plan, len(missing), small, without_mask)


@dataclass(frozen=True)
class PlannedImage:
    """One image to write: the name of its source, its labels, and its path without suffix (`target`)."""

    source: str
    concept: str
    context: str
    split: str
    target: str


def plan_contexts(
    folders: Mapping[str, Sequence[str]],
    contexts: Sequence[str],
    *,
    correlation: float,
    seed: int,
    split_by: SplitBy = "concept",
) -> tuple[PlannedImage, ...]:
    """All images of class folders, each in one split and one context, sorted by target.

    `split_by` "concept" gives each concept to one split, as few-shot learning requires: 64 % train, 20 % test and 16 %
    val, drawn by seed. "image" gives 64 % of each concept's images to train and the rest to test, as ordinary training
    requires. `correlation` in [0, 1] holds in train. A concept's plan depends on its own images and, for its split and
    favourite, on the list of concepts.

    >>> folders = {f"class {i}": tuple(f"class {i}/{j}.jpg" for j in range(20)) for i in range(10)}
    >>> plan = plan_contexts(folders, ("snow", "dusk"), correlation=1.0, seed=0)
    >>> len({(one.concept, one.context) for one in plan if one.split == "train"}), len(plan)
    (6, 200)
    """
    if not contexts or len(set(contexts)) < len(contexts):
        raise OptionError(f"contexts {', '.join(contexts) or '(none)'}", remedy="name one or more, each once")
    if not 0 <= correlation <= 1:
        raise OptionError(f"correlation {correlation}", remedy="a number from 0 to 1")
    # Each context is the favourite as often as any other or once more.
    concepts, drawn = sorted(folders), generator(seed, "planting", "favourites").permutation(len(folders))
    favourites = {concepts[i]: contexts[place % len(contexts)] for place, i in enumerate(drawn)}
    splits = _split_concepts(concepts, seed) if split_by == "concept" else {}
    planned = []
    for concept, names in folders.items():
        numbers = {name: number for number, name in enumerate(names, start=1)}
        order = [names[i] for i in generator(seed, "planting", "order", concept).permutation(len(names))]
        if split_by == "concept":
            parts = {splits[concept]: order}
        else:
            kept = round(SHARES["train"] * len(order))
            parts = {"train": order[:kept], "test": order[kept:]}
        for split, part in parts.items():
            favourite = favourites[concept]
            # Each context as often as any other or once more; which come once more is drawn.
            turns = generator(seed, "planting", "contexts", concept, split).permutation(len(contexts))
            rest, favoured = [contexts[turn] for turn in turns], 0
            if split == "train" and correlation * len(contexts) > 1:
                favoured = round(correlation * len(part)) if len(contexts) > 1 else len(part)
                rest = [context for context in rest if context != favourite]
            others = [rest[i % len(rest)] for i in range(len(part) - favoured)]
            for source, context in zip(part, [favourite] * favoured + others, strict=True):
                target = f"{split}/{concept}/{context}/{numbers[source]:06d}"
                planned.append(PlannedImage(source, concept, context, split, target))
    return tuple(sorted(planned, key=lambda one: one.target))


def _split_concepts(concepts: Sequence[str], seed: int) -> dict[str, str]:
    order = generator(seed, "planting", "splits").permutation(len(concepts))
    train = round(SHARES["train"] * len(concepts))
    test = train + round(SHARES["test"] * len(concepts))
    names = ["train"] * train + ["test"] * (test - train) + ["val"] * (len(concepts) - test)
    return {concepts[i]: names[place] for place, i in enumerate(order)}


def read_class_folders(root: Path) -> dict[str, tuple[str, ...]]:
    """The names of each class's images, relative to `root` (posix, sorted); hidden files are ignored."""
    if not root.is_dir():
        raise DataError("no such folder", file=root, remedy="give the folder that holds one folder per class")
    found: dict[str, tuple[str, ...]] = {}
    for folder in sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")):
        names = sorted(
            path.relative_to(root).as_posix()
            for path in folder.rglob("*")
            if is_image_name(path) and not path.name.startswith(".")
        )
        if names:
            found[folder.name] = tuple(names)
    if not found:
        raise DataError("no class folder with images here", file=root, remedy="lay images out as class/image")
    return found


def _drop_without_mask(
    folders: dict[str, tuple[str, ...]], options: PlantingOptions, masks: Path | None
) -> tuple[dict[str, tuple[str, ...]], int]:
    """The folders without images that have no mask, where a context needs masks; how many images were dropped."""
    masked = [name for name in options.contexts if name in MASKED_EFFECTS]
    if not masked:
        return folders, 0
    if masks is None:
        raise OptionError(f"{masked[0]} needs masks of the objects", remedy="pass --masks, or leave it out")
    found = {concept: tuple(n for n in names if mask_path(masks, n)) for concept, names in folders.items()}
    kept = {concept: names for concept, names in found.items() if names}
    if not kept:
        raise DataError("no image has a mask here", file=masks, remedy="name masks as class/stem.png")
    return kept, sum(map(len, folders.values())) - sum(map(len, kept.values()))


def mask_path(masks: Path, name: str) -> Path | None:
    """The mask of the image `class/stem.*`: `class/stem.png` under `masks`, or None.

    >>> mask_path(Path("nowhere"), "cat/a.jpg") is None
    True
    """
    path = (masks / name).with_suffix(".png")
    return path if path.is_file() else None


def _reserve_folder(out: Path, source: Path, masks: Path | None, options: PlantingOptions) -> None:
    """Write the settings to the folder; an error where it holds something else."""
    record = {
        "made": "planted contexts",
        "looks": VERSION,
        "plan": PLAN_VERSION,
        "planting": {**asdict(options), "contexts": list(options.contexts)},
        "source": fingerprints.hash_data(source, without=out),
        "masks": fingerprints.hash_data(masks, without=out) if masks else "",
    }
    path = out / RECORD
    if path.is_file():
        if read_json(path, what="not the settings of planted contexts", remedy="choose another folder") != record:
            remedy = "choose another folder, or give the settings and data that it was started with"
            raise DataError("other contexts were planted here", file=path, remedy=remedy)
    elif out.is_dir() and any(out.iterdir()):
        raise DataError("the folder holds something else", file=out, remedy="choose an empty folder")
    else:
        write_atomically(path, json.dumps(record, indent=1) + "\n")


def _make_image(one: PlannedImage, source: Path, masks: Path | None, options: PlantingOptions) -> Pixels:
    image, mask = read_image(source / one.source), None
    if one.context in MASKED_EFFECTS and masks and (path := mask_path(masks, one.source)):
        mask = np.asarray(read_image(path).max(axis=2) > 0)  # (H, W), True where the mask's picture is not black
        if mask.shape != image.shape[:2]:
            raise DataError(f"the mask is {mask.shape}, its image {image.shape[:2]}", file=path, remedy="redraw it")
    # Keyed by image and context alone: another correlation or split moves images and changes no pixel.
    rng = generator(options.seed, "planting", "look", one.source, one.context)
    return apply_effect(image, one.context, rng, mask=mask, strength=options.strength)


def _encode(image: Pixels, image_format: str) -> bytes:
    options = [cv2.IMWRITE_JPEG_QUALITY, QUALITY] if image_format == "jpg" else []
    done, data = cv2.imencode(f".{image_format}", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)
    if not done:
        raise DataError(f"an image of {image.shape} cannot be stored as {image_format}")
    return bytes(data)


def write_manifest(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a CSV file with these columns."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    write_atomically(path, text.getvalue())


def build_document(made: PlantingResult, out: Path) -> dict[str, Any]:
    """What the folder holds, as JSON values."""
    splits: dict[str, dict[str, int]] = {}
    for split in sorted({one.split for one in made.rows}):
        rows = [one for one in made.rows if one.split == split]
        splits[split] = {
            "images": len(rows),
            "concepts": len({one.concept for one in rows}),
            "pairs": len({(one.concept, one.context) for one in rows}),
        }
    return {
        "schema": "hardlook.planted-contexts/1",
        "folder": str(out),
        "images": len(made.rows),
        "written": made.written,
        "contexts": list(made.options.contexts),
        "correlation": made.options.correlation,
        "splits": splits,
        "small_concepts": list(made.small_concepts),
        "images_without_mask": made.without_mask,
    }


def describe_planting(document: dict[str, Any]) -> str:
    """The document as text."""
    lines = [
        f"{document['images']} images in {len(document['contexts'])} contexts, {document['written']} of them new",
        *(
            f"  {name}: {one['images']} images of {one['concepts']} concepts, {one['pairs']} pairs with a context"
            for name, one in document["splits"].items()
        ),
    ]
    if small := document["small_concepts"]:
        lines.append(f"left out: {len(small)} concepts with too few images ({', '.join(small[:5])})")
    if document["images_without_mask"]:
        lines.append(f"left out: {document['images_without_mask']} images without a mask")
    return "\n".join([*lines, f"folder: {document['folder']}"])
