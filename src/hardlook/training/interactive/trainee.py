"""Training interactive segmentation networks: objects are clicked, the network's errors are clicked, and so on.

A step shows a network some objects. All are clicked equally often, by a `Clicker` that sees the errors of the network
as it is; the answer to the last click is differentiated. Which objects, crops and clicks a step has follows from the
seed and, where errors are clicked, from the weights. Everything here is arrays and tensors; whoever knows the dataset
gives images and maps of objects, and whoever knows people says where they click.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.networks.interactive.click_maps import Click, pack_clicks
from hardlook.networks.interactive.ritm import RITM
from hardlook.networks.interactive.ritm import SIZES as HRNETS
from hardlook.networks.interactive.ritm_deeplab import RITMDeepLab
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
from hardlook.training.images.segmentation_images import IGNORED, LabelledImages, Transforms, sample_points
from hardlook.training.interactive.crops import Objects, change_colours, draw_colours, draw_object_crops, fit_objects
from hardlook.training.interactive.losses import compute_interactive_loss
from hardlook.training.interactive.recipes import InteractiveRecipe
from hardlook.training.loop import Calls, SingleStageTrainee, Stage, StepLoss, place_marks
from hardlook.training.optimisers import build_from_groups
from hardlook.training.recipes import Budget, StagePlan, plan_stage

Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]
Session = Generator[list[Click], Mask, None]
SELECTION = "held-back"
THRESHOLD = 0.49
VALIDATED_OBJECTS = 16  # at a time
KERAS = "resnet50-keras"
FAST_PARTS = ("maps_transform.", "feature_extractor.conv3x3_ocr.", "feature_extractor.ocr_distri_head.")
"""Parts of RITM's network that are trained at the full rate, as published; the others are its backbone."""

KERAS_BACKBONE = "feature_extractor.backbone."


class Clicker(Protocol):
    """Who clicks."""

    def begin(self, key: str, image: NDArray[np.uint8], target: Mask, ignore: Mask, clicks: int) -> Session:
        """Yield all clicks (row, column, positive) so far, from the first on, and be sent the mask that they gave.

        The object is `target` (H, W) in `image` (H, W, 3), without the pixels of `ignore`. `key` is that of what is
        drawn at random. It ends after `clicks` clicks, or where nothing is left to click.
        """


@dataclass(frozen=True, eq=False)
class InteractiveData:
    """Images with maps of their objects, and the objects that train and that are held back for validation.

    `images` have maps of numbers from 1, 0 for no object and 255 for no label; `training` and `held` (n, 2) are rows
    of images and numbers of objects. `names` are of the images.
    """

    images: LabelledImages
    training: Rows
    held: Rows
    names: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Batch:
    """Objects (n, 2) of one step, their squares and colours, how often they are clicked; `numbers` (n,) key clicks."""

    objects: Rows
    numbers: Rows
    transforms: Transforms
    colours: NDArray[np.float32]
    clicks: int


@dataclass(frozen=True, eq=False)
class Shown:
    """Objects in squares: images (n, 3, S, S) in 0..1, targets and valid pixels (n, S, S) bool."""

    images: Tensor
    targets: Tensor
    valid: Tensor


def build_interactive(recipe: InteractiveRecipe, *, seed: int) -> nn.Module:
    """The network of a recipe with random weights, equal for equal seeds."""
    options: dict[str, Any] = dict(recipe.options)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(generator(seed, "interactive weights").integers(2**62)))
        with naming_options(f"{recipe.network} on {recipe.backbone}", options):
            if recipe.backbone == KERAS:
                check_options(RITMDeepLab, options)
                return RITMDeepLab(**options)
            if recipe.backbone in HRNETS:
                check_options(RITM, options)
                return RITM.build(recipe.backbone, **options)
    raise OptionError(f"no backbone {recipe.backbone!r}", remedy=f"one of {', '.join((*HRNETS, KERAS))}")


