"""`hardlook clicks`: click models evaluated, shown and trained, and how hard instances are to click on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.cli.arguments import Json, Offline, Quiet, Seed, build_named_models, parse_pairs, parse_paths
from hardlook.cli.help_pages import App
from hardlook.cli.printing import print_output
from hardlook.errors import DataError, OptionError
from hardlook.report.json_values import dump_json

if TYPE_CHECKING:
    from hardlook.models.named_model import NamedModel

app = App(
    no_args_is_help=True,
    help=(
        "Where people click: evaluate, train and show click models, and measure how hard instances are to click on.\n\n"
        "Examples:\n\n"
        "  hardlook clicks evaluate --models uniform,distance --out evaluation\n\n"
        "  hardlook clicks train --user-clicks clicks.csv --data tetris=TETRIS --out training\n\n"
        "  hardlook clicks show photo.jpg mask.png --model distance,uniform --out shown\n\n"
        "  hardlook clicks cost mobile-sam --images 3\n\n"
        "  hardlook clicks difficulty runs/mobile-sam runs/grabcut --out difficulty"
    ),
)
UserClicks = Annotated[
    Path | None,
    typer.Option("--user-clicks", help="A clicks.csv; without it, simulated people click in the planted world."),
]
Data = Annotated[
    list[str] | None,
    typer.Option("--data", help="The datasets clicked on: grabcut=DIR, tetris=DIR, any NAME=DIR; repeatable."),
]
PreviousMasks = Annotated[
    Path | None, typer.Option("--previous-masks", help="Folder of the masks before later rounds, by full stem.")
]
Split = Annotated[str | None, typer.Option("--split", help="Which list of a VOC devkit, if it has several.")]
Scenes = Annotated[int, typer.Option("--scenes", min=2, help="Scenes of the planted world, without --user-clicks.")]
ModelArg = Annotated[
    list[str] | None, typer.Option("--model-arg", help="KEY=VALUE for all, NAME.KEY=VALUE for one; repeatable.")
]


Validation = Annotated[
    Path | None,
    typer.Option("--validation", help="Image stems for validation, one per line; without it one image in five."),
]
TrainingScenes = Annotated[
    int,
    typer.Option(
        "--scenes", min=5, help="Planted scenes to train on, without --user-clicks; a fifth more to validate."
    ),
]
Epochs = Annotated[int, typer.Option("--epochs", min=1, help="Passes over the samples.")]
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, help="Samples per step.")]
LearningRate = Annotated[float, typer.Option("--lr", help="Highest learning rate.")]
Backbone = Annotated[
    Path | None, typer.Option("--backbone", help="MSCAN-B weights of ImageNet to start from; else random ones.")
]
Clip = Annotated[
    float | None, typer.Option("--clip", help="Largest norm of the gradient; from random weights 1 is prudent.")
]
GridSize = Annotated[int, typer.Option("--size", min=64, help="Side of the network's grid in pixels.")]
Width = Annotated[
    str, typer.Option("--width", help="base: SegNeXt-B as published; small: a network to try things with.")
]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]
Workers = Annotated[int, typer.Option("--workers", min=0, help="Threads that prepare samples ahead.")]


@app.command("evaluate")
def evaluate(
    out: Annotated[Path, typer.Option("--out", help="Folder for page.html, table.csv, per_stem.csv; resumes.")],
    models: Annotated[
        str, typer.Option("--models", "--model", help="Click models, separated by commas.")
    ] = "uniform,distance",
    model_arg: ModelArg = None,
    user_clicks: UserClicks = None,
    data: Data = None,
    previous_masks: PreviousMasks = None,
    split: Split = None,
    previews: Annotated[
        Path | None, typer.Option("--previews", help="A previews.csv; its column dataset holds display modes.")
    ] = None,
    draws: Annotated[int, typer.Option("--draws", min=1, help="Draws from each map.")] = 100,
    scenes: Scenes = 48,
    reading: Annotated[
        list[str] | None, typer.Option("--reading", help="wd=released|paper, maps=released|paper; repeatable.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate click models on people's clicks: KS, PL1, WD, NSS and PDE, by dataset, click type and device.

    A stopped evaluation resumes when the command is given again; another model costs only that model. Exit 3 when a
    stem could not be read.

    Examples:
      hardlook clicks evaluate --models uniform,distance,planted-users --out evaluation

      hardlook clicks evaluate --user-clicks clicks.csv --data grabcut=GrabCut --models distance,saliency --out scored

      hardlook clicks evaluate --user-clicks clicks.csv --data tetris=TETRIS --models clickability
      --model-arg clickability.path=clickability.safetensors --out evaluation
    """
    from hardlook.harness.runs.progress import open_progress
    from hardlook.rclicks.click_evaluation.evaluation import (
        ClickEvaluation,
        EvaluationSettings,
        RowCache,
        evaluate_models,
    )
    from hardlook.rclicks.click_evaluation.report import write_evaluation
    from hardlook.rclicks.click_evaluation.stem_scores import Readings
    from hardlook.rclicks.user_clicks.loading import EXIT_SOME_UNREAD, load_clicked_data
    from hardlook.rclicks.user_clicks.readings import EVALUATION, choose_readings
    from hardlook.threads import pin_threads

    readings: dict[str, Any] = choose_readings(parse_pairs(reading, "--reading"), EVALUATION)
    named = build_click_models(models, model_arg)
    paths = parse_paths(data, "--data")
    clicked = load_clicked_data(
        user_clicks, paths, previous_masks, previews, split=split, scenes=scenes, seed=seed, wd=readings["wd"]
    )
    # After the models have loaded their libraries; one thread also gives sums one order.
    pin_threads(1)
    settings = EvaluationSettings(draws, seed, Readings(**readings), clicked.fingerprint)
    with open_progress(quiet) as start:
        advance = start(len(clicked.sources), 0)
        results = evaluate_models(clicked.sources, named, settings, RowCache(out / "answers.jsonl"), advance)
    if not all(results.get_stem_rows(name) for name in named):
        key, why = results.unread[0]
        raise DataError(f"no stem could be read; the first: {why}", unit=key, remedy="check --data")
    evaluation = ClickEvaluation(named, clicked, settings, results)
    given = {
        "user_clicks": user_clicks,
        "data": parse_pairs(data, "--data"),
        "previous_masks": previous_masks,
        "split": split,
        "previews": previews,
        "scenes": scenes if clicked.planted else None,
        "draws": draws,
        "seed": seed,
        "readings": readings,
        "data_fingerprint": clicked.fingerprint,
    }
    _print_results(write_evaluation(evaluation, out, given), [f"page: {out / 'page.html'}"], as_json)
    if results.unread:
        raise typer.Exit(EXIT_SOME_UNREAD)


