"""The masks of a dataset that attributes are measured on and tiers are built from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hardlook.data.class_masks import ClassMaskSource, open_class_mask_folders
from hardlook.data.voc import open_devkit
from hardlook.errors import DataError, OptionError
from hardlook.toss.tiers.attributes import FailedImage


@dataclass(frozen=True)
class OpenedData:
    """A source, the tokens to work on, and the images that cannot be read."""

    source: ClassMaskSource
    tokens: tuple[str, ...]
    failures: tuple[FailedImage, ...]


def open_tokens(paths: Mapping[str, Path], labels: Path | None, split: str | None) -> OpenedData:
    """The source and its tokens, all of them or those of a VOC devkit's list."""
    source = open_class_mask_folders(paths, labels=labels)
    tokens, failures = source.tokens(), list_unreadable_images(source)
    if split is not None:
        if "voc" not in paths:
            raise OptionError("--split names a list of a VOC devkit", remedy="give --data voc=DIR, or no --split")
        wanted = set(open_devkit(paths["voc"]).ids(split))
        tokens = tuple(token for token in tokens if source.image_of(token) in wanted)
        failures = tuple(failure for failure in failures if failure.image in wanted)
    if not tokens:
        broken = f"; {describe_failures(failures)}" if failures else ""
        raise DataError(f"no image here holds a class{broken}", remedy="check --data, --labels and --split")
    return OpenedData(source, tokens, failures)


def list_unreadable_images(source: ClassMaskSource) -> tuple[FailedImage, ...]:
    """The images of a source that cannot be read."""
    return tuple(FailedImage(image, why) for image, why in source.unreadable().items())


def describe_failures(failures: Sequence[FailedImage]) -> str:
    """How many images failed, and the first of them with its reason."""
    first = failures[0]
    images = "1 image" if len(failures) == 1 else f"{len(failures)} images"
    return f"{images} failed, the first: {first.image}: {first.error}"


def find_label_indices(classes: Sequence[str], labels: Sequence[str]) -> dict[str, int]:
    """For each class that a segmenter can name, its index there; case, spaces, _ and - do not count.

    >>> find_label_indices(["tv monitor", "cup"], ["background", "TV-monitor"])
    {'tv monitor': 1}
    """
    from hardlook.similarity.labels import normalise_name

    known = {normalise_name(name): index for index, name in reversed(list(enumerate(labels)))}
    return {name: known[normalise_name(name)] for name in classes if normalise_name(name) in known}
