"""`hardlook build toss`: tiers from your own data; `hardlook build study-...`: the studies behind their design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from hardlook.cli import arguments
from hardlook.cli.help_pages import App
from hardlook.cli.printing import print_json, print_output
from hardlook.data.class_masks import open_fss
from hardlook.data.class_tokens import parse_numbered_token
from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.folder import refuse_part_of_run, write_atomically
from hardlook.harness.runs.progress import open_progress
from hardlook.harness.sections import Section
from hardlook.models.named_model import NamedModel
from hardlook.report.json_values import dump_json
from hardlook.toss.commands.inputs import build_model, exit_after_failures, parse_paths
from hardlook.toss.published import list_resembling_classes
from hardlook.toss.tiers.attribute_report import build_failure_sections
from hardlook.toss.tiers.attributes import FailedImage
from hardlook.toss.tiers.border_study import draw_borders, run_border_study
from hardlook.toss.tiers.build_report import BuiltReport
from hardlook.toss.tiers.building import BuildPlan, build_from_data, build_from_memberships
from hardlook.toss.tiers.dataset import describe_failures, open_tokens
from hardlook.toss.tiers.encoder_study import run_encoder_study
from hardlook.toss.tiers.folder import Memberships, check_list_name, read_memberships
from hardlook.toss.tiers.weight_study import run_weight_study

_Out = Annotated[Path, typer.Option("--out", help="Folder for study.json and report.html.")]

app = App(
    no_args_is_help=True,
    help=(
        "Make test sets from your own data.\n\n"
        "Example:\n\n"
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
    data: arguments.Data = None,
    images: Annotated[Path | None, typer.Option("--images", help="Short for --data images=DIR.")] = None,
    masks: Annotated[Path | None, typer.Option("--masks", help="Short for --data masks=DIR.")] = None,
    labels: arguments.Labels = None,
    split: arguments.Split = None,
    saliency: Annotated[str | None, typer.Option("--saliency", help="A saliency model.")] = None,
    saliency_arg: arguments.ModelArgs = None,
    supervised: Annotated[str | None, typer.Option("--supervised", help="A semantic segmenter of the classes.")] = None,
    supervised_arg: arguments.ModelArgs = None,
    encoder: Annotated[
        str, typer.Option("--encoder", help="An encoder, to find which same-class pairs look alike.")
    ] = "",
    encoder_arg: arguments.ModelArgs = None,
    attributes: Annotated[
        Path | None,
        typer.Option("--attributes", help="A table by `hardlook attributes`, instead of --saliency and --supervised."),
    ] = None,
    memberships: Annotated[
        Path | None,
        typer.Option(
            "--memberships", help="A TOSS folder whose tier 1 has the partitions. Without --data, only tier 1 is built."
        ),
    ] = None,
    resembling: Annotated[
        Path | None,
        typer.Option(
            "--resembling", help="File of the classes of fss= to leave out, one per line; default: those like VOC's."
        ),
    ] = None,
    reading: Annotated[list[str] | None, typer.Option("--reading", help="resembling=paper, released or ours.")] = None,
    folds: Annotated[int, typer.Option("--folds", min=1, help="Number of folds; the classes are split in order.")] = 4,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the fixed lists; pascal5i for VOC's classes in four folds.")
    ] = None,
    offline: arguments.Offline = False,
    seed: arguments.Seed = 0,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Make the three tiers of TOSS for any segmentation data, with manifest, hashes and report.

    Examples:
      hardlook build toss --data voc=VOC2012 --saliency u2netp --supervised deeplabv3-voc
      --encoder efficientnet-lite0 --out tiers

      hardlook build toss --images photos --masks maps --labels names.txt --data fss=FSS-1000
      --saliency u2netp --supervised my.models:Segmenter --encoder efficientnet-lite0 --out tiers

      hardlook build toss --memberships TOSS --out tiers
    """
    refuse_part_of_run(out / "report.html")
    known = read_memberships(memberships) if memberships else None
    paths = parse_paths(data, images, masks)
    if known is not None and not paths:
        classes = list_classes(known, labels)
        listed = check_list_name(name or _default_name(classes, folds))
        _print_build(out, *build_from_memberships(known, classes, out, folds=folds, seed=seed, name=listed), as_json)
        return
    if not encoder or not (attributes or known or (saliency and supervised)):
        remedy = "`hardlook models` lists them; --attributes FILE or --memberships DIR replaces the first two"
        raise OptionError("--saliency, --supervised and --encoder are needed", remedy=remedy)
    fss = paths.pop("fss", None)
    opened = open_tokens(paths, labels, split)
    names, chosen = _choose_resembling(resembling, reading)
    plan = BuildPlan(
        opened,
        arguments.build_named_model(encoder, "encoder", encoder_arg, "--encoder-arg"),
        build_model(saliency, "saliency", saliency_arg, "--saliency-arg"),
        build_model(supervised, "semantic-segmenter", supervised_arg, "--supervised-arg"),
        attributes,
        known,
        open_fss(fss) if fss else None,
        names,
        chosen,
        folds,
        seed,
        check_list_name(name or _default_name(opened.source.classes, folds)),
    )
    with open_progress(quiet) as start:
        manifest, report = build_from_data(plan, out, start)
    _print_build(out, manifest, report, as_json)
    exit_after_failures(describe_failures(report.failures))


