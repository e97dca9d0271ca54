"""`hardlook similarity LABELS`, `hardlook similarity analyse LABELS`, `hardlook similarity measures`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperGroup

from hardlook.commands import grammar
from hardlook.commands.printing import print_json

if TYPE_CHECKING:
    from hardlook.labels.unknown import Unknown

_MAKE = "make"


class _LabelsOrVerb(TyperGroup):
    """A first word that is no verb of this group is the LABELS of `make`, which needs no name then."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [_MAKE, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
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


@app.command(_MAKE)
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
    from hardlook.commands.similarity.listing import describe_matrix, print_matrix
    from hardlook.errors import OptionError
    from hardlook.labels.load import load_label_set
    from hardlook.labels.matrix_files import SUFFIXES, write_matrix
    from hardlook.labels.measures import similarity_of

    if out is not None and out.suffix not in SUFFIXES:
        raise OptionError(f"--out {out}: no format for that name", remedy=f"end it in {', '.join(SUFFIXES)}")
    found = load_label_set(labels, variant)
    arguments = grammar.pairs(model_arg, "--model-arg")
    result = similarity_of(
        found, measure, source=source, unknown=cast("Unknown", unknown), seed=seed, arguments=arguments
    )
    if out is not None:
        write_matrix(out, result.matrix, result.names)
    document = describe_matrix(found, result, out)
    if as_json:
        print_json(document)
    else:
        print_matrix(document)


@app.command("analyse")
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
    from hardlook.commands.similarity.study import study_labels, write_study
    from hardlook.labels.analysis import analyse as compare
    from hardlook.labels.load import load_label_set

    names = None if measures is None else [name.strip() for name in measures.split(",") if name.strip()]
    found = load_label_set(labels, variant)
    rows = [found.labels.index(found.find(name)) for name in neighbours or []]
    chosen = cast("Unknown", unknown)
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


@app.command("measures")
def measures(as_json: _Json = False) -> None:
    """List the measures: what each is, what it needs, and whether that is here.

    [bold]Example[/bold]

      hardlook similarity measures
    """
    from hardlook.commands.similarity.listing import measure_rows, print_measures

    rows = measure_rows()
    if as_json:
        print_json(rows)
    else:
        print_measures(rows)
