"""Folders that FiftyOne exported: an image folder `data` beside `labels.json` or a folder `labels`.

| FiftyOne's type | labels |
|---|---|
| FiftyOneImageDetectionDataset | `labels.json`: `classes`, and by image a list of `label` and relative `bounding_box` |
| COCODetectionDataset | `labels.json` in COCO's format, masks included |
| VOCDetectionDataset | `labels/NAME.xml`, boxes as two corners |
| ImageSegmentationDirectory | `labels/NAME.png`, label maps |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hardlook.data.coco_detection import parse_instances
from hardlook.data.images import index_images, is_file
from hardlook.data.stored_files import FolderFile, read_stored_size
from hardlook.data.stored_files.samples import MapSample, ObjectRows, ObjectSamples
from hardlook.errors import DataError
from hardlook.reading import read_bytes, read_json, reading

_LAYOUTS = (
    "a folder data of images, and labels.json (boxes, or COCO's format), or a folder labels of .xml or .png files"
)
_MAP_SUFFIXES = (".png", ".tif", ".tiff", ".npy", ".npz")
_MAX_XML = 16 << 20
_MAX_DEPTH = 20


def read_objects(folder: Path) -> ObjectSamples:
    """The images of an export with the boxes and categories of their objects; of COCO's format also masks."""
    images = _open_images(folder)
    labels = folder / "labels.json"
    if is_file(labels):
        content = read_json(labels)
        if isinstance(content, dict) and {"images", "annotations"} <= set(content):
            return _read_coco(content, labels, images)
        return _read_relative_boxes(content, labels, images)
    found = sorted((folder / "labels").glob("*.xml"))
    if not found:
        raise _missing(folder)
    return _read_xml(found, folder, images)


def read_samples(folder: Path) -> list[MapSample]:
    """The images of an ImageSegmentationDirectory with their label maps, by file stem."""
    images = _open_images(folder)
    maps: dict[str, Path] = {}
    for path in sorted((folder / "labels").glob("*")):
        if path.suffix.lower() in _MAP_SUFFIXES:
            first = maps.setdefault(path.stem, path)
            # Where file names have no case, a.png and a.PNG are one file.
            if first != path and not path.samefile(first):
                what = f"two label maps are called {path.stem!r}: {first.name} and {path.name}"
                raise DataError(what, file=path.parent, unit=path.stem, remedy="keep one of them, or rename one")
    if not maps:
        raise _missing(folder)
    if lost := sorted(set(maps) - set(images)):
        what = f"{len(lost)} label maps have no image, such as {lost[0]}"
        raise DataError(what, file=folder / "data", remedy="export the dataset again, with its media")
    return [MapSample(stem, FolderFile(images[stem]), FolderFile(path)) for stem, path in maps.items()]


def _open_images(folder: Path) -> dict[str, Path]:
    if not (folder / "data").is_dir():
        raise _missing(folder)
    return index_images(folder / "data")


def _missing(folder: Path) -> DataError:
    if not folder.is_dir():
        return DataError("there is no such folder", file=folder, remedy="check the path")
    present = ", ".join(sorted(path.name for path in folder.iterdir())[:12]) or "nothing"
    return DataError(f"no export of FiftyOne that is known here; found {present}", file=folder, remedy=_LAYOUTS)


def _find_image(name: str, images: Mapping[str, Path], labels: Path) -> Path:
    """The image of a key, which is a stem or, where the export kept them, a file name."""
    path = images.get(name) or images.get(Path(name).stem)
    if path is None:
        remedy = "export the dataset again, with its media"
        raise DataError(f"there is no image {name!r} in the folder data", file=labels, unit=name, remedy=remedy)
    return path


def _read_coco(content: Any, labels: Path, images: Mapping[str, Path]) -> ObjectSamples:
    truth = parse_instances(content, labels)
    files = {image.id: FolderFile(_find_image(image.file_name, images, labels)) for image in truth.images}
    return ObjectSamples(truth, files, labels)


def _read_relative_boxes(content: Any, labels: Path, images: Mapping[str, Path]) -> ObjectSamples:
    with reading(labels, "not a FiftyOneImageDetectionDataset", remedy='expected {"classes": [...], "labels": {...}}'):
        classes = content.get("classes")
        rows = ObjectRows(labels, None if classes is None else [str(name) for name in classes])
        for name, objects in content["labels"].items():
            file = FolderFile(_find_image(name, images, labels))
            width, height = read_stored_size(file)
            rows.add_image(name, (width, height), file)
            for one in objects or ():  # null where an image has none
                x, y, w, h = (float(value) for value in one["bounding_box"])
                attributes = one.get("attributes") or {}
                box = [x * width, y * height, w * width, h * height]
                rows.add_object(one["label"], bbox=box, crowd=attributes.get("iscrowd", False))
        return rows.build()


def _read_xml(files: list[Path], folder: Path, images: Mapping[str, Path]) -> ObjectSamples:
    rows = ObjectRows(folder / "labels", None, "xyxy")
    for path in files:
        image = FolderFile(_find_image(path.stem, images, path))
        rows.add_image(path.stem, read_stored_size(image), image)
        for name, box in _iterate_xml(path):
            rows.add_object(name, bbox=box)
    return rows.build()


def _iterate_xml(path: Path) -> Iterator[tuple[str, list[float]]]:
    """Name and corners of each object of a file in Pascal VOC's XML."""
    from xml.parsers import expat

    if path.stat().st_size > _MAX_XML:
        raise DataError("more than 16 MB of XML", file=path, remedy="one file describes one image")
    found: list[tuple[str, list[float]]] = []
    stack: list[str] = []
    texts: dict[str, str] = {}

    def start(name: str, attributes: Any) -> None:
        stack.append(name)
        if len(stack) > _MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if stack[1:] == ["object"]:
            texts.clear()

    def add(text: str) -> None:
        if stack[1:2] == ["object"]:
            key = "/".join(stack[2:])
            texts[key] = texts.get(key, "") + text

    def end(name: str) -> None:
        if stack[1:] == ["object"]:
            corners = [float(texts[f"bndbox/{side}"]) for side in ("xmin", "ymin", "xmax", "ymax")]
            found.append((texts["name"].strip(), corners))
        stack.pop()

    def refuse(*_: Any) -> None:
        raise ValueError("it declares entities")  # which can grow without bound

    with reading(path, "not an annotation in Pascal VOC's XML"):
        parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, add
        parser.EntityDeclHandler = refuse
        parser.Parse(read_bytes(path), True)
    yield from found