def list_classes(memberships: Memberships, labels: Path | None) -> tuple[str, ...]:
    """The classes of memberships without data: those that `labels` names, else VOC's twenty."""
    classes = tuple(_read_lines(labels)) if labels else VOC_CLASSES
    largest = max(parse_numbered_token(token)[0] for token in memberships.partitions)
    if largest > len(classes):
        what = f"--memberships: a token has class number {largest}, and there are {len(classes)} class names"
        raise OptionError(what, remedy="give --labels FILE: one class name per line, class number 1 first")
    return classes


def _default_name(classes: tuple[str, ...], folds: int) -> str:
    return "pascal5i" if classes == VOC_CLASSES and folds == 4 else "own"


def _print_build(out: Path, manifest: dict[str, Any], report: BuiltReport, as_json: bool) -> None:
    if as_json:
        print_json(manifest)
        return
    built = report.built
    by_tier: dict[int, int] = {}
    for (tier, _, _), pairs in built.lists.items():
        by_tier[tier] = by_tier.get(tier, 0) + len(pairs)
    by_tier[3] = manifest["general_pairs"]
    typer.echo(f"{len(report.rows)} masks of {sum(map(len, built.folds))} classes, {len(built.folds)} folds")
    for tier, name in ((1, "query complexity"), (2, "support cognizance"), (3, "generalisation")):
        typer.echo(f"  tier {tier}  {by_tier.get(tier, 0):8,} pairs  {name}")
    typer.echo(f"  fixed   {by_tier[0]:8,} pairs  random pairs of one class")
    typer.echo(f"  {len(built.unfilled)} parts have fewer pairs than wanted")
    if report.unmeasured:
        typer.echo(f"  {report.unmeasured} masks have no partition and are not in tier 1")
    if report.without_row:
        typer.echo(f"  {len(report.without_row)} masks have no row in the table and are in no list")
    typer.echo(f"\nreport: {out / 'report.html'}")


def _choose_resembling(path: Path | None, readings: list[str] | None) -> tuple[frozenset[str], str]:
    given = arguments.parse_pairs(readings, "--reading")
    if unknown := sorted(set(given) - {"resembling"}):
        raise OptionError(f"--reading {unknown[0]}: there is no such reading", remedy="the one reading is resembling")
    if path is not None:
        return frozenset(_read_lines(path)), "own list"
    chosen = given.get("resembling", "paper")
    return list_resembling_classes(chosen), chosen


def _read_lines(path: Path) -> list[str]:
    if not path.is_file():
        raise DataError("no such list of classes", file=path, remedy="one class name per line")
    return [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]


