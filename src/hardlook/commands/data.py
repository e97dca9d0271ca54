"""`hardlook data`: datasets of concepts in contexts, looked at before anything runs on them."""

from __future__ import annotations

import typer

from hardlook.commands.data_inspect import inspect

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help=(
        "Datasets of concepts in contexts: what is in them, and what can be asked of them.\n\n"
        "[bold]Examples[/bold]\n\n"
        "  hardlook data inspect --data DIR --out inspection"
    ),
)


@app.callback()
def about() -> None:
    """Datasets of concepts in contexts: what is in them, and what can be asked of them."""


app.command("inspect")(inspect)
