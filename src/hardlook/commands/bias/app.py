"""`hardlook bias`: the biases behind one-shot scores, one command each."""

from __future__ import annotations

import typer

from hardlook.commands.bias.information import information
from hardlook.commands.bias.negatives import negatives
from hardlook.commands.bias.select import select
from hardlook.commands.run.command import add_study

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help=(
        "The biases behind one-shot scores: what a model was trained to ignore, and what it looks at instead.\n\n"
        "[bold]Examples[/bold]\n\n"
        "  hardlook bias select --data voc=VOC2012 --split train --saliency u2netp --fold 0 --out selection\n\n"
        "  hardlook bias negatives --data voc=VOC2012 --run runs/toss --out negatives\n\n"
        "  hardlook bias information --attributes attributes.csv --run runs/toss --out information\n\n"
        "  hardlook bias support --data voc=VOC2012 --model prototype --out support\n\n"
        "  hardlook bias saliency --data voc=VOC2012 --model prototype --saliency u2netp --out saliency"
    ),
)
app.command("select")(select)
app.command("negatives")(negatives)
app.command("information")(information)
add_study(app, "support", "bias-support", "What a model still finds when its support misleads it.")
add_study(app, "saliency", "bias-saliency", "Salient against other targets, with and without suppression (SSSI).")
