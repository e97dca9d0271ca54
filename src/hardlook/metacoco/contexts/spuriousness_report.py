"""The numbers of `hardlook data spuriousness`, and what they say in plain sentences.

The page of `hardlook data spuriousness`: the index, the probes, the cosines beside the published ones.

How far context gives the concept away: what is measured, and its files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.harness.sections import Dot, DotChart, ScatterChart, Section, Spot, Table
from hardlook.metacoco.published import list_datasets
from hardlook.report.estimates import estimate_dot, estimate_to_json, finite_or_none, format_estimate, format_share
from hardlook.report.json_values import dump_json

if TYPE_CHECKING:
    from hardlook.data.concept_context import ConceptContextImage
    from hardlook.harness.runs.progress import StartProgress
    from hardlook.metacoco.contexts.readability import Readability
    from hardlook.metacoco.contexts.spuriousness import LabelStudy
    from hardlook.metacoco.contexts.text_cosines import MeanCosine, TextCosines
    from hardlook.models.named_model import NamedModel
    from hardlook.models.roles import Vectors


def spuriousness_document(findings: Findings, given: dict[str, Any]) -> dict[str, Any]:
    """All numbers; undefined ones are null."""
    import hardlook

    labels = findings.labels
    return {
        "schema": "hardlook.data-spuriousness/1",
        "hardlook": hardlook.__version__,
        **given,
        "in_words": describe_spuriousness(findings),
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
        "read_from_features": [_read(one) for one in findings.read],
        "image_text": _image_text(findings.cosines, findings.means) if findings.cosines else None,
    }


def describe_spuriousness(findings: Findings) -> list[str]:
    """What was found, one paragraph a question."""
    labels = findings.labels
    text = (
        f"{labels.images:,} images of {labels.concepts} concepts in {labels.contexts} contexts. The adjusted index of "
        f"concept and context is {format_estimate(labels.adjusted)}: 0 is chance, 1 is one context a concept and one concept a "
        "context."
    )
    low = labels.adjusted.interval.low
    text += " Context gives the concept away more than chance does." if low > 0 else " That is no more than chance."
    paragraphs = [text]
    if findings.read:
        paragraphs.append(_describe_reading(findings.read))
    if findings.means:
        concept, context = findings.means
        paragraphs.append(
            f"The mean cosine of image and concept text, M_ce, is {format_estimate(concept.micro, 3)}; with the context's text, "
            f"M_te, {format_estimate(context.micro, 3)}. The text of the own concept is the nearest for "
            f"{100 * concept.nearest:.0f} % of the images, that of the own context for {100 * context.nearest:.0f} %."
        )
    return paragraphs


def _describe_reading(read: tuple[Readability, ...]) -> str:
    context, concept, unseen = read
    text = (
        f"Linear probes read the context of {format_share(context.accuracy)} of the images, by chance "
        f"{100 * context.chance:.0f} %, and the concept of {format_share(concept.accuracy)}, by chance "
        f"{100 * concept.chance:.0f} %."
    )
    if finite_or_none(unseen.accuracy.value) is None:
        return (
            f"{text} No concept is shown in two contexts, so none can be asked about in a context it was not seen in."
        )
    return f"{text} In contexts in which a concept was not seen in training, it is {format_share(unseen.accuracy)}."


def _read(one: Readability) -> dict[str, Any]:
    return {
        "what": one.what,
        "accuracy": estimate_to_json(one.accuracy),
        "chance": one.chance,
        "above_chance": finite_or_none(one.above_chance),
        "labels": one.labels,
        "images": one.images,
        "left_out": one.left_out,
    }


def _image_text(cosines: TextCosines, means: tuple[MeanCosine, ...]) -> dict[str, Any]:
    return {
        **{
            one.name: {
                "micro": estimate_to_json(one.micro),
                "macro": estimate_to_json(one.macro),
                "nearest": one.nearest,
            }
            for one in means
        },
        "by_concept": [
            {"concept": name, "images": images, "M_ce": ce, "M_te": te} for name, images, ce, te in cosines.by_concept()
        ],
    }


def spuriousness_sections(findings: Findings, words: Sequence[str]) -> list[Section]:
    """What the page shows."""
    sections = [Section("What this means", "\n\n".join(words), (_labels(findings.labels),))]
    if findings.read:
        sections.append(_probes(findings.read))
    if findings.cosines:
        sections.append(_cosines(findings.cosines, findings.means))
    return sections


def _labels(study: LabelStudy) -> Table:
    indices = (("adjusted (0 is chance)", study.adjusted), ("normalised", study.normalised))
    rows = [
        (name, one.value, finite_or_none(one.interval.low), finite_or_none(one.interval.high)) for name, one in indices
    ]
    return Table(
        "Concept and context as labels",
        f"Mutual information is {study.information:.3f} nats; dealing the same contexts at random gives "
        f"{study.chance:.3f}. Both indices divide by the mean of the two entropies; the adjusted one subtracts chance "
        f"from both sides first. {study.empty} of {study.concepts * study.contexts} pairs hold no image. Intervals "
        "leave random halves of the images out.",
        ("index", "value", "low", "high"),
        rows,
    )


def _probes(read: Sequence[Readability]) -> Section:
    chart = DotChart(
        "What a linear probe reads",
        "The share of images read right, a mean over labels. Each image is asked about by a probe that was not trained "
        "on it; intervals draw images anew within their label and keep the probes.",
        [estimate_dot(one.what, one.accuracy) for one in read],
        axis="accuracy",
        references=[(f"chance for the {one.what}", one.chance) for one in read[:2]],
    )
    table = Table(
        "The numbers",
        "Above chance: 0 is guessing, 1 is all right. Left out are images of a label that has only one, and in the "
        "last row of a concept with only one context.",
        ("what", "accuracy", "low", "high", "chance", "above chance", "labels", "images", "left out"),
        [
            (
                one.what,
                finite_or_none(one.accuracy.value),
                finite_or_none(one.accuracy.interval.low),
                finite_or_none(one.accuracy.interval.high),
                one.chance,
                finite_or_none(one.above_chance),
                one.labels,
                one.images,
                one.left_out,
            )
            for one in read
        ],
    )
    text = (
        "Ridge classifiers on frozen features, five folds. In unseen contexts, all images of a concept in a context "
        "are held out together: the probe has seen the concept elsewhere, and there at most other concepts. A fall "
        "says that the concept was read by its context."
    )
    return Section("What frozen features hold", text, (chart, table))


def _cosines(cosines: TextCosines, means: Sequence[MeanCosine]) -> Section:
    scatter = ScatterChart(
        "Context against concept, in words",
        "One spot a concept: the mean cosine of its images with the concept's text, and with their contexts' texts. "
        "Above the diagonal the context is the nearer of the two.",
        [Spot(ce, te, name) for name, _, ce, te in cosines.by_concept()],
        x_axis="M_ce",
        y_axis="M_te",
        diagonal=True,
    )
    table = Table(
        "The means",
        "micro: over images. macro: over concepts for M_ce, over contexts for M_te. nearest: the share of images whose "
        "own text is the nearest of all.",
        ("measure", "micro", "low", "high", "macro", "low", "high", "nearest"),
        [
            (
                one.name,
                one.micro.value,
                finite_or_none(one.micro.interval.low),
                finite_or_none(one.micro.interval.high),
                one.macro.value,
                finite_or_none(one.macro.interval.low),
                finite_or_none(one.macro.interval.high),
                one.nearest,
            )
            for one in means
        ],
    )
    published = DotChart(
        "M_ce beside the published values",
        "Published values are the paper's, with its encoder and its data. Cosines of another encoder, or of other "
        "prompts, are not comparable with them.",
        [
            estimate_dot("this dataset", means[0].micro, "here"),
            *(Dot(one.name, one.similarity, group="published") for one in list_datasets()),
        ],
        axis="M_ce",
    )
    text = "M_ce and M_te are similarities: higher is nearer. The paper calls M_ce a distance."
    return Section("Images and words", text, (scatter, table, published))


@dataclass(frozen=True)
class Findings:
    """All that was measured; the parts that need a model are empty without one."""

    labels: LabelStudy
    read: tuple[Readability, ...] = ()
    cosines: TextCosines | None = None
    means: tuple[MeanCosine, ...] = ()


def write_spuriousness(findings: Findings, out: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Write the page and the numbers; return the numbers."""
    from hardlook.harness.runs.folder import write_whole
    from hardlook.report.page import render_study

    document = spuriousness_document(findings, given)
    page = render_study(
        spuriousness_sections(findings, document["in_words"]),
        title=f"How spurious is {Path(given['data']).name}",
        summary="How far context gives the concept away: by the labels, by what frozen features hold, and by words.",
        provenance={name: document[name] for name in ("schema", "hardlook", *given)},
    )
    write_whole(out / "spuriousness.json", dump_json(document))
    write_whole(out / "spuriousness.html", page)
    return document


