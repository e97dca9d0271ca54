"""What the bias studies read: class masks, lists of images, attribute tables and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hardlook.commands import grammar
from hardlook.errors import OptionError, RunError

if TYPE_CHECKING:
    from hardlook.bias.one_shot_answers import OneShotAnswers
    from hardlook.bias.training_images import LabelledImage, Unread
    from hardlook.data.class_masks import ClassMasks

_SOME_UNREAD = 3
Folds = Annotated[int, typer.Option("--folds", min=2, help="Into how many folds the classes go, in order.")]


@dataclass(frozen=True)
class OpenedImages:
    """A source, its images with their classes, those that cannot be read, and the given paths."""

    source: ClassMasks
    images: list[LabelledImage]
    unread: tuple[Unread, ...]
    paths: dict[str, Path]


def open_images(data: list[str] | None, labels: Path | None, split: str | None) -> OpenedImages:
    """All images of the data, or those of a VOC devkit's list."""
    from hardlook.bias.training_images import labelled_images, unreadable_images
    from hardlook.data.class_masks import open_class_masks
    from hardlook.data.voc import open_devkit

    paths = grammar.paths(data, "--data")
    source = open_class_masks(paths, labels=labels)
    if split is None:
        return OpenedImages(source, labelled_images(source), unreadable_images(source), paths)
    if "voc" not in paths:
        raise OptionError("--split names a list of a VOC devkit", remedy="give --data voc=DIR, or leave --split out")
    listed = open_devkit(paths["voc"]).ids(split)
    return OpenedImages(source, labelled_images(source, listed), unreadable_images(source, listed), paths)


def end_with(unread: Sequence[Unread], numbers: Path) -> None:
    """Say how many images could not be read and leave with exit code 3, where there are some."""
    if unread:
        typer.echo(f"{len(unread)} images could not be read: {numbers} names them", err=True)
        raise typer.Exit(_SOME_UNREAD)


def read_run(folder: Path) -> tuple[OneShotAnswers, str]:
    """The answers of a finished toss run, and its model's name."""
    from hardlook.bias.one_shot_answers import one_shot_answers
    from hardlook.commands.answers_of_runs import model_of, read_answers

    manifest, records = read_answers(folder, "toss")
    void = manifest["options"].get("reading", {}).get("void", "ignored")
    model = model_of(manifest)
    try:
        answers = one_shot_answers(records, void_ignored=void == "ignored")
    except RunError as error:
        raise error.at(file=folder) from None
    open_units = manifest["units"] - len(records)
    note = f" ({open_units} of the run's {manifest['units']} pairs are unanswered)" if open_units else ""
    return replace(answers, pairs=answers.pairs + note), model
