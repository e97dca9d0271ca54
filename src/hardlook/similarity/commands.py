"""`hardlook similarity LABELS|analyse|measures` and `hardlook labels list|show|differences|map`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hardlook.cli import arguments
from hardlook.cli.help_pages import App, HelpGroup
from hardlook.cli.printing import print_json
from hardlook.harness.rounding import format_fixed

if TYPE_CHECKING:
    from rich.table import Table

    from hardlook.similarity.label_synsets import UnknownPolicy

_MAKE = "make"
MAX_TREATED_LABELS = 8
_STATES = {"ready": "ready", "source": "with --source", "install": "to install"}


class _LabelsOrVerb(HelpGroup):
    """A first word that is not a verb of this group is the LABELS argument of `make`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [_MAKE, *args]
        return super().parse_args(ctx, args)


similarity_app = App(
    cls=_LabelsOrVerb,
    no_args_is_help=True,
    help=(
        "Similarity of labels: a matrix by any measure, and its analysis.\n\n"
        "`hardlook similarity LABELS ...` is short for `hardlook similarity make LABELS ...`.\n\n"
        "Examples:\n\n"
        "  hardlook similarity coco80 --measure path --out S.csv\n\n"
        "  hardlook similarity analyse coco80 --out analysis\n\n"
        "  hardlook similarity measures"
    ),
)
labels_app = App(no_args_is_help=True, help="Label sets: list, show, compare and map them.")

_Labels = Annotated[str, typer.Argument(help="A name from `hardlook labels list`, or a file of labels.")]
_Variant = Annotated[str, typer.Option("--variant", help="Senses of a shipped set: corrected or published.")]
_Unknown = Annotated[
    str, typer.Option("--unknown", help="Labels that the measure does not know: hypernym, zero, error or random.")
]
_Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of --unknown random.")]


@similarity_app.command(_MAKE)
def make(
    labels: _Labels,
    measure: Annotated[str, typer.Option("--measure", help="A name from `hardlook similarity measures`.")] = "path",
    variant: _Variant = "corrected",
    source: Annotated[
        Path | None, typer.Option("--source", help="Word vectors or model folder, for measures that take one.")
    ] = None,
    unknown: _Unknown = "hypernym",
    seed: _Seed = 0,
    model_arg: Annotated[
        list[str] | None, typer.Option("--model-arg", help="KEY=VALUE for a text encoder; repeatable.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The matrix: S.csv, S.npy or S.parquet.")] = None,
    as_json: arguments.Json = False,
) -> None:
    """Make the similarity matrix of a label set; without --out, show its summary and the most similar pairs.

    Examples:
      hardlook similarity ade150 --measure wup --variant published --out S.csv

      hardlook similarity my-labels.csv --measure word2vec --source vectors.bin --out S.npy
    """
    from hardlook.similarity.label_sets import load_label_set
    from hardlook.similarity.matrix_files import check_suffix, write_matrix
    from hardlook.similarity.measures import compute_similarity
    from hardlook.similarity.report import describe_matrix

    if out is not None:
        check_suffix(out)
    label_set = load_label_set(labels, variant)
    result = compute_similarity(
        label_set,
        measure,
        source=source,
        unknown=cast("UnknownPolicy", unknown),
        seed=seed,
        arguments=arguments.parse_pairs(model_arg, "--model-arg"),
    )
    if out is not None:
        write_matrix(out, result.matrix, result.names)
    document = describe_matrix(label_set, result, out)
    if as_json:
        print_json(document)
    else:
        _print_matrix(document)


