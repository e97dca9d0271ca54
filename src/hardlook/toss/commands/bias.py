"""`hardlook bias`: the biases behind one-shot scores, one command each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hardlook.cli import arguments
from hardlook.cli.help_pages import App
from hardlook.cli.printing import print_output
from hardlook.cli.run import add_study
from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.progress import open_progress
from hardlook.report.json_values import dump_json
from hardlook.toss.bias.information import measure_information, write_information
from hardlook.toss.bias.negatives import parse_reading, run_negatives, write_negatives
from hardlook.toss.bias.one_shot_results import read_attribute_frame, read_run, replace_one_shot_iou
from hardlook.toss.bias.selection import DROPPED_LIST, KEPT_LIST, run_selection, write_selection
from hardlook.toss.bias.training_images import open_images, split_of_fold, split_of_training
from hardlook.toss.commands.inputs import exit_after_failures
from hardlook.toss.tiers.attributes import FailedImage

Folds = Annotated[int, typer.Option("--folds", min=2, help="Into how many folds the classes go, in order.")]

app = App(
    no_args_is_help=True,
    help=(
        "The biases behind one-shot scores: what a model was trained to ignore, and what it looks at instead.\n\n"
        "Examples:\n\n"
        "  hardlook bias select --data voc=VOC2012 --split train --saliency u2netp --fold 0 --out selection\n\n"
        "  hardlook bias negatives --data voc=VOC2012 --run runs/toss --out negatives\n\n"
        "  hardlook bias information --attributes attributes.csv --run runs/toss --out information\n\n"
        "  hardlook bias support --data voc=VOC2012 --model prototype --out support\n\n"
        "  hardlook bias saliency --data voc=VOC2012 --model prototype --saliency u2netp --out saliency"
    ),
)


@app.command("select")
def select(
    data: arguments.Data,
    out: Annotated[Path, typer.Option("--out", help="Folder for the lists, selection.html and selection.json.")],
    saliency: Annotated[str, typer.Option("--saliency", help="A saliency model.")] = "u2netp",
    saliency_arg: Annotated[
        list[str] | None, typer.Option("--saliency-arg", help="KEY=VALUE for the saliency model; repeatable.")
    ] = None,
    fold: Annotated[
        int | None, typer.Option("--fold", min=0, help="The fold that is tested; the others train.")
    ] = None,
    classes: Annotated[
        str | None, typer.Option("--classes", help="Training classes by name, instead of --fold: a,b,c.")
    ] = None,
    folds: Folds = 4,
    split: arguments.Split = None,
    labels: arguments.Labels = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Also write the list without any test class (an oracle).")
    ] = False,
    offline: arguments.Offline = False,
    seed: arguments.Seed = 0,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Keep the training images whose salient region is of training classes; drop those below the median.

    Writes kept.txt and dropped.txt, one image id per line, which any trainer can read. Exit 3 when an image could not
    be read.

    Example:
      hardlook bias select --data voc=VOC2012 --split train --saliency u2netp --fold 0 --out selection
    """
    if (fold is None) == (classes is None):
        raise OptionError("expected one of --fold and --classes", remedy="--fold 0, or --classes cat,dog")
    paths = arguments.parse_paths(data, "--data")
    opened = open_images(paths, labels, split)
    if fold is not None:
        chosen = split_of_fold(opened.source.classes, fold, folds)
    else:
        names = [name.strip() for name in (classes or "").split(",") if name.strip()]
        chosen = split_of_training(opened.source.classes, names)
    model = arguments.build_named_model(saliency, "saliency", saliency_arg, "--saliency-arg")
    with open_progress(quiet) as start:
        study = run_selection(opened, chosen, model, leave_out=leave_out, seed=seed, start=start)
    document = write_selection(study, out, paths)
    lists = f"lists: {out / KEPT_LIST}, {out / DROPPED_LIST}\n"
    _print_study(document, f"{lists}page: {out / 'selection.html'}", as_json)
    _exit_after_unread(study.unread, out / "selection.json")


@app.command("negatives")
def negatives(
    data: arguments.Data,
    out: Annotated[Path, typer.Option("--out", help="Folder for negatives.html and negatives.json.")],
    split: arguments.Split = None,
    labels: arguments.Labels = None,
    folds: Folds = 4,
    run: arguments.Run = None,
    attributes: Annotated[
        Path | None, typer.Option("--attributes", help="attributes.csv or test_stats.csv: supervised IoU per image.")
    ] = None,
    reading: Annotated[
        list[str] | None, typer.Option("--reading", help="distractors=paper (of images) or released (of masks).")
    ] = None,
    seed: arguments.Seed = 0,
    as_json: arguments.Json = False,
) -> None:
    """Compare the share of training images in which a class is background with how much it loses.

    Without --run the one-shot IoU is that of the table's column oss_perf; without either only shares are shown.

    Example:
      hardlook bias negatives --data voc=VOC2012 --run runs/toss --attributes attributes.csv --out negatives
    """
    chosen = parse_reading(arguments.parse_pairs(reading, "--reading"))
    opened = open_images(arguments.parse_paths(data, "--data"), labels, split)
    study = run_negatives(opened, folds, run, attributes, chosen, seed)
    _print_study(write_negatives(study, out, seed), f"page: {out / 'negatives.html'}", as_json)
    _exit_after_unread(study.unread, out / "negatives.json")


@app.command("information")
def information(
    attributes: Annotated[Path, typer.Option("--attributes", help="attributes.csv or the published test_stats.csv.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for information.html and information.json.")],
    run: arguments.Run = None,
    seed: arguments.Seed = 0,
    as_json: arguments.Json = False,
) -> None:
    """Mutual information (nats) of size, centredness, salience, blobs, distractors and supervised IoU with success.

    Success is a one-shot IoU above .5 of a class in an image: from the table's column oss_perf, or from --run.

    Example:
      hardlook bias information --attributes attributes.csv --run runs/toss --out information
    """
    table, who = read_attribute_frame(attributes), f"the one-shot model of {attributes.name}"
    if run:
        results = read_run(run)
        table, who = replace_one_shot_iou(table, results), f"{results.model} on {results.pairs}"
    try:
        study = measure_information(table, seed=seed)
    except DataError as error:
        raise error.at(file=attributes) from None
    document = write_information(study, who, out, {"attributes": str(attributes), "run": str(run or ""), "seed": seed})
    _print_study(document, f"page: {out / 'information.html'}", as_json)


def _print_study(document: dict[str, Any], files: str, as_json: bool) -> None:
    print_output(dump_json(document) if as_json else f"{document['in_words']}\n\n{files}")


def _exit_after_unread(unread: Sequence[FailedImage], numbers: Path) -> None:
    exit_after_failures(f"{len(unread)} images could not be read: {numbers} names them" if unread else "")


add_study(app, "support", "bias-support", "What a model still finds when its support misleads it.")

add_study(app, "saliency", "bias-saliency", "Salient against other targets, with and without suppression (SSSI).")