def load_start(network: nn.Module, state: Mapping[str, Tensor]) -> int:
    """Copy weights to begin with into a network, its own or its backbone's; how many tensors were taken."""
    own = network.state_dict()
    prefixes = ("", "feature_extractor.", KERAS_BACKBONE)
    taken: dict[str, Tensor] = {}
    for prefix in prefixes:
        found = {f"{prefix}{name}": value for name, value in state.items()}
        fitting = {name: one for name, one in found.items() if name in own and own[name].shape == one.shape}
        taken = max(taken, fitting, key=len)
    if not taken:
        what = f"none of the {len(state)} tensors is one of the network"
        raise ModelError(what, remedy="give weights of this network or of its backbone, or --start none")
    network.load_state_dict({**own, **taken})
    return len(taken)


def group_parameters(network: nn.Module, recipe: InteractiveRecipe) -> list[tuple[list[nn.Parameter], float]]:
    """The parameters of the backbone, with their factor of the rate, and all others."""

    def is_backbone(name: str) -> bool:
        if recipe.backbone == KERAS:
            return name.startswith(KERAS_BACKBONE)
        return not name.startswith(FAST_PARTS)

    named = [(name, one) for name, one in network.named_parameters() if one.requires_grad]
    slow, fast = ([one for name, one in named if is_backbone(name) is own] for own in (True, False))
    return [(slow, recipe.backbone_rate), (fast, 1.0)]