def _print_matrix(document: Mapping[str, Any]) -> None:
    """Print a summary by `report.describe_matrix`; without an output file, the most similar pairs as well."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    variant = "" if document["variant"] == "file" else f" ({document['variant']})"
    title = f"{document['labels']}{variant}, {document['count']} labels: {document['measure']}"
    console.print(Text(title, style="bold"))
    console.print(Text(document["description"], style="dim"))
    table = _create_table("", "mean", "std")
    table.add_row("all cells, with the diagonal", format_fixed(document["mean"], 4), format_fixed(document["std"], 4))
    table.add_row(
        "pairs of different labels", *(format_fixed(document[f"{key}_off_diagonal"], 4) for key in ("mean", "std"))
    )
    published, treated = document["published"], document["treated"]
    if published:
        table.add_row(
            "published, other labels (ImageNet-1k)",
            format_fixed(published["mean"], 3),
            format_fixed(published["std"], 3),
        )
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
        console.print(Text(f"  {format_fixed(pair['similarity'], 4)}  {pair['first']}, {pair['second']}"))


@similarity_app.command("analyse")
def analyse(
    labels: _Labels,
    out: Annotated[Path, typer.Option("--out", help="Folder for analysis.html and analysis.json.")] = Path("analysis"),
    measures: Annotated[
        str | None, typer.Option("--measures", help="Names separated by commas; default: all that are available.")
    ] = None,
    variant: _Variant = "corrected",
    source: Annotated[
        list[str] | None, typer.Option("--source", help="MEASURE=PATH of vectors or a model folder; repeatable.")
    ] = None,
    neighbours: Annotated[
        list[str] | None, typer.Option("--neighbours", help="A label whose neighbours to list; repeatable.")
    ] = None,
    unknown: _Unknown = "hypernym",
    seed: _Seed = 0,
    as_json: arguments.Json = False,
) -> None:
    """Compare measures on a label set: mean, spread, density, heat maps, neighbours, polysemy, agreement.

    Examples:
      hardlook similarity analyse coco80 --out analysis

      hardlook similarity analyse ade150 --measures path,wup,word2vec --source word2vec=vectors.bin --neighbours palm
    """
    from hardlook.similarity.analysis import analyse_labels
    from hardlook.similarity.label_sets import load_label_set
    from hardlook.similarity.report import write_analysis

    label_set = load_label_set(labels, variant)
    analysis = analyse_labels(
        label_set,
        None if measures is None else [name.strip() for name in measures.split(",") if name.strip()],
        sources=arguments.parse_paths(source, "--source"),
        unknown=cast("UnknownPolicy", unknown),
        seed=seed,
        neighbours_of=[label_set.labels.index(label_set.find(name)) for name in neighbours or []],
    )
    document = write_analysis(analysis, out)
    if as_json:
        print_json(document)
        return
    typer.echo(f"{label_set.name} ({label_set.variant}), {len(label_set)} labels; means with the diagonal")
    for name, view in analysis.views.items():
        typer.echo(f"  {name:10} mean {format_fixed(view.summary.mean, 4)}  std {format_fixed(view.summary.std, 4)}")
    for name, why in analysis.left_out.items():
        typer.echo(f"  {name:10} left out: {why}")
    typer.echo(f"\npage: {out / 'analysis.html'}")


@similarity_app.command("measures")
def measures(as_json: arguments.Json = False) -> None:
    """List the measures: their definitions and requirements, and which are available.

    Example:
      hardlook similarity measures
    """
    from rich.console import Console
    from rich.markup import escape

    from hardlook.similarity.measures import list_measures

    rows = list_measures()
    if as_json:
        print_json(rows)
        return
    table = _create_table("measure", "state", "definition and requirements")
    for row in rows:
        install = f" Install: {'; '.join(row['install'])}." if row["install"] else ""
        needs = f"Needs {row['needs']}.{install}"
        table.add_row(row["name"], _STATES[row["state"]], f"{escape(row['sentence'])} [dim]{escape(needs)}[/dim]")
    Console(highlight=False).print(table)


@labels_app.command("list")
def list_sets(as_json: arguments.Json = False) -> None:
    """List the label sets that ship with hardlook.

    Example:
      hardlook labels list
    """
    from hardlook.similarity.label_sets import list_label_sets

    sets = list_label_sets()
    if as_json:
        print_json([asdict(one) for one in sets])
        return
    rows = []
    for one in sets:
        numbering = "; ".join(filter(None, (f"id: {one.numbering}", one.category_numbering)))
        rows.append((one.name, one.title, ", ".join(one.variants), numbering))
    _print_table(("name", "labels", "senses", "ids"), rows)


@labels_app.command("show")
def show(labels: _Labels, variant: _Variant = "corrected", as_json: arguments.Json = False) -> None:
    """Show the labels of a set with their senses and glosses.

    Examples:
      hardlook labels show coco133

      hardlook labels show ade150 --variant published --json
    """
    from hardlook.similarity.label_sets import load_label_set
    from hardlook.similarity.wordnet.nouns import load_nouns

    nouns = load_nouns()
    rows, document = [], []
    for label in load_label_set(labels, variant, nouns=nouns):
        sense = nouns.sense(nouns.index(label.sense)) if label.sense else None
        gloss = sense.gloss if sense else None
        document.append({**asdict(label), "offset": sense.offset if sense else None, "gloss": gloss})
        rows.append((str(label.id), label.name, _format_sense(label.synset, label.hypernym), gloss or ""))
    if as_json:
        print_json(document)
    else:
        _print_table(("id", "name", "sense", "gloss"), rows)


@labels_app.command("differences")
def differences(labels: Annotated[str, typer.Argument(help="A shipped set.")], as_json: arguments.Json = False) -> None:
    """Show where the corrected senses differ from the published ones, and why.

    Example:
      hardlook labels differences ade150
    """
    from hardlook.similarity.label_sets import find_differences

    listed = find_differences(labels)
    if as_json:
        print_json([asdict(one) for one in listed])
        return
    rows = [(one.label, one.published or "none", _format_sense(one.synset, one.hypernym), one.reason) for one in listed]
    _print_table(("label", "published", "corrected", "why"), rows)


@labels_app.command("map")
def map_names(
    names: Annotated[Path, typer.Argument(help="Labels: one name per line, `id: name`, or CSV, TSV, JSON.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The table to write (default: NAMES-senses.csv); choices already in it are kept."),
    ] = None,
    ask: Annotated[
        bool | None, typer.Option("--ask/--no-ask", help="Ask for each name; default: on a terminal.")
    ] = None,
    free: Annotated[
        bool, typer.Option("--free", help="NAMES holds phrases in a model's own words: show what each is taken for.")
    ] = False,
    labels: Annotated[
        str | None, typer.Option("--labels", help="With --free: the data's label set, whose names are words too.")
    ] = None,
    senses: Annotated[
        str, typer.Option("--senses", help="With --free: context (other phrases of the image count) or first.")
    ] = "context",
    as_json: arguments.Json = False,
) -> None:
    """Find the senses of a new vocabulary: asks on a terminal, else writes a table to edit. Nothing is guessed.

    With --free, show the noun and the sense that `--pred-words free` takes each phrase for. The file has one phrase per
    line and an empty line between images, or is JSON with the phrases of each image.

    Examples:
      hardlook labels map names.txt --out labels.csv

      hardlook labels map warehouse.txt --out warehouse.csv --no-ask

      hardlook labels map phrases.txt --free --labels coco133
    """
    from hardlook.errors import OptionError
    from hardlook.similarity.sense_mapping import map_label_file

    if free:
        _show_phrases(names, labels, senses, out, as_json)
        return
    if labels is not None:
        raise OptionError("--labels is for phrases in free words", remedy="add --free, or leave it out")
    out = out or names.with_name(f"{names.stem}-senses.csv")
    if out.suffix.lower() != ".csv":
        raise OptionError(f"--out {out} must be a .csv file", remedy=f"--out {out.with_suffix('.csv')}")
    on_terminal = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    counts = map_label_file(names, out, interactive=on_terminal if ask is None else ask)
    if as_json:
        print_json({"out": str(out), **counts})
        return
    typer.echo(f"{out}: {', '.join(f'{count} {state}' for state, count in counts.items())}")
    if counts["chosen"] < sum(counts.values()):
        typer.echo("Candidates of open labels follow as comments: edit the table, or run this command again.")


def _show_phrases(file: Path, labels: str | None, senses: str, out: Path | None, as_json: bool) -> None:
    """Print what the phrases of a file are taken for, or write it to a CSV file; count those without a sense."""
    import csv

    from hardlook.similarity.free_words.phrase_files import describe_phrases, read_phrases
    from hardlook.similarity.label_sets import load_label_set

    names = load_label_set(labels).names if labels else ()
    rows = describe_phrases(read_phrases(file), names, senses)
    unknown = sum(row["synset"] is None and row["label"] is None for row in rows)
    if out is not None:
        with out.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    if as_json:
        print_json({"phrases": rows, "unknown": unknown, "out": None if out is None else str(out)})
        return
    if out is None:
        titles = ("phrase", "noun", "sense", "rule", "gloss")
        shown = [
            (row["phrase"], row["noun"], row["label"] or row["synset"] or "none", row["rule"], row["gloss"])
            for row in rows
        ]
        _print_table(titles, shown)
    typer.echo(f"{'' if out is None else f'{out}: '}{len(rows)} phrases, {unknown} without a sense")


def _format_sense(synset: str | None, hypernym: str | None) -> str:
    return synset or (f"under {hypernym}" if hypernym else "none")


def _print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of plain text; the last column wraps."""
    from rich.console import Console
    from rich.markup import escape

    table = _create_table(*titles)
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    Console().print(table)


def _create_table(*titles: str) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold", no_wrap=title != titles[-1])
    return table
