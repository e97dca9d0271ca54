"""The training loop: stages of steps, validated and saved at marks, resumed where a process was killed.

The loop knows optimiser steps, precision, processes, accumulation, clipping, averaging and files; a `Trainee` knows its
network, its batches and its losses. Whatever a step draws at random follows from seed and step, so that a training that
was killed and resumed ends on a processor with the weights of one that was not, bit for bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from hardlook.errors import RunError
from hardlook.randomness import generator
from hardlook.training.devices import arrange_network, load_scaler, multiplying_in, read_scaler
from hardlook.training.optimisers import MovingAverage
from hardlook.training.schedules import compute_rate
from hardlook.training.state import Progress
from hardlook.training.step_graphs import StepGraphs, may_replay


@dataclass(frozen=True)
class Stage:
    """Steps `first` to before `last` with one optimiser; `clip` and `ema` are 0 for neither."""

    name: str
    first: int
    last: int
    clip: float = 0.0
    ema: float = 0.0


@dataclass(frozen=True)
class StepLoss:
    """The loss of a batch, a scalar to differentiate; sums over its `count` items, for means in the history."""

    loss: Tensor
    count: int
    sums: Mapping[str, Tensor]


@dataclass(frozen=True)
class Record:
    """What the history says at a mark: means since the last one, validation, the best of which it is."""

    step: int
    stage: str
    lr: float
    means: Mapping[str, float]
    validation: Mapping[str, float]
    seconds: float
    best: tuple[str, ...]


class Trainee(Protocol):
    """What is trained: a network, its stages, the marks at which it is validated and saved, batches and losses.

    One whose class says `replays = True` vouches that its steps may be CUDA graphs (`step_graphs`).
    """

    module: nn.Module
    stages: Sequence[Stage]
    marks: Sequence[int]

    def start_stage(self, stage: Stage) -> Optimizer:
        """Make the module ready for a stage; its optimiser, whose groups have a `factor` of the rate."""

    def compute_rate(self, step: int) -> float:
        """The learning rate of a step."""

    def start_step(self, step: int, rank: int) -> int | None:
        """Make the module ready for a step; what torch's random state is set to before it, None leaves it."""

    def draw_batches(self, first: int, last: int, rank: int, world: int) -> Iterator[Sequence[Any]]:
        """Of each step, this process's batches; their losses are averaged."""

    def compute_loss(self, call: Any, batch: Any) -> StepLoss:
        """The loss of a batch; `call(name, *inputs)` calls that method of the module, `call("", ...)` the module."""

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Scores of the module by name, higher is better; it may be left in evaluation mode."""

    def select(self, validation: Mapping[str, float]) -> Mapping[str, float]:
        """The scores by which weights are chosen, by the name of the selection."""


class SingleStageTrainee:
    """What trainees with one stage share: `recipe` has its settings as `stage`, `plans` its steps."""

    recipe: Any
    seed: int
    plans: Sequence[Any]

    def compute_rate(self, step: int) -> float:
        """By the recipe's schedule."""
        own = self.recipe.stage
        return compute_rate(own.schedule, own.lr, step, steps=self.plans[0].steps, epochs=own.epochs)

    def start_step(self, step: int, rank: int) -> int | None:
        """What dropout and the like draw follows from seed, step and process."""
        return int(generator(self.seed, "training step", step, rank).integers(2**62))


def place_marks(steps: int, validations: int) -> list[int]:
    """The steps, of `steps`, after which a network is validated: `validations` of them at most, the last one included.

    >>> place_marks(10, 4), place_marks(2, 4)
    ([2, 5, 8, 10], [1, 2])
    """
    return sorted({round(steps * part / validations) for part in range(1, validations + 1)} - {0})


