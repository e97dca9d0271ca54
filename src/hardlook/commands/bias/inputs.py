"""What the bias studies read: class masks, lists of images, attribute tables and runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hardlook.commands import grammar
from hardlook.errors import OptionError, RunError

if TYPE_CHECKING:
    from hardlook.bias.one_shot_answers import OneShotAnswers
    from hardlook.bias.training_images import LabelledImage
    from hardlook.data.class_masks import ClassMasks

Data = Annotated[
    list[str],
    typer.Option("--data", help="voc=DIR, or images=DIR with masks=DIR; repeatable.", show_default=False),
]
Labels = Annotated[
    Path | None, typer.Option("--labels", help="Class names for images and masks, one a line, index 1 first.")
]
Split = Annotated[
    str | None, typer.Option("--split", help="A list of the VOC devkit, such as train; all images without it.")
]
Folds = Annotated[int, typer.Option("--folds", min=2, help="Into how many folds the classes go, in order.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the intervals.")]
Json = Annotated[bool, typer.Option("--json", help="Print the numbers as JSON instead of text.")]
Run = Annotated[Path | None, typer.Option("--run", help="Folder of a finished `hardlook run toss`.")]


def open_images(
    data: list[str], labels: Path | None, split: str | None
) -> tuple[ClassMasks, list[LabelledImage], dict[str, Path]]:
    """The source, its images with their classes, and the given paths."""
    from hardlook.bias.training_images import labelled_images
    from hardlook.data.class_masks import open_class_masks
    from hardlook.data.voc import open_devkit

    paths = grammar.paths(data, "--data")
    source = open_class_masks(paths, labels=labels)
    if split is None:
        return source, labelled_images(source), paths
    if "voc" not in paths:
        raise OptionError("--split names a list of a VOC devkit", remedy="give --data voc=DIR, or leave --split out")
    return source, labelled_images(source, open_devkit(paths["voc"]).ids(split)), paths


def read_run(folder: Path) -> tuple[OneShotAnswers, str]:
    """The answers of a finished toss run, and its model's name."""
    from hardlook.benchmarks import find_benchmark
    from hardlook.bias.one_shot_answers import one_shot_answers
    from hardlook.runs.folder import RunFolder
    from hardlook.runs.record_store import read_records

    run = RunFolder(folder)
    manifest = run.read_manifest()
    name = manifest["benchmark"]["name"]
    if name != "toss":
        raise RunError(f"this is a run of {name}", file=folder, remedy="give the folder of a `hardlook run toss`")
    schema = find_benchmark(name).schema
    records = read_records(run, schema, manifest["answers"]["fingerprint"], schema.light)
    void = manifest["options"].get("reading", {}).get("void", "ignored")
    model = manifest["model"]["name"] if manifest["model"] else "stored predictions"
    try:
        answers = one_shot_answers(records, void_ignored=void == "ignored")
    except RunError as error:
        raise error.at(file=folder) from None
    open_units = manifest["units"] - len(records)
    note = f" ({open_units} of the run's {manifest['units']} pairs are unanswered)" if open_units else ""
    return replace(answers, pairs=answers.pairs + note), model
