"""The numbers of `hardlook data spuriousness`, and what they say in plain sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hardlook.bias.estimate_words import document_of, number, percent, said

if TYPE_CHECKING:
    from hardlook.commands.data.spuriousness import Findings
    from hardlook.contexts.readability import Readability
    from hardlook.contexts.text_cosines import MeanCosine, TextCosines


def spuriousness_document(findings: Findings, given: dict[str, Any]) -> dict[str, Any]:
    """All numbers; undefined ones are null."""
    import hardlook

    labels = findings.labels
    return {
        "schema": "hardlook.data-spuriousness/1",
        "hardlook": hardlook.__version__,
        **given,
        "in_words": in_words(findings),
        "images": labels.images,
        "concepts": labels.concepts,
        "contexts": labels.contexts,
        "empty_pairs": labels.empty,
        "labels": {
            "mutual_information": labels.information,
            "by_chance": labels.chance,
            "normalised": document_of(labels.normalised),
            "adjusted": document_of(labels.adjusted),
        },
        "read_from_features": [_read(one) for one in findings.read],
        "image_text": _image_text(findings.cosines, findings.means) if findings.cosines else None,
    }


def in_words(findings: Findings) -> list[str]:
    """What was found, one paragraph a question."""
    labels = findings.labels
    text = (
        f"{labels.images:,} images of {labels.concepts} concepts in {labels.contexts} contexts. The adjusted index of "
        f"concept and context is {said(labels.adjusted)}: 0 is chance, 1 is one context a concept and one concept a "
        "context."
    )
    low = labels.adjusted.interval.low
    text += " Context gives the concept away more than chance does." if low > 0 else " That is no more than chance."
    paragraphs = [text]
    if findings.read:
        paragraphs.append(_reading_in_words(findings.read))
    if findings.means:
        concept, context = findings.means
        paragraphs.append(
            f"The mean cosine of image and concept text, M_ce, is {said(concept.micro, 3)}; with the context's text, "
            f"M_te, {said(context.micro, 3)}. The text of the own concept is the nearest for "
            f"{100 * concept.nearest:.0f} % of the images, that of the own context for {100 * context.nearest:.0f} %."
        )
    return paragraphs


def _reading_in_words(read: tuple[Readability, ...]) -> str:
    context, concept, unseen = read
    text = (
        f"Linear probes read the context of {percent(context.accuracy)} of the images, by chance "
        f"{100 * context.chance:.0f} %, and the concept of {percent(concept.accuracy)}, by chance "
        f"{100 * concept.chance:.0f} %."
    )
    if number(unseen.accuracy.value) is None:
        return (
            f"{text} No concept is shown in two contexts, so none can be asked about in a context it was not seen in."
        )
    return f"{text} In contexts in which a concept was not seen in training, it is {percent(unseen.accuracy)}."


def _read(one: Readability) -> dict[str, Any]:
    return {
        "what": one.what,
        "accuracy": document_of(one.accuracy),
        "chance": one.chance,
        "above_chance": number(one.above_chance),
        "labels": one.labels,
        "images": one.images,
        "left_out": one.left_out,
    }


def _image_text(cosines: TextCosines, means: tuple[MeanCosine, ...]) -> dict[str, Any]:
    return {
        **{
            one.name: {"micro": document_of(one.micro), "macro": document_of(one.macro), "nearest": one.nearest}
            for one in means
        },
        "by_concept": [
            {"concept": name, "images": images, "M_ce": ce, "M_te": te} for name, images, ce, te in cosines.by_concept()
        ],
    }
