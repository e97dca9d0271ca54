"""Signals that stop a run as Ctrl-C does: SIGTERM (`kill`, Slurm, Kubernetes) and SIGUSR1 (Slurm's `--signal=USR1@60`).

What is answered is written, the session is noted as stopped, and the same command resumes.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

STOPPING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name))


class StoppedBySignal(KeyboardInterrupt):
    """The signal `number` asked the process to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def get_exit_code(error: KeyboardInterrupt) -> int:
    """The exit code of a process that ends by this error: 128 and the number of the signal, as shells have it.

    >>> get_exit_code(KeyboardInterrupt()), get_exit_code(StoppedBySignal(signal.SIGTERM))
    (130, 143)
    """
    return 128 + (error.number if isinstance(error, StoppedBySignal) else signal.SIGINT)


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Inside, stopping signals raise `StoppedBySignal`, except those for which the program has a handler of its own.

    That of Ray, which ends the process at once, is replaced.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOPPING}
    ours = {
        number: handler
        for number, handler in before.items()
        if handler is signal.SIG_DFL or str(getattr(handler, "__module__", "")).startswith("ray.")
    }
    for number in ours:
        signal.signal(number, raise_stopped)
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def kept_signal_handlers() -> Iterator[None]:
    """Keep the handlers of stopping signals while a library starts that installs its own, as Ray does."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)


def ignore_stopping_signals() -> None:
    """Ignore further stopping signals inside `stopped_by_signals`, so that what is answered can be written."""
    if threading.current_thread() is threading.main_thread():
        for number in STOPPING:
            if signal.getsignal(number) is raise_stopped:
                signal.signal(number, signal.SIG_IGN)


def raise_stopped(number: int, frame: FrameType | None) -> None:
    """The handler of stopping signals."""
    raise StoppedBySignal(number)
