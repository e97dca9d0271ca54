"""`hardlook train METHOD`: train a few-shot method into a folder that is a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hardlook.cli.arguments import Json, Quiet, Seed, parse_pairs, parse_paths
from hardlook.cli.printing import print_output
from hardlook.metacoco.training.run import DEFAULT_BACKBONE
from hardlook.report.json_values import dump_json


def train(
    method: Annotated[str, typer.Argument(help="A method; `hardlook models --role few-shot-learner` lists them.")],
    data: Annotated[list[str], typer.Option("--data", help="root=DIR of split/concept/context/image, or a manifest.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the checkpoint; a stopped training resumes in it.")],
    backbone: Annotated[str, typer.Option("--backbone", help="Such as conv64f or resnet12.")] = DEFAULT_BACKBONE,
    budget: Annotated[
        str, typer.Option("--budget", help="Such as 10min or 300000images; without it the recipe's epochs.")
    ] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change the recipe: lr=0.01, classes.epochs=10, option.NAME=1; repeatable."),
    ] = None,
    train_contexts: Annotated[
        str, typer.Option("--train-contexts", help="Train and validate on these contexts only, such as snow,fog.")
    ] = "",
    split_rule: Annotated[
        str | None, typer.Option("--split-rule", help="size (as in the paper), seed, or a CSV file concept,split.")
    ] = None,
    image_size: Annotated[int, typer.Option("--image-size", min=16, help="Pixels of the network's input.")] = 84,
    start: Annotated[
        Path | None, typer.Option("--start", help="A checkpoint folder or weights file whose backbone to start from.")
    ] = None,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda or cuda:NUMBER.")] = "cpu",
    devices: Annotated[int, typer.Option("--devices", min=1, help="Processes, each on a device of its own.")] = 1,
    strategy: Annotated[str, typer.Option("--strategy", help="Fabric's strategy for several of them.")] = "auto",
    precision: Annotated[str, typer.Option("--precision", help="float32, tf32, bfloat16 or float16.")] = "float32",
    threads: Annotated[int, typer.Option("--threads", min=1, help="Of torch, on a processor.")] = 1,
    validations: Annotated[int, typer.Option("--validations", min=1, help="How many times to validate.")] = 20,
    validation_tasks: Annotated[
        int, typer.Option("--validation-tasks", min=1, help="Validation tasks of each mode.")
    ] = 200,
    near_duplicates: Annotated[
        str, typer.Option("--near-duplicates", help="Images that show the same picture: keep, drop or refuse.")
    ] = "keep",
    skip_corrupt: Annotated[
        bool, typer.Option("--skip-corrupt", help="Leave out and count images that cannot be read.")
    ] = False,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a few-shot method; the folder is a model for `hardlook run metacoco --model`.

    Examples:
      hardlook train protonet --backbone resnet12 --data root=planted --budget 10min --out weights/protonet

      hardlook train baseline++ --data root=planted --set epochs=20 --device cuda --precision tf32 --out weights/bpp
    """
    from hardlook.metacoco.training.run import train as train_method

    done = train_method(
        method,
        data=dict(parse_paths(data, "--data", alone="root")),
        out=out,
        backbone=backbone,
        budget=budget,
        recipe=parse_pairs(settings, "--set"),
        train_contexts=[word.strip() for word in train_contexts.split(",") if word.strip()],
        split_rule=split_rule,
        image_size=image_size,
        seed=seed,
        start=start,
        device=device,
        devices=devices,
        strategy=strategy,
        precision=precision,
        threads=threads,
        validations=validations,
        validation_tasks=validation_tasks,
        near_duplicates=near_duplicates,
        skip_corrupt=skip_corrupt,
        progress=not quiet,
    )
    if done.rank:
        return
    words = [str(done), f"page: {out / 'training.html'}", f"hardlook run metacoco --model {out} evaluates it"]
    print_output(dump_json({"folder": str(out), **done.card}) if as_json else "\n".join(words))
