"""Runs many click simulations at once: one thread runs the segmenter while the caller computes the next clicks.

A simulation is a generator that yields prompts and is sent their answers. Its prompts are never batched with those of
another, so its result does not depend on the other simulations, their order, or `overlap`.

>>> import numpy as np
>>> class Empty:
...     def predict(self, prompts):
...         return [Prompted(np.zeros((2, 2), bool)) for prompt in prompts]
>>> def count(prompts):
...     answers = yield [Clicks(np.zeros((1, 2), np.float32), np.ones(1, bool))] * prompts
...     return len(answers)
>>> run_simulations([(Empty(), count(3)), (Empty, count(5))], prompts_per_call=2)
[3, 5]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar, cast

from hardlook.models.roles import Clicks, Prompted, Session

Result = TypeVar("Result")

Answer = TypeVar("Answer")

Source = Session | Callable[[], Session]

Simulation = Generator[list[Clicks], list[Prompted], Result]


def run_simulations(
    simulations: Sequence[tuple[Source, Simulation[Result]]],
    *,
    prompts_per_call: int = 64,
    overlap: bool = True,
    max_active: int = 4,
) -> list[Result]:
    """Run every simulation to its end; the results are in the order of the simulations."""
    results = iterate_simulations(
        simulations, prompts_per_call=prompts_per_call, overlap=overlap, max_active=max_active
    )
    return list(results)


def iterate_simulations(
    simulations: Sequence[tuple[Source, Simulation[Result]]],
    *,
    prompts_per_call: int = 64,
    overlap: bool = True,
    max_active: int = 4,
) -> Iterator[Result]:
    """Run every simulation to its end; yield the results in the order of the simulations, each as soon as it is known.

    Each comes with its session or with a function that opens it. Simulations with the same function object share the
    session: it is opened for the first prompt and released when the last of them ends. Prompts go to the
    session in calls of at most `prompts_per_call`. With `overlap` one thread does all opening and predicting, while the
    calling thread advances the simulations, at most `max_active` at a time.

    The error of a failed call is thrown into its simulation and raised from there; the others are closed.
    """
    if prompts_per_call < 1 or max_active < 1:
        raise ValueError(
            f"expected at least 1 prompt per call and 1 simulation at once, got {prompts_per_call} and {max_active}"
        )
    sessions = _Sessions([source for source, _ in simulations])
    thread = ThreadPoolExecutor(1, "segmenter")
    results: dict[int, Result] = {}
    pending: dict[Future[list[Prompted]], int] = {}

    def advance(index: int, answered: Future[list[Prompted]] | None) -> None:
        source, simulation = simulations[index]
        failed = answered.exception() if answered is not None else None
        try:
            if answered is None:
                prompts = next(simulation)
            else:
                prompts = simulation.throw(failed) if failed is not None else simulation.send(answered.result())
        except StopIteration as end:
            sessions.release(source)
            results[index] = end.value
        else:
            submit = thread.submit if overlap else _call_now
            pending[submit(sessions.predict, source, prompts, prompts_per_call)] = index

    indices = iter(range(len(simulations)))
    try:
        following = 0
        while following < len(simulations):
            while len(pending) < (max_active if overlap else 1) and (index := next(indices, None)) is not None:
                advance(index, None)
            done = wait(pending, return_when=FIRST_COMPLETED).done
            # In the order of submission, so that the thread is kept busy.
            for answered in [one for one in pending if one in done]:
                advance(pending.pop(answered), answered)
            while following in results:
                yield results.pop(following)
                following += 1
    finally:
        thread.shutdown(wait=True, cancel_futures=True)
        for _, simulation in simulations:
            simulation.close()


def _call_now(function: Callable[..., Answer], *arguments: Any) -> Future[Answer]:
    """Like an executor's `submit`, in the calling thread."""
    future: Future[Answer] = Future()
    try:
        future.set_result(function(*arguments))
    except Exception as error:
        future.set_exception(error)
    return future


class _Sessions:
    """Open sessions by source, each kept until its last simulation ends."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.users = Counter(id(source) for source in sources)
        self.opened: dict[int, Session] = {}

    def predict(self, source: Source, prompts: list[Clicks], prompts_per_call: int) -> list[Prompted]:
        """The answers to the prompts, in calls of limited size."""
        if id(source) not in self.opened:
            # A class of sessions passes the Protocol's isinstance check too, but has yet to be called.
            opened = isinstance(source, Session) and not isinstance(source, type)
            self.opened[id(source)] = cast(Session, source) if opened else cast(Callable[[], Session], source)()
        session = self.opened[id(source)]
        parts = [prompts[start : start + prompts_per_call] for start in range(0, len(prompts), prompts_per_call)]
        return [answer for part in parts for answer in session.predict(part)]

    def release(self, source: Source) -> None:
        """Note that a simulation of this source has ended; after the last, drop the session."""
        self.users[id(source)] -= 1
        if not self.users[id(source)]:
            self.opened.pop(id(source), None)