class InteractiveTrainee(SingleStageTrainee):
    """An interactive network to the training loop."""

    def __init__(
        self,
        network: nn.Module,
        recipe: InteractiveRecipe,
        data: InteractiveData,
        clicker: Clicker,
        *,
        seed: int,
        device: torch.device | str = "cpu",
        validations: int = 10,
        validation_objects: int = 100,
        budget_images: int = 0,
    ) -> None:
        self.module: nn.Module = network
        self.recipe, self.data, self.clicker, self.seed = recipe, data, clicker, seed
        self.device = torch.device(device)
        if not len(data.training):
            raise DataError("there is no object to train on", remedy="check --data, --exclude and least_area")
        stored = data.images
        self.images = LabelledImages(stored.images.to(self.device), stored.classes.to(self.device), stored.sizes)
        self.held = _choose(data.held, validation_objects)
        self.plans: tuple[StagePlan, ...] = plan_stage(recipe.stage, len(data.training), budget_images)
        plan, own = self.plans[0], recipe.stage
        self.stages: Sequence[Stage] = [Stage(own.stage, plan.first, plan.last, own.clip, own.ema)]
        self.marks: Sequence[int] = place_marks(plan.last, validations)
        self._places: dict[tuple[int, int], tuple[NDArray[np.float64], NDArray[np.float64]]] = {}

    def start_stage(self, stage: Stage) -> Optimizer:
        """The optimiser, with the rate of the backbone."""
        self.module.to(self.device)
        return build_from_groups(group_parameters(self.module, self.recipe), self.recipe.stage)

    def draw_batches(self, first: int, last: int, rank: int, world: int) -> Iterator[Sequence[_Batch]]:
        """The objects of each step with their crops and numbers of clicks, the share of this process."""
        own, recipe = self.recipe.stage, self.recipe
        parts = world * own.accumulate
        if own.batch % parts or own.batch // parts < 2:
            what = f"a step of {own.batch} objects cannot be shared by {world} processes in {own.accumulate} parts"
            raise DataError(what, remedy="change batch or accumulate with --set: two objects in each part at least")
        share, size = own.batch // world, own.batch // parts
        for step in range(first, last):
            numbers = np.arange(step * own.batch, (step + 1) * own.batch)
            objects = self.draw_objects(numbers)
            rng = generator(self.seed, "crops", step)
            placed = self._find_places(objects, rng)
            transforms = draw_object_crops(rng, placed, recipe.size, zoomed=recipe.zoomed)
            colours = draw_colours(rng, own.batch, recipe.colours)
            clicks = int(generator(self.seed, "number of clicks", step).integers(1, recipe.most_clicks + 1))
            ends = range(rank * share, (rank + 1) * share, size)
            yield [
                _Batch(
                    objects[start : start + size],
                    numbers[start : start + size],
                    Transforms(transforms.matrices[start : start + size], transforms.blurred[start : start + size]),
                    colours[start : start + size],
                    clicks,
                )
                for start in ends
            ]

    def draw_objects(self, numbers: Rows) -> Rows:
        """(n, 2): the objects with these numbers; an epoch has each object once."""
        count = len(self.data.training)
        places = [_permute(self.seed, int(number) // count, count)[int(number) % count] for number in numbers]
        return self.data.training[places]

    def _find_places(self, objects: Rows, rng: np.random.Generator | None) -> Objects:
        """Where objects lie; their anchors are drawn, or the middle one of their points without `rng`."""
        boxes, anchors = [], []
        for row, number in objects.tolist():
            if (row, number) not in self._places:
                mask = (self.data.images.classes[row] == number).cpu().numpy()
                ys, xs = np.nonzero(mask)
                box = np.array([xs.min(), ys.min(), xs.max(), ys.max()], np.float64)
                self._places[row, number] = (box, sample_points(mask))
            box, points = self._places[row, number]
            boxes.append(box)
            anchors.append(points[len(points) // 2 if rng is None else int(rng.integers(len(points)))])
        return Objects(self.images.sizes[objects[:, 0]], np.stack(boxes), np.stack(anchors))

    def show(self, objects: Rows, transforms: Transforms, colours: NDArray[np.float32] | None = None) -> Shown:
        """The objects (n, 2) in their squares."""
        images, maps = self.images.take(objects[:, 0], transforms, self.recipe.size, outside=[0.0] * 3)
        images = images / 255
        if colours is not None:
            images = change_colours(images, colours)
        wanted = torch.from_numpy(objects[:, 1]).to(self.device)[:, None, None]
        return Shown(images, maps == wanted, maps != IGNORED)

    def click(self, call: Any, shown: Shown, keys: Sequence[str], clicks: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Inputs (n, 4, S, S) and points (n, 2k, 3) of each click, from the first to the last.

        `call("", inputs, points)` answers; nothing is differentiated. An object on which nothing is left to click
        keeps its clicks.
        """
        pictures = (shown.images * 255).round().to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()
        targets, ignored = shown.targets.cpu().numpy(), (~shown.valid).cpu().numpy()
        sessions = [
            self.clicker.begin(key, picture, target, ignore, clicks)
            for key, picture, target, ignore in zip(keys, pictures, targets, ignored, strict=True)
        ]
        given = [next(session) for session in sessions]
        last = shown.images.new_zeros(len(given), 1, *shown.images.shape[2:])
        for number in range(1, clicks + 1):
            inputs = torch.cat([shown.images, last], 1)
            points = pack_clicks(given, device=self.device)
            yield inputs, points
            if number == clicks:
                break
            with torch.no_grad():
                last = call("", inputs, points)["instances"].detach().float().sigmoid()
            masks = (last[:, 0] > THRESHOLD).cpu().numpy()
            given = [_continue(*one) for one in zip(sessions, masks, given, strict=True)]
        for session in sessions:
            session.close()

    def compute_loss(self, call: Any, batch: _Batch) -> StepLoss:
        """The loss of the answer to the last click, and its IoU."""
        shown = self.show(batch.objects, batch.transforms, batch.colours)
        keys = [f"training {number}" for number in batch.numbers.tolist()]
        # Clicks are made on the network as it would be used.
        self.module.eval()
        *_, (inputs, points) = self.click(call, shown, keys, batch.clicks)
        self.module.train()
        answer = call("", inputs, points)
        loss = compute_interactive_loss(answer, shown.targets, shown.valid)
        count = len(batch.objects)
        iou = compute_ious(answer["instances"].detach(), shown).sum()
        return StepLoss(loss, count, {"loss": loss.detach() * count, "iou": iou})

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Mean IoU on objects that are held back, over all clicks and after the first and the last; or nothing."""
        if not len(self.held):
            return {}
        module.eval()
        call, found = Calls(module), []
        with torch.no_grad():
            for start in range(0, len(self.held), VALIDATED_OBJECTS):
                part = self.held[start : start + VALIDATED_OBJECTS]
                shown = self.show(part, fit_objects(self._find_places(part, None), self.recipe.size))
                keys = [f"validation {start + place}" for place in range(len(part))]
                ious: list[Tensor] = []

                def answer(name: str, *given: Tensor, shown: Shown = shown, ious: list[Tensor] = ious) -> Any:
                    answered = call(name, *given)
                    ious.append(compute_ious(answered["instances"], shown))
                    return answered

                *_, last = self.click(answer, shown, keys, self.recipe.most_clicks)
                answer("", *last)
                found.append(torch.stack(ious, 1).cpu().numpy())
        means = np.concatenate(found).mean(0)
        scores = {SELECTION: float(means.mean()), "after the first click": float(means[0])}
        return scores | {"after the last click": float(means[-1])}

    def select(self, validation: Mapping[str, float]) -> Mapping[str, float]:
        """By the mean IoU over all clicks."""
        return {name: value for name, value in validation.items() if name == SELECTION}


def compute_ious(logits: Tensor, shown: Shown) -> Tensor:
    """(n,): IoU of the masks of logits (n, 1, S, S) over valid pixels."""
    masks = logits[:, 0].float().sigmoid() > THRESHOLD
    targets = shown.targets & shown.valid
    common = (masks & targets).sum((1, 2))
    either = ((masks & shown.valid) | targets).sum((1, 2))
    return common / either.clamp(min=1)


def _continue(session: Session, mask: Mask, given: list[Click]) -> list[Click]:
    try:
        return session.send(mask)
    except StopIteration:
        return given


def _average(times: Sequence[float]) -> float:
    """The mean time of a step without the first, which also allocates; steps differ in their number of clicks."""
    return float(np.mean(times[1:] or times))


def _choose(objects: Rows, most: int) -> Rows:
    """At most so many objects, the same whatever is trained."""
    if len(objects) <= most:
        return objects
    chosen: Rows = objects[np.sort(generator(0, "validation objects").choice(len(objects), most, replace=False))]
    return chosen


@lru_cache(maxsize=8)
def _permute(seed: int, epoch: int, count: int) -> Rows:
    return generator(seed, "order of objects", epoch).permutation(count)


def train_interactive(
    data: InteractiveData,
    recipe: InteractiveRecipe,
    clicker: Clicker,
    folder: Path,
    fabric: Any,
    *,
    clicks: Mapping[str, Any],
    seed: int = 0,
    budget: Budget | None = None,
    precision: str = "float32",
    validations: int = 10,
    validation_objects: int = 100,
    code: str = "",
    save_seconds: float | None = 30.0,
    start: Mapping[str, Tensor] | None = None,
    show_progress: ShowProgress | None = None,
) -> None:
    """Train a network, or resume its training in `folder`; a finished one stays as it is.

    `clicks` says who clicks, for the card. `start` are weights to begin with. `show_progress(total, done, images)` is
    called with steps.
    """
    budget = budget or Budget()
    folder.mkdir(parents=True, exist_ok=True)
    further = {
        "validation objects": validation_objects,
        "clicks": dict(clicks),
        "started from": fingerprint_weights(start),
    }
    identity = make_identity(
        recipe.to_json(), fabric, seed=seed, budget=budget, precision=precision, validations=validations,
        data=data.facts, further=further,
    )  # fmt: skip
    if is_finished(folder, identity):
        return
    network = build_interactive(recipe, seed=seed)
    taken = load_start(network, start) if start is not None else 0

    def make(module: nn.Module, images: int) -> InteractiveTrainee:
        return InteractiveTrainee(
            module, recipe, data, clicker, seed=seed, device=fabric.device, validations=validations,
            validation_objects=validation_objects, budget_images=images,
        )  # fmt: skip

    most = recipe.most_clicks
    timing: dict[str, Any] = {"tried": 2 * most, "cost": _average}
    trainee = fit_to_budget(
        network, make, folder, budget, fabric, validations, identity=identity, precision=precision, **timing
    )
    card = {
        "kind": "interactive",
        "method": recipe.network,
        "backbone": recipe.backbone,
        "image_size": recipe.size,
        "identity": identity,
        "code": code,
        "validation_rule": "its own",
        "score": "mean IoU",
        "tensors_started_from": taken,
    }
    train_in_folder(
        trainee,
        folder,
        fabric,
        card,
        selections=[SELECTION] if len(trainee.held) else [],
        precision=precision,
        save_seconds=save_seconds,
        show_progress=show_progress,
    )