class Store(Protocol):
    """Where a training is kept."""

    def read_progress(self) -> Progress:
        """How far the training is."""

    def restore(self, module: nn.Module, optimiser: Optimizer | None, average: MovingAverage | None) -> None:
        """Load the last saved state."""

    def save(self, module: nn.Module, optimiser: Optimizer, average: MovingAverage | None, reached: Progress) -> None:
        """Save the state; what was saved before is replaced at once or not at all."""

    def append(self, record: Record) -> None:
        """Add a record to the history."""

    def keep_best(self, selection: str, module: nn.Module, record: Record) -> None:
        """Keep the weights as the best by a selection."""


def run_loop(
    trainee: Trainee,
    store: Store,
    fabric: Any,
    *,
    precision: str | None = None,
    save_seconds: float | None = None,
    show_progress: Callable[[int], None] | None = None,
) -> Progress:
    """Train from the store's progress to the last step.

    `precision` sets how float32 multiplies on a GPU (None leaves it). `save_seconds` saves between marks too, which
    needs a seed of every step. `show_progress` is called with the number of the last step done.
    """
    device: torch.device = fabric.device
    with (
        torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
        multiplying_in(precision),
    ):
        return _Loop(trainee, store, fabric, precision, save_seconds, show_progress).run()


class Calls(nn.Module):
    """Any method of a module as a call of this one, in the precision and with the processes of a Fabric.

    Fabric's own way to mark such methods leaves the precision out on a single device.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, name: str, *inputs: Any) -> Any:
        """What the method of that name returns; the module's own call without one."""
        return getattr(self.module, name)(*inputs) if name else self.module(*inputs)


