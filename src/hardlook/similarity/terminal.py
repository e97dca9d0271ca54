"""Terminal output of `hardlook similarity` and `hardlook labels`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from hardlook.similarity.analysis import Analysis

MAX_TREATED_LABELS = 8

_STATES = {"ready": "ready", "source": "with --source", "install": "to install"}


def print_matrix(document: Mapping[str, Any]) -> None:
    """Print a summary by `report.describe_matrix`; without an output file, the most similar pairs as well."""
    console = Console(highlight=False)
    variant = "" if document["variant"] == "file" else f" ({document['variant']})"
    title = f"{document['labels']}{variant}, {document['count']} labels: {document['measure']}"
    console.print(Text(title, style="bold"))
    console.print(Text(document["description"], style="dim"))
    table = _create_table("", "mean", "std")
    table.add_row("all cells, with the diagonal", f"{document['mean']:.4f}", f"{document['std']:.4f}")
    table.add_row("pairs of different labels", *(f"{document[f'{key}_off_diagonal']:.4f}" for key in ("mean", "std")))
    published, treated = document["published"], document["treated"]
    if published:
        table.add_row("published, other labels (ImageNet-1k)", f"{published['mean']:.3f}", f"{published['std']:.3f}")
    console.print(table)
    if published:
        console.print(Text(f"The published figures are {published['note']}.", style="dim"))
    if treated:
        console.print(Text(f"{len(treated)} of {document['count']} labels were not simply looked up:"))
        for one in treated[:MAX_TREATED_LABELS]:
            console.print(Text(f"  {one['label']}: {one['how']}"))
        if len(treated) > MAX_TREATED_LABELS:
            console.print(Text(f"  and {len(treated) - MAX_TREATED_LABELS} more (--json lists all)"))
    if document["out"]:
        console.print(Text(f"written: {document['out']}"))
        return
    console.print(Text("\nMost similar pairs", style="bold"))
    for pair in document["pairs"]:
        console.print(Text(f"  {pair['similarity']:.4f}  {pair['first']}, {pair['second']}"))


def print_analysis(analysis: Analysis) -> None:
    """Print mean and standard deviation of every measure, and the measures left out."""
    labels = analysis.labels
    typer.echo(f"{labels.name} ({labels.variant}), {len(labels)} labels; means with the diagonal")
    for name, view in analysis.views.items():
        typer.echo(f"  {name:10} mean {view.summary.mean:.4f}  std {view.summary.std:.4f}")
    for one in analysis.left_out:
        typer.echo(f"  {one.name:10} left out: {one.why}")


def print_measures(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the measures by `measures.list_measures` as a table."""
    table = _create_table("measure", "state", "definition and requirements")
    for row in rows:
        install = f" Install: {'; '.join(row['install'])}." if row["install"] else ""
        needs = f"Needs {row['needs']}.{install}"
        table.add_row(row["name"], _STATES[row["state"]], f"{escape(row['sentence'])} [dim]{escape(needs)}[/dim]")
    Console(highlight=False).print(table)


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of plain text; the last column wraps."""
    table = _create_table(*titles)
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    Console().print(table)


def _create_table(*titles: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold", no_wrap=title != titles[-1])
    return table
