"""Training one-shot segmentation networks: pairs drawn from labelled images, validation on images held back.

Which pair a number stands for follows from the seed alone. Everything here is arrays and tensors; whoever knows the
dataset gives images, class maps and the classes of a fold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer

from hardlook.errors import DataError
from hardlook.networks.one_shot.catalogue import find_network, has_released_reading
from hardlook.networks.one_shot.network import IGNORED, Features, OneShotNetwork
from hardlook.randomness import generator
from hardlook.training.constructor_options import check_options, naming_options
from hardlook.training.folder import (
    ShowProgress,
    fingerprint_weights,
    fit_to_budget,
    is_finished,
    make_identity,
    train_in_folder,
)
from hardlook.training.frozen_features import FeatureStore, FrozenFeatures
from hardlook.training.images.segmentation_images import (
    LabelledImages,
    Transforms,
    draw_transforms,
    renumber,
    sample_points,
)
from hardlook.training.loop import SingleStageTrainee, Stage, StepLoss, place_marks
from hardlook.training.one_shot_recipes import OneShotRecipe, plan_training
from hardlook.training.optimisers import build_from_groups
from hardlook.training.recipes import Budget, StagePlan

Rows = NDArray[np.int64]
AREA_SIDE = 500  # the longer side for which `least_area` counts pixels
SELECTION = "held-back"
VALIDATED_PAIRS = 8


@dataclass(frozen=True, eq=False)
class OneShotData:
    """Labelled images and the classes of a fold.

    `images` have class maps of numbers from 1. `training` and `novel` are the numbers of the fold's training and test
    classes. `rows` are the images that are trained on, `held` those that are held back for validation.
    """

    images: LabelledImages
    training: tuple[int, ...]
    novel: tuple[int, ...]
    rows: Rows
    held: Rows
    names: Mapping[int, str]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pairs:
    """P pairs: `query` (P,) and `supports` (P, K) are rows of images, `classes` (P,) their common classes."""

    query: Rows
    classes: Rows
    supports: Rows

    def __len__(self) -> int:
        return len(self.query)

    def __getitem__(self, part: slice) -> Pairs:
        return Pairs(self.query[part], self.classes[part], self.supports[part])


class PairSampler:
    """Pairs by number: the same numbers are the same pairs, in any order.

    `areas` (n, C) are pixels of each class number in each of the images `rows`. Classes that fewer than `shots` + 1
    images show are left out; `without` lists them.
    """

    def __init__(
        self, rows: Rows, areas: NDArray[np.int64], sizes: NDArray[np.int64], training: Sequence[int],
        *, drawn_by: str, shots: int, least_area: int = 0, seed: int = 0, key: str = "pairs",
    ) -> None:  # fmt: skip
        self.seed, self.key, self.shots, self.drawn_by = seed, key, shots, drawn_by
        holding = {number: rows[areas[rows, number] > 0] for number in training}
        self.without = tuple(number for number, held in holding.items() if len(held) <= shots)
        self.holding = {number: held for number, held in holding.items() if len(held) > shots}
        if not self.holding:
            what = f"no training class is in {shots + 1} images: one for the query, the others for its supports"
            raise DataError(what, remedy="give more images, or fewer shots")
        scale = (sizes[rows].max(1) / AREA_SIDE) ** 2
        numbers = list(self.holding)
        large = (areas[rows][:, numbers] >= np.maximum(1, least_area * scale)[:, None]).any(1)
        self.queries = rows[large]
        if not len(self.queries):
            what = f"no image has a training class of {least_area} pixels (for a longer side of {AREA_SIDE})"
            raise DataError(what, remedy="give images with larger objects, or --set least_area=0")
        shown = areas[self.queries][:, numbers] > 0
        self.shown = [np.array(numbers)[present] for present in shown]
        self.lines = [
            (row, number) for row, present in zip(self.queries, self.shown, strict=True) for number in present
        ]

    @property
    def per_epoch(self) -> int:
        """How many pairs an epoch has: one per line or per image."""
        return len(self.lines) if self.drawn_by == "lines" else len(self.queries)

    def draw(self, numbers: Rows) -> Pairs:
        """The pairs with these numbers."""
        drawn = [self._draw_one(int(number)) for number in numbers]
        query, classes, supports = zip(*drawn, strict=True)
        return Pairs(np.array(query, np.int64), np.array(classes, np.int64), np.stack(supports))

    def _draw_one(self, number: int) -> tuple[int, int, Rows]:
        rng = generator(self.seed, self.key, number)
        epoch, place = divmod(number, self.per_epoch)
        if self.drawn_by == "lines":
            row, shown = self.lines[self._order(epoch)[place]]
        elif self.drawn_by == "images":
            chosen = self._order(epoch)[place]
            row, shown = int(self.queries[chosen]), int(rng.choice(self.shown[chosen]))
        else:
            shown = int(rng.choice(list(self.holding)))
            row = int(rng.choice(self.holding[shown]))
        others = self.holding[shown][self.holding[shown] != row]
        return int(row), int(shown), rng.choice(others, self.shots, replace=False).astype(np.int64)

    def _order(self, epoch: int) -> Rows:
        return _permute(self.seed, self.key, epoch, self.per_epoch)


@lru_cache(maxsize=8)
def _permute(seed: int, key: str, epoch: int, count: int) -> Rows:
    return generator(seed, f"{key}: order", epoch).permutation(count)


def count_areas(images: LabelledImages) -> NDArray[np.int64]:
    """(n, 256): pixels of each class number in each image."""
    return np.stack([np.bincount(one.cpu().numpy().ravel(), minlength=256) for one in images.classes])


@dataclass(frozen=True)
class _Batch:
    """Pairs or images of one step, each with its augmentation."""

    pairs: Pairs
    transforms: Transforms
    novel: bool = False


class OneShotTrainee(SingleStageTrainee):
    """A one-shot network to the training loop."""

    def __init__(
        self,
        network: OneShotNetwork,
        recipe: OneShotRecipe,
        data: OneShotData,
        *,
        seed: int,
        device: torch.device | str = "cpu",
        validations: int = 10,
        validation_pairs: int = 200,
        budget_images: int = 0,
        store: FeatureStore | None = None,
    ) -> None:
        self.module: nn.Module = network
        self.features = FrozenFeatures(network, store) if recipe.features == "cached" else None
        self.recipe, self.data, self.seed, self.device = recipe, data, seed, torch.device(device)
        stored = data.images
        self.images = LabelledImages(
            stored.images.to(self.device),
            stored.classes.to(self.device),
            stored.sizes,
        )
        self.areas = count_areas(stored)
        common: dict[str, Any] = {"shots": recipe.shots, "seed": seed}
        self.sampler = PairSampler(
            data.rows, self.areas, stored.sizes, data.training,
            drawn_by=recipe.drawn_by, least_area=recipe.least_area, **common,
        )  # fmt: skip
        self.held: Pairs | None = None
        if len(data.held) and validation_pairs:
            try:
                held = PairSampler(
                    data.held, self.areas, stored.sizes, data.training, drawn_by="classes", key="validation", **common
                )
                self.held = held.draw(np.arange(validation_pairs))
            except DataError:
                self.held = None  # too few held back; the folder says that nothing was validated
        self.plans: tuple[StagePlan, ...] = plan_training(recipe, self.sampler.per_epoch, budget_images)
        plan = self.plans[0]
        self.stages: Sequence[Stage] = [Stage(recipe.stage.stage, plan.first, plan.last, recipe.stage.clip)]
        self.marks: Sequence[int] = place_marks(plan.last, validations)
        self._points: dict[tuple[int, int], NDArray[np.float64]] = {}
        self._order = {number: place + 1 for place, number in enumerate(data.training)}

    def start_stage(self, stage: Stage) -> Optimizer:
        """The optimiser of the groups that the network names."""
        self.module.to(self.device)
        network: Any = self.module
        return build_from_groups(network.list_groups(), self.recipe.stage)

    def draw_batches(self, first: int, last: int, rank: int, world: int) -> Iterator[Sequence[_Batch]]:
        """The pairs of each step with their augmentations, the share of this process."""
        own = self.recipe.stage
        if own.batch % (world * own.accumulate):
            what = f"a step of {own.batch} cannot be shared by {world} processes in {own.accumulate} parts"
            raise DataError(what, remedy="change batch or accumulate with --set")
        share = own.batch // world
        size = share // own.accumulate
        for step in range(first, last):
            pairs = self.sampler.draw(np.arange(step * own.batch, (step + 1) * own.batch))
            rng = generator(self.seed, "augmentation", step)
            rows = np.concatenate([pairs.query[:, None], pairs.supports], axis=1)
            classes = np.repeat(pairs.classes[:, None], rows.shape[1], axis=1)
            transforms = self._draw_transforms(rng, rows.ravel(), classes.ravel())
            shots = rows.shape[1]
            starts = range(rank * share, (rank + 1) * share, size)
            yield [
                _Batch(
                    pairs[start : start + size],
                    Transforms(
                        transforms.matrices[start * shots : (start + size) * shots],
                        transforms.blurred[start * shots : (start + size) * shots],
                    ),
                )
                for start in starts
            ]

    def _draw_transforms(self, rng: np.random.Generator, rows: Rows, classes: Rows) -> Transforms:
        recipe, sizes = self.recipe, self.images.sizes[rows]
        points = None
        if recipe.augment == "crop":
            points = [self._find_points(int(row), int(number)) for row, number in zip(rows, classes, strict=True)]
        return draw_transforms(rng, recipe.augment, sizes, recipe.size, recipe.fit, objects=points)

    def _find_points(self, row: int, number: int) -> NDArray[np.float64]:
        if (row, number) not in self._points:
            mask = (self.data.images.classes[row] == number).cpu().numpy()
            self._points[row, number] = sample_points(mask)
        return self._points[row, number]

    def take_pairs(self, pairs: Pairs, transforms: Transforms) -> tuple[Tensor, Tensor]:
        """Images (P, 1 + K, 3, S, S), scaled, and masks (P, 1 + K, S, S): queries first, then their supports."""
        rows = np.concatenate([pairs.query[:, None], pairs.supports], axis=1)
        network: Any = self.module
        images, maps = self.images.take(rows.ravel(), transforms, self.recipe.size, outside=self._choose_colour())
        mean, std = (images.new_tensor(value).view(3, 1, 1) for value in (network.mean, network.std))
        images = (images / 255 - mean) / std
        wanted = torch.from_numpy(np.repeat(pairs.classes, rows.shape[1])).to(self.device)[:, None, None]
        maps = self._clean(maps)
        masks = torch.where(maps == IGNORED, maps, (maps == wanted).to(torch.uint8))
        shape = rows.shape
        return images.view(*shape, *images.shape[1:]), masks.view(*shape, *masks.shape[1:])

    def _choose_colour(self) -> list[float]:
        """Of what lies outside of an image: the mean around a crop, black in a letterbox, as in the evaluation."""
        network: Any = self.module
        return [255 * value for value in network.mean] if self.recipe.augment == "crop" else [0.0] * 3

    def _clean(self, maps: Tensor) -> Tensor:
        """Class maps in which void and test classes are background or ignored, as the recipe says."""
        if self.recipe.void == "background":
            maps = renumber(maps, {IGNORED: 0})
        return renumber(maps, dict.fromkeys(self.data.novel, IGNORED if self.recipe.novel == "ignored" else 0))

    def compute_loss(self, call: Any, batch: _Batch) -> StepLoss:
        """The network's loss of pairs, or of the queries as labelled images; and the IoU of its predictions."""
        if self.recipe.stage.stage == "classes":
            return self._compute_class_loss(call, batch)
        images, masks = self.take_pairs(batch.pairs, batch.transforms)
        if self.features is None:
            loss, logits = call("loss", images[:, 0], masks[:, 0], images[:, 1:], masks[:, 1:])
        else:
            query, supports = self._take_features(self.features, batch.pairs, images)
            loss, logits = call("compute_feature_loss", query, masks[:, 0], supports, masks[:, 1:])
        found = logits.detach().argmax(1)
        valid = masks[:, 0] != IGNORED
        common = ((found == 1) & (masks[:, 0] == 1) & valid).sum((1, 2))
        either = (((found == 1) | (masks[:, 0] == 1)) & valid).sum((1, 2))
        iou = (common / either.clamp(min=1)).sum()
        count = len(batch.pairs)
        return StepLoss(loss, count, {"loss": loss.detach() * count, "iou": iou})

    @staticmethod
    def _take_features(kept: FrozenFeatures, pairs: Pairs, images: Tensor) -> tuple[Features, Features]:
        """Of P queries and of their P * K supports."""
        supports = kept.take(pairs.supports.ravel(), images[:, 1:].flatten(0, 1))
        return kept.take(pairs.query, images[:, 0]), supports

    def _compute_class_loss(self, call: Any, batch: _Batch) -> StepLoss:
        network: Any = self.module
        shots = 1 + batch.pairs.supports.shape[1]
        own = Transforms(batch.transforms.matrices[::shots], batch.transforms.blurred[::shots])
        images, maps = self.images.take(batch.pairs.query, own, self.recipe.size, outside=self._choose_colour())
        mean, std = (images.new_tensor(value).view(3, 1, 1) for value in (network.mean, network.std))
        images, labels = (images / 255 - mean) / std, renumber(self._clean(maps), self._order)
        if self.features is None:
            loss, logits = call("class_loss", images, labels)
        else:
            loss, logits = call("compute_feature_class_loss", self.features.take(batch.pairs.query, images), labels)
        valid = labels != IGNORED
        right = ((logits.detach().argmax(1) == labels) & valid).sum((1, 2)) / valid.sum((1, 2)).clamp(min=1)
        count = len(batch.pairs)
        return StepLoss(loss, count, {"loss": loss.detach() * count, "pixel_accuracy": right.sum()})

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Mean IoU over the training classes on pairs of images that are held back; none where there are none."""
        if self.held is None:
            return {}
        module.eval()
        common, either = np.zeros(256), np.zeros(256)
        network: Any = module
        size = self.recipe.size
        with torch.no_grad():
            for start in range(0, len(self.held), VALIDATED_PAIRS):
                part = self.held[start : start + VALIDATED_PAIRS]
                rows = np.concatenate([part.query[:, None], part.supports], axis=1)
                whole = draw_transforms(
                    np.random.default_rng(0), "none", self.images.sizes[rows.ravel()], size, self.recipe.fit
                )
                images, masks = self.take_pairs(part, whole)
                if self.features is None:
                    logits = network(images[:, 0], images[:, 1:], masks[:, 1:])
                else:
                    query, supports = self._take_features(self.features, part, images)
                    logits = network.match_features(query, supports, masks[:, 1:], (size, size))
                found = logits.argmax(1)
                valid = masks[:, 0] != IGNORED
                inside = ((found == 1) & (masks[:, 0] == 1) & valid).sum((1, 2)).cpu().numpy()
                union = (((found == 1) | (masks[:, 0] == 1)) & valid).sum((1, 2)).cpu().numpy()
                np.add.at(common, part.classes, inside)
                np.add.at(either, part.classes, union)
        shown = either > 0
        return {SELECTION: float((common[shown] / either[shown]).mean())} if shown.any() else {}

    def select(self, validation: Mapping[str, float]) -> Mapping[str, float]:
        """By the mean IoU on images that are held back."""
        return validation


def build_one_shot(recipe: OneShotRecipe, *, classes: int, seed: int) -> OneShotNetwork:
    """The network of a recipe with random weights, equal for equal seeds, for so many training classes."""
    kind = find_network(recipe.network).load()
    options: dict[str, Any] = dict(recipe.options)
    if "classes" in kind.stages:
        options.setdefault("classes", classes + 1)
    if recipe.reading == "released" and has_released_reading(kind):
        options.setdefault("released", True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(generator(seed, "one-shot weights").integers(2**62)))
        with naming_options(f"{recipe.network} on {recipe.backbone}", recipe.options):
            check_options(kind, recipe.options)
            return kind.build(recipe.backbone, **options)


def train_one_shot(
    data: OneShotData,
    recipe: OneShotRecipe,
    folder: Path,
    fabric: Any,
    *,
    seed: int = 0,
    budget: Budget | None = None,
    precision: str = "float32",
    validations: int = 10,
    validation_pairs: int = 200,
    code: str = "",
    save_seconds: float | None = 30.0,
    start: Mapping[str, Tensor] | None = None,
    store: FeatureStore | None = None,
    show_progress: ShowProgress | None = None,
) -> None:
    """Train a network, or resume its training in `folder`; a finished one stays as it is.

    `start` are weights of its backbone to begin with, `store` keeps features that are `cached` for other trainings.
    `show_progress(total, done, images)` is called with steps.
    """
    budget = budget or Budget()
    folder.mkdir(parents=True, exist_ok=True)
    further = {
        "validation pairs": validation_pairs,
        "classes": [data.names[number] for number in data.training],
        "started from": fingerprint_weights(start),
    }
    identity = make_identity(
        recipe.to_json(), fabric, seed=seed, budget=budget, precision=precision, validations=validations,
        data=data.facts, further=further,
    )  # fmt: skip
    if is_finished(folder, identity):
        return
    network = build_one_shot(recipe, classes=len(data.training), seed=seed)
    if start is not None:
        network.load_backbone(start)

    def make(module: OneShotNetwork, images: int) -> OneShotTrainee:
        return OneShotTrainee(
            module, recipe, data, seed=seed, device=fabric.device, validations=validations,
            validation_pairs=validation_pairs, budget_images=images, store=store,
        )  # fmt: skip

    trainee = fit_to_budget(network, make, folder, budget, fabric, validations, identity=identity, precision=precision)
    card = {
        "kind": "one-shot",
        "method": recipe.network,
        "backbone": recipe.backbone,
        "image_size": recipe.size,
        "identity": identity,
        "code": code,
        "validation_rule": "its own",
        "score": "mean IoU",
        "classes_without_pairs": [data.names[number] for number in trainee.sampler.without],
    }
    train_in_folder(
        trainee,
        folder,
        fabric,
        card,
        selections=[SELECTION] if trainee.held is not None else [],
        precision=precision,
        save_seconds=save_seconds,
        show_progress=show_progress,
    )
