"""The folder of a training: its state, history and the best weights; budgets in seconds, turned into images once.

Everything here is the same for all that is trained; a `Trainee` of the loop knows the rest.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from hardlook.errors import ChangedRun
from hardlook.fingerprints import hash_array, hash_value
from hardlook.reading import read_json, reading
from hardlook.training.checkpoint import read_card, remove_leftovers, replace_file, write_card, write_checkpoint
from hardlook.training.devices import arrange_network, multiplying_in
from hardlook.training.loop import Calls, Record, Stage, StepLoss, Trainee, run_loop
from hardlook.training.optimisers import MovingAverage
from hardlook.training.recipes import Budget, StagePlan
from hardlook.training.state import (
    Progress,
    append_line,
    check_identity,
    cut_lines,
    read_lines,
    read_progress,
    restore_state,
    save_state,
)
from hardlook.training.step_graphs import WARM_UPS, StepGraphs, may_replay

HISTORY, STATE, BUDGET = "history.jsonl", "training-state.safetensors", "budget.json"
LAST = "last"
"""The selection where nothing is validated."""

ShowProgress = Callable[[int, int, int], None]
"""Called with all steps, the steps done and the images of a step."""


class PlannedTrainee(Trainee, Protocol):
    """A trainee that knows the steps of its stages."""

    @property
    def plans(self) -> Sequence[StagePlan]:
        """Its stages in order."""


Network = TypeVar("Network", bound=nn.Module)
Planned = TypeVar("Planned", bound=PlannedTrainee)


class FolderStore:
    """A training's folder: state, history, and checkpoints of the best weights by each selection.

    Of several processes one `writes`; the others read how far the training is.
    """

    def __init__(
        self, folder: Path, identity: Mapping[str, Any], card: Mapping[str, Any], main: str, *, writes: bool = True
    ) -> None:
        self.folder, self.identity, self.card, self.main = folder, dict(identity), dict(card), main
        self.writes = writes

    def read_progress(self) -> Progress:
        """How far the training is; the process that writes removes lines of the history after that."""
        reached = read_progress(self.folder / STATE, self.identity)
        if self.writes:
            cut_lines(self.folder / HISTORY, reached.step)
        return reached

    def restore(self, module: nn.Module, optimiser: Optimizer | None, average: MovingAverage | None) -> None:
        """Load the last saved state."""
        restore_state(self.folder / STATE, module, optimiser, average)

    def save(self, module: nn.Module, optimiser: Optimizer, average: MovingAverage | None, reached: Progress) -> None:
        """Save the state."""
        save_state(self.folder / STATE, module, optimiser, average, reached, self.identity)

    def append(self, record: Record) -> None:
        """Add a line to the history."""
        line = {"step": record.step, "stage": record.stage, "lr": record.lr, **record.means}
        line |= {f"validation_{name}": value for name, value in record.validation.items()}
        append_line(self.folder / HISTORY, {**line, "seconds": round(record.seconds, 3)})

    def keep_best(self, selection: str, module: nn.Module, record: Record) -> None:
        """Write the checkpoint of a selection: the main one in the folder itself, others in folders within."""
        folder = self.folder if selection == self.main else self.folder / f"by-{selection}"
        chosen = {"by": selection, "step": record.step, "validation": dict(record.validation)}
        write_checkpoint(folder, module.state_dict(), {**self.card, "selected": chosen, "finished": False})


@dataclass(frozen=True)
class Trained:
    """A training: its folder, its card and its history."""

    folder: Path
    card: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]


def read_trained(folder: Path) -> Trained:
    """The training in a folder."""
    return Trained(folder, read_card(folder), read_lines(folder / HISTORY))


class LastStore(FolderStore):
    """Without validation the last weights are kept."""

    def save(self, module: nn.Module, optimiser: Optimizer, average: MovingAverage | None, reached: Progress) -> None:
        """Save the state; at the end, the weights before it."""
        if reached.step == self.card["steps"]:
            chosen = {"by": self.main, "step": reached.step, "validation": {}}
            write_checkpoint(self.folder, module.state_dict(), {**self.card, "selected": chosen, "finished": False})
        super().save(module, optimiser, average, reached)


def finish(folder: Path, main: str, reached: Progress) -> None:
    """Say in every checkpoint of the folder that the training is finished, then remove its state."""
    best = {name: {"accuracy": value, "step": step} for name, (value, step) in reached.best.items()}
    for place in (*(folder / f"by-{name}" for name in reached.best if name != main), folder):
        card = read_card(place)
        write_card(place, {**card, "finished": True, "selections": best, "seconds": round(reached.seconds, 3)})
    (folder / STATE).unlink(missing_ok=True)
    (folder / BUDGET).unlink(missing_ok=True)


def is_finished(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Whether the folder holds this training, finished; an error where it holds another one."""
    if not (folder / "checkpoint.json").is_file() or (folder / STATE).is_file():
        return False
    card = read_card(folder)
    if not card.get("finished"):
        return False
    if "identity" not in card:
        what = "the folder holds weights that no training wrote"
        raise ChangedRun(what, file=folder, remedy="train in another folder")
    check_identity(card["identity"], identity)
    return True


