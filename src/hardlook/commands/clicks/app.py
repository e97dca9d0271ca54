"""`hardlook clicks`: where people click, one command each."""

from __future__ import annotations

import typer

from hardlook.commands.clicks.difficulty import difficulty
from hardlook.commands.clicks.evaluate import evaluate
from hardlook.commands.clicks.show import show
from hardlook.commands.clicks.train import train

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help=(
        "Where people click: click models judged, trained and shown, and instances that clicks decide.\n\n"
        "[bold]Examples[/bold]\n\n"
        "  hardlook clicks evaluate --models uniform,distance --out evaluation\n\n"
        "  hardlook clicks train --user-clicks clicks.csv --data tetris=TETRIS --out training\n\n"
        "  hardlook clicks show photo.jpg mask.png --model distance,uniform --out shown\n\n"
        "  hardlook clicks difficulty runs/mobile-sam runs/grabcut --out difficulty"
    ),
)
app.command("evaluate")(evaluate)
app.command("show")(show)
app.command("train")(train)
app.command("difficulty")(difficulty)