def _probe(
    probed: NamedModel, rows: Sequence[ConceptContextImage], start: StartProgress, seed: int
) -> tuple[Readability, ...]:
    from hardlook.metacoco.contexts.readability import readabilities

    vectors = _vectors(probed, rows, start)
    return readabilities(vectors, [row.concept for row in rows], [row.context for row in rows], seed=seed)


def _measure_cosines(
    paired: NamedModel,
    rows: Sequence[ConceptContextImage],
    start: StartProgress,
    concept_prompt: str,
    context_prompt: str,
) -> TextCosines:
    from hardlook.metacoco.contexts.text_cosines import text_cosines

    vectors = _vectors(paired, rows, start)
    return text_cosines(
        paired.model,
        vectors,
        [row.concept for row in rows],
        [row.context for row in rows],
        concept_prompt=concept_prompt,
        context_prompt=context_prompt,
    )


def _vectors(named: NamedModel, rows: Sequence[ConceptContextImage], start: StartProgress) -> Vectors:
    from hardlook.metacoco.contexts.text_cosines import image_vectors
    from hardlook.models.feature_cache import default_cache_folder

    identity = named.identity.fingerprint()
    return image_vectors(named.model, identity, rows, default_cache_folder(), progress=start)


def _means(cosines: TextCosines | None, seed: int) -> tuple[MeanCosine, ...]:
    from hardlook.metacoco.contexts.text_cosines import mean_cosines

    return mean_cosines(cosines, seed=seed) if cosines else ()
