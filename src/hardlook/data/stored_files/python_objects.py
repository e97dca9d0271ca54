"""Datasets that are Python objects: torchvision's, or anything with a length whose items are (image, target).

>>> import PIL.Image
>>> pairs = [(PIL.Image.new("RGB", (4, 3)), "cat"), (PIL.Image.new("RGB", (4, 3), 255), "dog")]
>>> path = take_object(pairs)
>>> str(path).rpartition(":")[0]
'object:list'
>>> [(sample.id, sample.label) for sample in read_labelled(path)]
[('item-000000', 'cat'), ('item-000001', 'dog')]

Options hold paths, so an object is kept here under a path that is made of its class and of a hash of all its items,
decoded: the same items have the same path in another process. Every item is read once for that, before the run, and
once again when it is evaluated; one that differs then is an error, since a transform with random numbers would make
scores that cannot be repeated. Worker processes get the object by cloudpickle, once each.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.data.images import to_rgb
from hardlook.data.stored_files.columns import read_box_format
from hardlook.data.stored_files.samples import (
    ANY_CONTEXT,
    BOX_WORDS,
    CATEGORY_WORDS,
    CROWD_WORDS,
    MASK_WORDS,
    LabelledSample,
    MapSample,
    ObjectRows,
    ObjectSamples,
    take_first,
    take_names,
)
from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import DataError, OptionError, shorten
from hardlook.fingerprints import hash_value
from hardlook.reading import check_pixels, reading

NAME = "dataset"
"""The name of an object in `data={"dataset": ...}`."""

_PREFIX = "object:"
_MAX_KEPT = 8  # objects in a process; with each goes what its items hold besides pixels
_ITEM_REMEDY = "items must be (image, target), images PIL images or arrays (H, W, 3) uint8, without random transforms"
_IMAGE_LISTS = ("images", "samples", "imgs", "_images", "_image_files", "image_files", "_samples")
_LABEL_KEYS = ("label", "labels", "class", "category", "concept", "target")
_CONTEXT_KEYS = ("context", "domain", "environment", "background")


@dataclass(frozen=True)
class ScannedItem:
    """What is kept of an item: its name, a hash of image and target, its size, and a target that is not a label map."""

    name: str
    digest: str
    width: int
    height: int
    target: Any


@dataclass(frozen=True)
class MapClasses:
    """What the numbers of an object's label maps mean: names, their numbers, and numbers of pixels that are ignored."""

    names: tuple[str, ...]
    numbers: tuple[int, ...]
    ignored: tuple[int, ...] = (255,)