class _Loop:
    """One call of `run_loop`."""

    def __init__(
        self,
        trainee: Trainee,
        store: Store,
        fabric: Any,
        precision: str | None,
        save_seconds: float | None,
        show_progress: Callable[[int], None] | None,
    ) -> None:
        self.trainee, self.store, self.fabric, self.precision = trainee, store, fabric, precision
        self.save_seconds, self.show_progress = save_seconds, show_progress
        self.rank, self.world = int(fabric.global_rank), int(fabric.world_size)
        self.reached = store.read_progress()
        self.marks = set(trainee.marks)

    def run(self) -> Progress:
        trainee = self.trainee
        resumed = self.reached.step > 0
        for stage in trainee.stages:
            if self.reached.step >= stage.last:
                continue
            inside = self.reached.step > stage.first
            if resumed and not inside:
                # The stage begins with what the one before it left, and may change it.
                self.store.restore(trainee.module, None, None)
            optimiser = trainee.start_stage(stage)
            arrange_network(trainee.module, self.fabric.device, self.precision)
            # Anew for each stage: it may train parameters that were frozen in the one before.
            wrapped = self.fabric.setup_module(Calls(trainee.module))
            average = MovingAverage(trainee.module, stage.ema) if stage.ema else None
            if resumed:
                if inside:
                    self.store.restore(trainee.module, optimiser, average)
                load_scaler(self.fabric, dict(self.reached.scaler))
                resumed = False
            self._run_stage(stage, wrapped, optimiser, average)
        return self.reached

    def _run_stage(self, stage: Stage, wrapped: Any, optimiser: Optimizer, average: MovingAverage | None) -> None:
        trainee, fabric, module = self.trainee, self.fabric, self.trainee.module
        stepper = fabric.setup_optimizers(optimiser)
        sums = self._restore_sums()

        def run(batch: Any, share: int = 1) -> StepLoss:
            found = trainee.compute_loss(wrapped, batch)
            fabric.backward(found.loss if share == 1 else found.loss / share)
            return found

        replayed = StepGraphs(run, module) if may_replay(trainee, fabric, self.precision) else None
        count = self.reached.count if self.rank == 0 else 0
        started = saved = time.perf_counter()
        before = self.reached.seconds
        first = self.reached.step
        rate = 0.0
        module.train()
        # Gradients that the stage before left, of parameters that this one does not train, would count in clipping.
        module.zero_grad(set_to_none=True)
        batches = trainee.draw_batches(first, stage.last, self.rank, self.world)
        for step, parts in zip(range(first, stage.last), batches, strict=True):
            if (seed := trainee.start_step(step, self.rank)) is not None:
                torch.manual_seed(seed)
            rate = trainee.compute_rate(step)
            for group in optimiser.param_groups:
                group["lr"] = rate * group.get("factor", 1.0)
            optimiser.zero_grad(set_to_none=True)
            for place, batch in enumerate(parts):
                last = place == len(parts) - 1
                # Gradients of several processes are added once, in the last backward pass.
                with fabric.no_backward_sync(wrapped, enabled=self.world > 1 and not last):
                    found = replayed(batch) if replayed and len(parts) == 1 else run(batch, len(parts))
                count += found.count
                for name, value in found.sums.items():
                    sums[name] = sums[name] + value if name in sums else torch.zeros_like(value) + value
            if stage.clip:
                fabric.strategy.precision.unscale_gradients(optimiser)
                torch.nn.utils.clip_grad_norm_(module.parameters(), stage.clip)
            stepper.step()
            if average is not None:
                average.update(module)
            now = time.perf_counter()
            self.reached = replace(self.reached, step=step + 1, seconds=before + now - started)
            if step + 1 in self.marks or step + 1 == stage.last:
                total, seen = self._gather(sums, count)
                self._mark(stage, optimiser, average, total, seen, rate, started, before)
                sums, count, saved = {}, 0, time.perf_counter()
                module.train()
            elif self.save_seconds is not None and self.world == 1 and now - saved >= self.save_seconds:
                total, seen = self._gather(sums, count)
                self.reached = replace(self.reached, sums=total, count=seen, scaler=read_scaler(fabric))
                self.store.save(module, optimiser, average, self.reached)
                saved = time.perf_counter()
            if self.show_progress is not None and self.rank == 0:
                self.show_progress(step + 1)

    def _restore_sums(self) -> dict[str, Tensor]:
        kept = self.reached.sums if self.rank == 0 else {}
        return {name: torch.tensor(value, device=self.fabric.device) for name, value in kept.items()}

    def _gather(self, sums: Mapping[str, Tensor], count: int) -> tuple[dict[str, float], int]:
        """The sums and the count of all processes."""
        if self.world == 1:
            return {name: float(value) for name, value in sums.items()}, count
        total = {name: float(self.fabric.all_reduce(value, reduce_op="sum")) for name, value in sorted(sums.items())}
        return total, int(self.fabric.all_reduce(torch.tensor(count), reduce_op="sum"))

    def _mark(
        self,
        stage: Stage,
        optimiser: Optimizer,
        average: MovingAverage | None,
        sums: Mapping[str, float],
        count: int,
        rate: float,
        started: float,
        before: float,
    ) -> None:
        """Validate, add to the history, keep what is best, save."""
        trainee, module, step = self.trainee, self.trainee.module, self.reached.step
        means = {name: value / count for name, value in sums.items()}
        if not all(map(math.isfinite, means.values())):
            what = f"the training diverged before step {step}: its mean loss is {means.get('loss')}"
            raise RunError(what, remedy="take a lower lr, or bound the gradient with clip")
        judged = module if average is None else average.module
        validation: dict[str, float] = {}
        if self.rank == 0:
            validation = trainee.validate(judged)
        if self.world > 1:
            validation = self.fabric.broadcast(validation)
        best = dict(self.reached.best)
        scores = trainee.select(validation)
        better = tuple(name for name, value in scores.items() if name not in best or value > best[name][0])
        best |= {name: (scores[name], step) for name in better}
        seconds = before + time.perf_counter() - started
        record = Record(step, stage.name, rate, means, validation, seconds, better)
        self.reached = Progress(step, best, seconds=seconds, scaler=read_scaler(self.fabric))
        if average is not None and step == stage.last:
            # The next stage starts from the average.
            module.load_state_dict(average.module.state_dict())
        # The state is written last: a process killed before it repeats the steps and writes the same again.
        if self.rank == 0:
            self.store.append(record)
            for name in better:
                self.store.keep_best(name, judged, record)
            self.store.save(module, optimiser, average, self.reached)
        if self.world > 1:
            self.fabric.barrier()
