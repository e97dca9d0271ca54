"""Threads of one process write in the order in which they came, and those that wait share a commit.

SQLite lets one writer in at a time; others sleep and try again, and an unlucky one waits for long. So they queue here
first. A commit waits for the disk, mostly longer than the writing took. So whoever comes first writes for all who
wait, each within a savepoint of its own, and commits once: an answer is on disk before any of them is told.
What is right never rests on this queue, since other processes write too.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, NestedTransaction
from sqlalchemy.exc import SQLAlchemyError

T = TypeVar("T")
# How many share a commit at most: enough to be quick, few enough that the first does not wait for long.
MOST_TOGETHER = 32


class Conflict(SQLAlchemyError):
    """Somebody else was faster, or took the transaction down with them: it is to be done again."""


class _Waiting:
    """One who wants to write, what came of it, and a gate that opens when it is their turn or all is done."""

    def __init__(self, work: Callable[[Connection], Any]) -> None:
        self.work = work
        self.done = False
        self.result: Any = None
        self.error: Exception | None = None
        self.gate = threading.Event()


class SharedCommits:
    """A queue of writers before one engine.

    `write(work)` gives what `work(connection)` gives, once it is on disk, or raises what it raises, with nothing of it
    written. Work is called in the thread of whoever comes first.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._guard = threading.Lock()
        self._busy = False
        self._queue: deque[_Waiting] = deque()

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do `work` in a transaction, maybe one with others."""
        own = _Waiting(work)
        with self._guard:
            self._queue.append(own)
            leads, self._busy = not self._busy, True
        if not leads:
            own.gate.wait()
        if not own.done:
            self._lead()
        if own.error is not None:
            raise own.error
        result: T = own.result
        return result

    def _lead(self) -> None:
        with self._guard:
            group = [self._queue.popleft() for _ in range(min(MOST_TOGETHER, len(self._queue)))]
        try:
            self._commit(group)
        except Exception as error:
            for waiting in group:
                waiting.error = error
        except BaseException:
            # The thread is being ended: the others try again by themselves.
            for waiting in group:
                waiting.error = Conflict()
            raise
        finally:
            self._hand_on(group)

    def _hand_on(self, group: list[_Waiting]) -> None:
        with self._guard:
            following = self._queue[0] if self._queue else None
            self._busy = following is not None
        for waiting in group:
            waiting.done = True
            waiting.gate.set()
        if following is not None:
            following.gate.set()

    def _commit(self, group: list[_Waiting]) -> None:
        with self._engine.begin() as connection:
            if len(group) == 1:
                group[0].result = group[0].work(connection)
                return
            for waiting in group:
                savepoint = connection.begin_nested()
                try:
                    waiting.result = waiting.work(connection)
                except Exception as error:
                    _undo(savepoint, error)
                    waiting.error = error
                else:
                    savepoint.commit()


def _undo(savepoint: NestedTransaction, error: Exception) -> None:
    try:
        savepoint.rollback()
    except SQLAlchemyError:
        # The whole transaction is gone, as with a full disk: nobody's work is kept, and all are told why.
        if isinstance(error, SQLAlchemyError):
            raise error from None
        raise
