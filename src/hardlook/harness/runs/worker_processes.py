"""Worker processes: spawned, with one task at a time, killed and replaced one by one.

They are spawned, not forked (a fork of a process with CUDA or threads is broken). They ignore Ctrl-C and the signals of
batch systems, which reach the whole group and which the parent handles, and they end when the parent ends, however that
happens. A process cannot watch its parent before it has started: to start quickly, this module imports the standard
library and errors only, and everything else is imported afterwards.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from typing import Any, Generic, TypeVar

from hardlook.errors import RunError

Task = TypeVar("Task")

# Seconds after which a worker is checked although it sent nothing: if it has forked children of its own, its
# connection stays open when it dies.
LOOK_AFTER = 1.0

_PR_SET_PDEATHSIG = 1


class WorkerLost(Exception):
    """The process has ended without an answer; the message says how."""


class WorkerProcess(Generic[Task]):
    """A process that builds something once and then works on one task at a time.

    In the process, `make(argument)` is called once; the function that it returns is called with each task and yields
    results. `task` is what it works on, None while it is idle.
    """

    def __init__(self, make: Callable[[Any], Callable[[Any], Iterable[Any]]], argument: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(there,))
        self.process.start()
        there.close()
        self.ready = False
        self.task: Task | None = None
        # An interpreter that ends waits for its children.
        atexit.register(self.kill)
        with contextlib.suppress(OSError):
            self.connection.send((make, argument))

    def submit(self, task: Task, content: Any) -> None:
        """Send the content of a task to an idle worker; raise `WorkerLost` where it is gone."""
        try:
            self.connection.send(content)
        except OSError:
            raise WorkerLost(self.describe_end()) from None
        self.task = task

    def ask(self, task: Any) -> Any:
        """Send a task, and wait for its only result; raise its error, or `WorkerLost` where the process has ended."""
        result = None
        try:
            self.connection.send(task)
            while (message := self.connection.recv())[0] != "done":
                if message[0] == "error":
                    break
                result = message[1]
        except (EOFError, OSError):
            raise WorkerLost(self.describe_end()) from None
        if message[0] == "error":
            raise message[1]
        return result

    def receive(self) -> Iterator[tuple[str, Any]]:
        """Yield the messages received so far: ready, result (with a value) or done; raise its error where it sent one.

        Raises `WorkerLost` where the process has ended.
        """
        while (message := self._read()) is not None:
            kind, value = message
            if kind == "error":
                raise value
            self.ready = True
            yield kind, value
        if not self.process.is_alive():
            raise WorkerLost(self.describe_end())

    def _read(self) -> tuple[str, Any] | None:
        try:
            return self.connection.recv() if self.connection.poll() else None
        except (EOFError, OSError):
            raise WorkerLost(self.describe_end()) from None

    def describe_end(self) -> str:
        """How the process ended; a process that closed its connection and still runs is killed."""
        self.process.join(1)
        self.kill()
        code = self.process.exitcode
        if code is None or code >= 0:
            return f"it ended with exit code {code}"
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
        return f"it was ended by {name}"

    def kill(self) -> None:
        """End the process at once: a batch that takes minutes must not delay Ctrl-C."""
        atexit.unregister(self.kill)
        self.process.kill()
        self.process.join(10)
        self.connection.close()


def wait_for_workers(workers: Sequence[WorkerProcess[Any]], seconds: float = LOOK_AFTER) -> None:
    """Wait until a worker has sent something or ended, at most this long."""
    wait_for([end for worker in workers for end in (worker.connection, worker.process.sentinel)], max(seconds, 0))


def start_child() -> None:
    """Make this process a worker: it ignores signals for the group, and ends with its parent."""
    for name in ("SIGINT", "SIGTERM", "SIGUSR1"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    if sys.platform == "linux":
        # The thread below waits while a C call holds the interpreter; the kernel does not.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        os._exit(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _serve(connection: Connection) -> None:
    """Build what the parent asks for, then work on task after task until the connection ends."""
    start_child()
    try:
        make, argument = connection.recv()
        work = make(argument)
        connection.send(("ready", None))
        while True:
            for result in work(connection.recv()):
                connection.send(("result", result))
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()  # What the model printed: this process is killed when it is no longer needed.
            connection.send(("done", None))
    except (EOFError, ConnectionError):
        return
    except BaseException as error:
        connection.send(("error", _make_sendable(error)))


def _make_sendable(error: BaseException) -> BaseException:
    """The error itself, or one with its text where it cannot be sent."""
    text = "".join(traceback.format_exception(error))
    try:
        if isinstance(pickle.loads(pickle.dumps(error)), Exception):
            error.add_note(f"in a worker process:\n{text}")
            return error
    except Exception:
        pass
    return RunError(f"a worker process failed: {type(error).__name__}: {error}\n{text}")
