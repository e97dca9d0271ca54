"""`hardlook build toss`: tiers of one's own; `hardlook build study-...`: the studies behind their design."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from hardlook.commands import grammar
from hardlook.commands.build import inputs, studies

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help=(
        "Make test sets from your own data.\n\n"
        "[bold]Example[/bold]\n\n"
        "  hardlook build toss --data voc=VOC2012 --saliency u2netp --supervised deeplabv3-voc "
        "--encoder efficientnet-lite0 --out tiers"
    ),
)
_FINISHED_WITH_FAILURES = 3
_Args = Annotated[list[str] | None, typer.Option(help="KEY=VALUE for that model; repeatable.")]


@app.callback()
def about() -> None:
    """Make test sets from your own data."""


@app.command("toss")
def toss(
    out: Annotated[Path, typer.Option("--out", help="Folder of the tiers; the same command again resumes it.")],
    data: inputs.Data = None,
    images: Annotated[Path | None, typer.Option("--images", help="Short for --data images=DIR.")] = None,
    masks: Annotated[Path | None, typer.Option("--masks", help="Short for --data masks=DIR.")] = None,
    labels: inputs.Labels = None,
    split: inputs.Split = None,
    saliency: Annotated[str | None, typer.Option("--saliency", help="A saliency model.")] = None,
    saliency_arg: _Args = None,
    supervised: Annotated[str | None, typer.Option("--supervised", help="A semantic segmenter of the classes.")] = None,
    supervised_arg: _Args = None,
    encoder: Annotated[str, typer.Option("--encoder", help="An encoder: which same-class pairs look alike.")] = "",
    encoder_arg: _Args = None,
    attributes: Annotated[
        Path | None, typer.Option("--attributes", help="A table by `hardlook attributes`, in place of two models.")
    ] = None,
    resembling: Annotated[
        Path | None, typer.Option("--resembling", help="Classes of fss= to leave out, one a line; default: VOC's like.")
    ] = None,
    reading: Annotated[list[str] | None, typer.Option("--reading", help="resembling=paper, released or ours.")] = None,
    folds: Annotated[int, typer.Option("--folds", min=1, help="Into how many folds the classes go, in order.")] = 4,
    name: Annotated[
        str | None, typer.Option("--name", help="Of the fixed lists; pascal5i for VOC's classes in four folds.")
    ] = None,
    seed: inputs.Seed = 0,
    as_json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Make the three tiers of TOSS for any segmentation data, with manifest, hashes and report.

    [bold]Examples[/bold]

      hardlook build toss --data voc=VOC2012 --saliency u2netp --supervised deeplabv3-voc
      --encoder efficientnet-lite0 --out tiers

      hardlook build toss --images photos --masks maps --labels names.txt --data fss=FSS-1000
      --saliency u2netp --supervised my.models:Segmenter --encoder efficientnet-lite0 --out tiers
    """
    from hardlook.commands.build.toss import BuildPlan, build_toss
    from hardlook.data.class_masks import open_fss
    from hardlook.data.voc import VOC_CLASSES
    from hardlook.errors import OptionError

    if not encoder or (attributes is None and not (saliency and supervised)):
        remedy = "`hardlook models` lists them; --attributes FILE stands for the first two"
        raise OptionError("--saliency, --supervised and --encoder are needed", remedy=remedy)
    paths = inputs.data_paths(data, images, masks)
    fss = paths.pop("fss", None)
    source, tokens = inputs.open_tokens(paths, labels, split)
    default = "pascal5i" if source.classes == VOC_CLASSES and folds == 4 else "own"
    names, chosen = _resembling(resembling, reading)
    plan = BuildPlan(
        source,
        tokens,
        inputs.named_model(encoder, "encoder", encoder_arg, "--encoder-arg"),
        inputs.named_model(saliency, "saliency", saliency_arg, "--saliency-arg") if saliency else None,
        inputs.named_model(supervised, "semantic-segmenter", supervised_arg, "--supervised-arg")
        if supervised
        else None,
        attributes,
        open_fss(fss) if fss else None,
        names,
        chosen,
        folds,
        seed,
        name or default,
    )
    with inputs.showing_progress(quiet) as start:
        manifest, report = build_toss(plan, out, start)
    if as_json:
        typer.echo(json.dumps(manifest, indent=1))
    else:
        by_tier: dict[int, int] = {}
        for (tier, _, _), pairs in report.built.lists.items():
            by_tier[tier] = by_tier.get(tier, 0) + len(pairs)
        typer.echo(f"{len(report.rows)} masks of {len(source.classes)} classes, {len(report.built.folds)} folds")
        for tier, words in ((1, "query complexity"), (2, "support cognizance")):
            typer.echo(f"  tier {tier}  {by_tier[tier]:8,} pairs  {words}")
        typer.echo(f"  tier 3  {manifest['general_pairs']:8,} pairs  generalisation")
        typer.echo(f"  fixed   {by_tier[0]:8,} pairs  random pairs of one class")
        typer.echo(f"  {len(report.built.unfilled)} parts have fewer pairs than asked for")
        typer.echo(f"\nreport: {out / 'report.html'}")
    if report.failures:
        typer.echo(f"{len(report.failures)} images failed, the first: {report.failures[0].image}", err=True)
        raise typer.Exit(_FINISHED_WITH_FAILURES)


def _resembling(path: Path | None, readings: list[str] | None) -> tuple[frozenset[str], str]:
    from hardlook.errors import DataError, OptionError
    from hardlook.tiers.resembling_classes import resembling_voc

    given = grammar.pairs(readings, "--reading")
    if unknown := sorted(set(given) - {"resembling"}):
        raise OptionError(
            f"--reading {unknown[0]}: there is no such reading here", remedy="the one reading is resembling"
        )
    if path is None:
        chosen = given.get("resembling", "paper")
        return resembling_voc(chosen), chosen
    if not path.is_file():
        raise DataError("no such list of classes", file=path, remedy="one class name a line")
    return frozenset(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()), "own list"


studies.add_to(app)
