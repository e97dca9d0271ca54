"""The command `hardlook`: verbs first, help with examples, errors without tracebacks.

Commands import what they need when they run, so that `--help` answers at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from hardlook.commands import calibrate, check, demo, models, serve, weights, world
from hardlook.commands.attributes import command as attributes
from hardlook.commands.bias.app import app as bias
from hardlook.commands.build.app import app as build
from hardlook.commands.clicks.app import app as clicks
from hardlook.commands.collect.app import app as collect
from hardlook.commands.compare import command as compare
from hardlook.commands.data.app import app as data
from hardlook.commands.file_errors import in_words
from hardlook.commands.labels.app import app as labels
from hardlook.commands.leaderboard import command as leaderboard
from hardlook.commands.reports import export, figure, report, score, table
from hardlook.commands.run import command as run
from hardlook.commands.similarity.app import app as similarity
from hardlook.errors import HardlookError

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
VERBS = (
    *(run, score, report, compare, leaderboard, serve, figure, table, export),
    *(calibrate, demo, models, check, attributes),
)
for module in VERBS:
    module.add_to(app)
app.add_typer(build, name="build")
app.add_typer(bias, name="bias")
app.add_typer(clicks, name="clicks")
app.add_typer(collect, name="collect")
app.add_typer(data, name="data")
app.add_typer(labels, name="labels")
app.add_typer(similarity, name="similarity")
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
        sys.stderr.write(f"hardlook: {in_words(error)}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("\nhardlook: stopped\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
