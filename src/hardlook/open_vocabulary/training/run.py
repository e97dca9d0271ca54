"""Train a semantic projection into a folder that `hardlook run open-miou` takes, with any words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hardlook.data.untrained_images import check_held_back
from hardlook.data.voc import open_devkit
from hardlook.errors import OptionError
from hardlook.extras import require
from hardlook.fingerprints import hash_sources
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.progress import follow_steps, open_progress
from hardlook.models.identity import sources_of
from hardlook.models.registry import check_device
from hardlook.open_vocabulary.training.data import ProjectionDataOptions, choose_unseen, prepare_data
from hardlook.report.training import Training, write_training

METHOD = "semantic-projection"
DATA = "voc"
IMAGES = "images.csv"
"""The file of the folder that says which images trained and which validated."""


def train(
    method: str,
    *,
    data: Mapping[str, str | Path],
    out: str | Path,
    fold: int | None = None,
    folds: int = 4,
    unseen: Sequence[str] = (),
    split: str = "train",
    labels: str | Path | None = None,
    exclude: str | Path | None = None,
    backbone: str = "efficientnet-lite0",
    text: str = "glove",
    budget: str = "",
    recipe: Mapping[str, Any] | None = None,
    held_back: float = 0.1,
    seed: int = 0,
    device: str = "cpu",
    devices: int = 1,
    strategy: str = "auto",
    precision: str = "float32",
    threads: int = 1,
    validations: int = 10,
    progress: bool = True,
    report: bool = True,
) -> Training:
    """Train a projection of pixel features into a space of word vectors.

    Args:
        method: `semantic-projection`.
        data: `{"voc": DIR}`, a devkit in VOC's layout.
        out: The folder of the checkpoint; a training that was stopped resumes.
        fold: The fold whose classes do not train, from 0, as in PASCAL-5i; without it all classes train.
        folds: How many folds there are.
        unseen: Classes that do not train, by name, in place of a fold.
        split: The devkit's list of images.
        labels: A file or label set with the words of the classes, where their names are not the words.
        exclude: Images that do not train: a list of ids, or a folder of images such as that of the test set; copies of
            its pictures under other names do not train either.
        backbone: An encoder with maps; `hardlook models --role encoder` lists them. It stays as it is.
        text: A text encoder, in whose space words and pixels meet: `glove`, `minilm`, or another of the registry.
        budget: Such as `2min` or `20000images`; empty trains as long as the recipe says.
        recipe: Changes to the recipe, such as `{"lr": 0.01, "hidden": 256, "encoder.size": 224}`.
        held_back: The share of images that do not train and choose the weights.
        seed: Seed of weights, order and cells.
        device: `cpu`, `cuda` or `cuda:NUMBER`.
        devices: Processes, each on a device of its own.
        strategy: Fabric's strategy for several of them; `auto` is ddp.
        precision: `float32`, `tf32`, `bfloat16` or `float16`.
        threads: Of torch, on a processor; the weights depend on their number.
        validations: How many times the projection is validated, evenly over the training.
        progress: Whether to show a progress bar.
        report: Whether to write `training.html`, the page with the curves.
    """
    require("torch", extra="torch")
    from hardlook.training.launch import find_folder, launch_training, open_training
    from hardlook.training.projection.recipes import change_projection_recipe, find_projection_recipe
    from hardlook.training.projection.trainee import train_projection
    from hardlook.training.recipes import parse_budget

    check_device("the training", device)
    if method != METHOD:
        raise OptionError(f"there is no projection {method!r}", remedy=METHOD)
    if set(data) != {DATA}:
        raise OptionError(f"--data {', '.join(data)}: not the data of a projection", remedy="--data voc=DIR")
    check_held_back(held_back)
    chosen = change_projection_recipe(find_projection_recipe(backbone, text), recipe or {})
    devkit, folder = open_devkit(Path(data[DATA]).expanduser()), find_folder(out)
    options = ProjectionDataOptions(
        devkit.root,
        split,
        choose_unseen(devkit.classes, fold, folds, unseen),
        str(labels) if labels is not None else None,
        Path(exclude).expanduser() if exclude is not None else None,
        held_back,
    )
    opening = open_training(device, devices=devices, strategy=strategy, precision=precision, threads=threads)
    with opening as fabric, open_progress(not progress) as start_bar:
        given = prepare_data(options, chosen, device, start_bar)

        def work(opened: Any) -> None:
            train_projection(
                given,
                chosen,
                folder,
                opened,
                seed=seed,
                budget=parse_budget(budget),
                precision=precision,
                validations=validations,
                code=hash_code(),
                show_progress=follow_steps(start_bar),
            )

        trained, rank = launch_training(fabric, folder, work)
    done = Training(folder, trained.card, trained.history, rank)
    if not rank:
        held = set(given.held.tolist())
        lines = [f"{one},{'validates' if place in held else 'trains'}" for place, one in enumerate(given.images)]
        write_atomically(folder / IMAGES, "\n".join(["image,use", *lines, ""]))
        if report:
            write_training(done)
    return done


def hash_code() -> str:
    """A hash of the sources that the weights depend on."""
    from hardlook.networks.open_vocabulary.projection import SemanticProjection
    from hardlook.training.projection.trainee import ProjectionTrainee

    return hash_sources({*sources_of(SemanticProjection), *sources_of(ProjectionTrainee)})
