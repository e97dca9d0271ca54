"""The page and the numbers of `hardlook bias select`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardlook.bias.estimate_words import document_of, dot, number, percent, said
from hardlook.bias.selection_summary import ALL, DROPPED, KEPT
from hardlook.bias.training_images import read_training_mask
from hardlook.commands.bias.published import remedies_section
from hardlook.contract.sections import DistributionChart, DotChart, Example, Gallery, Picture, Section, Table

if TYPE_CHECKING:
    from hardlook.bias.selection import Coverage
    from hardlook.bias.selection_summary import SelectionSummary
    from hardlook.commands.bias.select import SelectStudy

SHOWN = 8


def selection_document(study: SelectStudy, paths: dict[str, str]) -> dict[str, Any]:
    """All numbers of the study; undefined ones are null."""
    import hardlook

    chosen, summary = study.selection, study.summary
    both = None if study.left_out is None else sorted(set(chosen.kept) & set(study.left_out))
    return {
        "schema": "hardlook.bias-selection/1",
        "hardlook": hardlook.__version__,
        "data": paths,
        "saliency": study.model,
        "split": {"name": study.split.name, "training": study.split.training, "test": study.split.test},
        "in_words": in_words(study),
        "images": study.listed,
        "training_images": len(study.rows),
        "kept": len(chosen.kept),
        "dropped": len(chosen.dropped),
        "without_training_class": study.listed - len(study.rows) - len(study.unread),
        "without_salience": list(chosen.without_salience),
        "unread": [{"image": one.image, "reason": one.reason} for one in study.unread],
        "median": document_of(summary.median),
        "holding_a_test_class": {name: document_of(one) for name, one in summary.holding_test.items()},
        "dropped_minus_kept": document_of(summary.dropped_more),
        "classes": [
            {"class": one.name, "test": one.tested, "images": one.images, "kept": document_of(one.kept)}
            for one in summary.classes
        ],
        "leave_out": None
        if study.left_out is None or both is None
        else {"kept": len(study.left_out), "kept_by_both": len(both)},
    }


def in_words(study: SelectStudy) -> str:
    """What the selection means for this data, in plain sentences."""
    chosen, summary = study.selection, study.summary
    lines = [
        f"{len(chosen.kept)} of {len(study.rows)} training images are kept, {len(chosen.dropped)} are dropped "
        f"({study.split.name}, salience by {study.model})."
    ]
    if summary.median is None:
        return lines[0] + " No image has a salient pixel, so nothing is dropped."
    lines.append(f"In the middle image {percent(summary.median)} of what is salient belongs to a training class.")
    before, kept, dropped = (summary.holding_test.get(part) for part in (ALL, KEPT, DROPPED))
    if before is not None and kept is not None and dropped is not None:
        lines.append(
            f"A test class stands as background in {percent(before)} of all training images, in {percent(kept)} of the "
            f"kept and in {percent(dropped)} of the dropped ones."
        )
        lines.append(_verdict(summary))
    return " ".join(lines)


def _verdict(summary: SelectionSummary) -> str:
    interval = summary.dropped_more.interval
    if not interval.defined or interval.low <= 0 <= interval.high:
        verdict = "on this data the selection does not clearly take test classes out of the background"
    elif interval.low > 0:
        verdict = "the selection takes test classes out of the background without knowing them"
    else:
        verdict = "the kept images hold test classes more often, the opposite of what the selection is for"
    return f"The difference of dropped and kept is {said(summary.dropped_more)}: {verdict}."


def selection_page(study: SelectStudy, document: dict[str, Any]) -> str:
    """The whole page."""
    from hardlook.report.page import render_study

    kept, dropped = _clearest(study)
    sections = [
        Section("What this means", document["in_words"], (_histogram(study), _test_classes(study))),
        Section("What is kept of each class", "", (_classes(study),)),
        Section(
            "What was kept and dropped",
            "The clearest cases: the highest and the lowest K, the larger salient region first among equals.",
            (_gallery("Kept", kept), _gallery("Dropped", dropped)),
        ),
        remedies_section("sgtss"),
        *_leave_out(study),
        _rules(study),
    ]
    return render_study(
        sections,
        title="Saliency-guided training set selection",
        summary="For every training image, K is the share of its salient pixels that belong to a training class. "
        "Images with K below the median are dropped: what is salient in them stands as background and may be a test "
        "class.",
        provenance=document,
        pictures={row.image: _pictures(study, row) for row in (*kept, *dropped)},
    )


def _histogram(study: SelectStudy) -> DistributionChart:
    kept = set(study.selection.kept)
    shares = {row.image: row.share for row in study.rows if row.salient}
    middle = "undefined" if study.summary.median is None else said(study.summary.median, 3)
    return DistributionChart(
        "K of the training images",
        f"The median is {middle}; the histograms of kept and dropped images meet there. A large K says that what draws "
        "the eye is labelled.",
        [
            ("all", list(shares.values())),
            ("kept", [share for image, share in shares.items() if image in kept]),
            ("dropped", [share for image, share in shares.items() if image not in kept]),
        ],
        axis="K, share of salient pixels of a training class",
    )


def _test_classes(study: SelectStudy) -> DotChart:
    return DotChart(
        "Images in which a test class stands as background",
        "Lower is better for training. The rule does not see the test classes.",
        [dot(name, estimate) for name, estimate in study.summary.holding_test.items()],
        axis="share of images",
    )


def _classes(study: SelectStudy) -> DotChart:
    return DotChart(
        "Share kept of the training images that hold a class",
        "The reference is the share kept of all. A training class far below it loses images: it is often not what is "
        "salient. A test class below it leaves the background. Intervals are Wilson's, with the threshold held.",
        [
            dot(f"{one.name} ({one.images})", one.kept, "test classes" if one.tested else "training classes")
            for one in study.summary.classes
        ],
        axis="share kept",
        references=[("all training images", len(study.selection.kept) / len(study.rows))],
    )


def _clearest(study: SelectStudy) -> tuple[list[Coverage], list[Coverage]]:
    with_salience = [row for row in study.rows if row.salient]
    kept = set(study.selection.kept)
    high = sorted(with_salience, key=lambda row: (-row.share, -row.salient, row.image))
    low = sorted(with_salience, key=lambda row: (row.share, -row.salient, row.image))
    return (
        [row for row in high if row.image in kept][:SHOWN],
        [row for row in low if row.image not in kept][:SHOWN],
    )


def _gallery(title: str, rows: list[Coverage]) -> Gallery:
    return Gallery(
        title,
        "Left what the saliency model finds, right the training classes.",
        [
            Example(row.image, f"K = {row.share:.2f}: {row.covered} of {row.salient} salient pixels are labelled.")
            for row in rows
        ],
    )


def _pictures(study: SelectStudy, row: Coverage) -> list[Picture]:
    (one,) = [image for image in study.images if image.image == row.image]
    image = study.source.read_image(one.tokens[0])
    (salient,) = study.salient.masks([image])
    labels = np.full(image.shape[:2], -1, np.int32)
    training = read_training_mask(study.source, one, study.split)
    for token, name in zip(one.tokens, one.classes, strict=True):
        if name in study.split.training:
            labels[study.source.read_mask(token).mask & training] = study.source.classes.index(name)
    return [
        Picture("salient", image, mask=salient),
        Picture("training classes", image, label_map=labels, label_names=study.source.classes),
    ]


def _leave_out(study: SelectStudy) -> list[Section]:
    if study.left_out is None:
        return []
    kept, left = set(study.selection.kept), set(study.left_out)
    every = {row.image for row in study.rows}
    rows = [
        ("kept by both", len(kept & left)),
        ("kept by SGTSS only", len(kept - left)),
        ("kept by leave-out only", len(left - kept)),
        ("kept by neither", len(every - kept - left)),
    ]
    text = (
        "Leave-out drops every training image that holds a test class. It is an oracle, not a legal one-shot setting: "
        "it knows the test classes at training time. It says what could be won, not what may be done."
    )
    table = Table("SGTSS and leave-out", "Counts of training images.", ("images", "count"), rows, decimals=0)
    return [Section("Leave-out, an oracle", text, (table,))]


def _rules(study: SelectStudy) -> Section:
    rows = [
        (
            "images without a training class",
            study.listed - len(study.rows) - len(study.unread),
            "no training image",
        ),
        ("images without salient pixels", len(study.selection.without_salience), "no K: kept, not in the median"),
        ("images that could not be read", len(study.unread), "left out of everything; selection.json names them"),
        ("images with K equal to the median", _at_median(study), "kept"),
    ]
    caption = "Pixels that the truth leaves open count as salient where they are, and never as a training class."
    return Section("Edge cases", "", (Table("What the rule does with them", caption, ("what", "count", "rule"), rows),))


def _at_median(study: SelectStudy) -> int:
    median = number(study.selection.median)
    return sum(row.share == median for row in study.rows if row.salient)
