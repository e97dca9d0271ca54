"""`hardlook collect`: one command each."""

from __future__ import annotations

import typer

from hardlook.commands.collect.export import export
from hardlook.commands.collect.init_clicks import clicks
from hardlook.commands.collect.init_ratings import ratings
from hardlook.commands.collect.init_review import review
from hardlook.commands.collect.invite import invite
from hardlook.commands.collect.rehearse import rehearse
from hardlook.commands.collect.serve import serve
from hardlook.commands.collect.status import status

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help=(
        "Clicks, reviews and ratings from people: make a study, serve its pages, export what came in.\n\n"
        "[bold]Examples[/bold]\n\n"
        "  hardlook collect init clicks study --data grabcut=GrabCut\n\n"
        "  hardlook collect rehearse study\n\n"
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
init.command("clicks")(clicks)
init.command("review")(review)
init.command("ratings")(ratings)
app.command("rehearse")(rehearse)
app.command("serve")(serve)
app.command("invite")(invite)
app.command("status")(status)
app.command("export")(export)
