"""`hardlook clicks train`: the clickability network, trained on people's clicks or on simulated people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands import study_flags
from hardlook.commands.clicks.evaluate import Data, PreviousMasks, Split, UserClicks
from hardlook.errors import OptionError
from hardlook.export.plain_values import json_text

if TYPE_CHECKING:
    from hardlook.clicks.training.history import EpochRecord
    from hardlook.clicks.training.loop import Trained
    from hardlook.clicks.training.settings import TrainingSettings
    from hardlook.commands.clicks.training_samples import TrainingSplit

WIDTHS = ("base", "small")
PRECISIONS = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class TrainingPlan:
    """The settings of the weights, the network's width, and where and how the work is done."""

    settings: TrainingSettings
    width: str = "base"
    backbone: Path | None = None
    device: str = "cpu"
    workers: int = 0
    threads: int | None = None
    keep: bool = False


def train(
    out: Annotated[Path, typer.Option("--out", help="Folder for the checkpoint, history.jsonl, page.html; resumes.")],
    user_clicks: UserClicks = None,
    data: Data = None,
    previous_masks: PreviousMasks = None,
    split: Split = None,
    validation: Annotated[
        Path | None,
        typer.Option("--validation", help="Image stems for validation, one a line; without it one image in five."),
    ] = None,
    scenes: Annotated[
        int,
        typer.Option(
            "--scenes", min=5, help="Planted scenes to train on, without --user-clicks; a fifth more to validate."
        ),
    ] = 400,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Rounds through the samples.")] = 20,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Samples a step.")] = 16,
    lr: Annotated[float, typer.Option("--lr", help="Highest learning rate.")] = 0.01,
    backbone: Annotated[
        Path | None, typer.Option("--backbone", help="MSCAN-B weights of ImageNet to start from; else random ones.")
    ] = None,
    backbone_rate: Annotated[
        float, typer.Option("--backbone-rate", min=0, help="The backbone's share of the learning rate.")
    ] = 1.0,
    clip: Annotated[
        float | None, typer.Option("--clip", help="Bound of the gradient's length; from random weights 1 is prudent.")
    ] = None,
    sigma: Annotated[float, typer.Option("--sigma", help="Blur of clicks, in pixels of 1920x1080.")] = 5.0,
    size: Annotated[int, typer.Option("--size", min=64, help="Side of the network's grid in pixels.")] = 416,
    width: Annotated[
        str, typer.Option("--width", help="base: SegNeXt-B as published; small: a network to try things with.")
    ] = "base",
    precision: Annotated[str, typer.Option("--precision", help="auto, float32, bfloat16 or float16.")] = "auto",
    device: Annotated[str, typer.Option("--device", help="cpu or cuda.")] = "cpu",
    workers: Annotated[int, typer.Option("--workers", min=0, help="Threads that prepare samples ahead.")] = 0,
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=1, help="Processor threads: 1, or as the libraries choose beside a GPU."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Hold prepared samples in memory.")] = False,
    reading: Annotated[
        list[str] | None, typer.Option("--reading", help="mask-sigma=released|paper, of the click maps.")
    ] = None,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
    quiet: study_flags.Quiet = False,
) -> None:
    """Train the clickability network; the best epoch by SIM on validation is kept.

    A stopped training goes on when the command is given again with the same --out; other settings are refused. On
    a processor the number of threads changes the weights a little, so it is a setting too. Stems that cannot be used
    are found first and left out; exit 3 when there were any.

    [bold]Examples[/bold]

      hardlook clicks train --user-clicks clicks.csv --data tetris=TETRIS --validation TETRIS_val.txt
      --previous-masks masks --device cuda --out training

      hardlook clicks train --scenes 40 --epochs 2 --width small --size 96 --out trial
    """
    from hardlook.clicks.training.settings import TrainingSettings
    from hardlook.commands.clicks.readings import TRAINING, chosen_readings
    from hardlook.commands.clicks.training_samples import split_samples, without_unusable
    from hardlook.commands.clicks.training_settings import (
        COUNTS,
        backbone_fingerprint,
        check_device,
        refuse_changes,
        summing_threads,
        threads_on,
    )
    from hardlook.commands.clicks.unread_stems import SOME_UNREAD

    for flag, value, known in (("--width", width, WIDTHS), ("--precision", precision, PRECISIONS)):
        if value not in known:
            raise OptionError(f"{flag} {value}: there is no such choice", remedy=f"choose one of {', '.join(known)}")
    check_device(device)
    readings: dict[str, Any] = chosen_readings(reading, TRAINING)
    settings = TrainingSettings(
        epochs=epochs,
        batch=batch_size,
        lr=lr,
        backbone_rate=backbone_rate,
        clip=clip,
        size=size,
        sigma=sigma,
        mask_sigma=readings["mask-sigma"],
        precision=precision,  # type: ignore[arg-type]  # checked above
        seed=seed,
    )
    plan = TrainingPlan(settings, width, backbone, device, workers, threads_on(device, threads), keep)
    parts = split_samples(user_clicks, data, previous_masks, validation, split=split, scenes=scenes, seed=seed)
    given = {
        **asdict(settings),
        "width": width,
        "backbone": backbone_fingerprint(backbone),
        "threads": summing_threads(device, plan.threads),
        **parts.facts(),
    }
    # Twice, since reading all samples takes a while.
    refuse_changes(out, given, unknown=COUNTS)
    ready_torch(plan.threads)
    parts = without_unusable(parts, settings, workers=workers, quiet=quiet)
    given |= parts.facts()
    refuse_changes(out, given)
    trained = train_network(plan, parts, out, given, quiet=quiet)
    document = write_training(plan, parts, trained, out, given)
    words = "\n\n".join([*document["in_words"], f"checkpoint: {trained.checkpoint}\npage: {out / 'page.html'}"])
    typer.echo(json_text(document) if as_json else words)
    if parts.unread:
        raise typer.Exit(SOME_UNREAD)


