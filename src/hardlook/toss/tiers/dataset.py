"""The masks of a dataset that attributes are measured on and tiers are built from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hardlook.data.class_masks import ClassMaskSource, open_class_mask_folders
from hardlook.data.voc import open_devkit
from hardlook.errors import DataError, OptionError
from hardlook.models.named_model import NamedModel
from hardlook.toss.tiers.attributes import AttributeModels, FailedImage


@dataclass(frozen=True)
class OpenedData:
    """A source, the tokens to work on, and the images that cannot be read."""

    source: ClassMaskSource
    tokens: tuple[str, ...]
    failures: tuple[FailedImage, ...]


def open_source(
    paths: Mapping[str, Path], labels: Path | None, split: str | None
) -> tuple[ClassMaskSource, set[str] | None]:
    """The source, and the images of the list `split` of a VOC devkit; None for all images."""
    source = open_class_mask_folders(paths, labels=labels)
    if split is None:
        return source, None
    if "voc" not in paths:
        raise OptionError("--split names a list of a VOC devkit", remedy="give --data voc=DIR, or omit --split")
    return source, set(open_devkit(paths["voc"]).ids(split))


def open_tokens(paths: Mapping[str, Path], labels: Path | None, split: str | None) -> OpenedData:
    """The source and its tokens, all of them or those of a VOC devkit's list."""
    source, wanted = open_source(paths, labels, split)
    tokens = tuple(token for token in source.tokens() if wanted is None or source.image_of(token) in wanted)
    failures = list_unreadable_images(source, wanted)
    if not tokens:
        what = "; ".join(filter(None, ("no image here holds a class", describe_failures(failures))))
        raise DataError(what, remedy="check --data, --labels and --split")
    return OpenedData(source, tokens, failures)


def list_unreadable_images(source: ClassMaskSource, wanted: Collection[str] | None = None) -> tuple[FailedImage, ...]:
    """The images of a source that cannot be read; only those among `wanted`, if given."""
    unreadable = source.unreadable().items()
    return tuple(FailedImage(image, why) for image, why in unreadable if wanted is None or image in wanted)


def describe_failures(failures: Sequence[FailedImage]) -> str:
    """How many images failed, and the first of them with its reason; empty if none did."""
    if not failures:
        return ""
    images = "1 image" if len(failures) == 1 else f"{len(failures)} images"
    return f"{images} failed, the first: {failures[0].image}: {failures[0].error}"


def prepare_models(
    source: ClassMaskSource, saliency: NamedModel | None, supervised: NamedModel | None
) -> tuple[AttributeModels, dict[str, str]]:
    """The models that measure the masks of a source, and the fingerprint of each, empty for None."""
    labels = find_label_indices(source.classes, supervised.model.labels) if supervised else {}
    models = AttributeModels(saliency.model if saliency else None, supervised.model if supervised else None, labels)
    named = {"saliency": saliency, "supervised": supervised}
    return models, {role: model.identity.fingerprint() if model else "" for role, model in named.items()}


def find_label_indices(classes: Sequence[str], labels: Sequence[str]) -> dict[str, int]:
    """For each class that a segmenter can name, its index there; case, spaces, _ and - do not count.

    >>> find_label_indices(["tv monitor", "cup"], ["background", "TV-monitor"])
    {'tv monitor': 1}
    """
    from hardlook.similarity.labels import normalise_name

    known = {normalise_name(name): index for index, name in reversed(list(enumerate(labels)))}
    return {name: known[normalise_name(name)] for name in classes if normalise_name(name) in known}
