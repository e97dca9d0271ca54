"""The command `hardlook`: verbs first, help with examples, errors without tracebacks.

Commands import what they need when they run, so that `--help` answers at once.

What the system says of a file, in words that name the file and the remedy.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import typer

from hardlook.cli import (
    calibrate,
    check,
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
from hardlook.models.registry import import_dotted

# Files are written under such a name beside their place first (runs/folder.py); it tells a user nothing.
_BESIDE = re.compile(r"\.(?P<name>.+)\.\d+\.[0-9a-f]{8}")

_WORDS: tuple[tuple[type[OSError], str, str], ...] = (
    (IsADirectoryError, "this is a folder, and a file was expected", "give the name of a file"),
    (NotADirectoryError, "a file stands where a folder was expected", "give a folder, such as that of a run"),
    (FileExistsError, "there is something else of this name already", "choose another name"),
    (FileNotFoundError, "there is no such file or folder, and it cannot be made", "check the path"),
    (PermissionError, "no permission to read or write this", "change its permissions, or choose another place"),
)


def describe_os_error(error: OSError) -> str:
    """The message of an error of the file system: what is wrong, the file, and what to do about it.

    >>> print(describe_os_error(IsADirectoryError(21, "Is a directory", "runs/.x.html.12.0123abcd", None, "runs/x.html")))
    this is a folder, and a file was expected
      file: runs/x.html
      remedy: give the name of a file
    """
    named = error.filename2 or error.filename
    said, remedy = error.strerror or str(error), ""
    for kind, words, advice in _WORDS:
        if isinstance(error, kind) and named:
            said, remedy = words, advice
    file = f"\n  file: {_place(named)}" if isinstance(named, str | bytes | Path) else ""
    return said + file + (f"\n  remedy: {remedy}" if remedy else "")


def _place(named: str | bytes | Path) -> Path:
    """The file that was meant: a name beside its place stands for the place."""
    path = Path(named.decode(errors="replace") if isinstance(named, bytes) else named)
    beside = _BESIDE.fullmatch(path.name)
    return path.with_name(beside["name"]) if beside else path


app = typer.Typer(
    name="hardlook",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
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

# The verbs that all systems share, in the order of `hardlook --help`.
VERBS = (
    *(run.add_to, report.add_score_to, report.add_report_to, compare.add_to, leaderboard.add_to, serve.add_to),
    *(figure.add_figure_to, figure.add_table_to, export.add_to, calibrate.add_to, demo.add_to),
    *(models.add_to, check.add_to),
)
# A system brings its own verbs: they build on this package, so it knows them by name alone.
SYSTEM_VERBS = ("hardlook.toss.commands.attributes:add_to",)
SYSTEM_GROUPS = {
    "build": "hardlook.toss.commands.build:app",
    "bias": "hardlook.toss.commands.bias:app",
    "clicks": "hardlook.rclicks.commands:app",
    "collect": "hardlook.collect.commands.study:app",
    "data": "hardlook.metacoco.commands:app",
    "labels": "hardlook.similarity.commands:labels_app",
    "similarity": "hardlook.similarity.commands:similarity_app",
}

for add_to in (*VERBS, *map(import_dotted, SYSTEM_VERBS)):
    add_to(app)
for group, place in SYSTEM_GROUPS.items():
    app.add_typer(import_dotted(place), name=group)
app.add_typer(weights.app, name="weights")
app.add_typer(world.app, name="world")


def main() -> None:
    """Run the command line; exit 1 on an error, 130 on Ctrl-C, 3 when a run finished with failed units."""
    # Models named as module:attribute are found where the user stands, and shadow nothing that is installed.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        app()
    except HardlookError as error:
        if os.environ.get("HARDLOOK_TRACEBACK"):
            raise
        sys.stderr.write(f"hardlook: {error}\n")
        sys.exit(1)
    except OSError as error:
        if os.environ.get("HARDLOOK_TRACEBACK"):
            raise
        sys.stderr.write(f"hardlook: {describe_os_error(error)}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("\nhardlook: stopped\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
