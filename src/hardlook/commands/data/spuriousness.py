"""`hardlook data spuriousness`: how far context gives the concept away in a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands.build import inputs
from hardlook.commands.printing import print_json
from hardlook.contexts.prompts import CONCEPT_PROMPT, CONTEXT_PROMPT
from hardlook.export.plain_values import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardlook.commands.build.inputs import NamedModel, Start
    from hardlook.contexts.readability import Readability
    from hardlook.contexts.spuriousness import LabelStudy
    from hardlook.contexts.text_cosines import MeanCosine, TextCosines
    from hardlook.data.concept_context import ConceptContextImage
    from hardlook.models.roles import Vectors


@dataclass(frozen=True)
class Findings:
    """All that was measured; the parts that need a model are empty without one."""

    labels: LabelStudy
    read: tuple[Readability, ...] = ()
    cosines: TextCosines | None = None
    means: tuple[MeanCosine, ...] = ()


def spuriousness(
    data: Annotated[Path, typer.Option("--data", help="A folder [split/]concept/context/image, or a manifest.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for spuriousness.html and spuriousness.json.")],
    split: Annotated[str | None, typer.Option("--split", help="One split only, such as train.")] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="An encoder whose vectors are probed for concept and context.")
    ] = None,
    encoder_arg: Annotated[
        list[str] | None, typer.Option("--encoder-arg", help="KEY=VALUE for the encoder; repeatable.")
    ] = None,
    image_text: Annotated[
        str | None, typer.Option("--image-text", help="An image-text encoder, such as clip, for M_ce and M_te.")
    ] = None,
    model_arg: Annotated[
        list[str] | None, typer.Option("--model-arg", help="KEY=VALUE for the image-text encoder; repeatable.")
    ] = None,
    concept_prompt: Annotated[str, typer.Option("--concept-prompt", help="The text of a concept.")] = CONCEPT_PROMPT,
    context_prompt: Annotated[str, typer.Option("--context-prompt", help="The text of a context.")] = CONTEXT_PROMPT,
    seed: inputs.Seed = 0,
    as_json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """What context says of the concept, by the labels alone, by frozen features, and by an image-text encoder.

    [bold]Examples[/bold]

      hardlook data spuriousness --data pacs --encoder efficientnet-lite0 --out spuriousness

      hardlook data spuriousness --data pacs --image-text clip --model-arg path=FOLDER --out spuriousness
    """
    from hardlook.contexts.spuriousness import label_study
    from hardlook.data.concept_context import read_rows
    from hardlook.errors import DataError
    from hardlook.runs.worker import pin_threads

    rows = read_rows(data, split=split)
    concepts, contexts = [row.concept for row in rows], [row.context for row in rows]
    probed = inputs.named_model(encoder, "encoder", encoder_arg, "--encoder-arg") if encoder else None
    paired = inputs.named_model(image_text, "image-text-encoder", model_arg, "--model-arg") if image_text else None
    # After the models have brought their libraries; one thread also gives sums one order.
    pin_threads(1)
    try:
        labels = label_study(concepts, contexts, seed=seed)
    except DataError as error:
        raise error.at(file=data) from None
    with inputs.showing_progress(quiet) as start:
        read = _read(probed, rows, start, seed) if probed else ()
        cosines = _cosines(paired, rows, start, concept_prompt, context_prompt) if paired else None
    findings = Findings(labels, read, cosines, _means(cosines, seed))
    given = {
        "data": str(data),
        "split": split,
        "encoder": probed.facts() if probed else None,
        "image_text": paired.facts() if paired else None,
        "prompts": {"concept": concept_prompt, "context": context_prompt} if paired else None,
        "seed": seed,
    }
    document = write_spuriousness(findings, out, given)
    if as_json:
        print_json(document)
    else:
        typer.echo("\n\n".join([*document["in_words"], f"page: {out / 'spuriousness.html'}"]))


def write_spuriousness(findings: Findings, out: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Write the page and the numbers; return the numbers."""
    from hardlook.commands.data.spuriousness_document import spuriousness_document
    from hardlook.commands.data.spuriousness_page import spuriousness_sections
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

    document = spuriousness_document(findings, given)
    page = render_study(
        spuriousness_sections(findings, document["in_words"]),
        title=f"How spurious is {Path(given['data']).name}",
        summary="How far context gives the concept away: by the labels, by what frozen features hold, and by words.",
        provenance={name: document[name] for name in ("schema", "hardlook", *given)},
    )
    write_whole(out / "spuriousness.json", json_text(document))
    write_whole(out / "spuriousness.html", page)
    return document


def _read(probed: NamedModel, rows: Sequence[ConceptContextImage], start: Start, seed: int) -> tuple[Readability, ...]:
    from hardlook.contexts.readability import readabilities

    vectors = _vectors(probed, rows, start)
    return readabilities(vectors, [row.concept for row in rows], [row.context for row in rows], seed=seed)


def _cosines(
    paired: NamedModel, rows: Sequence[ConceptContextImage], start: Start, concept_prompt: str, context_prompt: str
) -> TextCosines:
    from hardlook.contexts.text_cosines import text_cosines

    vectors = _vectors(paired, rows, start)
    return text_cosines(
        paired.model,
        vectors,
        [row.concept for row in rows],
        [row.context for row in rows],
        concept_prompt=concept_prompt,
        context_prompt=context_prompt,
    )


def _vectors(named: NamedModel, rows: Sequence[ConceptContextImage], start: Start) -> Vectors:
    from hardlook.contexts.image_vectors import image_vectors
    from hardlook.models.feature_cache import default_cache_folder

    identity = named.identity.fingerprint()
    return image_vectors(named.model, identity, rows, default_cache_folder(), progress=start)


def _means(cosines: TextCosines | None, seed: int) -> tuple[MeanCosine, ...]:
    from hardlook.contexts.text_cosines import mean_cosines

    return mean_cosines(cosines, seed=seed) if cosines else ()
