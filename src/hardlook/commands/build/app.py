"""`hardlook build toss`: tiers of one's own; `hardlook build study-...`: the studies behind their design."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands import grammar, study_flags
from hardlook.commands.build import inputs, studies
from hardlook.commands.printing import print_json
from hardlook.errors import DataError, OptionError

if TYPE_CHECKING:
    from hardlook.commands.build.sections import BuiltReport
    from hardlook.tiers.memberships import Memberships

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


@app.callback()
def about() -> None:
    """Make test sets from your own data."""


@app.command("toss")
def toss(
    out: Annotated[Path, typer.Option("--out", help="Folder of the tiers; the same command again resumes it.")],
    data: study_flags.Data = None,
    images: Annotated[Path | None, typer.Option("--images", help="Short for --data images=DIR.")] = None,
    masks: Annotated[Path | None, typer.Option("--masks", help="Short for --data masks=DIR.")] = None,
    labels: study_flags.Labels = None,
    split: study_flags.Split = None,
    saliency: Annotated[str | None, typer.Option("--saliency", help="A saliency model.")] = None,
    saliency_arg: study_flags.ModelArgs = None,
    supervised: Annotated[str | None, typer.Option("--supervised", help="A semantic segmenter of the classes.")] = None,
    supervised_arg: study_flags.ModelArgs = None,
    encoder: Annotated[str, typer.Option("--encoder", help="An encoder: which same-class pairs look alike.")] = "",
    encoder_arg: study_flags.ModelArgs = None,
    attributes: Annotated[
        Path | None, typer.Option("--attributes", help="A table by `hardlook attributes`, in place of two models.")
    ] = None,
    memberships: Annotated[
        Path | None,
        typer.Option("--memberships", help="A TOSS folder: partitions from its tier 1. Without --data, tier 1 alone."),
    ] = None,
    resembling: Annotated[
        Path | None, typer.Option("--resembling", help="Classes of fss= to leave out, one a line; default: VOC's like.")
    ] = None,
    reading: Annotated[list[str] | None, typer.Option("--reading", help="resembling=paper, released or ours.")] = None,
    folds: Annotated[int, typer.Option("--folds", min=1, help="Into how many folds the classes go, in order.")] = 4,
    name: Annotated[
        str | None, typer.Option("--name", help="Of the fixed lists; pascal5i for VOC's classes in four folds.")
    ] = None,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
    quiet: study_flags.Quiet = False,
) -> None:
    """Make the three tiers of TOSS for any segmentation data, with manifest, hashes and report.

    [bold]Examples[/bold]

      hardlook build toss --data voc=VOC2012 --saliency u2netp --supervised deeplabv3-voc
      --encoder efficientnet-lite0 --out tiers

      hardlook build toss --images photos --masks maps --labels names.txt --data fss=FSS-1000
      --saliency u2netp --supervised my.models:Segmenter --encoder efficientnet-lite0 --out tiers

      hardlook build toss --memberships TOSS --out tiers
    """
    from hardlook.commands.build.plan import BuildPlan
    from hardlook.commands.build.toss import build_listed, build_toss
    from hardlook.data.class_masks import open_fss
    from hardlook.tiers.built_folder import plain_name
    from hardlook.tiers.memberships import read_memberships

    known = read_memberships(memberships) if memberships else None
    paths = inputs.data_paths(data, images, masks)
    if known is not None and not paths:
        classes = listed_classes(known, labels)
        listed = plain_name(name or _default_name(classes, folds))
        _say(out, *build_listed(known, classes, out, folds=folds, seed=seed, name=listed), as_json)
        return
    if not encoder or not (attributes or known or (saliency and supervised)):
        remedy = "`hardlook models` lists them; --attributes FILE or --memberships DIR stands for the first two"
        raise OptionError("--saliency, --supervised and --encoder are needed", remedy=remedy)
    fss = paths.pop("fss", None)
    opened = inputs.open_tokens(paths, labels, split)
    names, chosen = _resembling(resembling, reading)
    plan = BuildPlan(
        opened,
        inputs.named_model(encoder, "encoder", encoder_arg, "--encoder-arg"),
        inputs.named_model(saliency, "saliency", saliency_arg, "--saliency-arg") if saliency else None,
        inputs.named_model(supervised, "semantic-segmenter", supervised_arg, "--supervised-arg")
        if supervised
        else None,
        attributes,
        known,
        open_fss(fss) if fss else None,
        names,
        chosen,
        folds,
        seed,
        plain_name(name or _default_name(opened.source.classes, folds)),
    )
    with inputs.showing_progress(quiet) as start:
        manifest, report = build_toss(plan, out, start)
    _say(out, manifest, report, as_json)
    inputs.end_with(report.failures)


def listed_classes(memberships: Memberships, labels: Path | None) -> tuple[str, ...]:
    """The classes of memberships without data: VOC's where twenty are enough, else those that `labels` names."""
    from hardlook.data.class_tokens import numbered_token
    from hardlook.data.voc import VOC_CLASSES

    classes = tuple(_lines_of(labels)) if labels else VOC_CLASSES
    most = max(numbered_token(token)[0] for token in memberships.partitions)
    if most > len(classes):
        what = f"--memberships: a token has class number {most}, and there are {len(classes)} class names"
        raise OptionError(what, remedy="give --labels FILE: one class name a line, class number 1 first")
    return classes


def _default_name(classes: tuple[str, ...], folds: int) -> str:
    from hardlook.data.voc import VOC_CLASSES

    return "pascal5i" if classes == VOC_CLASSES and folds == 4 else "own"


def _say(out: Path, manifest: dict[str, Any], report: BuiltReport, as_json: bool) -> None:
    if as_json:
        print_json(manifest)
        return
    built = report.built
    by_tier: dict[int, int] = {}
    for (tier, _, _), pairs in built.lists.items():
        by_tier[tier] = by_tier.get(tier, 0) + len(pairs)
    by_tier[3] = manifest["general_pairs"]
    typer.echo(f"{len(report.rows)} masks of {sum(map(len, built.folds))} classes, {len(built.folds)} folds")
    for tier, words in ((1, "query complexity"), (2, "support cognizance"), (3, "generalisation")):
        typer.echo(f"  tier {tier}  {by_tier.get(tier, 0):8,} pairs  {words}")
    typer.echo(f"  fixed   {by_tier[0]:8,} pairs  random pairs of one class")
    typer.echo(f"  {len(built.unfilled)} parts have fewer pairs than asked for")
    if report.unmeasured:
        typer.echo(f"  {report.unmeasured} masks have no partition and are not in tier 1")
    if report.without_row:
        typer.echo(f"  {len(report.without_row)} masks have no row in the table and are in no list")
    typer.echo(f"\nreport: {out / 'report.html'}")


def _resembling(path: Path | None, readings: list[str] | None) -> tuple[frozenset[str], str]:
    from hardlook.tiers.resembling_classes import resembling_voc

    given = grammar.pairs(readings, "--reading")
    if unknown := sorted(set(given) - {"resembling"}):
        raise OptionError(
            f"--reading {unknown[0]}: there is no such reading here", remedy="the one reading is resembling"
        )
    if path is None:
        chosen = given.get("resembling", "paper")
        return resembling_voc(chosen), chosen
    return frozenset(_lines_of(path)), "own list"


def _lines_of(path: Path) -> list[str]:
    if not path.is_file():
        raise DataError("no such list of classes", file=path, remedy="one class name a line")
    return [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]


studies.add_to(app)
