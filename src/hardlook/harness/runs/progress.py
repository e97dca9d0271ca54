"""Progress with rate and time left: a bar on a terminal, one line per minute elsewhere."""

from __future__ import annotations

import importlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Self, TextIO

LINE_SECONDS = 60.0
DRAW_SECONDS = 0.25  # between two drawings of a bar in a notebook


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


class NotebookProgress(NoProgress):
    """A bar in the output of a notebook's cell, drawn at most a few times per second."""

    def __init__(self, total: int, done: int) -> None:
        shown: Any = importlib.import_module("IPython.display")
        self.total, self.done, self.failed = total, done, 0
        self.start, self.start_done, self.drawn = time.monotonic(), done, -math.inf
        self.html = shown.HTML
        self.handle = shown.display(self.html(self.draw()), display_id=True)

    def draw(self) -> str:
        """The bar as HTML, with the rate and the time left."""
        rate = (self.done - self.start_done) / max(time.monotonic() - self.start, 1e-9)
        left = format_duration((self.total - self.done) / rate) if rate > 0 else "unknown time"
        failed = f", {self.failed} failed" if self.failed else ""
        bar = f'<progress value="{self.done}" max="{self.total}" style="width:20em"></progress>'
        return f"{bar} {self.done} of {self.total} units{failed}, {rate:.1f}/s, {left} left"

    def advance(self, units: int, failed: int) -> None:
        """Move the bar."""
        self.done += units
        self.failed += failed
        if time.monotonic() - self.drawn >= DRAW_SECONDS or self.done >= self.total:
            self.drawn = time.monotonic()
            self.handle.update(self.html(self.draw()))


def is_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def make_progress(total: int, done: int) -> NoProgress:
    """A bar in a notebook or where standard error is a terminal, else lines."""
    if is_notebook():
        return NotebookProgress(total, done)
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
    """Yield a function that starts a bar over (total, done) and returns the function that advances it.

    A bar ends when the next one starts: a terminal shows one at a time.
    """
    with ExitStack() as stack:

        def start(total: int, done: int) -> Callable[[int, int], None]:
            stack.close()
            if quiet or done >= total:
                return lambda units, failed: None
            return stack.enter_context(make_progress(total, done)).advance

        yield start


def follow_steps(start_bar: StartProgress) -> Callable[..., None]:
    """A function (total, step, ...) for a training: it starts a bar at the first step that it gets, and advances it."""
    bar: list[Callable[[int, int], None]] = []

    def show(total: int, step: int, *_: int) -> None:
        if not bar:
            bar.append(start_bar(total, step - 1))
        bar[0](1, 0)

    return show
