"""Standard output of commands: scorecards as tables, or JSON."""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import io
import json
import os
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from hardlook.errors import RunWarning
from hardlook.report.json_values import dump_json

if TYPE_CHECKING:
    from hardlook.harness.runs.scoring import ScoredRun


def print_scores(scored: ScoredRun, *, as_json: bool, full: bool = False) -> None:
    """Print the scorecard as tables of about 40 lines, all when `full`, or as scores.json; no colour in a pipe."""
    scorecard = scored.scorecard
    if as_json:
        print_output(scorecard.to_json(), end="")
        return
    from rich.console import Console

    from hardlook.report.terminal import print_scorecard

    models = scored.options.list_other_models(scorecard.model)
    print_scorecard(scorecard, Console(), scored.benchmark.card.scores, full=full, models=models)


def print_json(document: Any) -> None:
    """Print a JSON document, the only standard output of a command with `--json`; undefined numbers are null."""
    print_output(dump_json(document))


# Characters of tables and sentences, and what is printed where the encoding of standard output lacks them.
_LIKE = {
    "\N{MINUS SIGN}": "-",
    "\N{EN DASH}": "-",
    "\N{HORIZONTAL ELLIPSIS}": ".",
    "\N{UPWARDS ARROW}": "^",
    "\N{DOWNWARDS ARROW}": "v",
    "\N{BLACK CIRCLE}": "o",
    "\N{BULLET}": "*",
    "\N{MIDDLE DOT}": ".",
    "\N{BOX DRAWINGS LIGHT HORIZONTAL}": "-",
    "\N{BOX DRAWINGS HEAVY HORIZONTAL}": "=",
}


def allow_every_character() -> None:
    """Let standard output take every text: what its encoding lacks is printed as a like character or as in JSON."""
    codecs.register_error("hardlook.like", _replace_character)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="hardlook.like")


def _replace_character(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    # The escapes of JSON, so that a document stays one.
    return _LIKE.get(character) or json.dumps(character)[1:-1], error.start + 1


# Standard output while it is reserved.
_RESERVED: list[TextIO] = []


def get_output() -> TextIO:
    """The stream of a command's own output, also while it is reserved."""
    return _RESERVED[-1] if _RESERVED else sys.stdout


def print_output(text: str, end: str = "\n") -> None:
    """Print what a command has to say on standard output, also while it is reserved."""
    output = get_output()
    output.write(text + end)
    output.flush()


@contextlib.contextmanager
def reserve_output() -> Iterator[None]:
    """Inside, only `print_output` and `print_json` reach standard output.

    Whatever else is printed, by a model and by C code too, goes to standard error: it would spoil a JSON document.
    """
    before = sys.stdout
    try:
        has_descriptor = before.fileno() == 1
    except (OSError, ValueError):  # A stream that tests put there.
        has_descriptor = False
    before.flush()
    if has_descriptor:
        _RESERVED.append(os.fdopen(os.dup(1), "w", encoding=before.encoding, errors=before.errors))
        os.dup2(2, 1)
    else:
        _RESERVED.append(before)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = before
        own = _RESERVED.pop()
        if has_descriptor:
            with contextlib.suppress(OSError, AttributeError):
                ctypes.CDLL(None).fflush(None)  # What C code has printed and not yet written.
            os.dup2(own.fileno(), 1)
            with contextlib.suppress(OSError):
                own.close()


@contextlib.contextmanager
def run_warnings_as_notes() -> Iterator[None]:
    """Print warnings about a run as notes on standard error, each at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", RunWarning)
        show = warnings.showwarning

        def show_note(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, RunWarning):
                sys.stderr.write(f"warning: {message}\n")
            else:
                show(message, category, *where, **more)

        warnings.showwarning = show_note
        yield
