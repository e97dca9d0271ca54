"""Opening sources of class masks from what the command line names with `--data`.

>>> import tempfile
>>> try:
...     open_class_masks({"voc": Path(tempfile.mkdtemp())})
... except DataError as error:
...     error.what
'no VOC devkit here'
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hardlook.data.class_masks.folder_listing import MAP_SUFFIXES, FolderListing
from hardlook.data.class_masks.labelled_folders import LabelledFolders
from hardlook.data.class_masks.mask_files import VOID
from hardlook.data.class_masks.protocol import ClassMasks
from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import DataError, OptionError

VOC_MAPS = ("SegmentationClassAug", "SegmentationClass")
VOC_BINARY = ("SegmentationBinary", "BinaryMasks", "binary")
WAYS = "give voc=DIR (also with binary=DIR), or images=DIR masks=DIR, or images=DIR binary=DIR"


def open_class_masks(data: Mapping[str, Path], *, labels: Path | None = None) -> ClassMasks:
    """The source of `{"voc": DIR}`, `{"images": DIR, "masks": DIR}` or `{"images": DIR, "binary": DIR}`.

    `labels` is a text file with one class name a line, class number 1 first; without it a `classes.txt` beside the
    masks counts, and for VOC its own twenty classes. In VOC's devkit each image takes the first truth there is:
    SegmentationClassAug, SegmentationClass, then binary masks `<token>.png` in any of these folders, in
    SegmentationBinary, BinaryMasks or binary, or in the folder given as `binary` beside `voc`.
    """
    given = {name: Path(path) for name, path in data.items()}
    for name, path in given.items():
        if not path.is_dir():
            raise DataError(f"no folder for {name}", file=path, remedy="check the path and that it is unpacked")
    if set(given) in ({"voc"}, {"voc", "binary"}):
        return _voc(given["voc"], given.get("binary"), labels)
    if set(given) == {"images", "masks"}:
        maps = (FolderListing(given["masks"], MAP_SUFFIXES),)
        classes, files = _classes(labels, given["masks"])
        return LabelledFolders(FolderListing(given["images"]), classes, maps=maps, files=files)
    if set(given) == {"images", "binary"}:
        binary = (FolderListing(given["binary"], MAP_SUFFIXES),)
        classes, files = _classes(labels, given["binary"])
        return LabelledFolders(FolderListing(given["images"]), classes, binary=binary, files=files)
    raise OptionError(f"--data {', '.join(sorted(given)) or 'nothing'}: no source of class masks", remedy=WAYS)


def _voc(folder: Path, binary: Path | None, labels: Path | None) -> LabelledFolders:
    roots = (folder, *sorted(folder.glob("VOC20*")), *sorted(folder.glob("VOCdevkit/VOC20*")))
    root = next((root for root in roots if (root / "JPEGImages").is_dir()), None)
    if root is None:
        remedy = f"give the folder that holds JPEGImages and {' or '.join(VOC_MAPS)}"
        raise DataError("no VOC devkit here", file=folder, remedy=remedy)
    maps = tuple(FolderListing(root / name, MAP_SUFFIXES) for name in VOC_MAPS if (root / name).is_dir())
    lone = tuple(FolderListing(root / name, MAP_SUFFIXES) for name in VOC_BINARY if (root / name).is_dir())
    named = (FolderListing(binary, MAP_SUFFIXES),) if binary else ()
    if not maps + lone + named:
        remedy = f"unpack {' or '.join(VOC_MAPS)}, or put masks named <token>.png in {VOC_BINARY[0]}"
        raise DataError("the devkit has no masks of classes", file=root, remedy=remedy)
    classes, files = _classes(labels, root, VOC_CLASSES)
    return LabelledFolders(FolderListing(root / "JPEGImages"), classes, maps, named + lone + maps, files)


def _classes(
    labels: Path | None, folder: Path, default: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """Class names, and the file they come from."""
    beside = [path for path in (folder / "classes.txt", folder.parent / "classes.txt") if path.is_file()]
    # A devkit's own list lies in it; a list above it may be anybody's.
    beside = [path for path in beside if not default or path.parent == folder]
    path = labels or next(iter(beside), None)
    if path is None:
        if default:
            return default, ()
        remedy = "give --labels FILE: one class name a line, class number 1 first"
        raise OptionError("the classes of these masks have no names", remedy=remedy)
    if not path.is_file():
        raise DataError("no such list of classes", file=path, remedy="one class name a line, class number 1 first")
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    names = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    if not 0 < len(names) < VOID or len(set(names)) < len(names):
        what = f"{len(names)} class names, {len(set(names))} of them different"
        raise DataError(
            what, file=path, remedy=f"1 to {VOID - 1} names, each once; {VOID} means that pixels are left open"
        )
    return names, (path,)
