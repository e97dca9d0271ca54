"""`hardlook similarity LABELS|analyse|measures` and `hardlook labels list|show|differences|map`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperGroup

from hardlook.cli import arguments
from hardlook.cli.printing import print_json

if TYPE_CHECKING:
    from hardlook.similarity.label_synsets import UnknownPolicy

_MAKE = "make"


class _LabelsOrVerb(TyperGroup):
    """A first word that is no verb of this group is the LABELS argument of `make`."""

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
labels_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", help="Label sets: list, show, compare and map them."
)

_Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
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
    as_json: _Json = False,
) -> None:
    """Make the similarity matrix of a label set; without --out, show its summary and the most similar pairs.

    [bold]Examples[/bold]

      hardlook similarity ade150 --measure wup --variant published --out S.csv

      hardlook similarity my-labels.csv --measure word2vec --source vectors.bin --out S.npy
    """
    from hardlook.similarity.label_sets import load_label_set
    from hardlook.similarity.matrix_files import check_suffix, write_matrix
    from hardlook.similarity.measures import compute_similarity
    from hardlook.similarity.report import describe_matrix
    from hardlook.similarity.terminal import print_matrix

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
        print_matrix(document)


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
    as_json: _Json = False,
) -> None:
    """Compare measures on a label set: mean, spread, density, heat maps, neighbours, polysemy, agreement.

    [bold]Examples[/bold]

      hardlook similarity analyse coco80 --out analysis

      hardlook similarity analyse ade150 --measures path,wup,word2vec --source word2vec=vectors.bin --neighbours palm
    """
    from hardlook.similarity.analysis import analyse_labels
    from hardlook.similarity.label_sets import load_label_set
    from hardlook.similarity.report import write_analysis
    from hardlook.similarity.terminal import print_analysis

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
    print_analysis(analysis)
    typer.echo(f"\npage: {out / 'analysis.html'}")


@similarity_app.command("measures")
def measures(as_json: _Json = False) -> None:
    """List the measures: their definitions and requirements, and which are available.

    [bold]Example[/bold]

      hardlook similarity measures
    """
    from hardlook.similarity.measures import list_measures
    from hardlook.similarity.terminal import print_measures

    rows = list_measures()
    if as_json:
        print_json(rows)
    else:
        print_measures(rows)


@labels_app.command("list")
def list_sets(as_json: _Json = False) -> None:
    """List the label sets that ship with hardlook.

    [bold]Example[/bold]

      hardlook labels list
    """
    from hardlook.similarity.label_sets import list_label_sets
    from hardlook.similarity.terminal import print_table

    sets = list_label_sets()
    if as_json:
        print_json([asdict(one) for one in sets])
        return
    rows = []
    for one in sets:
        numbering = "; ".join(filter(None, (f"id: {one.numbering}", one.category_numbering)))
        rows.append((one.name, one.title, ", ".join(one.variants), numbering))
    print_table(("name", "labels", "senses", "ids"), rows)


@labels_app.command("show")
def show(labels: _Labels, variant: _Variant = "corrected", as_json: _Json = False) -> None:
    """Show the labels of a set with their senses and glosses.

    [bold]Examples[/bold]

      hardlook labels show coco133

      hardlook labels show ade150 --variant published --json
    """
    from hardlook.similarity.label_sets import load_label_set
    from hardlook.similarity.terminal import print_table
    from hardlook.similarity.wordnet.nouns import load_nouns

    nouns = load_nouns()
    rows = []
    for label in load_label_set(labels, variant, nouns=nouns):
        sense = nouns.sense(nouns.index(label.sense)) if label.sense else None
        rows.append((label, sense.offset if sense else None, sense.gloss if sense else None))
    if as_json:
        print_json([{**asdict(label), "offset": offset, "gloss": gloss} for label, offset, gloss in rows])
        return
    print_table(
        ("id", "name", "sense", "gloss"),
        [
            (str(label.id), label.name, _format_sense(label.synset, label.hypernym), gloss or "")
            for label, _, gloss in rows
        ],
    )


@labels_app.command("differences")
def differences(labels: Annotated[str, typer.Argument(help="A shipped set.")], as_json: _Json = False) -> None:
    """Show where the corrected senses differ from the published ones, and why.

    [bold]Example[/bold]

      hardlook labels differences ade150
    """
    from hardlook.similarity.label_sets import find_differences
    from hardlook.similarity.terminal import print_table

    listed = find_differences(labels)
    if as_json:
        print_json([asdict(one) for one in listed])
        return
    rows = [(one.label, one.published or "none", _format_sense(one.synset, one.hypernym), one.reason) for one in listed]
    print_table(("label", "published", "corrected", "why"), rows)


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
    as_json: _Json = False,
) -> None:
    """Find the senses of a new vocabulary: asks on a terminal, else writes a table to edit. Nothing is guessed.

    [bold]Examples[/bold]

      hardlook labels map names.txt --out labels.csv

      hardlook labels map objectInfo847.txt --out ade847.csv --no-ask
    """
    from hardlook.errors import OptionError
    from hardlook.similarity.sense_mapping import map_label_file

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


def _format_sense(synset: str | None, hypernym: str | None) -> str:
    return synset or (f"under {hypernym}" if hypernym else "none")
