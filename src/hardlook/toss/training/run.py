"""Train a one-shot segmentation network on a fold, or one on each fold, into folders that `hardlook run toss` takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hardlook.data.untrained_images import check_held_back
from hardlook.errors import DataError, ModelError
from hardlook.extras import require
from hardlook.fingerprints import hash_sources
from hardlook.harness.runs.progress import follow_steps, open_progress
from hardlook.models.feature_cache import FeatureFiles, default_cache_folder
from hardlook.models.identity import sources_of
from hardlook.models.one_shot.network_segmenter import STORED
from hardlook.models.registry import check_device
from hardlook.report.training import Training, write_training
from hardlook.toss.training.data import ALL, OneShotDataOptions, prepare_data

if TYPE_CHECKING:
    from torch import Tensor

    from hardlook.training.one_shot_recipes import OneShotRecipe

IMAGENET, NOTHING = "imagenet", "none"


def train(
    network: str,
    *,
    data: Mapping[str, str | Path],
    out: str | Path,
    fold: int | None = None,
    folds: int = 4,
    split: str | None = None,
    labels: str | Path | None = None,
    selection: str = ALL,
    exclude: str | Path | None = None,
    saliency: str = "u2netp",
    backbone: str = "resnet50-keras",
    reading: str = "paper",
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
    validation_pairs: int = 200,
    progress: bool = True,
    report: bool = True,
) -> Training | list[Training]:
    """Train a one-shot network on the training classes of a fold; without `fold`, one on each fold.

    Args:
        network: A name; `hardlook models --role one-shot-segmenter` lists those that can be trained.
        data: Labelled images, such as `{"voc": "VOC2012"}` or `{"coco": ...}`, as of `hl.run("toss", ...)`.
        out: The folder of the checkpoint; of all folds, one folder `fold0`, `fold1`, ... in it per fold. A training
            that was stopped resumes.
        fold: The fold whose classes are tested and not trained, from 0.
        folds: How many folds there are.
        split: A list of a VOC devkit, such as `train`.
        labels: A file of class names, where the data do not say them.
        selection: `all`, `leave-out`, `sgtss`, or a list of `hardlook bias select`.
        exclude: Images that do not train: a list of ids, or a folder of images such as that of the test set.
        saliency: The saliency model of `sgtss`.
        backbone: A name, such as resnet50-keras, resnet50 or vgg16.
        reading: `paper`, or `released` for what the network's released code does.
        budget: Such as `10min` or `20000images`; empty trains as long as the recipe says.
        recipe: Changes to the recipe, such as `{"lr": 0.01, "size": 321}`.
        held_back: The share of images that do not train and choose the weights.
        seed: Seed of weights, pairs and augmentations.
        start: `imagenet` (installed weights of the backbone), a weights file, or `none` for random weights.
        device: `cpu`, `cuda` or `cuda:NUMBER`.
        devices: Processes, each on a device of its own.
        strategy: Fabric's strategy for several of them; `auto` is ddp.
        precision: `float32`, `tf32`, `bfloat16` or `float16`.
        threads: Of torch, on a processor; the weights depend on their number.
        validations: How many times the network is validated, evenly over the training.
        validation_pairs: Pairs of each validation.
        progress: Whether to show a progress bar.
        report: Whether to write `training.html`, the page with the curves.
    """
    require("torch", extra="torch")
    from hardlook.networks.one_shot.catalogue import find_network
    from hardlook.training.launch import find_folder
    from hardlook.training.one_shot_recipes import change_one_shot_recipe, find_one_shot_recipe

    check_device("the training", device)
    find_network(network)
    check_held_back(held_back)
    chosen = change_one_shot_recipe(find_one_shot_recipe(network, backbone, reading=reading), recipe or {})
    begin = read_start(start, chosen)
    numbers = [fold] if fold is not None else list(range(folds))
    finished = []
    for number in numbers:
        folder = find_folder(out) / (f"fold{number}" if fold is None else "")
        options = OneShotDataOptions(
            {key: Path(value).expanduser() for key, value in data.items()},
            number,
            folds,
            split,
            Path(labels).expanduser() if labels is not None else None,
            selection,
            Path(exclude).expanduser() if exclude is not None else None,
            saliency,
            held_back,
        )
        settings: dict[str, Any] = {
            "device": device, "devices": devices, "strategy": strategy, "precision": precision, "threads": threads,
            "validations": validations, "validation_pairs": validation_pairs, "progress": progress, "budget": budget,
        }  # fmt: skip
        done = _train_fold(options, chosen, folder, seed=seed, begin=begin, **settings)
        if report and not done.rank:
            write_training(done)
        finished.append(done)
    return finished[0] if fold is not None else finished


def _train_fold(
    options: OneShotDataOptions,
    recipe: OneShotRecipe,
    folder: Path,
    *,
    seed: int,
    begin: Mapping[str, Tensor] | None,
    device: str,
    devices: int,
    strategy: str,
    precision: str,
    threads: int,
    validations: int,
    validation_pairs: int,
    progress: bool,
    budget: str,
) -> Training:
    from hardlook.training.launch import launch_training, open_training
    from hardlook.training.one_shot import train_one_shot
    from hardlook.training.recipes import parse_budget

    opening = open_training(device, devices=devices, strategy=strategy, precision=precision, threads=threads)
    with opening as fabric, open_progress(not progress) as start_bar:
        given = prepare_data(options, recipe, start_bar)

        def work(opened: Any) -> None:
            train_one_shot(
                given,
                recipe,
                folder,
                opened,
                seed=seed,
                budget=parse_budget(budget),
                precision=precision,
                validations=validations,
                validation_pairs=validation_pairs,
                code=hash_code(recipe.network),
                start=begin,
                store=FeatureFiles(default_cache_folder(), STORED),
                show_progress=follow_steps(start_bar),
            )

        trained, rank = launch_training(fabric, folder, work)
    return Training(folder, trained.card, trained.history, rank)


def hash_code(network: str) -> str:
    """A hash of the sources that the weights of a network depend on."""
    from hardlook.networks.one_shot.catalogue import find_network
    from hardlook.training.one_shot import OneShotTrainee

    return hash_sources({*sources_of(find_network(network).load()), *sources_of(OneShotTrainee)})


def read_start(start: str | Path, recipe: OneShotRecipe) -> dict[str, Tensor] | None:
    """The backbone's tensors that a training begins with, in the order of its layers; None for random ones."""
    if str(start) == NOTHING:
        return None
    from hardlook.networks.one_shot.backbones import build_backbone

    path = Path(start).expanduser()
    if str(start) == IMAGENET:
        from hardlook.models.weights.resnet50_keras import read_resnet50

        if recipe.backbone != "resnet50-keras":
            what = f"no weights of {recipe.backbone} can be installed"
            remedy = "give a file of ImageNet weights with --start, or --start none for random ones"
            raise ModelError(what, remedy=remedy)
        state = read_resnet50()
    else:
        from hardlook.training.imported_weights import read_backbone_weights

        if not path.exists():
            raise DataError("there are no weights here", file=path, remedy="a weights file, imagenet, or none")
        state = read_backbone_weights(path)
    deep = any(name.startswith("layer0.") for name in state)
    variant: Literal["deep-stem", "plain"] = "deep-stem" if deep else "plain"
    wanted = build_backbone(recipe.backbone, variant).state_dict()
    ordered = {name: state[name] for name in wanted if name in state}
    if not ordered:
        what = f"none of the {len(state)} tensors is one of {recipe.backbone}"
        raise ModelError(what, file=path, remedy="give weights of the backbone that the network is built on")
    return ordered
