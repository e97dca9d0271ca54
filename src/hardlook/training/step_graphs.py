"""Forward and backward pass of a training step, replayed as a CUDA graph.

A small network's step is about a thousand kernels, which a processor launches more slowly than a GPU runs them; a
graph launches them all at once. It records kernels, not Python, so a step may be replayed only if nothing in it depends
on Python numbers that change from step to step. The trainee's class declares this (`replays`), and some replays are
checked against the step itself, on the same weights and random numbers.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from hardlook.errors import RunError, RunWarning
from hardlook.networks.gpu import is_switched_off, renew_generator

WARM_UPS = 3
"""Steps of a shape that run as they are before one is recorded: kernels are compiled and chosen in them."""
CHECKED = (1, 10, 100, 1_000, 10_000)
"""The replays of a graph that are checked."""
MOST_OFF = 1e-2
"""A gradient may differ by this share of its norm, plus twice the difference of two plain runs."""
SWITCH = "HARDLOOK_GRAPHS"
"""The environment variable that switches graphs of training steps off."""


def may_replay(trainee: Any, fabric: Any, precision: str | None) -> bool:
    """Whether a trainee's steps may be CUDA graphs: on one GPU, where its class says so and the user says nothing else.

    The scaler of float16 changes with the gradients, which Python looks at.
    """
    vouched = bool(getattr(trainee, "replays", False)) and not is_switched_off(SWITCH)
    return vouched and int(fabric.world_size) == 1 and fabric.device.type == "cuda" and precision != "float16"


@dataclass
class _Recorded:
    graph: Any
    batch: Any
    result: Any
    gradients: list[Tensor | None]
    replays: int = 0


_State = tuple[list[Tensor], Tensor, Tensor | None]
_Run = tuple[list[Tensor], ...]


class StepGraphs:
    """`step(batch)` computes a loss and its gradients, which it leaves at the module's parameters.

    A batch and what the step returns are dataclasses of tensors, other dataclasses and numbers. For every combination
    of shapes, and of the numbers, a graph of its own is recorded. Random numbers of torch's generator for the GPU are
    drawn anew at every replay. The gradients must be none before a call. A step that cannot be recorded, because it
    waits for the GPU or draws numbers on the processor, goes on as it is. So does one whose first replay is not what
    the step itself computes, with a warning. A later replay that is not ends the training, as those before it may be
    wrong.
    """

    def __init__(self, step: Callable[[Any], Any], module: nn.Module) -> None:
        self._step, self._module, self._parameters = step, module, list(module.parameters())
        self._known: dict[Hashable, _Recorded | None] = {}
        self._uses: dict[Hashable, int] = {}
        self._stream: Any = None

    def __call__(self, batch: Any) -> Any:
        """What the step returns, in tensors that the next call may write anew; without a graph of gradients."""
        key = describe(batch)
        if key not in self._known:
            uses = self._uses[key] = self._uses.get(key, 0) + 1
            if uses < WARM_UPS:
                return self._run_aside(batch)
            if uses == WARM_UPS:
                result, recordable = self._watch(batch)
                if not recordable:
                    self._known[key] = None
                return result
            self._known[key] = self._record(batch)
        recorded = self._known[key]
        if recorded is None:
            return self._run_aside(batch)
        recorded.replays += 1
        if recorded.replays in CHECKED:
            return self._check(key, recorded, batch)
        return self._replay(recorded, batch)

    def _replay(self, recorded: _Recorded, batch: Any) -> Any:
        for target, given in zip(list_tensors(recorded.batch), list_tensors(batch), strict=True):
            target.copy_(given)
        recorded.graph.replay()
        for parameter, gradient in zip(self._parameters, recorded.gradients, strict=True):
            parameter.grad = gradient
        return recorded.result

    def _check(self, key: Hashable, recorded: _Recorded, batch: Any) -> Any:
        """A replay, beside runs of the step as it is."""
        state = self._read_state()
        off = 0.0
        try:
            for _ in range(2):  # a second time where it differs: some kernels add in an order that timing decides
                off, allowed = self._compare(recorded, batch, state)
                if off <= allowed:
                    off = 0.0
                    break
        except torch.cuda.OutOfMemoryError:
            off = 0.0  # nothing to compare with: a graph and a run of the step do not fit side by side
        self._restore(state)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()  # what the runs took, beside the graph's own memory
        if not off:
            return self._replay(recorded, batch)
        what = f"replay {recorded.replays:,} of a training step differs by {off:.2g} of its length from the step itself"
        if recorded.replays > 1:
            raise RunError(what, remedy=f"train again with the environment variable {SWITCH}=off, without graphs")
        warnings.warn(f"{what}: steps are not replayed", RunWarning, stacklevel=2)
        self._known[key] = None
        return self._run_aside(batch)

    def _compare(self, recorded: _Recorded, batch: Any, state: _State) -> tuple[float, float]:
        """By how much a replay differs from the step, and by how much it may."""
        runs = []
        for run in (self._run_aside, self._run_aside, lambda given: self._replay(recorded, given)):
            self._restore(state)
            result = run(batch)
            gradients = [one.grad for one in self._parameters if one.grad is not None]
            parts = gradients, list(self._module.buffers()), list(list_tensors(result))
            runs.append(tuple([one.detach().clone() for one in part] for part in parts))
        first, second, replayed = runs
        return _compare_runs(replayed, first), MOST_OFF + 2 * _compare_runs(second, first)

    def _read_state(self) -> _State:
        values = [one.detach().clone() for one in (*self._parameters, *self._module.buffers())]
        return values, torch.get_rng_state(), torch.cuda.get_rng_state() if torch.cuda.is_available() else None

    @torch.no_grad()
    def _restore(self, state: _State) -> None:
        """As it was before a step. Some methods move parameters in their step: a slow copy of a network, for one."""
        values, random, cuda_random = state
        for one, value in zip((*self._parameters, *self._module.buffers()), values, strict=True):
            one.copy_(value)
        torch.set_rng_state(random)
        if cuda_random is not None:
            torch.cuda.set_rng_state(cuda_random)
        self._clear_gradients()

    def _watch(self, batch: Any) -> tuple[Any, bool]:
        """A step as it is, and whether it may be recorded: it neither waits for the GPU nor draws on the processor."""
        drawn = torch.get_rng_state()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            with _warning_of_waits():
                result = self._run_aside(batch)
        waits = [one for one in found if "called a synchronizing CUDA operation" in str(one.message)]
        for one in found:
            if one not in waits and "Synchronization debug mode" not in str(one.message):
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        return result, not waits and torch.equal(drawn, torch.get_rng_state())

    def _run_aside(self, batch: Any) -> Any:
        # On a stream of its own, as what a backward pass makes there must not tie a recording to the usual stream.
        if self._stream is None:
            self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            result = detach(self._step(batch))
        torch.cuda.current_stream().wait_stream(self._stream)
        return result

    def _record(self, batch: Any) -> _Recorded | None:
        static = change_tensors(batch, torch.clone)
        drawn, stream = torch.get_rng_state(), torch.cuda.current_stream()
        graph: Any = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        try:
            # The stream of the runs before it: torch's own for recordings is that of the first GPU that recorded.
            with torch.cuda.graph(graph, stream=self._stream):
                result = detach(self._step(static))
        except Exception:  # what torch raises depends on the operation that cannot be recorded
            torch.cuda.set_stream(stream)  # a recording that fails may end without setting it again
            torch.set_rng_state(drawn)
            self._forget_recording()
            return None
        if not torch.equal(drawn, torch.get_rng_state()):
            # Numbers were drawn on the processor: a replay would use the same ones again.
            torch.set_rng_state(drawn)
            self._clear_gradients()
            return None
        return _Recorded(graph, static, result, [parameter.grad for parameter in self._parameters])

    def _forget_recording(self) -> None:
        self._clear_gradients()
        torch.cuda.synchronize()
        renew_generator(torch.device("cuda", torch.cuda.current_device()))
        # Earlier graphs draw from the generator's old state, which no seed reaches: they are recorded anew.
        self._known = {key: recorded for key, recorded in self._known.items() if recorded is None}

    def _clear_gradients(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None


def measure_difference(found: Sequence[Tensor], exact: Sequence[Tensor]) -> float:
    """The largest difference of a tensor, of its length or of a hundredth of all tensors' length if that is more.

    Infinite for another number of tensors, other shapes, and whole numbers that differ.

    >>> measure_difference([torch.tensor([3.0, 4.5])], [torch.tensor([3.0, 4.0])])
    0.1
    """
    if [one.shape for one in found] != [one.shape for one in exact]:
        return float("inf")
    total = sum(float(one.double().square().sum()) for one in exact) ** 0.5
    most = 0.0
    for one, other in zip(found, exact, strict=True):
        off = float((one.double() - other.double()).norm())
        if off == 0:
            continue
        length = max(float(other.double().norm()), 0.01 * total)
        if not off < float("inf") or length == 0 or not other.is_floating_point():
            return float("inf")
        most = max(most, off / length)
    return most


def _compare_runs(found: _Run, exact: _Run) -> float:
    """The largest difference: of gradients, of buffers, or a tenth of that of results, which count right answers."""
    gradients, buffers = (measure_difference(*pair) for pair in zip(found[:2], exact[:2], strict=True))
    results = ([one.double() for one in run[2]] for run in (found, exact))
    return max(gradients, buffers, 0.1 * measure_difference(*results))


@contextlib.contextmanager
def _warning_of_waits() -> Iterator[None]:
    """Torch warns of most operations that wait for the GPU."""
    if not torch.cuda.is_available():
        yield
        return
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def list_tensors(value: Any) -> Iterator[Tensor]:
    """All tensors of a dataclass, in the order of its fields; dictionaries in theirs."""
    if isinstance(value, Tensor):
        yield value
    elif is_dataclass(value):
        for one in fields(value):
            yield from list_tensors(getattr(value, one.name))
    elif isinstance(value, dict):
        for one in value.values():
            yield from list_tensors(one)


def change_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same with every tensor changed.

    >>> change_tensors({"loss": torch.tensor(1.0), "count": 2}, lambda one: one + 1)
    {'loss': tensor(2.), 'count': 2}
    """
    if isinstance(value, Tensor):
        return change(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: change_tensors(getattr(value, one.name), change) for one in fields(value)})
    if isinstance(value, dict):
        return {name: change_tensors(one, change) for name, one in value.items()}
    return value


def detach(value: Any) -> Any:
    """The same without what its gradients need."""
    return change_tensors(value, Tensor.detach)


def describe(value: Any) -> Hashable:
    """What a recorded step assumes: shapes and types of tensors, and all else as it is.

    >>> describe({"rows": torch.zeros(2, 3), "tasks": 1})
    (('rows', ((2, 3), torch.float32, 'cpu')), ('tasks', 1))
    """
    if isinstance(value, Tensor):
        return tuple(value.shape), value.dtype, str(value.device)
    if is_dataclass(value):
        return tuple((one.name, describe(getattr(value, one.name))) for one in fields(value))
    if isinstance(value, dict):
        return tuple((name, describe(one)) for name, one in value.items())
    assert isinstance(value, Hashable)
    return value
