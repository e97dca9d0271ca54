"""The command `hardlook`: all commands with help and examples, errors without tracebacks.

Commands import what they need when they run, so that `--help` is fast.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from hardlook.cli import (
    calibrate,
    compare,
    demo,
    export,
    figure,
    leaderboard,
    models,
    report,
    run,
    serve,
    weights,
    world,
)
from hardlook.errors import HardlookError

# The temporary names of harness/runs/folder.py.
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.\d+\.[0-9a-f]{8}")

_MESSAGES: tuple[tuple[type[OSError], str, str], ...] = (
    (IsADirectoryError, "this is a folder, and a file was expected", "give the name of a file"),
    (NotADirectoryError, "this is a file, and a folder was expected", "give a folder, such as that of a run"),
    (FileExistsError, "this name is already in use", "choose another name"),
    (FileNotFoundError, "there is no such file or folder, and it cannot be made", "check the path"),
    (PermissionError, "no permission to read or write this", "change its permissions, or choose another place"),
)


def describe_os_error(error: OSError) -> str:
    """The message of a file system error: what is wrong, the file, and what to do about it.

    >>> error = IsADirectoryError(21, "Is a directory", "runs/.x.html.12.0123abcd", None, "runs/x.html")
    >>> print(describe_os_error(error))
    this is a folder, and a file was expected
      file: runs/x.html
      remedy: give the name of a file
    """
    named = error.filename2 or error.filename
    what, remedy = error.strerror or str(error), ""
    for kind, message, advice in _MESSAGES:
        if isinstance(error, kind) and named:
            what, remedy = message, advice
    file = f"\n  file: {_final_path(named)}" if isinstance(named, str | bytes | Path) else ""
    return what + file + (f"\n  remedy: {remedy}" if remedy else "")


def _final_path(named: str | bytes | Path) -> Path:
    """The path that a temporary name stands for."""
    path = Path(named.decode(errors="replace") if isinstance(named, bytes) else named)
    temporary = _TEMPORARY.fullmatch(path.name)
    return path.with_name(temporary["name"]) if temporary else path


# The systems' own commands: where each is, and its line of `hardlook --help`. They build on this package, so it names
# them as strings, and imports a system when one of its commands runs.
SYSTEM_COMMANDS = {
    "attributes": (
        "hardlook.toss.commands.attributes:attributes",
        "Measure size, centredness, salience, blobs, distractors and supervised IoU of every mask, at 512 x 512.",
    ),
    "build": ("hardlook.toss.commands.build:app", "Make test sets from your own data."),
    "bias": (
        "hardlook.toss.commands.bias:app",
        "The biases behind one-shot scores: what a model was trained to ignore, and what it looks at instead.",
    ),
    "clicks": (
        "hardlook.rclicks.commands:app",
        "Where people click: click models evaluated, trained and shown, and how hard instances are to click on.",
    ),
    "collect": (
        "hardlook.collect.commands.study:app",
        "Clicks, reviews and ratings from people: make a study, serve its pages, export the answers.",
    ),
    "data": (
        "hardlook.metacoco.commands:app",
        "Datasets of concepts in contexts: what they hold, and which few-shot tasks they allow.",
    ),
    "labels": ("hardlook.similarity.commands:labels_app", "Label sets: list, show, compare and map them."),
    "similarity": (
        "hardlook.similarity.commands:similarity_app",
        "Similarity of labels: a matrix by any measure, and its analysis.",
    ),
}


def load_system_command(name: str) -> Any:
    """The command or group of that name, its system imported."""
    module, _, attribute = SYSTEM_COMMANDS[name][0].partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False, rich_markup_mode="rich", context_settings=_HELP_FLAGS)
        single.command(name)(found)
        found = single
    return typer.main.get_command(found)


class SystemCommand(TyperCommand):
    """A system's command before it is imported: its name and its line of help."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Import the command; from here on it stands in this one's place."""
        return load_system_command(str(self.name)).make_context(info_name, args, parent, **extra)


class Commands(TyperGroup):
    """The commands of this package, then those of the systems."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of `hardlook --help`; `weights` and `world` come last."""
        own = super().list_commands(ctx)
        last = [name for name in ("weights", "world") if name in own]
        return [*(name for name in own if name not in last), *SYSTEM_COMMANDS, *last]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command of this package, or the stand-in of a system's."""
        if cmd_name in SYSTEM_COMMANDS:
            return SystemCommand(cmd_name, help=SYSTEM_COMMANDS[cmd_name][1], callback=None)
        return super().get_command(ctx, cmd_name)


_HELP_FLAGS = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="hardlook",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings=_HELP_FLAGS,
    help=(
        "Evaluation of vision models whose quality an average hides.\n\n"
        "Every score comes with its interval, every slice, and the pictures behind the numbers.\n\n"
        "[bold]Examples[/bold]\n\n"
        "  hardlook demo --out demo\n\n"
        "  hardlook run closed-miou --model planted-segmenter --model-arg stranger=.2 --out runs/first\n\n"
        "  hardlook compare runs/first runs/second\n\n"
        "  hardlook serve runs\n\n"
        "  hardlook models --role semantic-segmenter"
    ),
)

# In the order of `hardlook --help`, after `run`.
COMMANDS: dict[str, Callable[..., None]] = {
    "score": report.score,
    "report": report.report,
    "compare": compare.compare,
    "leaderboard": leaderboard.leaderboard,
    "serve": serve.serve,
    "figure": figure.figure,
    "table": figure.table,
    "export": export.export,
    "calibrate": calibrate.calibrate,
    "demo": demo.demo,
    "models": models.models,
    "check": models.check,
}
app.command("run", context_settings=run.PASSED_ON)(run.run)
for name, command in COMMANDS.items():
    app.command(name)(command)
app.add_typer(weights.app, name="weights")
app.add_typer(world.app, name="world")


def main() -> None:
    """Run the command line; exit 1 on an error, 130 on Ctrl-C, 3 when a run finished with failed units."""
    # Models named as module:attribute are found in the current folder, after everything that is installed.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        app()
    except (HardlookError, OSError) as error:
        if os.environ.get("HARDLOOK_TRACEBACK"):
            raise
        message = describe_os_error(error) if isinstance(error, OSError) else str(error)
        sys.stderr.write(f"hardlook: {message}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("\nhardlook: stopped\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