@app.command("study-encoders")
def study_encoders(
    encoder: Annotated[str, typer.Option("--encoder", help="The encoder to compare with; published: CLIP.")],
    other: Annotated[str, typer.Option("--other", help="Another encoder.")],
    out: _Out,
    data: arguments.Data = None,
    encoder_arg: arguments.ModelArgs = None,
    other_arg: arguments.ModelArgs = None,
    labels: arguments.Labels = None,
    split: arguments.Split = None,
    offline: arguments.Offline = False,
    seed: arguments.Seed = 0,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Measure how often two encoders agree on which same-class pairs are similar, each split at its mean cosine.

    Example:
      hardlook build study-encoders --data voc=VOC2012 --encoder clip --other efficientnet-lite0 --out study
    """
    opened = open_tokens(parse_paths(data), labels, split)
    models = _build_models("encoder", (encoder, encoder_arg, "--encoder-arg"), (other, other_arg, "--other-arg"))
    with open_progress(quiet) as start:
        sections, document, failures = run_encoder_study(opened, models, seed=seed, start=start)
    _write_study(out, "Do encoders agree on what is similar?", sections, document, as_json, failures)


@app.command("study-weights")
def study_weights(
    attributes: Annotated[Path, typer.Option("--attributes", help="A table by `hardlook attributes`.")],
    out: _Out,
    pairs: Annotated[
        Path | None, typer.Option("--pairs", help="A TOSS folder: partitions from its tier 1, not from thresholds.")
    ] = None,
    seed: arguments.Seed = 0,
    as_json: arguments.Json = False,
) -> None:
    """Derive the weights of the four partitions from salience times supervised IoU.

    Example:
      hardlook build study-weights --attributes TOSS/data/analysis/test_stats.csv --pairs TOSS --out study
    """
    sections, document = run_weight_study(attributes, pairs, seed=seed)
    _write_study(out, "Weights of the partitions", sections, document, as_json)


@app.command("study-saliency")
def study_saliency(
    saliency: Annotated[str, typer.Option("--saliency", help="A saliency model.")],
    other: Annotated[str, typer.Option("--other", help="Another saliency model.")],
    out: _Out,
    data: arguments.Data = None,
    saliency_arg: arguments.ModelArgs = None,
    other_arg: arguments.ModelArgs = None,
    labels: arguments.Labels = None,
    split: arguments.Split = None,
    images: Annotated[int, typer.Option("--images", min=2, help="At most this many images, drawn by the seed.")] = 500,
    offline: arguments.Offline = False,
    seed: arguments.Seed = 0,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Compare how crisp the borders of two saliency models are.

    Example:
      hardlook build study-saliency --data voc=VOC2012 --saliency u2netp --other my.models:Saliency --out study
    """
    opened = open_tokens(parse_paths(data), labels, split)
    models = _build_models("saliency", (saliency, saliency_arg, "--saliency-arg"), (other, other_arg, "--other-arg"))
    with open_progress(quiet) as start:
        sections, document, failures = run_border_study(opened, models, images=images, seed=seed, start=start)
    pictures = draw_borders(opened.source, models, sections)
    _write_study(out, "Which saliency model has crisp borders?", sections, document, as_json, failures, pictures)


def _build_models(role: str, *given: tuple[str, list[str] | None, str]) -> dict[str, NamedModel]:
    """Models of one role by title, which is the name, numbered if the names are the same."""
    names = [name for name, _, _ in given]
    titles = names if len(set(names)) == len(names) else [f"{name} ({place})" for place, name in enumerate(names, 1)]
    models = [arguments.build_named_model(name, role, args, flag) for name, args, flag in given]
    return dict(zip(titles, models, strict=True))


def _write_study(
    out: Path,
    title: str,
    sections: Sequence[Section],
    document: dict[str, Any],
    as_json: bool,
    failures: Sequence[FailedImage] = (),
    pictures: Any = None,
) -> None:
    from hardlook.report.page import render_study

    document["failures"] = [asdict(failure) for failure in failures]
    summary = str(document["summary"])
    sections = [*sections, *build_failure_sections(failures)]
    page = render_study(sections, title=title, summary=summary, provenance=document, pictures=pictures)
    refuse_part_of_run(out / "report.html")
    write_atomically(out / "study.json", dump_json(document) + "\n")
    write_atomically(out / "report.html", page)
    print_output(dump_json(document) if as_json else f"{summary}\n\nreport: {out / 'report.html'}")
    exit_after_failures(describe_failures(failures))
