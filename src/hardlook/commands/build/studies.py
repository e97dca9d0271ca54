"""`hardlook build study-encoders`, `study-weights`, `study-saliency`: the studies behind the tiers' design."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands.build import inputs

if TYPE_CHECKING:
    from hardlook.contract.sections import Section

_Args = Annotated[list[str] | None, typer.Option(help="KEY=VALUE for that model; repeatable.")]
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
    data: inputs.Data = None,
    encoder_arg: _Args = None,
    other_arg: _Args = None,
    labels: inputs.Labels = None,
    split: inputs.Split = None,
    seed: inputs.Seed = 0,
    as_json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """How often do two encoders agree on which same-class pairs are similar, each split at its mean cosine.

    [bold]Example[/bold]

      hardlook build study-encoders --data voc=VOC2012 --encoder clip --other efficientnet-lite0 --out study
    """
    from hardlook.commands.build.study_pages import encoder_study
    from hardlook.tiers.encoder_agreement import encoder_agreements
    from hardlook.tiers.image_similarity import encode_images, pair_cosines
    from hardlook.tiers.support_cognizance import similarity_pool

    source, tokens = inputs.open_tokens(inputs.data_paths(data), labels, split)
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
    cosines = {
        name: pair_cosines(one.vectors, source.image_of, pairs) for name, one in zip(names, encoded, strict=True)
    }
    found = encoder_agreements(cosines, [source.image_of(query) for query, _ in pairs], seed=seed)
    sections, document = encoder_study(cosines, found[0])
    document["models"] = [model.facts() for model in models]
    document["failures"] = sorted({failure.image for one in encoded for failure in one.failures})
    _write(out, "Do encoders agree on what is similar?", sections, document, as_json)


def study_weights(
    attributes: Annotated[Path, typer.Option("--attributes", help="A table by `hardlook attributes`.")],
    out: _Out,
    pairs: Annotated[
        Path | None, typer.Option("--pairs", help="A TOSS folder: partitions from its tier 1, not from thresholds.")
    ] = None,
    seed: inputs.Seed = 0,
    as_json: inputs.Json = False,
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
    found = partition_weights(rows, partitions, times or None)
    sections, document = weight_study(found, weight_intervals(rows, partitions, seed=seed))
    _write(out, "Weights of the partitions", sections, document, as_json)


def study_saliency(
    saliency: Annotated[str, typer.Option("--saliency", help="A saliency model.")],
    other: Annotated[str, typer.Option("--other", help="Another one.")],
    out: _Out,
    data: inputs.Data = None,
    saliency_arg: _Args = None,
    other_arg: _Args = None,
    labels: inputs.Labels = None,
    split: inputs.Split = None,
    images: _Images = 500,
    seed: inputs.Seed = 0,
    as_json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Which of two saliency models draws crisp borders.

    [bold]Example[/bold]

      hardlook build study-saliency --data voc=VOC2012 --saliency u2netp --other my.models:Saliency --out study
    """
    from hardlook.commands.build.study_pages import border_pictures, border_study
    from hardlook.randomness import generator
    from hardlook.tiers.saliency_borders import border_of, summarise_borders

    source, tokens = inputs.open_tokens(inputs.data_paths(data), labels, split)
    models = [
        inputs.named_model(saliency, "saliency", saliency_arg, "--saliency-arg"),
        inputs.named_model(other, "saliency", other_arg, "--other-arg"),
    ]
    one_token = sorted({source.image_of(token): token for token in tokens}.values())
    order = generator(seed, "study-saliency").permutation(len(one_token))[:images]
    chosen = [one_token[place] for place in sorted(order.tolist())]
    borders: list[list[Any]] = [[], []]
    with inputs.showing_progress(quiet) as start:
        advance = start(len(chosen), 0)
        for token in chosen:
            image = source.read_image(token)
            for own, model in zip(borders, models, strict=True):
                own.append(border_of(model.model.saliency([image])[0]))
            advance(1, 0)
    names = _titles(saliency, other)
    found = [summarise_borders(name, own, seed=seed) for name, own in zip(names, borders, strict=True)]
    sections, document = border_study(found, chosen)
    document["models"] = [model.facts() for model in models]
    pictures = border_pictures(source, [model.model for model in models], names, sections)
    _write(out, "Which saliency model has crisp borders?", sections, document, as_json, pictures)


def _titles(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first != second else (f"{first} (1)", f"{second} (2)")


def _write(
    out: Path,
    title: str,
    sections: Sequence[Section],
    document: dict[str, Any],
    as_json: bool,
    pictures: Any = None,
) -> None:
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

    summary = str(document["summary"])
    page = render_study(sections, title=title, summary=summary, provenance=document, pictures=pictures)
    write_whole(out / "study.json", json.dumps(document, indent=1) + "\n")
    write_whole(out / "report.html", page)
    typer.echo(json.dumps(document, indent=1) if as_json else f"{summary}\n\nreport: {out / 'report.html'}")