@dataclass(frozen=True)
class DatasetObject:
    """A dataset by its class and the hash of its items; pickled, it is the file that workers load it from."""

    kind: str
    digest: str

    @property
    def path(self) -> Path:
        """The path by which options name it."""
        return Path(f"{_PREFIX}{self.kind}:{self.digest}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_object, (self.kind, self.digest, _save_object(self))


@dataclass(frozen=True)
class ObjectItem:
    """The image or the label map of an item."""

    dataset: DatasetObject
    index: int
    part: Literal["image", "map"]

    @property
    def path(self) -> Path:
        """The name in errors and records."""
        return self.dataset.path / self._scanned.name

    @property
    def _scanned(self) -> ScannedItem:
        return _find(self.dataset)[1][self.index]

    def read_array(self) -> NDArray[np.generic]:
        """The image (H, W, 3) uint8 RGB, or the label map (H, W) int32."""
        pixels, target = _read_item(self.dataset, self.index)
        if self.part == "image":
            return pixels.copy()  # a model may write into it
        if not isinstance(target, np.ndarray):
            what = f"the target is not a label map, but {_describe(target)}"
            raise DataError(what, file=self.path, remedy="give a dataset whose targets are label maps (H, W)")
        return target.copy()

    def read_size(self) -> tuple[int, int]:
        """Width and height."""
        return self._scanned.width, self._scanned.height

    def hash_content(self) -> str:
        """A hash of image and target."""
        return self._scanned.digest


_objects: OrderedDict[str, tuple[Any, tuple[ScannedItem, ...]]] = OrderedDict()
_saved: dict[str, str] = {}


def take_objects(given: Any) -> Any:
    """Options as they are given, an object in `data` replaced by a path that stands for it."""
    data = given.get("data") if isinstance(given, dict) else None
    if not isinstance(data, Mapping):
        return given
    objects = [name for name, value in data.items() if not isinstance(value, str | os.PathLike)]
    if not objects:
        return given
    if objects != [NAME]:
        what = f"data {', '.join(map(str, objects))}: not a path"
        raise OptionError(what, remedy=f"give paths, or one dataset object as data={{{NAME!r}: ...}}")
    return {**given, "data": {**data, NAME: take_object(data[NAME])}}


def take_object(dataset: Any) -> Path:
    """The path that stands for an object in this process, made from all its items, which are read for it."""
    kind = type(dataset).__name__
    if isinstance(dataset, str | bytes | Mapping) or not (
        hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
    ):
        what = f"the dataset is {_describe(dataset)}, without a length or without items by position"
        raise OptionError(what, remedy="give an object with __len__ and __getitem__, whose items are (image, target)")
    items = _scan(dataset, kind)
    classes = _find_attribute(dataset, "classes") or _find_attribute(dataset, "categories") or ()
    names = [str(one) for one in classes] if isinstance(classes, list | tuple) else []
    digest = hash_value([kind, names, _read_coco_names(dataset), [[item.name, item.digest] for item in items]])
    found = DatasetObject(kind, digest)
    _keep(digest, dataset, items)
    return found.path


def find_object(path: Path) -> DatasetObject:
    """The object that a path of `take_object` stands for; a `DataError` where this process does not have it."""
    text = str(path)
    kind, _, digest = text.removeprefix(_PREFIX).rpartition(":")
    if not text.startswith(_PREFIX) or not digest:
        remedy = f"a dataset object is given in Python: hl.run(..., data={{{NAME!r}: VOCSegmentation(...)}})"
        raise OptionError(f"--data {NAME}={text}: {NAME} stands for a Python object", remedy=remedy)
    found = DatasetObject(kind, digest)
    _find(found)
    return found


def read_samples(path: Path) -> list[MapSample]:
    """The items of an object whose targets are label maps."""
    found = find_object(path)
    items = _find(found)[1]
    for item in items:
        if item.target is not None:
            what = f"the target is not a label map, but {_describe(item.target)}"
            remedy = "give a dataset whose targets are label maps (H, W), such as VOCSegmentation"
            raise DataError(what, file=path, unit=item.name, remedy=remedy)
    return [
        MapSample(item.name, ObjectItem(found, index, "image"), ObjectItem(found, index, "map"))
        for index, item in enumerate(items)
    ]


def read_map_classes(path: Path) -> MapClasses | None:
    """What the numbers of the label maps mean, where the object says so: VOC's, Cityscapes' and any with `classes`."""
    dataset, _ = _find(find_object(path))
    if _is_a(dataset, "VOCSegmentation"):
        return MapClasses(("background", *VOC_CLASSES), tuple(range(len(VOC_CLASSES) + 1)))
    classes = _find_attribute(dataset, "classes")
    if not isinstance(classes, list | tuple) or not classes:
        return None
    if all(isinstance(one, str) for one in classes):
        return MapClasses(tuple(classes), tuple(range(len(classes))))
    if all(hasattr(one, "ignore_in_eval") and hasattr(one, "id") for one in classes):  # Cityscapes
        scored = [one for one in classes if not one.ignore_in_eval]
        ignored = sorted({int(one.id) for one in classes if one.ignore_in_eval} | {255})
        return MapClasses(tuple(one.name for one in scored), tuple(int(one.id) for one in scored), tuple(ignored))
    return None


def read_objects(path: Path, columns: Mapping[str, str] | None = None) -> ObjectSamples:
    """The items of an object with the objects of their targets.

    A target is a list of COCO's annotations, as CocoDetection gives it, or a dictionary of `boxes` as two corners,
    `labels` and, where they are there, `masks` (n, H, W), as torchvision's detectors take it.
    """
    found = find_object(path)
    dataset, items = _find(found)
    names = _read_coco_names(dataset) or _list_classes(dataset)
    rows = ObjectRows(path, names, read_box_format({"box": "xyxy"} if _has_corners(items) else columns or {}))
    ids = _list_image_ids(dataset, len(items))
    for index, item in enumerate(items):
        rows.add_image(item.name, (item.width, item.height), ObjectItem(found, index, "image"), ids[index])
        with reading(path, f"the objects of {item.name} cannot be read", remedy=_ITEM_REMEDY):
            for one in _list_objects(item.target):
                rows.add_object(**one)
    return rows.build()


def read_labelled(path: Path) -> list[LabelledSample]:
    """The items of an object with their labels: numbers of its `classes`, names, or dictionaries with a context."""
    found = find_object(path)
    dataset, items = _find(found)
    classes = _list_classes(dataset)
    samples = []
    for index, item in enumerate(items):
        label, context = _split_label(item.target)
        with reading(path, "the target is not a label", remedy="give a number of the dataset's classes, or a name"):
            named = _name_label(label, classes)
        samples.append(LabelledSample(item.name, ObjectItem(found, index, "image"), named, str(context)))
    return samples


def describe_source(path: Path) -> tuple[str, str]:
    """What the run's fingerprint says of an object: in words what was hashed, and the hash."""
    found = find_object(path)
    return f"{NAME} (decoded items of the {found.kind} object)", found.digest


def _keep(digest: str, dataset: Any, items: tuple[ScannedItem, ...]) -> None:
    _objects[digest] = (dataset, items)
    _objects.move_to_end(digest)
    while len(_objects) > _MAX_KEPT:
        gone, _ = _objects.popitem(last=False)
        if file := _saved.pop(gone, None):
            Path(file).unlink(missing_ok=True)


def _find(found: DatasetObject) -> tuple[Any, tuple[ScannedItem, ...]]:
    if found.digest in _objects:
        return _objects[found.digest]
    what = f"the data were a Python object, a {found.kind}, that this process does not have"
    remedy = f"call hl.run with the same object as data={{{NAME!r}: ...}} and the same out: it reads the run's records"
    raise DataError(what, remedy=remedy)


def _save_object(found: DatasetObject) -> str:
    """The file that holds the pickled object, written when it is first sent to another process."""
    if found.digest not in _saved:
        import cloudpickle  # type: ignore[import-untyped]

        try:
            content = cloudpickle.dumps(_find(found))
        except DataError:
            raise
        except Exception as error:  # what cannot be pickled raises errors of many kinds
            what = (
                f"this {found.kind} cannot be sent to other processes ({type(error).__name__}: {shorten(str(error))})"
            )
            raise DataError(what, remedy="use engine='inline' without prefetch") from error
        file = Path(_make_folder()) / found.digest
        file.write_bytes(content)
        _saved[found.digest] = str(file)
    return _saved[found.digest]


@lru_cache(1)
def _make_folder() -> str:
    folder = tempfile.mkdtemp(prefix="hardlook-objects-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _load_object(kind: str, digest: str, file: str) -> DatasetObject:
    """The object of a file that the process wrote which started this one."""
    if digest not in _objects:
        import cloudpickle

        try:
            content = Path(file).read_bytes()
        except OSError as error:
            what = f"the dataset, a {kind} object, cannot be read on this machine"
            raise DataError(what, file=file, remedy="use the engine processes, or name files as data") from error
        _keep(digest, *cloudpickle.loads(content))
        _saved[digest] = file
    return DatasetObject(kind, digest)


def _scan(dataset: Any, kind: str) -> tuple[ScannedItem, ...]:
    """Read every item once."""
    try:
        count = len(dataset)
    except Exception as error:
        raise DataError(f"the {kind} has no length: {shorten(str(error))}", remedy=_ITEM_REMEDY) from error
    names = _name_items(dataset, count)
    items = []
    for index in range(count):
        pixels, target = _decode_item(dataset, index, names[index])
        digest = _hash_item(pixels, target)
        kept = None if isinstance(target, np.ndarray) else target
        items.append(ScannedItem(names[index], digest, pixels.shape[1], pixels.shape[0], kept))
    if not items:
        raise DataError(f"the {kind} has no items", remedy="check how it was made")
    return tuple(items)


@lru_cache(4)  # image and label map are asked for one after the other
def _read_item(found: DatasetObject, index: int) -> tuple[NDArray[np.uint8], Any]:
    dataset, items = _find(found)
    item = items[index]
    pixels, target = _decode_item(dataset, index, item.name)
    if _hash_item(pixels, target) != item.digest:
        what = "the item is another one than when the units were listed"
        raise DataError(what, file=found.path, unit=item.name, remedy="leave out transforms that draw random numbers")
    return pixels, target


def _decode_item(dataset: Any, index: int, name: str) -> tuple[NDArray[np.uint8], Any]:
    """Image (H, W, 3) uint8 and target of an item; a label map as (H, W) int32, another target as plain values."""
    with reading(f"{type(dataset).__name__} object", f"item {index} ({name}) cannot be read", remedy=_ITEM_REMEDY):
        item = dataset[index]
        if not isinstance(item, tuple | list) or len(item) < 2:
            raise DataError(f"the item is {_describe(item)}", unit=name, remedy=_ITEM_REMEDY)
        return _to_pixels(item[0], name), _to_target(item[1] if len(item) == 2 else list(item[1:]), name)


def _to_array(value: Any) -> NDArray[Any]:
    """A PIL image, an array or a torch tensor on any device as an array."""
    detach = getattr(value, "detach", None)
    return np.asarray(detach().cpu() if detach is not None else value)


def _to_pixels(image: Any, name: str) -> NDArray[np.uint8]:
    import PIL.Image

    if isinstance(image, PIL.Image.Image):
        check_pixels(*image.size, unit=name)
        return to_rgb(image, name)
    pixels = _to_array(image)
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[2] not in (1, 3):
        pixels = np.moveaxis(pixels, 0, 2)  # torch's order
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.dtype.kind == "f" and pixels.size and 0 <= pixels.min() and pixels.max() <= 1:
        pixels = np.rint(pixels * 255).astype(np.uint8)  # what ToTensor made of bytes
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or pixels.dtype != np.uint8 or not pixels.size:
        what = f"an image of shape {pixels.shape} and type {pixels.dtype}"
        raise DataError(what, unit=name, remedy="give PIL images or arrays (H, W, 3) uint8, without normalization")
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))


