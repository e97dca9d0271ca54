"""`hardlook attributes`: what makes each mask easy or hard, as a table and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands import study_flags
from hardlook.commands.build import inputs
from hardlook.commands.build.inputs import NamedModel
from hardlook.commands.printing import print_json

if TYPE_CHECKING:
    from hardlook.contract.sections import Section
    from hardlook.tiers.attribute_rows import AttributeRow
    from hardlook.tiers.attribute_table import FailedImage
    from hardlook.tiers.published_comparison import PublishedComparison


def add_to(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("attributes")(attributes)


def attributes(
    out: Annotated[Path, typer.Option("--out", help="Folder for attributes.csv and report.html; resumes.")],
    data: study_flags.Data = None,
    labels: study_flags.Labels = None,
    split: study_flags.Split = None,
    saliency: Annotated[str | None, typer.Option("--saliency", help="A saliency model, for salience.")] = None,
    saliency_arg: study_flags.ModelArgs = None,
    supervised: Annotated[str | None, typer.Option("--supervised", help="A segmenter, for supervised IoU.")] = None,
    supervised_arg: study_flags.ModelArgs = None,
    published: Annotated[
        Path | None, typer.Option("--published", help="The published test_stats.csv, to compare with.")
    ] = None,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
    quiet: study_flags.Quiet = False,
) -> None:
    """Measure size, centredness, salience, blobs, distractors and supervised IoU of every mask, at 512 x 512.

    [bold]Example[/bold]

      hardlook attributes --data voc=VOC2012 --saliency u2netp --supervised deeplabv3-voc --out attributes
    """
    from hardlook.tiers.attribute_rows import read_attributes
    from hardlook.tiers.attribute_table import AttributeModels
    from hardlook.tiers.published_comparison import compare_with_published
    from hardlook.tiers.resumed_table import data_fingerprints, resumed_table

    theirs = read_attributes(published) if published else ()
    opened = inputs.open_tokens(inputs.data_paths(data), labels, split)
    source, tokens = opened.source, opened.tokens
    salient = inputs.named_model(saliency, "saliency", saliency_arg, "--saliency-arg") if saliency else None
    segmenter = (
        inputs.named_model(supervised, "semantic-segmenter", supervised_arg, "--supervised-arg") if supervised else None
    )
    models = AttributeModels(
        salient.model if salient else None,
        segmenter.model if segmenter else None,
        inputs.label_indices(source.classes, segmenter.model.labels) if segmenter else {},
    )
    identity = {
        "data": data_fingerprints(source, out),
        "saliency": _fingerprint(salient),
        "supervised": _fingerprint(segmenter),
    }
    with inputs.showing_progress(quiet) as start:
        table = resumed_table(out / "attributes.csv", source, tokens, models, identity, progress=start)
    failures = (*opened.failures, *table.failures)
    comparison = compare_with_published(table.rows, theirs, seed=seed) if published else None
    sections = _sections(table.rows, comparison, failures)
    document = _document(table.rows, failures, table.found, comparison, identity)
    from hardlook.commands.attributes.sections import mask_pictures
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

    page = render_study(
        sections,
        title="Attributes of masks",
        summary=f"{len(table.rows):,} masks of {len(source.classes)} classes, measured at 512 x 512.",
        provenance=document,
        pictures=mask_pictures(source, sections),
    )
    write_whole(out / "report.html", page)
    if as_json:
        print_json(document)
    else:
        _print(document, out)
    inputs.end_with(failures)


def _fingerprint(model: NamedModel | None) -> str:
    return model.identity.fingerprint() if model else ""


def _sections(
    rows: Sequence[AttributeRow], comparison: PublishedComparison | None, failures: Sequence[FailedImage]
) -> list[Section]:
    from hardlook.commands.attributes.published import published_section
    from hardlook.commands.attributes.sections import by_class, distributions, extremes, scatter
    from hardlook.commands.build.study_pages import failed_sections
    from hardlook.contract.sections import Section

    pairs = (
        ("saliou", "iou", "One point a mask: what the eye falls on, and what a supervised model finds."),
        ("area_ratio", "saliou", "One point a mask: large objects tend to be salient."),
        ("offset_ratio", "saliou", "One point a mask: central objects tend to be salient."),
        ("distractor_weight", "iou", "One point a mask: company of other classes, and what a supervised model finds."),
    )
    charts = [chart for x, y, caption in pairs if (chart := scatter(rows, x, y, {}, caption)) is not None]
    sections = [Section("By class", "", distributions(rows, by_class(rows), "class"))]
    sections += [Section("Two at a time", "", charts)] if charts else []
    sections += [published_section(comparison)] if comparison else []
    return [*sections, extremes(rows), *failed_sections(failures)]


def _document(
    rows: Sequence[AttributeRow],
    failures: Sequence[FailedImage],
    found: int,
    comparison: PublishedComparison | None,
    identity: dict[str, Any],
) -> dict[str, Any]:
    from hardlook.commands.attributes.published import published_document
    from hardlook.commands.attributes.sections import ATTRIBUTES, value_of

    means = {}
    for field, name, _ in ATTRIBUTES:
        values = [value for row in rows if (value := value_of(row, field)) is not None]
        means[name] = {"masks": len(values), "mean": sum(values) / len(values) if values else None}
    return {
        "schema": "hardlook.attributes-study/1",
        "masks": len(rows),
        "found_before": found,
        "attributes": means,
        "published": published_document(comparison) if comparison else None,
        "failures": [{"image": failure.image, "error": failure.error} for failure in failures],
        **identity,
    }


def _print(document: dict[str, Any], out: Path) -> None:
    typer.echo(f"{document['masks']} masks, {document['found_before']} of them measured before")
    for name, one in document["attributes"].items():
        mean = "not measured" if one["mean"] is None else f"mean {one['mean']:.4f}"
        typer.echo(f"  {name:15} {mean}")
    if document["published"]:
        shared = document["published"]
        typer.echo(f"\n{shared['rows']} of them are in the published table")
        for column, one in shared["spearman"].items():
            typer.echo(f"  {column:18} Spearman {one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]")
        for column, one in shared["exact"].items():
            typer.echo(f"  {column:18} {one['equal']} of {one['rows']} equal, Spearman {one['spearman']:.3f}")
    typer.echo(f"\ntable: {out / 'attributes.csv'}\nreport: {out / 'report.html'}")
