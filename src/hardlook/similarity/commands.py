"""`hardlook similarity LABELS`, `hardlook similarity analyse LABELS`, `hardlook similarity measures`.

`hardlook labels list|show|differences|map`: label sets, their senses, and help with a new vocabulary.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperGroup

from hardlook.cli import grammar
from hardlook.cli.printing import print_json

if TYPE_CHECKING:
    pass


_MAKE = "make"


class _LabelsOrVerb(TyperGroup):
    """A first word that is no verb of this group is the LABELS of `make`, which needs no name then."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [_MAKE, *args]
        return super().parse_args(ctx, args)


similarity_app = typer.Typer(
    cls=_LabelsOrVerb,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help=(
        "Similarity of labels: a matrix by any measure, and its analysis.\n\n"
        "`hardlook similarity LABELS ...` is short for `hardlook similarity make LABELS ...`.\n\n"
        "[bold]Examples[/bold]\n\n"
        "  hardlook similarity coco80 --measure path --out S.csv\n\n"
        "  hardlook similarity analyse coco80 --out analysis\n\n"
        "  hardlook similarity measures"
    ),
)

_Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

_Labels = Annotated[str, typer.Argument(help="A name from `hardlook labels list`, or a file of labels.")]

_Variant = Annotated[str, typer.Option("--variant", help="Senses of a shipped set: corrected or published.")]

_Unknown = Annotated[
    str, typer.Option("--unknown", help="Labels the measure does not know: hypernym, zero, error or random.")
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
    as_json: _Json = False,
) -> None:
    """Make the similarity matrix of a label set; without --out, show its summary and the most similar pairs.

    [bold]Examples[/bold]

      hardlook similarity ade150 --measure wup --variant published --out S.csv

      hardlook similarity my-labels.csv --measure word2vec --source vectors.bin --out S.npy
    """
    from hardlook.errors import OptionError
    from hardlook.similarity.label_sets import load_label_set
    from hardlook.similarity.matrix_files import SUFFIXES, write_matrix
    from hardlook.similarity.measures import compute_similarity
    from hardlook.similarity.report import describe_matrix, print_matrix

    if out is not None and out.suffix not in SUFFIXES:
        raise OptionError(f"--out {out}: no format for that name", remedy=f"end it in {', '.join(SUFFIXES)}")
    found = load_label_set(labels, variant)
    arguments = grammar.pairs(model_arg, "--model-arg")
    result = compute_similarity(
        found, measure, source=source, unknown=cast("UnknownPolicy", unknown), seed=seed, arguments=arguments
    )
    if out is not None:
        write_matrix(out, result.matrix, result.names)
    document = describe_matrix(found, result, out)
    if as_json:
        print_json(document)
    else:
        print_matrix(document)


@similarity_app.command("analyse")
def analyse(
    labels: _Labels,
    out: Annotated[Path, typer.Option("--out", help="Folder for analysis.html and analysis.json.")] = Path("analysis"),
    measures: Annotated[
        str | None, typer.Option("--measures", help="Names between commas; default: all that is at hand.")
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
    as_json: _Json = False,
) -> None:
    """Compare measures on a label set: mean, spread, density, heat maps, neighbours, polysemy, agreement.

    [bold]Examples[/bold]

      hardlook similarity analyse coco80 --out analysis

      hardlook similarity analyse ade150 --measures path,wup,word2vec --source word2vec=vectors.bin --neighbours palm
    """
    from hardlook.similarity.analysis import analyse_labels as compare
    from hardlook.similarity.label_sets import load_label_set
    from hardlook.similarity.report import study_labels, write_study

    names = None if measures is None else [name.strip() for name in measures.split(",") if name.strip()]
    found = load_label_set(labels, variant)
    rows = [found.labels.index(found.find(name)) for name in neighbours or []]
    chosen = cast("UnknownPolicy", unknown)
    analysis = compare(found, names, sources=grammar.paths(source, "--source"), unknown=chosen, seed=seed)
    document = write_study(study_labels(analysis, rows, chosen), out)
    if as_json:
        print_json(document)
        return
    typer.echo(f"{found.name} ({found.variant}), {len(found)} labels; means with the diagonal")
    for name, view in analysis.views.items():
        typer.echo(f"  {name:10} mean {view.summary.mean:.4f}  std {view.summary.std:.4f}")
    for left in analysis.left_out:
        typer.echo(f"  {left.name:10} left out: {left.why}")
    typer.echo(f"\npage: {out / 'analysis.html'}")


@similarity_app.command("measures")
def measures(as_json: _Json = False) -> None:
    """List the measures: what each is, what it needs, and whether that is here.

    [bold]Example[/bold]

      hardlook similarity measures
    """
    from hardlook.similarity.report import measure_rows, print_measures

    rows = measure_rows()
    if as_json:
        print_json(rows)
    else:
        print_measures(rows)


labels_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", help="Label sets: list, show, compare and map them."
)

_Set = Annotated[str, typer.Argument(help="A name from `hardlook labels list`, or a file of labels.")]


@labels_app.command("list")
def list_all(as_json: _Json = False) -> None:
    """List the label sets that ship with hardlook.

    [bold]Example[/bold]

      hardlook labels list
    """
    from hardlook.similarity.label_sets import list_label_sets

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


@labels_app.command("show")
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
    from hardlook.similarity.label_sets import load_label_set
    from hardlook.similarity.wordnet.nouns import load_nouns

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


@labels_app.command("differences")
def differences(labels: Annotated[str, typer.Argument(help="A shipped set.")], as_json: _Json = False) -> None:
    """Show where the corrected senses differ from the published ones, and why.

    [bold]Example[/bold]

      hardlook labels differences ade150
    """
    from hardlook.similarity.label_sets import find_differences

    found = find_differences(labels)
    if as_json:
        print_json([asdict(difference) for difference in found])
        return
    rows = [(one.label, one.published or "none", _sense(one.synset, one.hypernym), one.reason) for one in found]
    _print_table(("label", "published", "corrected", "why"), rows)


@labels_app.command("map")
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
    from hardlook.errors import OptionError
    from hardlook.similarity.label_sets import load_label_set
    from hardlook.similarity.sense_mapping import find_candidates, format_mapping, prompt_for_senses, restore_choices
    from hardlook.similarity.wordnet.nouns import load_nouns

    out = out or names.with_name(f"{names.stem}-senses.csv")
    if out.suffix.lower() != ".csv":
        raise OptionError(f"--out {out} must be a .csv file", remedy=f"--out {out.with_suffix('.csv')}")
    nouns = load_nouns()
    labels = load_label_set(names, nouns=nouns).labels
    if out.is_file():
        labels = restore_choices(labels, load_label_set(out, nouns=nouns).labels)
    questions = find_candidates(labels, nouns)
    if ask or (ask is None and not as_json and sys.stdin.isatty() and sys.stdout.isatty()):
        questions = prompt_for_senses(questions, nouns)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(format_mapping(questions), encoding="utf-8")
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
