"""`hardlook data spuriousness`: what is measured on a dataset, and its page and JSON file.

Three questions: how much information concept and context labels share, what linear probes predict from frozen features,
and how near images are to the texts of their concept and context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hardlook
from hardlook.data.concept_context import ConceptContextImage
from hardlook.harness.rounding import format_fixed, format_percent
from hardlook.harness.runs.progress import StartProgress
from hardlook.harness.sections import Dot, DotChart, ScatterChart, Section, Spot, Table
from hardlook.harness.stats import Estimate
from hardlook.harness.verdicts import judge
from hardlook.metacoco.contexts.linear_probes import ProbeResult, probe_labels
from hardlook.metacoco.contexts.mutual_information import LabelStudy, study_labels
from hardlook.metacoco.contexts.text_cosines import (
    CONCEPT_PROMPT,
    CONTEXT_PROMPT,
    TextCosines,
    encode_dataset_images,
    measure_cosines,
)
from hardlook.metacoco.published import list_rows
from hardlook.models.named_model import NamedModel
from hardlook.models.preprocessing import Preprocessing
from hardlook.report.estimates import estimate_to_json, finite_or_none, format_estimate, format_share, make_estimate_dot
from hardlook.report.page import write_study


@dataclass(frozen=True)
class Spuriousness:
    """The measurements on a dataset; `probes` need an encoder, `cosines` (M_ce and M_te) an image-text encoder.

    `by_concept` has the name and the number of images of each concept, and the means of both cosines.
    """

    labels: LabelStudy
    probes: tuple[ProbeResult, ...] = ()
    cosines: tuple[TextCosines, ...] = ()
    by_concept: tuple[tuple[str, int, float, float], ...] = ()


def measure_spuriousness(
    rows: Sequence[ConceptContextImage],
    *,
    seed: int,
    encoder: NamedModel | None = None,
    image_text: NamedModel | None = None,
    concept_prompt: str = CONCEPT_PROMPT,
    context_prompt: str = CONTEXT_PROMPT,
    preprocessing: Preprocessing = "encoder",
    progress: StartProgress | None = None,
) -> Spuriousness:
    """Measure a dataset's images; `progress` starts a bar over (total, done) images for each model."""
    concepts, contexts = [row.concept for row in rows], [row.context for row in rows]
    labels = study_labels(concepts, contexts, seed=seed)
    probes: tuple[ProbeResult, ...] = ()
    if encoder:
        identity = encoder.identity.fingerprint()
        vectors = encode_dataset_images(encoder.model, identity, rows, progress=progress, preprocessing=preprocessing)
        probes = probe_labels(vectors, concepts, contexts, seed=seed)
    if not image_text:
        return Spuriousness(labels, probes)
    identity = image_text.identity.fingerprint()
    vectors = encode_dataset_images(image_text.model, identity, rows, progress=progress, preprocessing=preprocessing)
    ce = measure_cosines(image_text.model, vectors, concepts, "concept", concept_prompt, seed=seed)
    te = measure_cosines(image_text.model, vectors, contexts, "context", context_prompt, seed=seed)
    members = {name: np.array(concepts) == name for name in sorted(set(concepts))}
    by_concept = tuple(
        (name, int(own.sum()), float(ce.values[own].mean()), float(te.values[own].mean()))
        for name, own in members.items()
    )
    return Spuriousness(labels, probes, (ce, te), by_concept)


