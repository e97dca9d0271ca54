"""Progress with rate and time left: a bar on a terminal, one line per minute elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Self, TextIO

LINE_SECONDS = 60.0


class NoProgress:
    """Shows nothing."""

    def advance(self, units: int, failed: int) -> None:
        """Count units, of which some failed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        pass


class LineProgress(NoProgress):
    """One line per minute, for logs: done, rate, time left."""

    def __init__(self, total: int, done: int, stream: TextIO | None = None) -> None:
        self.total, self.done, self.failed = total, done, 0
        self.stream = stream or sys.stderr
        self.start, self.start_done, self.written = time.monotonic(), done, time.monotonic()

    def advance(self, units: int, failed: int) -> None:
        """Count units, and write a line when a minute has passed or all are done."""
        self.done += units
        self.failed += failed
        now = time.monotonic()
        if now - self.written >= LINE_SECONDS or self.done >= self.total:
            self.written = now
            rate = (self.done - self.start_done) / max(now - self.start, 1e-9)
            left = (self.total - self.done) / rate if rate > 0 else 0.0
            self.stream.write(
                f"{self.done}/{self.total} units, {self.failed} failed, {rate:.1f}/s, {format_duration(left)} left\n"
            )
            self.stream.flush()


class BarProgress(NoProgress):
    """A bar with rate and time left, for terminals."""

    def __init__(self, total: int, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self.bar: Any = RichProgress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self.task = self.bar.add_task("units", total=total, completed=done, rate="")
        self.failed, self.units, self.start = 0, 0, time.monotonic()

    def advance(self, units: int, failed: int) -> None:
        """Move the bar."""
        self.failed += failed
        self.units += units
        rate = f"{self.units / max(time.monotonic() - self.start, 1e-9):.1f}/s"
        if self.failed:
            rate += f" [red]{self.failed} failed"
        self.bar.update(self.task, advance=units, rate=rate)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.bar.stop()


def make_progress(total: int, done: int) -> NoProgress:
    """A bar where standard error is a terminal, else lines."""
    return BarProgress(total, done) if sys.stderr.isatty() else LineProgress(total, done)


def format_duration(seconds: float) -> str:
    """A duration as text.

    >>> format_duration(3725), format_duration(59)
    ('1 h 2 min', '59 s')
    """
    if seconds >= 3600:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s" if seconds >= 60 else f"{int(seconds)} s"


StartProgress = Callable[[int, int], Callable[[int, int], None]]


@contextmanager
def open_progress(quiet: bool) -> Iterator[StartProgress]:
    """Yield a function that starts a bar over (total, done) and returns the function that advances it."""
    with ExitStack() as stack:

        def start(total: int, done: int) -> Callable[[int, int], None]:
            if quiet or done >= total:
                return lambda units, failed: None
            return stack.enter_context(make_progress(total, done)).advance

        yield start
