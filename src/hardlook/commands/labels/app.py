"""`hardlook labels list|show|differences|map`: label sets, their senses, and help with a new vocabulary."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hardlook.commands.printing import print_json

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Label sets: list, show, compare and map them.")
_Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
_Set = Annotated[str, typer.Argument(help="A name from `hardlook labels list`, or a file of labels.")]


@app.command("list")
def list_all(as_json: _Json = False) -> None:
    """List the label sets that ship with hardlook.

    [bold]Example[/bold]

      hardlook labels list
    """
    from hardlook.labels import list_label_sets

    sets = list_label_sets()
    if as_json:
        print_json([asdict(shipped) for shipped in sets])
        return
    rows = [
        (
            shipped.name,
            shipped.title,
            ", ".join(shipped.variants),
            "; ".join(_numbering(shipped.numbering, shipped.category_numbering)),
        )
        for shipped in sets
    ]
    _print_table(("name", "labels", "senses", "ids"), rows)


@app.command("show")
def show(
    labels: _Set,
    variant: Annotated[str, typer.Option("--variant", help="corrected or published senses.")] = "corrected",
    as_json: _Json = False,
) -> None:
    """Show the labels of a set with their senses and glosses.

    [bold]Examples[/bold]

      hardlook labels show coco133

      hardlook labels show ade150 --variant published --json
    """
    from hardlook.labels import load_label_set
    from hardlook.wordnet import load_nouns

    nouns = load_nouns()
    rows = []
    for label in load_label_set(labels, variant, nouns=nouns):
        synset = label.synset or label.hypernym
        about = nouns.sense(nouns.index(synset)) if synset else None
        rows.append(
            {**asdict(label), "offset": about.offset if about else None, "gloss": about.gloss if about else None}
        )
    if as_json:
        print_json(rows)
        return
    _print_table(
        ("id", "name", "sense", "gloss"),
        [
            (str(row["id"]), str(row["name"]), _sense(row["synset"], row["hypernym"]), str(row["gloss"] or ""))
            for row in rows
        ],
    )


@app.command("differences")
def differences(labels: Annotated[str, typer.Argument(help="A shipped set.")], as_json: _Json = False) -> None:
    """Show where the corrected senses differ from the published ones, and why.

    [bold]Example[/bold]

      hardlook labels differences ade150
    """
    from hardlook.labels import find_differences

    found = find_differences(labels)
    if as_json:
        print_json([asdict(difference) for difference in found])
        return
    rows = [(one.label, one.published or "none", _sense(one.synset, one.hypernym), one.reason) for one in found]
    _print_table(("label", "published", "corrected", "why"), rows)


@app.command("map")
def map_names(
    names: Annotated[Path, typer.Argument(help="Labels: a name a line, `id: name`, or CSV, TSV, JSON.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The table to write (default: NAMES-senses.csv); choices already in it are kept."),
    ] = None,
    ask: Annotated[
        bool | None, typer.Option("--ask/--no-ask", help="Ask for each name; default: on a terminal.")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Find the senses of a new vocabulary: asks on a terminal, else writes a table to edit. Nothing is guessed.

    [bold]Examples[/bold]

      hardlook labels map names.txt --out labels.csv

      hardlook labels map objectInfo847.txt --out ade847.csv --no-ask
    """
    from hardlook.commands.labels.sense_prompt import ask_for_senses
    from hardlook.errors import OptionError
    from hardlook.labels import ask_about, load_label_set
    from hardlook.labels.mapping_file import keep_choices, write_mapping
    from hardlook.wordnet import load_nouns

    out = out or names.with_name(f"{names.stem}-senses.csv")
    if out.suffix.lower() != ".csv":
        raise OptionError(f"--out {out} must be a .csv file", remedy=f"--out {out.with_suffix('.csv')}")
    nouns = load_nouns()
    labels = load_label_set(names, nouns=nouns).labels
    if out.is_file():
        labels = keep_choices(labels, load_label_set(out, nouns=nouns).labels)
    questions = ask_about(labels, nouns)
    if ask or (ask is None and not as_json and sys.stdin.isatty() and sys.stdout.isatty()):
        questions = ask_for_senses(questions, nouns)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(write_mapping(questions), encoding="utf-8")
    counts = {state: 0 for state in ("chosen", "proposed", "choose", "absent")}
    for question in questions:
        counts[question.state] += 1
    if as_json:
        print_json({"out": str(out), **counts})
        return
    typer.echo(f"{out}: {', '.join(f'{count} {state}' for state, count in counts.items())}")
    if counts["chosen"] < len(questions):
        typer.echo("Open labels have their candidates below them as comments: edit the table, or run this again.")


def _numbering(ids: str, categories: str | None) -> tuple[str, ...]:
    return (f"id: {ids}",) if categories is None else (f"id: {ids}", categories)


def _sense(synset: object, hypernym: object) -> str:
    return str(synset) if synset else f"under {hypernym}" if hypernym else "none"


def _print_table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold", no_wrap=title != titles[-1])
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    Console().print(table)
