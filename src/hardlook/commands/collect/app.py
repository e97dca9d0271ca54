"""`hardlook collect`: one command each."""

from __future__ import annotations

import importlib
import importlib.util

import typer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help=(
        "Clicks, reviews and ratings from people: make a study, serve its pages, export what came in.\n\n"
        "[bold]Examples[/bold]\n\n"
        "  hardlook collect init clicks study --data grabcut=GrabCut\n\n"
        "  hardlook collect serve study\n\n"
        "  hardlook collect status study\n\n"
        "  hardlook collect export study --out collected"
    ),
)
init = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help=(
        "Make a study folder.\n\n"
        "[bold]Examples[/bold]\n\n"
        "  hardlook collect init clicks study --data grabcut=GrabCut\n\n"
        "  hardlook collect init review study --data candidates=FOLDER\n\n"
        "  hardlook collect init ratings study --labels voc20 --measures path,wup"
    ),
)
app.add_typer(init, name="init")
for group, verbs in ((init, ("clicks", "review", "ratings")), (app, ("serve", "invite", "status", "export"))):
    for verb in verbs:
        module = f"hardlook.commands.collect.{'init_' if group is init else ''}{verb}"
        if importlib.util.find_spec(module):
            group.command(verb)(getattr(importlib.import_module(module), verb))
