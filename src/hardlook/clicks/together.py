"""Many plays at once: one thread asks the network while the calling one works out the next clicks.

A play is a generator that yields prompts and is sent their answers. Its prompts are never mixed with another's, so
its batches, and with them its result, are the same alone and in company, in any order, with overlap and without.

>>> import numpy as np
>>> class Nothing:
...     def predict(self, prompts):
...         return [Prompted(np.zeros((2, 2), bool)) for prompt in prompts]
>>> def count(prompts):
...     answers = yield [Clicks(np.zeros((1, 2), np.float32), np.ones(1, bool))] * prompts
...     return len(answers)
>>> run_together([(Nothing(), count(3)), (Nothing, count(5))], prompts_a_call=2)
[3, 5]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar, cast

from hardlook.models.roles import Clicks, Prompted, Session

Result = TypeVar("Result")
Source = Session | Callable[[], Session]
Playing = Generator[list[Clicks], list[Prompted], Result]


def run_together(
    plays: Sequence[tuple[Source, Playing[Result]]],
    *,
    prompts_a_call: int = 64,
    overlap: bool = True,
    at_once: int = 4,
) -> list[Result]:
    """Drive every play to its end; the results are in the order of the plays.

    Each play comes with its session or with a function that opens it. Plays that share the same function object share
    the session: it is opened when the first of them is asked, and let go when the last of them ends. Prompts go to the
    session in calls of at most `prompts_a_call`. With `overlap` one thread does all opening and predicting, while the
    calling thread advances the plays, of which `at_once` are under way at a time.

    The error of a failed call is thrown into its play and leaves from there; the other plays are closed.
    """
    if prompts_a_call < 1 or at_once < 1:
        raise ValueError(f"expected at least 1 prompt a call and 1 play at once, got {prompts_a_call} and {at_once}")
    sessions = _Sessions([source for source, _ in plays])
    try:
        if overlap:
            return _overlapping(plays, sessions, prompts_a_call, at_once)
        return [_alone(source, playing, sessions, prompts_a_call) for source, playing in plays]
    finally:
        for _, playing in plays:
            playing.close()


class _Sessions:
    """Sessions by what opens them, each as long as a play needs it."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.users = Counter(id(source) for source in sources)
        self.opened: dict[int, Session] = {}

    def predict(self, source: Source, prompts: list[Clicks], prompts_a_call: int) -> list[Prompted]:
        """The answers to the prompts, asked in calls of limited size."""
        if id(source) not in self.opened:
            # A class has its sessions' methods without being one.
            opened = isinstance(source, Session) and not isinstance(source, type)
            self.opened[id(source)] = cast(Session, source) if opened else cast(Callable[[], Session], source)()
        session = self.opened[id(source)]
        parts = [prompts[start : start + prompts_a_call] for start in range(0, len(prompts), prompts_a_call)]
        return [answer for part in parts for answer in session.predict(part)]

    def leave(self, source: Source) -> None:
        """One play less needs this one."""
        self.users[id(source)] -= 1
        if not self.users[id(source)]:
            self.opened.pop(id(source), None)


def _alone(source: Source, playing: Playing[Result], sessions: _Sessions, prompts_a_call: int) -> Result:
    try:
        prompts = next(playing)
        while True:
            try:
                answers = sessions.predict(source, prompts, prompts_a_call)
            except Exception as error:
                prompts = playing.throw(error)
            else:
                prompts = playing.send(answers)
    except StopIteration as end:
        sessions.leave(source)
        result: Result = end.value
        return result


def _overlapping(
    plays: Sequence[tuple[Source, Playing[Result]]], sessions: _Sessions, prompts_a_call: int, at_once: int
) -> list[Result]:
    results: dict[int, Result] = {}
    asked: dict[Future[list[Prompted]], int] = {}
    thread = ThreadPoolExecutor(1, "segmenter")

    def advance(index: int, answered: Future[list[Prompted]] | None) -> None:
        source, playing = plays[index]
        failed = answered.exception() if answered is not None else None
        try:
            if answered is None:
                prompts = next(playing)
            else:
                prompts = playing.throw(failed) if failed is not None else playing.send(answered.result())
        except StopIteration as end:
            sessions.leave(source)
            results[index] = end.value
        else:
            asked[thread.submit(sessions.predict, source, prompts, prompts_a_call)] = index

    waiting = iter(range(len(plays)))
    try:
        while len(results) < len(plays):
            while len(asked) < at_once and (index := next(waiting, None)) is not None:
                advance(index, None)
            done = wait(asked, return_when=FIRST_COMPLETED).done
            # In the order they were asked, so that the thread is never without work while there is some.
            for answered in [one for one in asked if one in done]:
                advance(asked.pop(answered), answered)
    finally:
        thread.shutdown(wait=True, cancel_futures=True)
    return [results[index] for index in range(len(plays))]
