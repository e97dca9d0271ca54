"""`hardlook build study-encoders`, `study-weights`, `study-saliency`: the studies behind the tiers' design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands import study_flags
from hardlook.commands.build import inputs
from hardlook.errors import DataError
from hardlook.export.plain_values import json_text

if TYPE_CHECKING:
    from hardlook.contract.sections import Section
    from hardlook.tiers.attribute_table import FailedImage

_Out = Annotated[Path, typer.Option("--out", help="Folder for study.json and report.html.")]
_Images = Annotated[int, typer.Option("--images", min=2, help="At most so many images, drawn by the seed.")]


def add_to(app: typer.Typer) -> None:
    """Add the three studies to a group."""
    app.command("study-encoders")(study_encoders)
    app.command("study-weights")(study_weights)
    app.command("study-saliency")(study_saliency)


def study_encoders(
    encoder: Annotated[str, typer.Option("--encoder", help="The encoder to compare with; published: CLIP.")],
    other: Annotated[str, typer.Option("--other", help="Another encoder.")],
    out: _Out,
    data: study_flags.Data = None,
    encoder_arg: study_flags.ModelArgs = None,
    other_arg: study_flags.ModelArgs = None,
    labels: study_flags.Labels = None,
    split: study_flags.Split = None,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
    quiet: study_flags.Quiet = False,
) -> None:
    """How often do two encoders agree on which same-class pairs are similar, each split at its mean cosine.

    [bold]Example[/bold]

      hardlook build study-encoders --data voc=VOC2012 --encoder clip --other efficientnet-lite0 --out study
    """
    from hardlook.commands.build.study_pages import encoder_study
    from hardlook.tiers.encoder_agreement import encoder_agreements
    from hardlook.tiers.image_similarity import encode_images, pair_cosines
    from hardlook.tiers.support_cognizance import similarity_pool

    opened = inputs.open_tokens(inputs.data_paths(data), labels, split)
    source, tokens = opened.source, opened.tokens
    models = [
        inputs.named_model(encoder, "encoder", encoder_arg, "--encoder-arg"),
        inputs.named_model(other, "encoder", other_arg, "--other-arg"),
    ]
    by_class: dict[str, list[str]] = {}
    for token in tokens:
        by_class.setdefault(source.class_of(token), []).append(token)
    pairs = [pair for pool in similarity_pool(by_class, seed=seed).values() for pair in pool]
    names, encoded = _titles(encoder, other), []
    with inputs.showing_progress(quiet) as start:
        for model in models:
            count = len({source.image_of(token) for token in tokens})
            encoded.append(encode_images(source, tokens, model.model, advance=start(count, 0)))
    known = set(encoded[0].vectors) & set(encoded[1].vectors)
    pairs = [pair for pair in pairs if all(source.image_of(token) in known for token in pair)]
    failures = _once([*opened.failures, *(failure for one in encoded for failure in one.failures)])
    if not pairs:
        said = inputs.failure_words(failures) if failures else "every class has one image"
        raise DataError(f"no two images of one class to compare ({said})", remedy="give more images, or other models")
    cosines = {
        name: pair_cosines(one.vectors, source.image_of, pairs) for name, one in zip(names, encoded, strict=True)
    }
    found = encoder_agreements(cosines, [source.image_of(query) for query, _ in pairs], seed=seed)
    sections, document = encoder_study(cosines, found[0])
    document["models"] = [model.facts() for model in models]
    _write(out, "Do encoders agree on what is similar?", sections, document, as_json, failures)


def study_weights(
    attributes: Annotated[Path, typer.Option("--attributes", help="A table by `hardlook attributes`.")],
    out: _Out,
    pairs: Annotated[
        Path | None, typer.Option("--pairs", help="A TOSS folder: partitions from its tier 1, not from thresholds.")
    ] = None,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
) -> None:
    """Which weights of the four partitions follow from salience times supervised IoU.

    [bold]Example[/bold]

      hardlook build study-weights --attributes TOSS/data/analysis/test_stats.csv --pairs TOSS --out study
    """
    from hardlook.commands.build.study_pages import weight_study
    from hardlook.data.toss_pairs import list_pair_files, read_pairs
    from hardlook.tiers.attribute_rows import read_attributes
    from hardlook.tiers.partition_weights import partition_weights, weight_intervals
    from hardlook.tiers.partitions import partition_of

    rows = read_attributes(attributes)
    partitions: dict[str, str] = {}
    times: dict[str, int] = {}
    if pairs is None:
        for row in rows:
            if row.iou is not None and row.saliou is not None:
                partitions[row.filename] = partition_of(row.iou, row.saliou)
    else:
        for file in list_pair_files(pairs):
            for pair in read_pairs(file).pairs if file.tier == 1 else ():
                partitions[pair.query] = pair.split
                times[pair.query] = times.get(pair.query, 0) + 1
        if not partitions:
            raise DataError("no pairs of tier 1 here", file=pairs, remedy="give a TOSS folder with tier 1")
    try:
        found = partition_weights(rows, partitions, times or None)
    except DataError as error:
        raise error.at(file=attributes) from None
    sections, document = weight_study(found, weight_intervals(rows, partitions, seed=seed))
    known = {row.filename for row in rows}
    document["rows_without_a_partition"] = len(known - set(partitions))
    document["queries_without_a_row"] = len(set(partitions) - known)
    document["summary"] += (
        f" {document['rows_without_a_partition']} of {len(known)} masks of the table have no partition"
        f"{f'; {extra} queries of the lists have no row' if (extra := document['queries_without_a_row']) else ''}."
    )
    _write(out, "Weights of the partitions", sections, document, as_json)


def study_saliency(
    saliency: Annotated[str, typer.Option("--saliency", help="A saliency model.")],
    other: Annotated[str, typer.Option("--other", help="Another one.")],
    out: _Out,
    data: study_flags.Data = None,
    saliency_arg: study_flags.ModelArgs = None,
    other_arg: study_flags.ModelArgs = None,
    labels: study_flags.Labels = None,
    split: study_flags.Split = None,
    images: _Images = 500,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
    quiet: study_flags.Quiet = False,
) -> None:
    """Which of two saliency models draws crisp borders.

    [bold]Example[/bold]

      hardlook build study-saliency --data voc=VOC2012 --saliency u2netp --other my.models:Saliency --out study
    """
    from hardlook.commands.build.study_pages import border_pictures, border_study
    from hardlook.randomness import generator
    from hardlook.tiers.attribute_table import FailedImage
    from hardlook.tiers.saliency_borders import Border, border_of, summarise_borders

    opened = inputs.open_tokens(inputs.data_paths(data), labels, split)
    source, tokens = opened.source, opened.tokens
    models = [
        inputs.named_model(saliency, "saliency", saliency_arg, "--saliency-arg"),
        inputs.named_model(other, "saliency", other_arg, "--other-arg"),
    ]
    one_token = sorted({source.image_of(token): token for token in tokens}.values())
    order = generator(seed, "study-saliency").permutation(len(one_token))[:images]
    chosen = [one_token[place] for place in sorted(order.tolist())]
    borders: list[list[Border]] = [[], []]
    measured, failures = [], list(opened.failures)
    with inputs.showing_progress(quiet) as start:
        advance = start(len(chosen), 0)
        for token in chosen:
            try:
                image = source.read_image(token)
                both = [border_of(model.model.saliency([image])[0]) for model in models]
            except Exception as error:  # a model may raise anything; one image must not cost the others
                failures.append(FailedImage(source.image_of(token), f"{type(error).__name__}: {error}"))
                advance(1, 1)
                continue
            measured.append(token)
            for own, border in zip(borders, both, strict=True):
                own.append(border)
            advance(1, 0)
    if not measured:
        raise DataError(f"no image could be measured ({inputs.failure_words(failures)})", remedy="check the models")
    names = _titles(saliency, other)
    found = [summarise_borders(name, own, seed=seed) for name, own in zip(names, borders, strict=True)]
    sections, document = border_study(found, measured)
    document["models"] = [model.facts() for model in models]
    pictures = border_pictures(source, [model.model for model in models], names, sections)
    _write(out, "Which saliency model has crisp borders?", sections, document, as_json, failures, pictures)


def _once(failures: Sequence[FailedImage]) -> list[FailedImage]:
    """Each image once: a file that cannot be read fails with both models."""
    return list({failure.image: failure for failure in reversed(failures)}.values())[::-1]


def _titles(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first != second else (f"{first} (1)", f"{second} (2)")


def _write(
    out: Path,
    title: str,
    sections: Sequence[Section],
    document: dict[str, Any],
    as_json: bool,
    failures: Sequence[FailedImage] = (),
    pictures: Any = None,
) -> None:
    from hardlook.commands.build.study_pages import failed_sections
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

    document["failures"] = [asdict(failure) for failure in failures]
    summary = str(document["summary"])
    page = render_study(
        [*sections, *failed_sections(failures)], title=title, summary=summary, provenance=document, pictures=pictures
    )
    write_whole(out / "study.json", json_text(document) + "\n")
    write_whole(out / "report.html", page)
    typer.echo(json_text(document) if as_json else f"{summary}\n\nreport: {out / 'report.html'}")
    inputs.end_with(failures)
