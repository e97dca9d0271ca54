"""`hardlook data`: datasets of concepts in contexts, looked at before anything runs on them."""

from __future__ import annotations

import typer

from hardlook.commands.data.from_voc import contexts_from_voc
from hardlook.commands.data.inspection import inspect
from hardlook.commands.data.plant import plant
from hardlook.commands.data.spuriousness import spuriousness

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help=(
        "Datasets of concepts in contexts: what is in them, and what can be asked of them.\n\n"
        "[bold]Examples[/bold]\n\n"
        "  hardlook data inspect --data DIR --out inspection\n\n"
        "  hardlook data spuriousness --data DIR --encoder efficientnet-lite0 --out spuriousness\n\n"
        "  hardlook data plant-contexts --data CLASS_FOLDERS --contexts snow,dusk --out planted\n\n"
        "  hardlook data contexts-from-voc --data VOCdevkit --out voc-contexts"
    ),
)
app.command("inspect")(inspect)
app.command("spuriousness")(spuriousness)
app.command("plant-contexts")(plant)
app.command("contexts-from-voc")(contexts_from_voc)
