"""Writing a planted world to disk in the layout of a well-known dataset.

| layout | files |
|---|---|
| `voc` | a Pascal VOC devkit: `JPEGImages/`, `SegmentationClass/`, `SegmentationObject/`, `ImageSets/Segmentation/{train,val}.txt` (every fourth scene is in val) and `classes.txt`, index 1 first |
| `coco-panoptic` | `images/`, `panoptic/` (PNG, id = R + 256 G + 65536 B), `panoptic.json`, `instances.json` (things only), `semantic/` (grey PNG of category ids, 0 unlabelled), `semantic_classes.yaml`; category ids are the vocabulary's codes, void pixels belong to no segment |
| `concept-context` | `split/concept/context/<id>.png` and `manifest.csv`; splits share no concept and siblings are in one split |
| `fss` | as FSS-1000: one folder per concept with `<n>.bmp` and its mask `<n>.png` (255 on all visible pixels of the concept), n from 1; 120 scenes give ten images per concept |
| `isegm` | as GrabCut: `data_GT/<id>.png` and `boundary_GT/<id>.png`, one target per image: 255 object, 0 background, 128 an ignored band along the object's outer edge |

FSS-1000 names the mask `.png`, so the image is a `.bmp`, which keeps the signature that planted models read.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> written = write_world(folder / "voc", "voc", seed=0, count=4)
>>> sorted(path.name for path in written.iterdir())
['ImageSets', 'JPEGImages', 'SegmentationClass', 'SegmentationObject', 'classes.txt', 'world.json']
>>> (written / "ImageSets" / "Segmentation" / "val.txt").read_text().split()
['2026_000004']
>>> written = write_world(folder / "contexts", "concept-context", seed=0, count=3)
>>> (written / "manifest.csv").read_text().splitlines()[0]
'path,concept,context,split'
>>> written = write_world(folder / "fss", "fss", seed=0, count=12)
>>> sorted(path.name for path in (written / "owl").iterdir())
['1.bmp', '1.png']
"""  # noqa: E501 - a table

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.errors import DataError, OptionError
from hardlook.world.planted import VERSION, PlantedWorld
from hardlook.world.render import RenderedScene
from hardlook.world.scene import DEFAULT_SIZE
from hardlook.world.vocabulary import BY_CODE, CONCEPTS, LABELS, VOID

IMAGE_FORMATS = ("png", "jpg")
RECORD = "world.json"


def make_world(
    directory: Path | str,
    *,
    layout: str = "voc",
    scenes: int = 96,
    seed: int = 0,
    width: int = DEFAULT_SIZE[0],
    height: int = DEFAULT_SIZE[1],
    correlation: float = 0.0,
    image_format: str = "png",
    overwrite: bool = False,
) -> Path:
    """Write scenes of the planted world with their whole truth, as files of a real dataset's layout; their folder.

    Args:
        directory: A new or empty folder.
        layout: `voc`, `concept-context`, `coco-panoptic`, `isegm` or `fss`.
        scenes: How many pictures.
        seed: Seed of the scenes.
        width: Pixels.
        height: Pixels.
        correlation: Share of scenes moved to their concept's favourite context, 0 to 1.
        image_format: `png`, or `jpg`, which planted models cannot read.
        overwrite: Replace a world made before.
    """
    if scenes < 1:
        raise OptionError(f"scenes={scenes}: a world has at least one scene", remedy="scenes=96 has every context")
    size = (width, height)
    return write_world(
        directory, layout, seed, scenes, size, image_format, correlation=correlation, overwrite=overwrite
    )


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
    ignored pixels. In "concept-context" subjects are salient by default, since an image labelled cat should be
    about the cat. A directory with other content is an error unless `overwrite`, which replaces only what the layout
    itself writes. The record `world.json` is written last, so a directory without it is incomplete.
    """
    directory = Path(directory)
    if layout not in LAYOUTS:
        raise OptionError(f"no layout {layout!r}", remedy=f"one of {', '.join(LAYOUTS)}")
    if image_format not in IMAGE_FORMATS:
        raise OptionError(f"no image format {image_format!r}", remedy=f"one of {', '.join(IMAGE_FORMATS)}")
    if border and layout != "voc":
        raise OptionError(f"a border of ignored pixels in layout {layout!r}", remedy="only the layout voc has a border")
    if layout == "concept-context" and salient is None:
        salient = True
    world = PlantedWorld(seed, count, size, correlation, salient, distractors)
    _check_directory(directory, overwrite)
    write, _ = LAYOUTS[layout]
    if border:
        write = partial(write_voc, border=border)
    directory.mkdir(parents=True, exist_ok=True)
    # Beside the target, not in the system's temporary folder, since a rename must not cross file systems.
    draft = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.resolve().parent))
    try:
        write(world, draft, image_format)
        _replace_entries(directory, draft, layout)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    record = {
        "world": "planted", "version": VERSION, "layout": layout, "image_format": image_format, "border": border,
        "options": asdict(world), "fingerprint": world.fingerprint(),
    }  # fmt: skip
    (directory / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return directory


def _find_layout(directory: Path) -> str | None:
    """The layout of the planted world in the directory, None if there is none."""
    try:
        record = json.loads((directory / RECORD).read_text(encoding="utf-8"))
        return str(record["layout"]) if record["world"] == "planted" and record["layout"] in LAYOUTS else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _check_directory(directory: Path, overwrite: bool) -> None:
    if directory.exists() and not directory.is_dir():
        raise DataError("a file of this name exists", file=directory, remedy="choose another folder")
    if overwrite or not directory.is_dir() or not any(directory.iterdir()):
        return
    if found := _find_layout(directory):
        what = f"the folder already holds a planted world ({found})"
        raise DataError(what, file=directory, remedy="pass --overwrite")
    remedy = "choose an empty folder, or pass --overwrite"
    raise DataError("the folder holds other files", file=directory, remedy=remedy)


def _replace_entries(directory: Path, draft: Path, layout: str) -> None:
    """Replace the entries of this layout and of the previous world by the draft's; other files stay."""
    stale = {layout, _find_layout(directory) or layout}
    (directory / RECORD).unlink(missing_ok=True)
    for name in sorted({name for known in stale for name in LAYOUTS[known][1]}):
        old = directory / name
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)
    for new in sorted(draft.iterdir()):
        new.rename(directory / new.name)