def _to_target(target: Any, name: str) -> Any:
    """A label map as (H, W) int32; any other target as numbers, texts, lists, dictionaries, and arrays in them."""
    import PIL.Image

    if isinstance(target, PIL.Image.Image):
        return _to_map(np.asarray(target), name)
    if hasattr(target, "detach") or isinstance(target, np.ndarray):
        values = _to_array(target)
        values = values[0] if values.ndim == 3 and values.shape[0] == 1 else values
        return values.item() if values.size == 1 and values.ndim < 2 else _to_map(values, name)
    return _to_plain(target, 0)


def _to_map(values: NDArray[Any], name: str) -> NDArray[np.int32]:
    if values.ndim != 2 or values.dtype.kind not in "iub":
        what = f"a label map of shape {values.shape} and type {values.dtype}"
        raise DataError(
            what, unit=name, remedy="give PIL images or arrays (H, W) of whole numbers, without a transform"
        )
    if values.size and not -(1 << 31) <= int(values.min()) <= int(values.max()) < 1 << 31:
        raise DataError(f"labels reach {values.max()}", unit=name, remedy="store labels that fit 32 bits")
    return values.astype(np.int32)


def _to_plain(value: Any, depth: int) -> Any:
    if depth > 8:
        raise DataError("a target that is nested too deeply", remedy=_ITEM_REMEDY)
    if hasattr(value, "detach") or isinstance(value, np.ndarray | np.generic):
        array = _to_array(value)
        return array.item() if array.ndim == 0 else array
    if isinstance(value, Mapping):
        return {str(key): _to_plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(one, depth + 1) for one in value]
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    raise DataError(f"a target with {_describe(value)}", remedy=_ITEM_REMEDY)


