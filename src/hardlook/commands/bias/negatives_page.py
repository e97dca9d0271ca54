"""The page and the numbers of `hardlook bias negatives`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hardlook.benchmarks.toss.published_biases import CLASSES
from hardlook.bias.estimate_words import document_of, dot, number, percent, said
from hardlook.bias.negatives import Association, ClassNegatives
from hardlook.commands.bias.published import published_associations, published_scatters, remedies_section
from hardlook.contract.sections import Block, DotChart, ScatterChart, Section, Spot, Table

if TYPE_CHECKING:
    from hardlook.commands.bias.negatives import NegativesStudy

READINGS = {
    "paper": "share of the images with a training class that hold the class too",
    "released": "share of the training masks (an image has one for each training class in it) whose image holds it too",
}
SCARCE = 5


def negatives_document(study: NegativesStudy, seed: int) -> dict[str, Any]:
    """All numbers of the study; undefined ones are null."""
    import hardlook

    return {
        "schema": "hardlook.bias-negatives/1",
        "hardlook": hardlook.__version__,
        "seed": seed,
        "in_words": in_words(study),
        "images": study.images,
        "unread": [{"image": one.image, "reason": one.reason} for one in study.unread],
        "reading": {"distractors": study.reading, "meaning": READINGS[study.reading]},
        "model": study.model,
        "pairs": study.pairs,
        "measured": study.measured or None,
        "association": None if study.association is None else _association(study.association),
        "classes": [_row(row) for row in study.rows],
        "published": {name: _association(found) for name, found in published_associations(seed).items()},
    }


def in_words(study: NegativesStudy) -> str:
    """What the study says about this model and data, in plain sentences."""
    known = [row for row in study.rows if number(row.distractors.share(study.reading).value) is not None]
    if not known:
        return "No image holds a training class, so nothing can be said."
    top = max(known, key=lambda row: row.distractors.share(study.reading).value)
    text = (
        f"The class that stands as background most often is {top.name}: in "
        f"{percent(top.distractors.share(study.reading))} of the training "
        f"{'images' if study.reading == 'paper' else 'masks'} of its fold."
    )
    found = study.association
    if found is None:
        return f"{text} No one-shot result was given, so what that costs is not shown."
    if number(found.spearman.value) is None or found.n < SCARCE:
        return f"{text} A correlation cannot be told: {found.n} classes have a result, or all of them are equal."
    low, high = found.spearman.interval.low, found.spearman.interval.high
    worse = study.measured == "drop"
    lost = "lose more against the supervised model" if worse else "have a lower one-shot IoU"
    kept = "lose less" if worse else "have a higher one-shot IoU"
    clear = low > 0 or high < 0
    with_bias = (found.spearman.value > 0) == worse
    verdict = (
        f"classes that stand as background more often {lost if with_bias else kept}"
        if clear
        else "the interval holds 0, so these classes do not show a bias either way"
    )
    return (
        f"{text} For {study.model} Spearman's correlation of that share with the {study.measured} is "
        f"{said(found.spearman)} over {found.n} classes: {verdict}. A correlation over classes is no proof of a cause: "
        "small, cluttered classes both stand in other images and are hard to find."
    )


def negatives_page(study: NegativesStudy, document: dict[str, Any]) -> str:
    """The whole page."""
    from hardlook.report.page import render_study

    shares = DotChart(
        "How often a class stands as background",
        f"Per class, {READINGS[study.reading]}, in the fold that tests it. Published: person 30.05 %, chair 12.24 %.",
        [dot(row.name, row.distractors.share(study.reading), f"fold {row.fold}") for row in study.rows],
        axis="share of the training set",
    )
    blocks: list[Block] = [shares]
    if study.association is not None:
        blocks.append(_scatter(study))
    sections = [
        Section("What this means", document["in_words"], blocks),
        Section("All classes", "", (_table(study),)),
        _published_section(study.rows, document["seed"]),
        remedies_section("leave-out"),
        *_unread(study),
    ]
    return render_study(
        sections,
        title="Class negative bias",
        summary="A one-shot model is trained on images in which its later test classes stand as background. This study "
        "sets how often that happens to a class against how well the class is found afterwards.",
        provenance=document,
    )


def _scatter(study: NegativesStudy) -> ScatterChart:
    association = study.association
    assert association is not None
    what = (
        "supervised IoU minus one-shot IoU, mean over images"
        if study.measured == "drop"
        else "one-shot IoU of the class"
    )
    return ScatterChart(
        f"Share as background against {study.measured}",
        f"One spot a class. Spearman {said(association.spearman)}, Pearson {said(association.pearson)}; the intervals "
        "resample classes.",
        [
            Spot(row.distractors.share(study.reading).value, value, row.name, f"fold {row.fold}")
            for row, value in zip(study.rows, study.values(), strict=True)
        ],
        x_axis="share of the training set in which the class is background",
        y_axis=what,
    )


def _table(study: NegativesStudy) -> Table:
    rows = []
    for row in study.rows:
        share = row.distractors
        values = [None if one is None else said(one, 3) for one in (row.one_shot, row.supervised, row.drop)]
        rows.append((row.name, row.fold, share.paper.value, share.released.value, *values))
    return Table(
        "Shares and scores a class",
        f"paper and released are the two readings of percent distractors: {READINGS['paper']}; {READINGS['released']}. "
        f"The one-shot IoU is over {study.pairs}; supervised IoU and drop are means over images, the drop over images "
        "that have both.",
        ("class", "fold", "paper", "released", "one-shot IoU", "supervised IoU", "drop"),
        rows,
    )


def _published_section(rows: Sequence[ClassNegatives], seed: int) -> Section:
    blocks: list[Block] = [*published_scatters(published_associations(seed))]
    ours = {row.name: row.distractors for row in rows}
    shared = [one for one in CLASSES if one.name in ours]
    if shared:
        table = [
            (one.name, one.distractors, ours[one.name].paper.value, ours[one.name].released.value) for one in shared
        ]
        caption = "Shares of the training set. They differ where the images are not the paper's."
        columns = ("class", "published", "paper", "released")
        blocks.append(Table("Shares beside the published ones", caption, columns, table))
    return Section("The published values", "", blocks)


def _unread(study: NegativesStudy) -> list[Section]:
    if not study.unread:
        return []
    rows = [(one.image, one.reason) for one in study.unread]
    table = Table("Images that could not be read", "They are in no share.", ("image", "why"), rows)
    return [Section("What was left out", f"{len(rows)} images could not be read.", (table,))]


def _association(found: Association) -> dict[str, Any]:
    return {"classes": found.n, "spearman": document_of(found.spearman), "pearson": document_of(found.pearson)}


def _row(row: ClassNegatives) -> dict[str, Any]:
    share = row.distractors
    return {
        "class": row.name,
        "fold": row.fold,
        "training_images": share.images,
        "training_images_with": share.images_with,
        "training_masks": share.masks,
        "training_masks_with": share.masks_with,
        "distractors": {"paper": document_of(share.paper), "released": document_of(share.released)},
        "one_shot": document_of(row.one_shot),
        "supervised": document_of(row.supervised),
        "drop": document_of(row.drop),
    }
