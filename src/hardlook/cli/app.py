"""The command `hardlook`: errors without tracebacks, and commands that are imported when they run."""

from __future__ import annotations

import errno
import importlib
import os
import re
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from hardlook import __version__
from hardlook.cli.help_pages import App, HelpCommand, HelpGroup
from hardlook.cli.printing import allow_every_character
from hardlook.cloud.addresses import replace_copies
from hardlook.errors import HardlookError, find_unreadable_name

# The temporary names of harness/runs/folder.py.
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.\d+\.[0-9a-f]{8}")

_MESSAGES: tuple[tuple[type[OSError], str, str], ...] = (
    (IsADirectoryError, "this is a folder, and a file was expected", "give the name of a file"),
    (NotADirectoryError, "this is a file, and a folder was expected", "give a folder, such as that of a run"),
    (FileExistsError, "this name is already in use", "choose another name"),
    (FileNotFoundError, "there is no such file or folder, and it cannot be made", "check the path"),
    (PermissionError, "no permission to read or write this", "change its permissions, or choose another place"),
)

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
    if error.errno in _NO_SPACE:
        remedy = "free some space, or raise the quota or limit, and repeat the command: a run resumes"
    file = f"\n  file: {_final_path(named)}" if isinstance(named, str | bytes | Path) else ""
    return what + file + (f"\n  remedy: {remedy}" if remedy else "")


def _final_path(named: str | bytes | Path) -> Path:
    """The path that a temporary name stands for."""
    path = Path(named.decode(errors="replace") if isinstance(named, bytes) else named)
    temporary = _TEMPORARY.fullmatch(path.name)
    return path.with_name(temporary["name"]) if temporary else path


# Every command: where it is, and its line of `hardlook --help`. A command is imported when it runs, so that `--help` is
# fast; those of the systems build on this package, so it knows them by these strings alone.
COMMANDS = {
    "run": ("hardlook.cli.run:run", "Run a benchmark, or resume a run."),
    "train": (
        "hardlook.cli.train:train",
        "Train a few-shot method, a one-shot or interactive network, or a word projection: a model for `hardlook run`.",
    ),
    "score": ("hardlook.cli.report:score", "Recompute the scores of a run from its records."),
    "report": ("hardlook.cli.report:report", "Write `report.html` into run folders, from their records."),
    "compare": (
        "hardlook.cli.compare:compare",
        "Compare runs on the units that they share: differences, tests, ranking, and who wins where.",
    ),
    "gate": (
        "hardlook.cli.compare:gate",
        "Compare a run with a baseline on the units that they share, and exit with 5 where it is worse.",
    ),
    "leaderboard": (
        "hardlook.cli.leaderboard:leaderboard",
        "Rank all runs below a folder, with the results of the paper in the same table.",
    ),
    "serve": (
        "hardlook.cli.serve:serve",
        "Serve an explorer of all runs below a folder: filter, sort, open units, compare models.",
    ),
    "figure": ("hardlook.cli.report:figure", "Write one chart of a run's report as SVG, PDF, PNG or CSV."),
    "table": (
        "hardlook.cli.report:table",
        "Print one table of a run: `scores`, `all-scores`, `left-out`, `readings`, or any of its report.",
    ),
    "export": (
        "hardlook.cli.export:export",
        "Write a run as one JSON document: what ran, scores, failures, charts as data, and records.",
    ),
    "export pairs": (
        "hardlook.toss.commands.export_pairs:export_pairs",
        "Write the images and masks of every one-shot pair, for models that do not run in Python.",
    ),
    "join": (
        "hardlook.cli.report:join",
        "Make one run of runs on different units, such as those of the models of four folds.",
    ),
    "verify": (
        "hardlook.cli.verify:verify",
        "Check every file of runs for damage; with --repair, evaluate again what was lost.",
    ),
    "calibrate": (
        "hardlook.cli.calibrate:calibrate",
        "Show that a benchmark measures what it says, on models whose faults are known.",
    ),
    "demo": (
        "hardlook.cli.demo:demo",
        "Run each benchmark on the planted world, with a sound and a faulty model, compare the two, and calibrate it.",
    ),
    "models": ("hardlook.cli.models:models", "List models with role, marks, licence and what to install."),
    "check": (
        "hardlook.cli.models:check",
        "Try a model: shapes, ranges, determinism, batch against one by one, inputs left alone, devices.",
    ),
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
        "Where people click: evaluate, train and show click models, and measure how hard instances are to click on.",
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
    "weights": ("hardlook.cli.weights:app", "Weights: list, install and locate them."),
    "world": ("hardlook.cli.world:app", "The planted world: scenes with known truth."),
}


def load_command(name: str) -> Any:
    """The command or group of that name, its module imported."""
    place, _, attribute = COMMANDS[name][0].partition(":")
    module = importlib.import_module(place)
    found = getattr(module, attribute)
    if isinstance(found, typer.Typer):
        return typer.main.get_group(found)  # not get_command, which would add the flags of shell completion
    single = App()
    special = {"cls": module.RunCommand} if name == "run" else {}
    if raw := getattr(module, "RAW_ARGUMENTS", None):
        special["context_settings"] = raw
    single.command(name, **special)(found)
    return typer.main.get_command(single)


class LazyCommand(HelpCommand):
    """A command before it is imported: its name and its line of help."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Import the command, and make its context in place of this one's."""
        longer = f"{self.name} {args[0]}" if args else ""
        if longer in COMMANDS:
            return load_command(longer).make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return load_command(str(self.name)).make_context(info_name, args, parent, **extra)


class LazyGroup(HelpGroup):
    """The group of `COMMANDS`, in the order of `hardlook --help`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: LazyCommand(name, help=line, callback=None) for name, (_, line) in COMMANDS.items()}


app = App(
    name="hardlook",
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=True,
    help=(
        "Evaluation of vision models whose quality an average hides.\n\n"
        "Every score comes with its interval, every slice, and the pictures behind the numbers.\n\n"
        "Examples:\n\n"
        "  hardlook demo --out demo\n\n"
        "  hardlook run closed-miou --model planted-segmenter --model-arg stranger=.2 --out runs/first\n\n"
        "  hardlook compare runs/first runs/second\n\n"
        "  hardlook serve runs\n\n"
        "  hardlook models --role semantic-segmenter"
    ),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hardlook {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """The options before the command; its help is that of the app."""


def _reserve_output_for_json() -> AbstractContextManager[None]:
    if "--json" not in sys.argv[1:] or not {"-h", "--help"}.isdisjoint(sys.argv[1:]):
        return nullcontext()
    from hardlook.cli.printing import reserve_output

    return reserve_output()


def main() -> None:
    """Run the command line; exit 1 on an error, 130 on Ctrl-C, 143 on SIGTERM, 3 when units failed."""
    # Models named as module:attribute are found in the current folder, after everything that is installed.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    allow_every_character()
    try:
        with _reserve_output_for_json():
            app(prog_name="hardlook")
    except UnicodeEncodeError as error:
        unreadable = find_unreadable_name(error)
        if os.environ.get("HARDLOOK_TRACEBACK") or unreadable is None:
            raise
        sys.stderr.write(f"hardlook: {unreadable}\n")
        sys.exit(1)
    except (HardlookError, OSError) as error:
        if os.environ.get("HARDLOOK_TRACEBACK"):
            raise
        message = describe_os_error(error) if isinstance(error, OSError) else str(error)
        sys.stderr.write(f"hardlook: {replace_copies(message)}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("\nhardlook: stopped\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