def write_spuriousness(found: Spuriousness, out: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Write the page and the numbers; return the numbers. `given` are the command's arguments, for the record."""
    document = build_document(found, given)
    return write_study(
        out,
        "spuriousness",
        document,
        build_sections(found, document["in_words"]),
        title=f"How spurious is {Path(given['data']).name}",
        summary="How well context predicts the concept: by labels, by what frozen features hold, and by texts.",
        provenance={name: document[name] for name in ("schema", "hardlook", *given)},
    )


def build_document(found: Spuriousness, given: dict[str, Any]) -> dict[str, Any]:
    """The content of spuriousness.json: `given` and all numbers; undefined ones are null."""
    labels = found.labels
    return {
        "schema": "hardlook.data-spuriousness/1",
        "hardlook": hardlook.__version__,
        **given,
        "in_words": describe_spuriousness(found),
        "images": labels.images,
        "concepts": labels.concepts,
        "contexts": labels.contexts,
        "empty_pairs": labels.empty,
        "labels": {
            "mutual_information": labels.information,
            "by_chance": labels.chance,
            "normalised": estimate_to_json(labels.normalised),
            "adjusted": estimate_to_json(labels.adjusted),
        },
        "read_from_features": [_probe_to_json(one) for one in found.probes],
        "image_text": _cosines_to_json(found) if found.cosines else None,
    }


def describe_spuriousness(found: Spuriousness) -> list[str]:
    """The results as text, one paragraph per question."""
    labels = found.labels
    text = (
        f"{labels.images:,} images of {labels.concepts} concepts in {labels.contexts} contexts. The adjusted index of "
        f"concept and context is {format_estimate(labels.adjusted)}: 0 is chance, 1 is one context per concept and one "
        "concept per context."
    )
    verdict = judge(labels.adjusted)
    words = {"above": "Context predicts the concept better than chance.", "below": "That is less than by chance."}
    text += f" {words.get(verdict.side, verdict.why)}"
    paragraphs = [text]
    if found.probes:
        paragraphs.append(_describe_probes(found.probes))
    if found.cosines:
        concept, context = found.cosines
        paragraphs.append(
            f"The mean cosine of image and concept text, M_ce, is {format_estimate(concept.micro, 3)}; that of image "
            f"and context text, M_te, is {format_estimate(context.micro, 3)}. The text of an image's concept is the "
            f"nearest of all concepts for {format_percent(concept.nearest)} of the images; that of its context is the "
            f"nearest of all contexts for {format_percent(context.nearest)}."
        )
    return paragraphs


def _describe_probes(probes: tuple[ProbeResult, ...]) -> str:
    context, concept, unseen = probes
    text = (
        f"Linear probes predict the context of {format_share(context.accuracy)} of the images (chance: "
        f"{format_percent(context.chance)}) and the concept of {format_share(concept.accuracy)} (chance: "
        f"{format_percent(concept.chance)})."
    )
    if finite_or_none(unseen.accuracy.value) is None:
        return f"{text} No concept has two contexts, so none can be tested in a context in which it was not seen."
    return f"{text} In contexts in which it was not seen in training, the concept of {format_share(unseen.accuracy)}."


def _probe_to_json(one: ProbeResult) -> dict[str, Any]:
    return {
        "what": one.what,
        "accuracy": estimate_to_json(one.accuracy),
        "chance": one.chance,
        "above_chance": finite_or_none(one.above_chance),
        "labels": one.labels,
        "images": one.images,
        "left_out": one.left_out,
    }


def _cosines_to_json(found: Spuriousness) -> dict[str, Any]:
    document: dict[str, Any] = {
        one.name: {"micro": estimate_to_json(one.micro), "macro": estimate_to_json(one.macro), "nearest": one.nearest}
        for one in found.cosines
    }
    keys = ("concept", "images", "M_ce", "M_te")
    return {**document, "by_concept": [dict(zip(keys, row, strict=True)) for row in found.by_concept]}


def build_sections(found: Spuriousness, text: Sequence[str]) -> list[Section]:
    """The sections of the page."""
    sections = [Section("What this means", "\n\n".join(text), (_build_label_table(found.labels),))]
    if found.probes:
        sections.append(_build_probes(found.probes))
    if found.cosines:
        sections.append(_build_cosines(found))
    return sections


def _build_label_table(study: LabelStudy) -> Table:
    indices = (("adjusted (0 is chance)", study.adjusted), ("normalised", study.normalised))
    return Table(
        "Concept and context as labels",
        f"Mutual information is {format_fixed(study.information, 3)} nats; assigning the same contexts at random gives "
        f"{format_fixed(study.chance, 3)}. Both indices divide by the mean of the two entropies; the adjusted one "
        f"subtracts chance from both sides first. {study.empty} of {study.concepts * study.contexts} pairs hold no "
        "image. Intervals come from random halves of the images.",
        ("index", "value", "low", "high"),
        [(name, *_list_bounds(one)) for name, one in indices],
    )


def _build_probes(probes: Sequence[ProbeResult]) -> Section:
    chart = DotChart(
        "What a linear probe reads",
        "The share of images predicted correctly, a mean over labels. Each image is predicted by a probe that was not "
        "trained on it; intervals resample images within their label and keep the probes.",
        [make_estimate_dot(one.what, one.accuracy) for one in probes],
        axis="accuracy",
        references=[(f"chance for the {one.what}", one.chance) for one in probes[:2]],
    )
    table = Table(
        "The numbers",
        "Above chance: 0 is guessing, 1 is all correct. Left out are images whose label has no other image and, in the "
        "last row, images of a concept with only one context.",
        ("what", "accuracy", "low", "high", "chance", "above chance", "labels", "images", "left out"),
        [
            (
                one.what,
                *_list_bounds(one.accuracy),
                one.chance,
                finite_or_none(one.above_chance),
                one.labels,
                one.images,
                one.left_out,
            )
            for one in probes
        ],
    )
    text = (
        "Ridge classifiers on frozen features, five folds. In unseen contexts, all images of a concept in a context "
        "are held out together: the probe has seen the concept only in other contexts, and this context only with "
        "other concepts. A drop in accuracy shows that the probe recognised the concept by its context."
    )
    return Section("What frozen features hold", text, (chart, table))


def _build_cosines(found: Spuriousness) -> Section:
    scatter = ScatterChart(
        "Context against concept, in words",
        "One spot per concept: the mean cosine of its images with the concept's text, and with their contexts' texts. "
        "Above the diagonal the images are nearer to the texts of their contexts.",
        [Spot(ce, te, name) for name, _, ce, te in found.by_concept],
        x_axis="M_ce",
        y_axis="M_te",
        diagonal=True,
    )
    table = Table(
        "The means",
        "micro: over images. macro: over concepts for M_ce, over contexts for M_te. nearest: the share of images whose "
        "own text is the nearest of all.",
        ("measure", "micro", "low", "high", "macro", "low", "high", "nearest"),
        [(one.name, *_list_bounds(one.micro), *_list_bounds(one.macro), one.nearest) for one in found.cosines],
    )
    published = DotChart(
        "M_ce beside the published values",
        "Published values are the paper's, with its encoder and its data. Cosines of another encoder, or of other "
        "prompts, are not comparable with them.",
        [
            make_estimate_dot("this dataset", found.cosines[0].micro, "here"),
            *(Dot(row["dataset"], row["similarity"], group="published") for row in list_rows("table-1")),
        ],
        axis="M_ce",
    )
    text = "M_ce and M_te are similarities: higher is nearer. The paper calls M_ce a distance."
    return Section("Images and words", text, (scatter, table, published))


def _list_bounds(one: Estimate) -> tuple[float | None, float | None, float | None]:
    """Value, low and high of an estimate; None where undefined."""
    return finite_or_none(one.value), finite_or_none(one.interval.low), finite_or_none(one.interval.high)
