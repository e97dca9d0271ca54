"""What the builders are given: a source of class masks, models with their identities, and progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hardlook.commands import grammar

# The commands on data take these flags from here.
from hardlook.commands.study_flags import Json as Json
from hardlook.commands.study_flags import Quiet as Quiet
from hardlook.commands.study_flags import Seed as Seed
from hardlook.errors import DataError, OptionError

if TYPE_CHECKING:
    from hardlook.data.class_masks import ClassMasks
    from hardlook.models.identity import ModelIdentity
    from hardlook.models.roles import Features, Image, ImageTextEncoder
    from hardlook.tiers.attribute_table import FailedImage

Start = Callable[[int, int], Callable[[int, int], None]]
_FINISHED_WITH_FAILURES = 3


@dataclass(frozen=True)
class NamedModel:
    """A model and which one it is."""

    model: Any
    identity: ModelIdentity

    def facts(self) -> dict[str, Any]:
        """The identity as JSON, with its fingerprint."""
        return {**asdict(self.identity), "fingerprint": self.identity.fingerprint()}


class _ImageTower:
    """The image half of a model of images and texts, as an encoder."""

    def __init__(self, model: ImageTextEncoder) -> None:
        self.model, self.dimension = model, model.dimension

    def encode(self, images: Sequence[Image]) -> Features:
        from hardlook.models.roles import Features

        return Features(self.model.encode_images(images))


def named_model(name: str, role: str, args: Sequence[str] | None, flag: str) -> NamedModel:
    """The model `name` for a role; a model of images and texts serves as an encoder too."""
    from hardlook.models.identity import identify
    from hardlook.models.registry import build, find

    given = grammar.pairs(list(args or ()), flag)
    roles = find(name).card.roles
    paired = role == "encoder" and "image-text-encoder" in roles and "encoder" not in roles
    model = build(name, "image-text-encoder" if paired else role, given)
    identity = identify(model, name=name, role=role, args=given)
    return NamedModel(_ImageTower(model) if paired else model, identity)


def label_indices(classes: Sequence[str], labels: Sequence[str]) -> dict[str, int]:
    """For each class that a segmenter can name, its index there; case, spaces, _ and - do not count.

    >>> label_indices(["tv monitor", "cup"], ["background", "TV-monitor"])
    {'tv monitor': 1}
    """
    from hardlook.labels.label_set import plain_name

    known = {plain_name(name): index for index, name in reversed(list(enumerate(labels)))}
    return {name: known[plain_name(name)] for name in classes if plain_name(name) in known}


def data_paths(data: list[str] | None, images: Path | None = None, masks: Path | None = None) -> dict[str, Path]:
    """The named paths; `--images` and `--masks` are short for the `--data` of these names."""
    found = grammar.paths(data, "--data")
    for name, path in (("images", images), ("masks", masks)):
        if path is not None and name in found:
            raise OptionError(f"--{name} and --data {name}= are both given", remedy="give one of them")
        if path is not None:
            found[name] = path
    return found


@dataclass(frozen=True)
class OpenedData:
    """A source, the tokens to work on, and the images that cannot be read."""

    source: ClassMasks
    tokens: tuple[str, ...]
    failures: tuple[FailedImage, ...]


def open_tokens(paths: Mapping[str, Path], labels: Path | None, split: str | None) -> OpenedData:
    """The source and its tokens, all of them or those of a VOC devkit's list."""
    from hardlook.data.class_masks import open_class_masks
    from hardlook.data.voc import open_devkit

    source = open_class_masks(paths, labels=labels)
    tokens, failures = source.tokens(), unreadable_images(source)
    if split is not None:
        if "voc" not in paths:
            raise OptionError("--split names a list of a VOC devkit", remedy="give --data voc=DIR, or no --split")
        wanted = set(open_devkit(paths["voc"]).ids(split))
        tokens = tuple(token for token in tokens if source.image_of(token) in wanted)
        failures = tuple(failure for failure in failures if failure.image in wanted)
    if not tokens:
        broken = f"; {failure_words(failures)}" if failures else ""
        raise DataError(f"no image here holds a class{broken}", remedy="check --data, --labels and --split")
    return OpenedData(source, tokens, failures)


def unreadable_images(source: ClassMasks) -> tuple[FailedImage, ...]:
    """The images of a source that cannot be read."""
    from hardlook.tiers.attribute_table import FailedImage

    return tuple(FailedImage(image, why) for image, why in source.unreadable().items())


def failure_words(failures: Sequence[FailedImage]) -> str:
    """How many images failed, and the first of them with its reason."""
    first = failures[0]
    images = "1 image" if len(failures) == 1 else f"{len(failures)} images"
    return f"{images} failed, the first: {first.image}: {first.error}"


def end_with(failures: Sequence[FailedImage]) -> None:
    """Say which images failed and leave with exit code 3, where some did."""
    if failures:
        typer.echo(failure_words(failures), err=True)
        raise typer.Exit(_FINISHED_WITH_FAILURES)


@contextmanager
def showing_progress(quiet: bool) -> Iterator[Start]:
    """Give a function that starts a bar over (total, done) and returns what moves it."""
    from hardlook.runs.progress import progress_for

    with ExitStack() as stack:

        def start(total: int, done: int) -> Callable[[int, int], None]:
            if quiet or done >= total:
                return lambda units, failed: None
            shown: Any = stack.enter_context(progress_for(total, done))
            moved: Callable[[int, int], None] = shown.advance
            return moved

        yield start
