"""A run without `--model` takes its benchmark's default: whoever watches is told which that is, before it starts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from hardlook.contract.benchmark import BenchmarkCard


def progress_that_names_it(card: BenchmarkCard, values: dict[str, Any]) -> Callable[[int, int], Any] | None:
    """The progress of a run, or nothing with `--quiet`; where no model was named, a note on standard error first.

    The note comes with the progress and not before it, so that an error of the options stays one message.
    """
    from hardlook.runs.progress import Silent, progress_for

    shown = None if values["quiet"] else progress_for
    if values["model"] or values["pred"] is not None or not card.default_model:
        return shown
    note = f"no --model given: {card.default_model} answers; `hardlook models --role {card.role}` lists others"
    waiting = [note]

    def told(total: int, done: int) -> Any:
        while waiting:
            typer.echo(waiting.pop(), err=True)
        return shown(total, done) if shown else nullcontext(Silent())

    return told
