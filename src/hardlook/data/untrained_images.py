"""Images of a dataset that do not train: excluded by name, held back for validation, or copies of excluded ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hardlook.data.images import SUFFIXES
from hardlook.data.near_duplicates import decode_images, group_similar_images
from hardlook.data.voc import list_devkit_roots
from hardlook.errors import DataError, OptionError
from hardlook.randomness import generator
from hardlook.reading import read_bytes, reading


def read_excluded(path: Path | None) -> set[str]:
    """Image ids that are not trained on: the lines of a text file, or the names of the files of a folder."""
    if path is None:
        return set()
    found = {one.stem for one in _list_files(path)} if path.is_dir() else set(read_lines(path))
    if not found:
        remedy = "a list of image ids, a VOC devkit, or a folder of images"
        raise DataError("no image is named here", file=path, remedy=remedy)
    return found


def read_lines(path: Path) -> list[str]:
    """The lines of a list of image ids, without empty ones."""
    with reading(path, "not a list of image ids", remedy="one id per line, in UTF-8"):
        return [line.strip() for line in read_bytes(path).decode().splitlines() if line.strip()]


def check_held_back(share: float) -> None:
    """An `OptionError` for a share of images that cannot be held back."""
    if not 0 <= share < 1:
        raise OptionError(f"--held-back {share}: not a share", remedy="a number from 0 to below 1, such as 0.1")


def is_held_back(image: str, share: float) -> bool:
    """Whether an image validates and does not train; the same for every fold, selection and seed.

    >>> [is_held_back("2007_000032", share) for share in (0.0, 1.0)]
    [False, True]
    """
    return bool(generator(0, "held back for validation", image).random() < share)


def find_copies(images: Mapping[str, Path], excluded: Path | None) -> dict[str, str]:
    """Of `images` by id, those that show the picture of a file in the folder `excluded`, each with that file's name.

    Pictures count as the same when they were saved again, resized, mirrored or cropped by up to a tenth
    (`hardlook.data.near_duplicates`). A list of ids has no pictures to compare with: then there are none.
    """
    if excluded is None or not excluded.is_dir():
        return {}
    tested = [one for one in _list_files(excluded) if one.suffix.lower() in SUFFIXES]
    names = list(images)
    decoded = decode_images([*images.values(), *tested])
    # Groups of similar images leave out files that are the same to the last byte.
    by_pixels: dict[str, list[int]] = {}
    for place, pixels in enumerate(decoded.pixels):
        if pixels:
            by_pixels.setdefault(pixels, []).append(place)
    found: dict[str, str] = {}
    for group in (*by_pixels.values(), *(one.positions for one in group_similar_images(decoded))):
        shown = [tested[place - len(names)].name for place in group if place >= len(names)]
        found |= {names[place]: shown[0] for place in group if place < len(names) and shown}
    return found


def _list_files(folder: Path) -> list[Path]:
    """The files of a folder, or the images of the VOC devkit in it."""
    devkits = [root / "JPEGImages" for root in list_devkit_roots(folder)]
    roots = [one for one in devkits if one.is_dir()] or [folder]
    return sorted(one for root in roots for one in root.iterdir() if one.is_file())