def _hash_item(pixels: NDArray[np.uint8], target: Any) -> str:
    import xxhash

    digest = xxhash.xxh3_128()
    _hash_into(digest, pixels)
    _hash_into(digest, target)
    return digest.hexdigest()


def _hash_into(digest: Any, value: Any) -> None:
    """Add a value with its type and length, so that no two targets give the same bytes."""
    if isinstance(value, np.ndarray):
        digest.update(f"array {value.shape} {value.dtype.str}".encode())
        digest.update(np.ascontiguousarray(value).data)
    elif isinstance(value, dict):
        digest.update(f"dict {len(value)}".encode())
        for key in sorted(value):
            _hash_into(digest, key)
            _hash_into(digest, value[key])
    elif isinstance(value, list):
        digest.update(f"list {len(value)}".encode())
        for one in value:
            _hash_into(digest, one)
    else:
        text = value.hex() if isinstance(value, bytes) else json.dumps(value)
        digest.update(f"{type(value).__name__} {len(text)} {text}".encode())


def _name_items(dataset: Any, count: int) -> list[str]:
    """The stems of the images' files where the object lists them and they differ, else numbers."""
    found = take_names(_list_paths(dataset, count) or [None] * count)
    return found or [f"item-{index:06d}" for index in range(count)]


def _list_paths(dataset: Any, count: int, depth: int = 0) -> list[str] | None:
    inner, indices = getattr(dataset, "dataset", None), getattr(dataset, "indices", None)
    if inner is not None and indices is not None and depth < 4 and hasattr(inner, "__len__"):  # torch's Subset
        paths = _list_paths(inner, len(inner), depth + 1)
        return [paths[int(i)] for i in indices] if paths and len(indices) == count else None
    coco, ids = getattr(dataset, "coco", None), getattr(dataset, "ids", None)
    if coco is not None and ids is not None and len(ids) == count:
        return [str(coco.imgs[i].get("file_name", "")) for i in ids]
    for attribute in _IMAGE_LISTS:
        listed = getattr(dataset, attribute, None)
        if isinstance(listed, list | tuple) and len(listed) == count:
            paths = [one[0] if isinstance(one, tuple) and one else one for one in listed]
            if all(isinstance(one, str | os.PathLike) for one in paths):
                return [os.fspath(one) for one in paths]
    return None


