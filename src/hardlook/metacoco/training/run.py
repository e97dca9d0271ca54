"""`hl.train`: train a few-shot method on a dataset into a folder that `hardlook run metacoco --model` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import ModelError, OptionError
from hardlook.extras import require
from hardlook.fingerprints import hash_sources
from hardlook.harness.runs.progress import follow_steps, open_progress
from hardlook.metacoco.training.data import DataOptions, prepare_data
from hardlook.models.identity import sources_of
from hardlook.models.registry import check_device
from hardlook.report.training import Training, write_training

if TYPE_CHECKING:
    from torch import Tensor

    from hardlook.training.recipes import Recipe

DEFAULT_BACKBONE = "conv64f"


def train(
    method: str,
    *,
    data: str | Path | Mapping[str, str | Path],
    out: str | Path,
    backbone: str = DEFAULT_BACKBONE,
    budget: str = "",
    recipe: Mapping[str, Any] | None = None,
    train_contexts: Sequence[str] = (),
    split_rule: str | None = None,
    image_size: int = 84,
    seed: int = 0,
    start: str | Path | None = None,
    device: str = "cpu",
    devices: int = 1,
    strategy: str = "auto",
    precision: str = "float32",
    threads: int = 1,
    validations: int = 20,
    validation_tasks: int = 200,
    near_duplicates: str = "keep",
    skip_corrupt: bool = False,
    progress: bool = True,
    report: bool = True,
) -> Training:
    """Train a few-shot method, or resume its training in the folder `out`.

    Args:
        method: A name; `hardlook models --role few-shot-learner` lists those that can be trained.
        data: A folder split/concept/context/image or a manifest, as of `hl.run("metacoco", ...)`.
        out: The folder of the checkpoint. A training that was stopped resumes, with the same numbers on a processor.
        backbone: A name, such as conv64f or resnet12.
        budget: Such as `10min` or `300000images`, shared by the stages; empty trains as long as the recipe says.
        recipe: Changes to the recipe, such as `{"lr": 0.01, "classes.epochs": 10, "option.NAME": 1}`.
        train_contexts: Train and validate on images in these contexts only.
        split_rule: How to split concepts without splits: `size`, `seed` or a CSV file of concept,split.
        image_size: Pixels of the network's input.
        seed: Seed of weights, tasks, order and augmentations.
        start: A checkpoint folder or a weights file whose backbone the training starts from.
        device: `cpu`, `cuda` or `cuda:NUMBER`.
        devices: Processes, each on a device of its own.
        strategy: Fabric's strategy for several of them; `auto` is ddp.
        precision: `float32`, `tf32`, `bfloat16` or `float16`.
        threads: Of torch, on a processor; the weights depend on their number.
        validations: How many times the method is validated, evenly over the training.
        validation_tasks: Tasks of each mode.
        near_duplicates: `keep`, `drop` or `refuse` images that show the same picture as others.
        skip_corrupt: Leave out images that cannot be read.
        progress: Whether to show a progress bar.
        report: Whether to write `training.html`, the page with the curves.
    """
    require("torch", extra="torch")
    from hardlook.networks.few_shot.catalogue import find_method
    from hardlook.training.few_shot import train_few_shot
    from hardlook.training.launch import find_folder, launch_training, open_training
    from hardlook.training.recipes import change_recipe, find_recipe, parse_budget

    check_device("the training", device)
    counts = {"devices": devices, "threads": threads, "validations": validations, "validation_tasks": validation_tasks}
    counts["image_size"] = image_size
    for name, least, value in [("seed", 0, seed), *((name, 1, value) for name, value in counts.items())]:
        if value < least:
            raise OptionError(f"{name} {value}", remedy=f"{name} is at least {least}")
    limit = parse_budget(budget)
    chosen = change_recipe(find_recipe(method, backbone, find_method(method).stages), recipe or {})
    opening = open_training(device, devices=devices, strategy=strategy, precision=precision, threads=threads)
    begin = read_start(Path(start).expanduser(), chosen) if start is not None else None
    code = hash_code(method)
    folder = find_folder(out)
    with opening as fabric, open_progress(not progress) as start_bar:
        given = prepare_data(
            DataOptions(
                _find_root(data), split_rule, tuple(train_contexts), near_duplicates, skip_corrupt, validation_tasks
            ),
            chosen,
            size=image_size,
            seed=seed,
            show_progress=start_bar,
        )

        def work(opened: Any) -> None:
            train_few_shot(
                given,
                chosen,
                folder,
                opened,
                seed=seed,
                size=image_size,
                budget=limit,
                precision=precision,
                validations=validations,
                code=code,
                start=begin,
                show_progress=follow_steps(start_bar),
            )

        trained, rank = launch_training(fabric, folder, work)
    done = Training(folder, trained.card, trained.history, rank)
    if report and not rank:
        write_training(done)
    return done


def hash_code(method: str) -> str:
    """A hash of the sources that the weights of a method depend on."""
    from hardlook.networks.few_shot.catalogue import find_method
    from hardlook.training.few_shot import FolderStore

    return hash_sources({*sources_of(find_method(method).load()), *sources_of(FolderStore)})


def read_start(path: Path, recipe: Recipe) -> dict[str, Tensor]:
    """The backbone's tensors of a checkpoint folder or a weights file, checked against the recipe's backbone."""
    from hardlook.networks.backbones import build_backbone
    from hardlook.networks.few_shot.catalogue import find_method
    from hardlook.networks.loading import check_keys, check_types
    from hardlook.training.imported_weights import read_backbone_weights

    backbone = build_backbone(
        recipe.backbone, output=find_method(recipe.method).load().inputs, **recipe.backbone_options
    )
    state = read_backbone_weights(path)
    if differences := check_keys(backbone, state):
        what = f"the weights do not fit the backbone {recipe.backbone}: {differences}"
        raise ModelError(what, file=path, remedy="start from weights of the same backbone")
    check_types(backbone, state, file=path)
    return state


def _find_root(data: str | Path | Mapping[str, str | Path]) -> Path:
    if isinstance(data, Mapping):
        if set(data) != {"root"}:
            raise OptionError(f"--data {', '.join(sorted(data))}: training reads one dataset", remedy="--data root=DIR")
        return Path(data["root"]).expanduser()
    return Path(data).expanduser()