def ready_torch(threads: int | None) -> None:
    """Load torch and tell it, and all that is loaded beside it, the number of threads."""
    from hardlook.extras import require
    from hardlook.runs.worker import pin_threads

    require("torch", extra="torch")
    if threads is not None:
        import torch  # noqa: F401  # only what is loaded already can be told

        pin_threads(threads)


def train_network(
    plan: TrainingPlan, split: TrainingSplit, out: Path, given: Mapping[str, Any], *, quiet: bool
) -> Trained:
    """Train with a bar over epochs, going on from the folder's state."""
    from hardlook.clicks.training.history import read_history
    from hardlook.clicks.training.loop import HISTORY
    from hardlook.clicks.training.loop import train as run
    from hardlook.commands.build.inputs import showing_progress
    from hardlook.commands.clicks.training_samples import architecture_of
    from hardlook.commands.clicks.training_settings import FILE
    from hardlook.runs.folder import write_whole

    write_whole(out / FILE, json_text(dict(given)))
    done = len(read_history(out / HISTORY))
    with showing_progress(quiet) as start:
        advance = start(plan.settings.epochs, done)

        def told(record: EpochRecord) -> None:
            advance(1, 0)

        return run(
            split.training,
            split.validation,
            out,
            plan.settings,
            architecture=architecture_of(plan.width),
            backbone=plan.backbone,
            device=plan.device,
            workers=plan.workers,
            keep=plan.keep,
            progress=told,
        )


def write_training(
    plan: TrainingPlan, split: TrainingSplit, trained: Trained, out: Path, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the page and the numbers; return the numbers."""
    import hardlook
    from hardlook.commands.clicks.train_page import (
        choose_shown,
        training_in_words,
        training_pictures,
        training_sections,
    )
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

    words = training_in_words(trained, split)
    document = {
        "schema": "hardlook.clicks-training/1",
        "hardlook": hardlook.__version__,
        "settings": dict(given),
        "in_words": words,
        "best_epoch": trained.best_epoch,
        "checkpoint": trained.checkpoint.name,
        "history": [asdict(record) for record in trained.history],
        "left_out": [asdict(note) for note in split.left_out],
        "unread": [{"stem": key, "why": why} for key, why in split.unread],
    }
    shown: Sequence[Any] = choose_shown(split)
    page = render_study(
        training_sections(trained, split, shown, words, plan.settings.mask_sigma),
        title="A clickability network",
        summary="A network that says where people click, trained on click maps.",
        provenance={name: document[name] for name in ("schema", "hardlook", "settings")},
        pictures=training_pictures(shown, trained.checkpoint, plan),
    )
    write_whole(out / "training.json", json_text(document))
    write_whole(out / "page.html", page)
    return document
