"""`hardlook train METHOD`: train a method, a network or a projection into a folder that is a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hardlook.cli.arguments import Json, Quiet, Seed, parse_pairs, parse_paths
from hardlook.cli.printing import print_output
from hardlook.report.json_values import dump_json

FEW, ONE, WORDS = "Few-shot methods", "One-shot networks", "Word projections"
CLICKS, SHARED = "Interactive networks", "All networks and word projections"


def train(
    method: Annotated[str, typer.Argument(help="A method or network; `hardlook models` marks them `trained`.")],
    data: Annotated[
        list[str],
        typer.Option("--data", help="root=DIR of split/concept/context/image or a manifest; for networks voc=DIR."),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the checkpoint; a stopped training resumes in it.")],
    backbone: Annotated[
        str | None, typer.Option("--backbone", help="Such as conv64f, resnet12 or, of networks, resnet50-keras.")
    ] = None,
    budget: Annotated[
        str, typer.Option("--budget", help="Such as 10min or 300000images; without it the recipe's epochs.")
    ] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change the recipe: lr=0.01, classes.epochs=10, option.NAME=1; repeatable."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--start", help="A checkpoint folder or weights file whose backbone to start from."),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda or cuda:NUMBER.")] = "cpu",
    devices: Annotated[int, typer.Option("--devices", min=1, help="Processes, each on a device of its own.")] = 1,
    strategy: Annotated[str, typer.Option("--strategy", help="Fabric's strategy for several of them.")] = "auto",
    precision: Annotated[str, typer.Option("--precision", help="float32, tf32, bfloat16 or float16.")] = "float32",
    threads: Annotated[int, typer.Option("--threads", min=1, help="Of torch, on a processor.")] = 1,
    validations: Annotated[int | None, typer.Option("--validations", min=1, help="How many times to validate.")] = None,
    seed: Seed = 0,
    train_contexts: Annotated[
        str | None,
        typer.Option(
            "--train-contexts",
            help="Train and validate on these contexts only, such as snow,fog.",
            rich_help_panel=FEW,
        ),
    ] = None,
    split_rule: Annotated[
        str | None,
        typer.Option(
            "--split-rule", help="size (as in the paper), seed, or a CSV file concept,split.", rich_help_panel=FEW
        ),
    ] = None,
    image_size: Annotated[
        int | None,
        typer.Option("--image-size", min=16, help="Pixels of the network's input (84).", rich_help_panel=FEW),
    ] = None,
    validation_tasks: Annotated[
        int | None,
        typer.Option("--validation-tasks", min=1, help="Validation tasks of each mode (200).", rich_help_panel=FEW),
    ] = None,
    near_duplicates: Annotated[
        str | None,
        typer.Option(
            "--near-duplicates",
            help="Images that show the same picture: keep, drop or refuse.",
            rich_help_panel=FEW,
        ),
    ] = None,
    skip_corrupt: Annotated[
        bool,
        typer.Option("--skip-corrupt", help="Leave out and count images that cannot be read.", rich_help_panel=FEW),
    ] = False,
    fold: Annotated[
        int | None,
        typer.Option(
            "--fold",
            min=0,
            help="The fold whose classes are not trained; without it all. Not for interactive networks.",
            rich_help_panel=SHARED,
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option("--folds", min=2, help="How many folds (4).", rich_help_panel=SHARED)
    ] = None,
    split: Annotated[
        str | None, typer.Option("--split", help="A list of a VOC devkit, such as train.", rich_help_panel=SHARED)
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="A file of class names. Not for interactive networks.", rich_help_panel=SHARED),
    ] = None,
    selection: Annotated[
        str | None,
        typer.Option(
            "--selection", help="all, leave-out, sgtss, or a list of `hardlook bias select`.", rich_help_panel=ONE
        ),
    ] = None,
    exclude: Annotated[
        Path | None,
        typer.Option("--exclude", help="Images that do not train: a list, or a folder.", rich_help_panel=SHARED),
    ] = None,
    saliency: Annotated[
        str | None, typer.Option("--saliency", help="The saliency model of sgtss (u2netp).", rich_help_panel=ONE)
    ] = None,
    reading: Annotated[
        str | None,
        typer.Option("--reading", help="paper, or released for what the released code does.", rich_help_panel=ONE),
    ] = None,
    held_back: Annotated[
        float | None,
        typer.Option("--held-back", help="Share of images that choose the weights (0.1).", rich_help_panel=SHARED),
    ] = None,
    validation_pairs: Annotated[
        int | None,
        typer.Option("--validation-pairs", min=1, help="Pairs of a validation (200).", rich_help_panel=ONE),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", help="A text encoder: glove, minilm or another (glove).", rich_help_panel=WORDS),
    ] = None,
    unseen: Annotated[
        str | None,
        typer.Option("--unseen", help="Classes that do not train, such as cat,bus.", rich_help_panel=WORDS),
    ] = None,
    clicks: Annotated[
        str | None,
        typer.Option(
            "--clicks", help="Where clicks land: centre, uniform, distance, clickability.", rich_help_panel=CLICKS
        ),
    ] = None,
    clicks_args: Annotated[
        str | None,
        typer.Option("--clicks-args", help="The click model's arguments, such as path=FILE.", rich_help_panel=CLICKS),
    ] = None,
    click_group: Annotated[
        int | None,
        typer.Option(
            "--click-group", min=0, max=10, help="Clicks of one group: 1 least probable, 0 all.", rich_help_panel=CLICKS
        ),
    ] = None,
    validation_objects: Annotated[
        int | None,
        typer.Option("--validation-objects", min=1, help="Objects of a validation (100).", rich_help_panel=CLICKS),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a few-shot method, a one-shot or interactive network, or a word projection: a model for `hardlook run`.

    Examples:
      hardlook train protonet --backbone resnet12 --data root=planted --budget 10min --out weights/protonet

      hardlook train baseline++ --data root=planted --set epochs=20 --device cuda --precision tf32 --out weights/bpp

      hardlook train pfenet --data voc=VOC2012 --split train --fold 0 --device cuda --out weights/pfenet

      hardlook train ritm --data voc=VOC2012 --exclude TEST --clicks distance --device cuda --out weights/ritm

      hardlook train semantic-projection --data voc=VOC2012 --fold 0 --text glove --out weights/projection
    """
    from hardlook.api.training import BENCHMARKS
    from hardlook.api.training import train as train_model
    from hardlook.models.listing import find_trained_role

    benchmark = BENCHMARKS[find_trained_role(method)]
    given: dict[str, Any] = {
        "backbone": backbone,
        "start": start,
        "validations": validations,
        "train_contexts": [word.strip() for word in train_contexts.split(",") if word.strip()]
        if train_contexts is not None
        else None,
        "split_rule": split_rule,
        "image_size": image_size,
        "validation_tasks": validation_tasks,
        "near_duplicates": near_duplicates,
        "skip_corrupt": skip_corrupt or None,
        "fold": fold,
        "folds": folds,
        "split": split,
        "labels": labels,
        "selection": selection,
        "exclude": exclude,
        "saliency": saliency,
        "reading": reading,
        "held_back": held_back,
        "validation_pairs": validation_pairs,
        "clicks": clicks,
        "clicks_args": clicks_args,
        "click_group": click_group,
        "validation_objects": validation_objects,
        "text": text,
        "unseen": [word.strip() for word in unseen.split(",") if word.strip()] if unseen is not None else None,
    }
    done = train_model(
        method,
        data=dict(parse_paths(data, "--data", alone="root" if benchmark == "metacoco" else "voc")),
        out=out,
        budget=budget,
        recipe=parse_pairs(settings, "--set"),
        seed=seed,
        device=device,
        devices=devices,
        strategy=strategy,
        precision=precision,
        threads=threads,
        progress=not quiet,
        **{name: value for name, value in given.items() if value is not None},
    )
    each = done if isinstance(done, list) else [done]
    if each[0].rank:
        return
    if as_json:
        documents = [{"folder": str(one.folder), **one.card} for one in each]
        print_output(dump_json(documents if isinstance(done, list) else documents[0]))
        return
    words = [line for one in each for line in (str(one), f"page: {one.folder / 'training.html'}")]
    several = f"{method} --model-arg 'weights={out}/fold{{fold}}'"
    model = several if isinstance(done, list) else str(out)
    also = " --pred-labels WORDS" if benchmark == "open-miou" else ""
    print_output("\n".join([*words, f"hardlook run {benchmark} --model {model}{also} evaluates it"]))