def _find_attribute(dataset: Any, name: str) -> Any:
    """An attribute of the object, or of the one that it is a part of."""
    for _ in range(4):
        if (value := getattr(dataset, name, None)) is not None:
            return value
        dataset = getattr(dataset, "dataset", None)
    return None


def _is_a(dataset: Any, name: str) -> bool:
    inner = getattr(dataset, "dataset", None)
    return any(one.__name__ == name for one in type(dataset).__mro__) or (inner is not None and _is_a(inner, name))


def _list_classes(dataset: Any) -> list[str] | None:
    """The names of the classes: `classes`, or `categories` (Caltech101); None where they are not strings."""
    for attribute in ("classes", "categories"):
        found = _find_attribute(dataset, attribute)
        if isinstance(found, list | tuple) and found and all(isinstance(one, str) for one in found):
            return list(found)
    return None


def _read_coco_names(dataset: Any) -> dict[int, str]:
    """Names by category id of an object with pycocotools' index; empty for another."""
    categories = getattr(_find_attribute(dataset, "coco"), "cats", None)
    return {int(i): str(one["name"]) for i, one in categories.items()} if isinstance(categories, dict) else {}


def _list_image_ids(dataset: Any, count: int) -> list[int | None]:
    """COCO's ids of the images, where the object has pycocotools' index."""
    ids = getattr(dataset, "ids", None)
    if getattr(dataset, "coco", None) is None or not isinstance(ids, list) or len(ids) != count:
        return [None] * count
    return [int(i) for i in ids]


def _has_corners(items: Sequence[ScannedItem]) -> bool:
    return any(isinstance(item.target, dict) and "boxes" in item.target for item in items)


def _list_objects(target: Any) -> list[dict[str, Any]]:
    """The objects of a target as `ObjectRows.add_object` takes them."""
    if isinstance(target, dict):
        labels = list(take_first(target, ("labels", *CATEGORY_WORDS), ()))
        boxes, masks = take_first(target, BOX_WORDS), take_first(target, MASK_WORDS)
        crowd = take_first(target, CROWD_WORDS)
        lists = [one for one in (boxes, masks, crowd) if one is not None]
        if any(len(one) != len(labels) for one in lists) or (labels and boxes is None and masks is None):
            raise DataError("boxes, labels and masks of different numbers", remedy="give one of each for an object")
        return [
            {
                "category": label.item() if isinstance(label, np.generic) else label,
                "bbox": None if boxes is None else boxes[place],
                "segmentation": None if masks is None else masks[place],
                "crowd": False if crowd is None else bool(crowd[place]),
            }
            for place, label in enumerate(labels)
        ]
    if not isinstance(target, list) or not all(isinstance(one, dict) for one in target):
        what = f"the target is {_describe(target)}"
        raise DataError(what, remedy="give COCO's annotations, or a dictionary of boxes, labels and masks")
    return [
        {
            "category": take_first(one, ("category_id", *CATEGORY_WORDS)),
            "bbox": take_first(one, BOX_WORDS),
            "segmentation": take_first(one, MASK_WORDS),
            "area": one.get("area"),
            "crowd": take_first(one, CROWD_WORDS, False),
            "object_id": one.get("id"),
        }
        for one in target
    ]


def _split_label(target: Any) -> tuple[Any, Any]:
    """Label and context of a target: the two of a pair, or the keys of a dictionary."""
    if isinstance(target, dict):
        return take_first(target, _LABEL_KEYS), take_first(target, _CONTEXT_KEYS, ANY_CONTEXT)
    if isinstance(target, list) and len(target) == 2:
        return target[0], target[1]
    return target, ANY_CONTEXT


def _name_label(label: Any, classes: Sequence[str] | None) -> str:
    if isinstance(label, str) and label:
        return label
    if isinstance(label, bool) or not isinstance(label, int):
        raise DataError(f"the label is {_describe(label)}", remedy="give a number of the dataset's classes, or a name")
    if classes is None:
        return str(label)
    if not 0 <= label < len(classes):
        raise DataError(f"the label {label} is none of the {len(classes)} classes", remedy="correct the labels")
    return classes[label]


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    return f"{type(value).__name__} {shorten(repr(value), 60)}"