@app.command("show")
def show(
    out: Annotated[Path, typer.Option("--out", help="Folder for page.html and the pictures as PNG.")],
    image: Annotated[
        Path | None, typer.Argument(help="An image; without it a scene of the planted world.", show_default=False)
    ] = None,
    mask: Annotated[Path | None, typer.Argument(help="The object's mask.", show_default=False)] = None,
    model: Annotated[str, typer.Option("--model", "--models", help="Click models, separated by commas.")] = "distance",
    model_arg: ModelArg = None,
    number: Annotated[
        int | None, typer.Option("--object", min=1, help="Which integer of the mask is the object.")
    ] = None,
    previous: Annotated[
        Path | None, typer.Option("--previous", help="A mask whose error is to be clicked, instead of the object.")
    ] = None,
    error: Annotated[
        str,
        typer.Option(
            "--error", help="fn (missing), fp (too much), or auto: the one that the benchmark corrects first."
        ),
    ] = "auto",
    groups: Annotated[int, typer.Option("--groups", min=2, max=100, help="Clicking groups.")] = 10,
    group_rule: Annotated[str, typer.Option("--group-rule", help="threshold (as published) or exact.")] = "threshold",
    samples: Annotated[int, typer.Option("--samples", min=1, help="Clicks to draw.")] = 50,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Draw where click models say that people click: heat maps, clicking groups in ordered colours, samples.

    Examples:
      hardlook clicks show photo.jpg mask.png --model distance,uniform --out shown

      hardlook clicks show photo.jpg mask.png --previous prediction.png --model saliency --out shown

      hardlook clicks show --model distance,planted-users --out shown
    """
    from hardlook.rclicks.click_maps.region import load_region, planted_region
    from hardlook.rclicks.click_maps.report import write_maps

    if (image is None) != (mask is None):
        raise OptionError("an image without a mask", remedy="give IMAGE MASK, or neither for a planted scene")
    _check_choice("--group-rule", group_rule, ("threshold", "exact"))
    _check_choice("--error", error, ("auto", "fn", "fp"))
    if error != "auto" and previous is None:
        what = f"--error {error} without --previous: an object alone has no error"
        raise OptionError(what, remedy="give IMAGE MASK --previous MASK, or leave --error out")
    named = build_click_models(model, model_arg)
    if image is None or mask is None:
        if previous or number:
            raise OptionError("--previous and --object are for an image of yours", remedy="give IMAGE MASK")
        region = planted_region(seed)
    else:
        region = load_region(image, mask, number=number, previous=previous, kind=error)  # type: ignore[arg-type]
    given = {
        "image": image,
        "mask": mask,
        "object": number,
        "previous": previous,
        "click_type": region.click_type,
        "groups": groups,
        "group_rule": group_rule,
        "samples": samples,
        "seed": seed,
    }
    document = write_maps(region, named, out, given)
    _print_results(document, [f"pictures: {', '.join(document['files'])}", f"page: {out / 'page.html'}"], as_json)


@app.command("train")
def train(
    out: Annotated[Path, typer.Option("--out", help="Folder for the checkpoint, history.jsonl, page.html; resumes.")],
    user_clicks: UserClicks = None,
    data: Data = None,
    previous_masks: PreviousMasks = None,
    split: Split = None,
    validation: Validation = None,
    scenes: TrainingScenes = 400,
    epochs: Epochs = 20,
    batch_size: BatchSize = 16,
    lr: LearningRate = 0.01,
    backbone: Backbone = None,
    backbone_rate: Annotated[
        float, typer.Option("--backbone-rate", min=0, help="The backbone's share of the learning rate.")
    ] = 1.0,
    clip: Clip = None,
    sigma: Annotated[float, typer.Option("--sigma", help="Blur of clicks, in pixels of 1920x1080.")] = 5.0,
    size: GridSize = 416,
    width: Width = "base",
    precision: Annotated[str, typer.Option("--precision", help="auto, float32, bfloat16 or float16.")] = "auto",
    device: Device = "cpu",
    workers: Workers = 0,
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=1, help="Processor threads: 1, or as the libraries choose beside a GPU."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep prepared samples in memory.")] = False,
    reading: Annotated[
        list[str] | None, typer.Option("--reading", help="mask-sigma=released|paper, of the click maps.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train the clickability network; the best epoch by SIM on validation is kept.

    A stopped training resumes when the command is given again with the same --out; other settings are an error. On
    a processor the number of threads changes the weights a little, so it is a setting too. Stems that cannot be used
    are found first and left out; exit 3 when there were any.

    Examples:
      hardlook clicks train --user-clicks clicks.csv --data tetris=TETRIS --validation TETRIS_val.txt
      --previous-masks masks --device cuda --out training

      hardlook clicks train --scenes 40 --epochs 2 --width small --size 96 --out trial
    """
    from hardlook.rclicks.training.folder import check_device, train_in_folder
    from hardlook.rclicks.training.report import write_training
    from hardlook.rclicks.training.settings import TrainingSettings
    from hardlook.rclicks.training.split import split_samples
    from hardlook.rclicks.user_clicks.loading import EXIT_SOME_UNREAD
    from hardlook.rclicks.user_clicks.readings import TRAINING, choose_readings

    _check_choice("--width", width, ("base", "small"))
    _check_choice("--precision", precision, ("auto", "float32", "bfloat16", "float16"))
    check_device(device)
    readings: dict[str, Any] = choose_readings(parse_pairs(reading, "--reading"), TRAINING)
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
    paths = parse_paths(data, "--data")
    parts = split_samples(user_clicks, paths, previous_masks, validation, split=split, scenes=scenes, seed=seed)
    trained = train_in_folder(
        parts,
        settings,
        out,
        width=width,
        backbone=backbone,
        device=device,
        threads=threads,
        workers=workers,
        keep=keep,
        quiet=quiet,
    )
    result = trained.result
    document = write_training(settings, device, trained.split, result, out, trained.settings)
    _print_results(document, [f"checkpoint: {result.checkpoint}", f"page: {out / 'page.html'}"], as_json)
    if trained.split.unread:
        raise typer.Exit(EXIT_SOME_UNREAD)


@app.command("ablation")
def ablation(
    out: Annotated[Path, typer.Option("--out", help="Folder for the trainings, table.csv and page.html; resumes.")],
    sigma: Annotated[
        str, typer.Option("--sigma", help="Blurs of clicks, by commas, in pixels of 1920x1080; else the paper's.")
    ] = "",
    user_clicks: UserClicks = None,
    data: Data = None,
    previous_masks: PreviousMasks = None,
    split: Split = None,
    validation: Validation = None,
    scenes: TrainingScenes = 400,
    epochs: Epochs = 20,
    batch_size: BatchSize = 16,
    lr: LearningRate = 0.01,
    backbone: Backbone = None,
    clip: Clip = None,
    size: GridSize = 416,
    width: Width = "base",
    device: Device = "cpu",
    workers: Workers = 0,
    draws: Annotated[int, typer.Option("--draws", min=1, help="Draws from each map when it is evaluated.")] = 100,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train the clickability network with several blurs of the clicks and evaluate each: the paper's Table 7.

    Every network is trained on the same stems, in a folder of its own, and evaluated by KS, PL1, WD, NSS and PDE on the
    same validation stems. A stopped ablation resumes when the command is given again; further sigmas cost only
    themselves.

    Examples:
      hardlook clicks ablation --sigma 1,5,20 --user-clicks clicks.csv --data tetris=TETRIS
      --validation TETRIS_val.txt --previous-masks masks --device cuda --out ablation

      hardlook clicks ablation --sigma 2,20 --scenes 5 --epochs 1 --width small --size 64 --draws 2 --out trial
    """
    from hardlook.rclicks.training.ablation import evaluate_sigmas, parse_sigmas, settings_to_json, write_ablation
    from hardlook.rclicks.training.folder import check_device, train_in_folder
    from hardlook.rclicks.training.settings import TrainingSettings
    from hardlook.rclicks.training.split import split_samples
    from hardlook.rclicks.user_clicks.loading import EXIT_SOME_UNREAD

    _check_choice("--width", width, ("base", "small"))
    check_device(device)
    sigmas = parse_sigmas(sigma)
    paths = parse_paths(data, "--data")
    parts = split_samples(user_clicks, paths, previous_masks, validation, split=split, scenes=scenes, seed=seed)
    trained = {
        one: train_in_folder(
            parts,
            TrainingSettings(epochs=epochs, batch=batch_size, lr=lr, clip=clip, size=size, sigma=one, seed=seed),
            out / f"sigma-{one:g}",
            width=width,
            backbone=backbone,
            device=device,
            workers=workers,
            quiet=quiet,
        )
        for one in sigmas
    }
    scored, unread = evaluate_sigmas(trained, out, draws=draws, seed=seed, device=device, quiet=quiet)
    given = {**settings_to_json(trained[sigmas[0]]), "sigmas": list(sigmas), "draws": draws}
    document = write_ablation(scored, unread, out, given)
    _print_results(document, [f"table: {out / 'table.csv'}", f"page: {out / 'page.html'}"], as_json)
    if unread or any(one.split.unread for one in trained.values()):
        raise typer.Exit(EXIT_SOME_UNREAD)


@app.command("cost")
def cost(
    model: Annotated[str, typer.Argument(help="An interactive segmenter or a click model.", show_default=False)],
    model_arg: Annotated[list[str] | None, typer.Option("--model-arg", help="KEY=VALUE; repeatable.")] = None,
    size: Annotated[str, typer.Option("--size", help="WIDTHxHEIGHT of the images in pixels.")] = "640x480",
    images: Annotated[int, typer.Option("--images", min=1, help="Images to open, after one that warms up.")] = 5,
    clicks: Annotated[int, typer.Option("--clicks", min=1, help="Clicks on each image.")] = 10,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Processor threads.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for cost.json, which `run rclicks --cost` takes.")
    ] = None,
    offline: Offline = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """What a model costs: time per image and per click, peak memory, parameters and FLOPs, beside the paper's Table 5.

    Parameters and FLOPs are unknown where the model is not a network in torch. On a GPU: --model-arg device=cuda.

    Examples:
      hardlook clicks cost mobile-sam --images 3

      hardlook clicks cost sam --model-arg path=sam_vit_h_4b8939.pth --model-arg device=cuda --size 1024x1024 --out cost
    """
    from hardlook.cli.arguments import build_named_model
    from hardlook.harness.runs.folder import write_atomically
    from hardlook.models.registry import find
    from hardlook.rclicks.click_models import registered_name
    from hardlook.rclicks.cost import ROLES, describe_cost, make_document, measure_cost, parse_size
    from hardlook.threads import pinned_threads

    pixels = parse_size(size)
    name = registered_name(model)
    role = next((role for role in ROLES if role in find(name, ROLES[0]).card.roles), ROLES[0])
    named = build_named_model(name, role, model_arg, "--model-arg")
    with pinned_threads(threads):
        measured = measure_cost(
            named.model, role, size=pixels, images=images, clicks=clicks, threads=threads, seed=seed
        )
    document = make_document(named, measured)
    files = []
    if out is not None:
        write_atomically(out / "cost.json", dump_json(document))
        files = [f"cost: {out / 'cost.json'}"]
    print_output(dump_json(document) if as_json else "\n\n".join([describe_cost(named, measured), *files]))


@app.command("difficulty")
def difficulty(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished `hardlook run rclicks`.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for page.html, difficulty.csv and difficulty.json.")],
    as_json: Json = False,
) -> None:
    """How hard each instance is to click on: the spread of the IoU after one click over its mean, over several models.

    Spread and mean are averaged over the runs first. Instances that not all runs have are left out and counted.

    Example:
      hardlook clicks difficulty runs/mobile-sam runs/grabcut --out difficulty
    """
    from hardlook.rclicks.difficulty import join_runs, read_run, write_difficulty

    if len({run.resolve() for run in runs}) < len(runs):
        raise OptionError("a run is given twice", remedy="give each run once")
    document = write_difficulty(join_runs([read_run(run) for run in runs]), out)
    _print_results(document, [f"table: {out / 'difficulty.csv'}", f"page: {out / 'page.html'}"], as_json)


def build_click_models(models: str, model_arg: list[str] | None) -> dict[str, NamedModel]:
    """The click models by name; one that cannot be built is an error before anything is read."""
    from hardlook.rclicks.click_models import registered_name

    return build_named_models(models, "click-model", model_arg, "--model-arg", registered=registered_name)


def _check_choice(flag: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise OptionError(f"{flag} {value}: there is no such choice", remedy=f"choose one of {', '.join(known)}")


def _print_results(document: Mapping[str, Any], files: list[str], as_json: bool) -> None:
    print_output(dump_json(document) if as_json else "\n\n".join([*document.get("in_words", ()), "\n".join(files)]))
