"""Train an interactive network into a folder that `hardlook run rclicks --model` takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.data.untrained_images import check_held_back
from hardlook.errors import DataError, ModelError
from hardlook.extras import require
from hardlook.fingerprints import hash_sources
from hardlook.harness.runs.progress import follow_steps, open_progress
from hardlook.models.identity import sources_of
from hardlook.models.registry import check_device
from hardlook.rclicks.network_training.clicking import TrainingClicks
from hardlook.rclicks.network_training.data import ObjectDataOptions, prepare_objects
from hardlook.report.training import Training, write_training

if TYPE_CHECKING:
    from torch import Tensor

    from hardlook.training.interactive.recipes import InteractiveRecipe

IMAGENET, NOTHING = "imagenet", "none"
KERAS = "resnet50-keras"


def train(
    network: str,
    *,
    data: Mapping[str, str | Path],
    out: str | Path,
    clicks: str = "distance",
    clicks_args: str = "",
    click_group: int = 0,
    split: str | None = None,
    exclude: str | Path | None = None,
    backbone: str = KERAS,
    budget: str = "",
    recipe: Mapping[str, Any] | None = None,
    held_back: float = 0.1,
    seed: int = 0,
    start: str | Path = IMAGENET,
    device: str = "cpu",
    devices: int = 1,
    strategy: str = "auto",
    precision: str = "float32",
    threads: int = 1,
    validations: int = 10,
    validation_objects: int = 100,
    progress: bool = True,
    report: bool = True,
) -> Training:
    """Train an interactive network on objects that are clicked, or resume its training.

    Args:
        network: `ritm`.
        data: Images with objects, as of `hl.run("rclicks", ...)`; a VOC devkit without object masks gives the connected
            parts of its class masks.
        out: The folder of the checkpoint. A training that was stopped resumes.
        clicks: Where clicks land: `centre`, `uniform`, `distance`, `clickability` or another click model.
        clicks_args: The click model's arguments, such as `path=click.safetensors`.
        click_group: Draw clicks of one clicking group, 1 (the least probable) to 10; 0 draws from all.
        split: A list of a VOC devkit, such as `train`.
        exclude: Images that do not train: a list of ids, or a folder of images such as that of the test set, whose
            copies do not train either.
        backbone: resnet50-keras, or RITM's own hrnet18s, hrnet18 or hrnet32.
        budget: Such as `10min` or `20000images`; every object that is shown is an image. Empty: the recipe's epochs.
        recipe: Changes to the recipe, such as `{"lr": 0.001, "size": 128}`.
        held_back: The share of images that do not train and choose the weights.
        seed: Seed of weights, crops and clicks.
        start: `imagenet` (installed weights of resnet50-keras), a file of weights of the backbone or of the whole
            network, or `none` for random weights.
        device: `cpu`, `cuda` or `cuda:NUMBER`.
        devices: Processes, each on a device of its own.
        strategy: Fabric's strategy for several of them; `auto` is ddp.
        precision: `float32`, `tf32`, `bfloat16` or `float16`.
        threads: Of torch, on a processor; the weights depend on their number.
        validations: How many times the network is validated, evenly over the training.
        validation_objects: At most so many objects in each validation.
        progress: Whether to show a progress bar.
        report: Whether to write `training.html`, the page with the curves.
    """
    require("torch", extra="torch")
    from hardlook.training.interactive.recipes import change_interactive_recipe, find_interactive_recipe
    from hardlook.training.interactive.trainee import train_interactive
    from hardlook.training.launch import find_folder, launch_training, open_training
    from hardlook.training.recipes import parse_budget

    check_device("the training", device)
    check_held_back(held_back)
    changes = dict(recipe or {})
    if str(start) == NOTHING:
        # What was never trained is trained at the full rate, and has no statistics to keep.
        changes.setdefault("backbone_rate", 1.0)
        if backbone == KERAS:
            changes.setdefault("option.frozen_norm", "no")
    chosen = change_interactive_recipe(find_interactive_recipe(network, backbone), changes)
    begin = read_start(start, chosen)
    clicker = TrainingClicks(clicks, clicks_args, group=click_group, seed=seed)
    folder, given_budget = find_folder(out), parse_budget(budget)
    opening = open_training(device, devices=devices, strategy=strategy, precision=precision, threads=threads)
    options = ObjectDataOptions(
        {key: Path(value).expanduser() for key, value in data.items()},
        split,
        Path(exclude).expanduser() if exclude is not None else None,
        held_back,
    )
    with opening as fabric, open_progress(not progress) as start_bar:
        given = prepare_objects(options, chosen, start_bar)

        def work(opened: Any) -> None:
            train_interactive(
                given,
                chosen,
                clicker,
                folder,
                opened,
                clicks=clicker.describe(),
                seed=seed,
                budget=given_budget,
                precision=precision,
                validations=validations,
                validation_objects=validation_objects,
                code=hash_code(chosen),
                start=begin,
                show_progress=follow_steps(start_bar),
            )

        trained, rank = launch_training(fabric, folder, work)
    done = Training(folder, trained.card, trained.history, rank)
    if report and not rank:
        write_training(done)
    return done


def hash_code(recipe: InteractiveRecipe) -> str:
    """A hash of the sources that the weights depend on."""
    from hardlook.networks.interactive.ritm import RITM
    from hardlook.networks.interactive.ritm_deeplab import RITMDeepLab
    from hardlook.training.interactive.trainee import InteractiveTrainee

    network = RITMDeepLab if recipe.backbone == KERAS else RITM
    return hash_sources({*sources_of(network), *sources_of(InteractiveTrainee), *sources_of(TrainingClicks)})


def read_start(start: str | Path, recipe: InteractiveRecipe) -> dict[str, Tensor] | None:
    """The tensors that a training begins with; None for random ones."""
    if str(start) == NOTHING:
        return None
    if str(start) == IMAGENET:
        from hardlook.models.weights.resnet50_keras import read_resnet50

        if recipe.backbone != KERAS:
            what = f"no weights of {recipe.backbone} can be installed"
            remedy = "give a file of weights, of the backbone or of RITM, with --start; or --start none"
            raise ModelError(what, remedy=remedy)
        return read_resnet50()
    path = Path(start).expanduser()
    if not path.exists():
        raise DataError("there are no weights here", file=path, remedy="a weights file, imagenet, or none")
    from hardlook.training.checkpoint import is_checkpoint, read_weights

    if is_checkpoint(path):
        return read_weights(path)
    from hardlook.networks.interactive.checkpoints import read_checkpoint

    return dict(read_checkpoint(path).state)
