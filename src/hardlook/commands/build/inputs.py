"""What the builders are given: a source of class masks, models with their identities, and progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands import grammar
from hardlook.errors import DataError, OptionError

if TYPE_CHECKING:
    from hardlook.data.class_masks import ClassMasks
    from hardlook.models.identity import ModelIdentity
    from hardlook.models.roles import Features, Image, ImageTextEncoder

Data = Annotated[
    list[str] | None,
    typer.Option("--data", help="voc=DIR, or images=DIR with masks=DIR or binary=DIR; repeatable."),
]
Labels = Annotated[
    Path | None, typer.Option("--labels", help="Class names for images and masks, one a line, class number 1 first.")
]
Split = Annotated[
    str | None, typer.Option("--split", help="A list of the VOC devkit, such as train; all images without it.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything that is drawn.")]
Json = Annotated[bool, typer.Option("--json", help="Print the numbers as JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Start = Callable[[int, int], Callable[[int, int], None]]


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


def open_tokens(
    paths: Mapping[str, Path], labels: Path | None, split: str | None
) -> tuple[ClassMasks, tuple[str, ...]]:
    """The source and its tokens, all of them or those of a VOC devkit's list."""
    from hardlook.data.class_masks import open_class_masks
    from hardlook.data.voc import open_devkit

    source = open_class_masks(paths, labels=labels)
    tokens = source.tokens()
    if split is not None:
        if "voc" not in paths:
            raise OptionError("--split names a list of a VOC devkit", remedy="give --data voc=DIR, or no --split")
        wanted = set(open_devkit(paths["voc"]).ids(split))
        tokens = tuple(token for token in tokens if source.image_of(token) in wanted)
    if not tokens:
        raise DataError("no image here holds a class", remedy="check --data, --labels and --split")
    return source, tokens


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