def make_identity(
    recipe: Mapping[str, Any],
    fabric: Any,
    *,
    seed: int,
    budget: Budget,
    precision: str,
    validations: int,
    data: Mapping[str, Any],
    further: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a training is known by: everything that its weights depend on, but for the code."""
    return {
        "recipe": dict(recipe),
        "seed": seed,
        "budget": [budget.images, budget.seconds],
        "precision": precision,
        "processes": int(fabric.world_size),
        "validations": validations,
        **(further or {}),
        "data": dict(data),
        "threads": torch.get_num_threads() if fabric.device.type == "cpu" else None,
    }


def fit_to_budget(
    network: Network,
    make: Callable[[Network, int], Planned],
    folder: Path,
    budget: Budget,
    fabric: Any,
    validations: int,
    *,
    identity: Mapping[str, Any] | None = None,
    precision: str | None = None,
    tried: int = 5,
    cost: Callable[[Sequence[float]], float] = min,
) -> Planned:
    """The trainee `make(network, images)` of the budget's images, 0 for as many as the recipe says.

    A budget in seconds is timed on a copy of the network, once for a training of that `identity`; `precision`, `tried`
    and `cost` are those of `estimate_images`.
    """

    def estimate(seconds: float) -> int:
        timed = make(copy.deepcopy(network), 0)
        return estimate_images(
            timed, timed.plans, seconds, fabric, validations, precision=precision, tried=tried, cost=cost
        )

    return make(network, fix_budget(folder, budget, fabric, estimate, identity))


def describe_plans(trainee: PlannedTrainee) -> dict[str, Any]:
    """What a card says of the size of the network and of the steps of each stage."""
    stages = [
        {"stage": plan.recipe.stage, "steps": plan.steps, "images": plan.steps * plan.images} for plan in trainee.plans
    ]
    parameters = sum(one.numel() for one in trainee.module.parameters())
    return {"parameters": parameters, "steps": trainee.plans[-1].last, "stages": stages}


def train_in_folder(
    trainee: PlannedTrainee,
    folder: Path,
    fabric: Any,
    card: Mapping[str, Any],
    *,
    selections: Sequence[str],
    precision: str,
    save_seconds: float | None = 30.0,
    show_progress: ShowProgress | None = None,
) -> None:
    """Run the loop in a folder, from where it was stopped; the first selection's weights are the folder's own.

    `card` is what `checkpoint.json` says, with the `identity` of the training; what is known of its stages is added.
    """
    main, plans = selections[0] if selections else LAST, trainee.plans
    kind = FolderStore if selections else LastStore
    writes = fabric.global_rank == 0
    store = kind(folder, card["identity"], {**card, **describe_plans(trainee)}, main, writes=writes)
    if writes:
        remove_leftovers(folder)
    if fabric.world_size > 1:
        # No process finishes or writes while another one still looks at what is there.
        fabric.barrier()

    def report(step: int) -> None:
        if show_progress is not None:
            plan = next(plan for plan in plans if max(step - 1, 0) < plan.last)
            show_progress(plans[-1].last, step, plan.images)

    reached = run_loop(trainee, store, fabric, precision=precision, save_seconds=save_seconds, show_progress=report)
    if writes:
        finish(folder, main, reached)
    if fabric.world_size > 1:
        fabric.barrier()


def fingerprint_weights(start: Mapping[str, Tensor] | None) -> str | None:
    """A hash of the weights that a training starts from; None without any."""
    if start is None:
        return None
    return hash_value([[key, hash_array(value.detach().cpu().double())] for key, value in sorted(start.items())])


def fix_budget(
    folder: Path,
    budget: Budget,
    fabric: Any,
    estimate: Callable[[float], int],
    identity: Mapping[str, Any] | None = None,
) -> int:
    """The budget in images, 0 for none. One in seconds is turned into images once, and kept for those who resume.

    What is kept for a training of another identity does not count.
    """
    if not budget.seconds:
        return budget.images
    path, wanted = folder / BUDGET, hash_value(dict(identity or {}))
    images = 0
    if fabric.global_rank == 0:
        images = _read_budget(path, wanted)
        if not images:
            images = estimate(budget.seconds)
            replace_file(path, json.dumps({"training": wanted, "images": images}).encode())
    return int(fabric.broadcast(images)) if fabric.world_size > 1 else images


def _read_budget(path: Path, wanted: str) -> int:
    """The images that are kept for the training `wanted`; 0 without any."""
    if not path.is_file():
        return 0
    remedy = "delete it: the budget is timed anew"
    found = read_json(path, what="not the budget of a training", remedy=remedy)
    with reading(path, "not the budget of a training", remedy=remedy):
        return int(found["images"]) if found["training"] == wanted else 0


def estimate_images(
    trainee: Trainee,
    plans: Sequence[StagePlan],
    seconds: float,
    fabric: Any,
    validations: int,
    *,
    precision: str | None = None,
    tried: int = 5,
    cost: Callable[[Sequence[float]], float] = min,
) -> int:
    """How many images can be trained on in so many seconds: some steps of each stage and one validation are timed.

    Forward and backward passes run as in the loop, in its `precision` and as CUDA graphs where it replays such; the
    optimiser is not timed. `cost` is the time of a step by those of the steps that were tried; by default the shortest,
    since the first step also compiles and allocates. The trainee's module is changed by it: give it a copy.
    """
    wait: Callable[[], None] = torch.cuda.synchronize if fabric.device.type == "cuda" else lambda: None
    costs = []
    call = Calls(trainee.module)
    stages: Sequence[Stage] = trainee.stages

    def run(batch: Any) -> StepLoss:
        with fabric.autocast():
            found = trainee.compute_loss(call, batch)
        torch.autograd.backward(found.loss)
        return found

    replays = may_replay(trainee, fabric, precision)
    tried += (WARM_UPS + 1) * replays
    cuda = [fabric.device] if fabric.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda), multiplying_in(precision):
        for stage, plan in zip(stages, plans, strict=True):
            trainee.start_stage(stage)
            arrange_network(trainee.module, fabric.device, precision)
            trainee.module.train()
            step = StepGraphs(run, trainee.module) if replays else run
            times = []
            last = min(plan.first + tried, plan.last)
            batches = trainee.draw_batches(plan.first, last, 0, int(fabric.world_size))
            for number, parts in zip(range(plan.first, last), batches, strict=True):
                if (seed := trainee.start_step(number, 0)) is not None:
                    torch.manual_seed(seed)
                trainee.module.zero_grad(set_to_none=True)
                wait()
                before = time.perf_counter()
                for batch in parts:
                    (step if len(parts) == 1 else run)(batch)
                wait()
                times.append(time.perf_counter() - before)
            costs.append(cost(times))
        before = time.perf_counter()
        trainee.validate(trainee.module)
    left = max(seconds - validations * (time.perf_counter() - before), 0.2 * seconds)
    whole = sum(plan.steps * cost for plan, cost in zip(plans, costs, strict=True))
    images = sum(plan.steps * plan.images for plan in plans)
    return max(1, int(images * left / whole))
