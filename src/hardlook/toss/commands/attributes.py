"""`hardlook attributes`: what makes each mask easy or hard, as a table and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hardlook.cli import arguments
from hardlook.cli.printing import print_json
from hardlook.harness.rounding import format_fixed
from hardlook.harness.runs.folder import refuse_part_of_run, write_atomically
from hardlook.harness.runs.progress import open_progress
from hardlook.toss.commands.inputs import build_model, exit_after_failures, parse_paths
from hardlook.toss.tiers.attribute_report import (
    build_sections,
    compare_with_published,
    draw_gallery_masks,
    summarise_attributes,
)
from hardlook.toss.tiers.attributes import fingerprint_data, measure_table, read_attributes
from hardlook.toss.tiers.dataset import describe_failures, open_tokens, prepare_models


def attributes(
    out: Annotated[Path, typer.Option("--out", help="Folder for attributes.csv and report.html; resumes.")],
    data: arguments.Data = None,
    labels: arguments.Labels = None,
    split: arguments.Split = None,
    saliency: Annotated[str | None, typer.Option("--saliency", help="A saliency model, for salience.")] = None,
    saliency_arg: arguments.ModelArgs = None,
    supervised: Annotated[str | None, typer.Option("--supervised", help="A segmenter, for supervised IoU.")] = None,
    supervised_arg: arguments.ModelArgs = None,
    published: Annotated[
        Path | None, typer.Option("--published", help="The published test_stats.csv, to compare with.")
    ] = None,
    offline: arguments.Offline = False,
    seed: arguments.Seed = 0,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Measure size, centredness, salience, blobs, distractors and supervised IoU of every mask, at 512 x 512.

    Example:
      hardlook attributes --data voc=VOC2012 --saliency u2netp --supervised deeplabv3-voc --out attributes
    """
    from hardlook.report.page import render_study

    refuse_part_of_run(out / "report.html")
    theirs = read_attributes(published) if published else ()
    opened = open_tokens(parse_paths(data), labels, split)
    source = opened.source
    models, fingerprints = prepare_models(
        source,
        build_model(saliency, "saliency", saliency_arg, "--saliency-arg"),
        build_model(supervised, "semantic-segmenter", supervised_arg, "--supervised-arg"),
    )
    identity = {"data": fingerprint_data(source, out), **fingerprints}
    with open_progress(quiet) as start:
        table = measure_table(out / "attributes.csv", source, opened.tokens, models, identity, progress=start)
    failures = (*opened.failures, *table.failures)
    comparison = compare_with_published(table.rows, theirs, seed=seed) if published else None
    sections = build_sections(table.rows, comparison, failures)
    document = summarise_attributes(table, failures, comparison, identity)
    summary = f"{len(table.rows):,} masks of {len(source.classes)} classes, measured at 512 x 512."
    pictures = draw_gallery_masks(source, sections)
    page = render_study(sections, title="Attributes of masks", summary=summary, provenance=document, pictures=pictures)
    write_atomically(out / "report.html", page)
    if as_json:
        print_json(document)
    else:
        _print(document, out)
    exit_after_failures(describe_failures(failures))


def _print(document: dict[str, Any], out: Path) -> None:
    typer.echo(f"{document['masks']} masks, {document['found_before']} of them measured before")
    for name, one in document["attributes"].items():
        mean = "not measured" if one["mean"] is None else f"mean {format_fixed(one['mean'], 4)}"
        typer.echo(f"  {name:15} {mean}")
    if shared := document["published"]:
        typer.echo(f"\n{shared['rows']} of them are in the published table")
        for column, one in shared["spearman"].items():
            value, low, high = (_format(one[key]) for key in ("value", "low", "high"))
            typer.echo(f"  {column:18} Spearman {value} [{low}, {high}]")
        for column, one in shared["exact"].items():
            typer.echo(f"  {column:18} {one['equal']} of {one['rows']} equal, Spearman {_format(one['spearman'])}")
    typer.echo(f"\ntable: {out / 'attributes.csv'}\nreport: {out / 'report.html'}")


def _format(value: float | None) -> str:
    return "undefined" if value is None else format_fixed(value, 3)