def save_image(path: Path, image: NDArray[np.uint8]) -> None:
    """Write an RGB image (H, W, 3) uint8 in the format of the suffix. JPEG loses the signature."""
    stored = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    options = [cv2.IMWRITE_JPEG_QUALITY, 95] if path.suffix == ".jpg" else []
    if not cv2.imwrite(str(path), stored, options):
        raise DataError("the image could not be written", file=path, remedy="check disk space and permissions")


def save_labels(path: Path, labels: NDArray[np.uint8], *, colours: bool = False) -> None:
    """Write a label map (H, W) uint8 as a PNG, grey or with VOC's palette; either way the indices are stored."""
    picture = PIL.Image.fromarray(labels)
    if colours:
        picture.putpalette(voc_palette())
    picture.save(path)


def voc_palette() -> list[int]:
    """VOC's 256 colours, flat: bit k of an index belongs, by k modulo 3, to red, green or blue, highest bit first.

    >>> voc_palette()[:9]
    [0, 0, 0, 128, 0, 0, 0, 128, 0]
    """
    return [
        sum((index >> (3 * bit + channel) & 1) << (7 - bit) for bit in range(3))
        for index in range(256)
        for channel in range(3)
    ]


def encode_rle(mask: NDArray[np.bool_]) -> dict[str, Any]:
    """COCO's compressed run-length encoding of a mask (H, W): runs down the columns, background first.

    Written from the definition and not with the library that `hardlook.data.rle` uses, so that one checks the other.

    >>> encode_rle(np.array([[0, 1], [0, 1]], bool))
    {'size': [2, 2], 'counts': '22'}
    """
    flat = mask.ravel(order="F")
    edges = np.flatnonzero(np.diff(flat, prepend=False, append=~flat[-1:]))
    runs = [int(run) for run in np.diff(edges, prepend=0)]
    return {"size": list(mask.shape), "counts": "".join(_encode_run(runs, i) for i in range(len(runs)))}


def _encode_run(runs: list[int], position: int) -> str:
    """One run as characters of five bits; from the fourth run on, the difference to the run two before."""
    value = runs[position] - (runs[position - 2] if position > 2 else 0)
    word = ""
    while True:
        low, value = value & 31, value >> 5
        done = value == (-1 if low & 16 else 0)
        word += chr(48 + low + (0 if done else 32))
        if done:
            return word


VOC_ENTRIES = ("JPEGImages", "SegmentationClass", "SegmentationObject", "ImageSets", "classes.txt")
VOC_IGNORE = 255


def voc_id(index: int) -> str:
    """The id of scene `index`, as VOC writes them: year and number."""
    return f"2026_{index + 1:06d}"


def write_voc(world: PlantedWorld, directory: Path, image_format: str, *, border: int = 0) -> None:
    """Write all scenes; `border` pixels on either side of object edges become 255, as in VOC."""
    lists = directory / "ImageSets" / "Segmentation"
    for folder in (directory / "JPEGImages", directory / "SegmentationClass", directory / "SegmentationObject", lists):
        folder.mkdir(parents=True)
    for index, rendered in enumerate(world):
        name = voc_id(index)
        classes, objects = voc_masks(rendered, border)
        save_image(directory / "JPEGImages" / f"{name}.{image_format}", rendered.image)
        save_labels(directory / "SegmentationClass" / f"{name}.png", classes, colours=True)
        save_labels(directory / "SegmentationObject" / f"{name}.png", objects, colours=True)
    for split, own in (("train", (0, 1, 2)), ("val", (3,))):
        names = [voc_id(index) for index in range(len(world)) if index % 4 in own]
        (lists / f"{split}.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    (directory / "classes.txt").write_text("".join(f"{label.name}\n" for label in CONCEPTS), encoding="utf-8")


def voc_masks(rendered: RenderedScene, border: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Class indices (concepts 1-12, all else 0) and object numbers (1 and up, back to front), (H, W) uint8 each."""
    codes = [label.code for label in CONCEPTS]
    classes = np.where(np.isin(rendered.classes, codes), rendered.classes, 0).astype(np.uint8)
    objects = np.zeros_like(classes)
    for number, thing in enumerate(rendered.scene.objects, start=1):
        objects[rendered.mask_of(thing)] = number
    if border > 0:
        kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * border + 1, 2 * border + 1))
        edge = cv2.dilate(objects, kernel) != cv2.erode(objects, kernel)
        classes[edge] = objects[edge] = VOC_IGNORE
    return classes, objects


COCO_ENTRIES = ("images", "panoptic", "semantic", "panoptic.json", "instances.json", "semantic_classes.yaml")
_INFO = {"description": f"planted world, version {VERSION}", "year": 2026}


def segment_id(code: int, instance: int) -> int:
    """The id of a segment: unique per class and instance, with colours that are easy to tell apart."""
    return 7 * code + 256 * (30 + 60 * instance) + 65536 * (53 * code % 256)


def write_coco_panoptic(world: PlantedWorld, directory: Path, image_format: str) -> None:
    """Write all scenes, both JSON files and the list of semantic classes."""
    for folder in ("images", "panoptic", "semantic"):
        (directory / folder).mkdir()
    images: list[dict[str, Any]] = []
    panoptic: list[dict[str, Any]] = []
    instances: list[dict[str, Any]] = []
    for index, rendered in enumerate(world):
        name, number = f"{index + 1:012d}", index + 1
        height, width = rendered.classes.shape
        ids, segments = _make_segments(rendered)
        save_image(directory / "images" / f"{name}.{image_format}", rendered.image)
        save_image(directory / "panoptic" / f"{name}.png", ids)
        save_labels(directory / "semantic" / f"{name}.png", rendered.classes)
        images.append({"id": number, "file_name": f"{name}.{image_format}", "width": width, "height": height})
        panoptic.append({"image_id": number, "file_name": f"{name}.png", "segments_info": segments})
        for thing in rendered.scene.objects:
            mask = rendered.mask_of(thing)
            category = int(rendered.classes[mask][0])
            instances.append({
                "id": len(instances) + 1, "image_id": number, "category_id": category,
                "segmentation": encode_rle(mask), "area": int(mask.sum()), "bbox": _bounding_box(mask), "iscrowd": 0,
            })  # fmt: skip
    shared = {"info": _INFO, "images": images}
    categories = [
        {"id": code, "name": label.name, "isthing": int(label.thing), "supercategory": label.family}
        for code, label in sorted(BY_CODE.items())
    ]
    things = [category for category in categories if category["isthing"]]
    for name, annotated, listed in (("panoptic", panoptic, categories), ("instances", instances, things)):
        content = {**shared, "annotations": annotated, "categories": listed}
        (directory / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    lines = ["classes:", f"  {VOID}: unlabeled", *(f"  {label.code}: {label.name}" for label in LABELS)]
    (directory / "semantic_classes.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _make_segments(rendered: RenderedScene) -> tuple[NDArray[np.uint8], list[dict[str, Any]]]:
    """The image of segment ids (H, W, 3) and its `segments_info`."""
    keys = rendered.classes.astype(np.int32) * 4 + rendered.instances
    picture = np.zeros((*keys.shape, 3), np.uint8)
    segments = []
    for key in np.unique(keys):
        code, instance = divmod(int(key), 4)
        if code == VOID:
            continue
        mask = keys == key
        number = segment_id(code, instance)
        picture[mask] = (number & 255, number >> 8 & 255, number >> 16)
        box, area = _bounding_box(mask), int(mask.sum())
        segments.append({"id": number, "category_id": code, "iscrowd": 0, "bbox": box, "area": area})
    return picture, segments


def _bounding_box(mask: NDArray[np.bool_]) -> list[int]:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    left, top = int(columns[0]), int(rows[0])
    return [left, top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top]


# Six test concepts, so that 5-way tasks can be sampled.
CONCEPT_SPLITS: dict[str, str] = {
    "cat": "test", "dog": "test", "car": "test", "bus": "test", "house": "test", "barn": "test",
    "apple": "train", "pear": "train", "cup": "train", "bottle": "train", "duck": "val", "owl": "val",
}  # fmt: skip

CONCEPT_CONTEXT_ENTRIES = ("train", "val", "test", "manifest.csv")


def write_concept_context(world: PlantedWorld, directory: Path, image_format: str) -> None:
    """Write all scenes and the manifest."""
    rows = []
    for index, rendered in enumerate(world):
        concept, context = world.concept(index), world.context(index)
        path = f"{CONCEPT_SPLITS[concept]}/{concept}/{context}/{index + 1:06d}.{image_format}"
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        save_image(directory / path, rendered.image)
        rows.append((path, concept, context, CONCEPT_SPLITS[concept]))
    with (directory / "manifest.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("path", "concept", "context", "split"))
        writer.writerows(rows)


FSS_ENTRIES = tuple(label.name for label in CONCEPTS)
FSS_SUFFIXES = {"png": "bmp", "jpg": "jpg"}


def write_fss(world: PlantedWorld, directory: Path, image_format: str) -> None:
    """Write all scenes, each under its concept."""
    numbers: Counter[str] = Counter()
    for index, rendered in enumerate(world):
        concept = world.concept(index)
        numbers[concept] += 1
        folder = directory / concept
        folder.mkdir(exist_ok=True)
        save_image(folder / f"{numbers[concept]}.{FSS_SUFFIXES[image_format]}", rendered.image)
        mask = np.where(rendered.class_mask(concept), 255, 0).astype(np.uint8)
        save_labels(folder / f"{numbers[concept]}.png", mask)


ISEGM_ENTRIES = ("data_GT", "boundary_GT")
BAND = 1
ISEGM_OBJECT, ISEGM_IGNORE = 255, 128


def write_isegm(world: PlantedWorld, directory: Path, image_format: str) -> None:
    """Write all scenes, each with the mask of its subject."""
    for folder in ISEGM_ENTRIES:
        (directory / folder).mkdir()
    for index, rendered in enumerate(world):
        name = f"{index + 1:06d}"
        save_image(directory / "data_GT" / f"{name}.{image_format}", rendered.image)
        save_labels(directory / "boundary_GT" / f"{name}.png", make_trimap(rendered.target_mask))


def make_trimap(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """255 object, 128 ignored band of `BAND` pixels around it, 0 background (H, W) of a mask."""
    inside = mask.astype(np.uint8)
    grown = cv2.dilate(inside, np.ones((2 * BAND + 1, 2 * BAND + 1), np.uint8))
    return np.where(mask, ISEGM_OBJECT, np.where(grown > 0, ISEGM_IGNORE, 0)).astype(np.uint8)


LAYOUTS: dict[str, tuple[Callable[[PlantedWorld, Path, str], None], tuple[str, ...]]] = {
    "voc": (write_voc, VOC_ENTRIES),
    "concept-context": (write_concept_context, CONCEPT_CONTEXT_ENTRIES),
    "coco-panoptic": (write_coco_panoptic, COCO_ENTRIES),
    "isegm": (write_isegm, ISEGM_ENTRIES),
    "fss": (write_fss, FSS_ENTRIES),
}
