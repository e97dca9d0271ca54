"""`hardlook bias select`: a training list by saliency (SGTSS), and what it keeps and drops.

The rule is in `training_images`. The study also says how often test classes are in what remains.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hardlook.data.class_masks import ClassMaskSource
from hardlook.errors import DataError
from hardlook.harness.rounding import format_fixed
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.progress import StartProgress
from hardlook.harness.sections import DistributionChart, Dot, DotChart, Example, Gallery, Picture, Section, Table
from hardlook.harness.stats import Estimate, bootstrap_indices, bootstrap_score, ratio
from hardlook.harness.verdicts import judge
from hardlook.models.named_model import NamedModel
from hardlook.randomness import generator
from hardlook.report.estimates import estimate_to_json, format_estimate, format_share, make_estimate_dot
from hardlook.report.json_values import dump_json
from hardlook.toss.bias.training_images import (
    ClassSplit,
    Coverage,
    LabelledImage,
    OpenedImages,
    Selection,
    estimate_share,
    leave_out_classes,
    measure_coverage,
    select_images,
    select_training_images,
)
from hardlook.toss.published import read_numbers
from hardlook.toss.saliency_cache import SaliencyMaskCache, default_mask_folder
from hardlook.toss.tiers.attributes import FailedImage
from hardlook.toss.tiers.dataset import describe_failures

ALL, KEPT, DROPPED = "all training images", "kept", "dropped"
KEPT_LIST, DROPPED_LIST, LEAVE_OUT_LIST = "kept.txt", "dropped.txt", "leave-out.txt"
REMEDY_NAMES = {"none": "alone", "leave-out": "leave-out", "sgtss": "SGTSS", "sssi": "SSSI"}
SHOWN = 8


@dataclass(frozen=True)
class ClassKept:
    """The training images that hold a class: how many, and the share that is kept."""

    name: str
    tested: bool
    images: int
    kept: Estimate


@dataclass(frozen=True)
class SelectionSummary:
    """The median of K, the share kept per class, and the share of images that hold a test class, by part.

    `dropped_more` is that share among the dropped images minus that among the kept ones; NaN if one part is empty.
    Intervals of shares are Wilson's, with the threshold fixed; those of the median and the difference resample images.
    """

    median: Estimate | None
    classes: tuple[ClassKept, ...]
    holding_test: dict[str, Estimate]
    dropped_more: Estimate


def summarise_selection(
    rows: Sequence[Coverage], selection: Selection, split: ClassSplit, *, seed: int = 0, resamples: int = 2000
) -> SelectionSummary:
    """The numbers of a selection; classes that no training image holds are left out.

    >>> rows = [Coverage("a", 4, 4, ("cat",)), Coverage("b", 4, 1, ("cat", "car"))]
    >>> summary = summarise_selection(rows, select_images(rows), ClassSplit(("cat",), ("car",), ""), resamples=50)
    >>> [(one.name, one.kept.value) for one in summary.classes], summary.holding_test["dropped"].value
    ([('cat', 0.5), ('car', 0.0)], 1.0)
    """
    shares = np.array([row.share for row in rows if row.salient])
    kept = np.isin([row.image for row in rows], selection.kept)
    holds_test = np.array([bool(set(split.test) & set(row.classes)) for row in rows])
    median = None
    if len(shares):
        rng = generator(seed, "selection", "median")
        median = bootstrap_indices(
            len(shares), lambda units: float(np.median(shares[units])), rng=rng, resamples=resamples, resampled="image"
        )
    classes = []
    for name in (*split.training, *split.test):
        holding = np.array([name in row.classes for row in rows])
        if count := int(holding.sum()):
            classes.append(ClassKept(name, name in split.test, count, estimate_share(int(kept[holding].sum()), count)))
    parts = {ALL: np.ones(len(rows), bool), KEPT: kept, DROPPED: ~kept}
    holding_test = {
        name: estimate_share(int(holds_test[part].sum()), int(part.sum())) for name, part in parts.items() if part.any()
    }
    more = bootstrap_score(
        np.stack([holds_test & ~kept, ~kept, holds_test & kept, kept], axis=1),
        lambda totals: ratio(totals[..., :2]) - ratio(totals[..., 2:]),
        rng=generator(seed, "selection", "difference"),
        resamples=resamples,
        range=(-1.0, 1.0),
        resampled="image",
    )
    return SelectionSummary(median, tuple(classes), holding_test, more)


@dataclass(frozen=True)
class SelectStudy:
    """All that the page and the lists are made from; `left_out` is None without --leave-out."""

    source: ClassMaskSource
    images: Sequence[LabelledImage]
    split: ClassSplit
    rows: Sequence[Coverage]
    unread: Sequence[FailedImage]
    selection: Selection
    summary: SelectionSummary
    left_out: tuple[str, ...] | None
    salient: SaliencyMaskCache
    model: str

    @property
    def listed(self) -> int:
        """How many images there are, readable or not."""
        return len({one.image for one in self.images} | {one.image for one in self.unread})

    @property
    def without_training_class(self) -> int:
        """How many images hold no training class."""
        return self.listed - len(self.rows) - len(self.unread)


def run_selection(
    opened: OpenedImages, split: ClassSplit, model: NamedModel, *, leave_out: bool, seed: int, start: StartProgress
) -> SelectStudy:
    """Find what is salient in every training image and apply the rule."""
    source, images = opened.source, opened.images
    training = select_training_images(images, split)
    if not images and opened.unread:
        raise DataError(f"no image could be read: {describe_failures(opened.unread)}", remedy="check --data")
    if not training:
        raise DataError("no image holds a training class", remedy=f"the training classes: {', '.join(split.training)}")
    salient = SaliencyMaskCache(model.model, model.identity.fingerprint(), default_mask_folder())
    rows, unread = measure_coverage(source, training, split, salient, start(len(training), 0))
    if not rows:
        raise DataError(f"no image could be read: {describe_failures(unread)}", remedy="check --data")
    selected = select_images(rows)
    summary = summarise_selection(rows, selected, split, seed=seed)
    left = leave_out_classes(rows, split.test) if leave_out else None
    failed, name = (*opened.unread, *unread), model.identity.name
    return SelectStudy(source, images, split, rows, failed, selected, summary, left, salient, name)


def write_selection(study: SelectStudy, out: Path, paths: Mapping[str, Path]) -> dict[str, Any]:
    """Write the lists, the table, the page and the numbers; return the numbers."""
    document = selection_to_json(study, paths)
    lists = {KEPT_LIST: study.selection.kept, DROPPED_LIST: study.selection.dropped}
    if study.left_out is not None:
        lists[LEAVE_OUT_LIST] = study.left_out
    for name, images in lists.items():
        write_atomically(out / name, "".join(f"{image}\n" for image in images))
    kept = set(study.selection.kept)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("image", "K", "salient_pixels", "covered_pixels", "kept"))
    for row in study.rows:
        share = f"{row.share:.6f}" if row.salient else ""
        writer.writerow((row.image, share, row.salient, row.covered, int(row.image in kept)))
    write_atomically(out / "selection.csv", table.getvalue())
    write_atomically(out / "selection.json", dump_json(document))
    write_atomically(out / "selection.html", render_selection(study, document))
    return document


def build_remedies_section(remedy: str) -> Section:
    """What the paper gained by its remedies; the text names `remedy`, one that trains on a shorter list."""
    published = read_numbers().remedies
    rows = [
        Dot(name, values[key].mean, group=method)
        for method, values in published.items()
        for key, name in REMEDY_NAMES.items()
    ]
    gains = ", ".join(
        f"{method} {format_fixed(100 * values['none'].mean, 2)} to {format_fixed(100 * values[remedy].mean, 2)}"
        for method, values in published.items()
    )
    caption = (
        "Mean IoU over the four folds of PASCAL-5i, as printed; the paper gives no intervals. Leave-out is an oracle."
    )
    chart = DotChart("Published remedies, each on its own", caption, rows, axis="mean IoU")
    text = (
        f"The published effect of {REMEDY_NAMES[remedy]}, in percent of mean IoU: {gains}. These networks were trained "
        "again on the shorter list; a list alone changes nothing."
    )
    return Section("What it did in the paper", text, (chart,))


def selection_to_json(study: SelectStudy, paths: Mapping[str, Path]) -> dict[str, Any]:
    """All numbers of the study; undefined ones are null."""
    import hardlook

    chosen, summary = study.selection, study.summary
    leave_out = None
    if study.left_out is not None:
        leave_out = {"kept": len(study.left_out), "kept_by_both": len(set(chosen.kept) & set(study.left_out))}
    return {
        "schema": "hardlook.bias-selection/1",
        "hardlook": hardlook.__version__,
        "data": {name: str(path) for name, path in paths.items()},
        "saliency": study.model,
        "split": {"name": study.split.name, "training": study.split.training, "test": study.split.test},
        "in_words": describe_selection(study),
        "images": study.listed,
        "training_images": len(study.rows),
        "kept": len(chosen.kept),
        "dropped": len(chosen.dropped),
        "without_training_class": study.without_training_class,
        "without_salience": list(chosen.without_salience),
        "unread": [{"image": one.image, "reason": one.error} for one in study.unread],
        "median": estimate_to_json(summary.median),
        "holding_a_test_class": {name: estimate_to_json(one) for name, one in summary.holding_test.items()},
        "dropped_minus_kept": estimate_to_json(summary.dropped_more),
        "classes": [
            {"class": one.name, "test": one.tested, "images": one.images, "kept": estimate_to_json(one.kept)}
            for one in summary.classes
        ],
        "leave_out": leave_out,
    }


def describe_selection(study: SelectStudy) -> str:
    """What the selection means for this data."""
    chosen, summary = study.selection, study.summary
    lines = [
        f"{len(chosen.kept)} of {len(study.rows)} training images are kept, {len(chosen.dropped)} are dropped "
        f"({study.split.name}, salience by {study.model})."
    ]
    if summary.median is None:
        return lines[0] + " No image has a salient pixel, so nothing is dropped."
    lines.append(f"In the middle image {format_share(summary.median)} of what is salient belongs to a training class.")
    before, kept, dropped = (summary.holding_test.get(part) for part in (ALL, KEPT, DROPPED))
    if before is not None and kept is not None and dropped is not None:
        lines.append(
            f"A test class is background in {format_share(before)} of all training images, in {format_share(kept)} of "
            f"the kept and in {format_share(dropped)} of the dropped ones."
        )
        verdict = judge(summary.dropped_more)
        words = {
            "above": "The selection takes test classes out of the background without knowing them.",
            "below": "The kept images hold test classes more often, the opposite of what the selection is for.",
        }
        lines.append(f"The difference of dropped and kept is {format_estimate(summary.dropped_more)}.")
        lines.append(words.get(verdict.side, verdict.why))
    return " ".join(lines)


def render_selection(study: SelectStudy, document: dict[str, Any]) -> str:
    """The whole page."""
    from hardlook.report.page import render_study

    kept, dropped = _select_extremes(study, kept=True), _select_extremes(study, kept=False)
    holding = DotChart(
        "Images in which a test class is background",
        "Lower is better for training. The rule does not see the test classes.",
        [make_estimate_dot(name, estimate) for name, estimate in study.summary.holding_test.items()],
        axis="share of images",
    )
    sections = [
        Section("What this means", document["in_words"], (_build_histogram(study), holding)),
        Section("What is kept of each class", "", (_build_class_chart(study),)),
        Section(
            "What was kept and dropped",
            "The clearest cases: the highest and the lowest K, the larger salient region first among equals.",
            (_build_gallery("Kept", kept), _build_gallery("Dropped", dropped)),
        ),
        build_remedies_section("sgtss"),
        *_build_leave_out_sections(study),
        _build_edge_case_section(study),
    ]
    return render_study(
        sections,
        title="Saliency-guided training set selection",
        summary="For every training image, K is the share of its salient pixels that belong to a training class. "
        "Images with K below the median are dropped: what is salient in them is background and may be a test class.",
        provenance=document,
        pictures={row.image: _draw_image(study, row) for row in (*kept, *dropped)},
    )


def _build_histogram(study: SelectStudy) -> DistributionChart:
    kept = set(study.selection.kept)
    shares = {row.image: row.share for row in study.rows if row.salient}
    middle = "undefined" if study.summary.median is None else format_estimate(study.summary.median, 3)
    return DistributionChart(
        "K of the training images",
        f"The median is {middle}; the histograms of kept and dropped images meet there. A large K means that what is "
        "salient is labelled.",
        [
            ("all", list(shares.values())),
            ("kept", [share for image, share in shares.items() if image in kept]),
            ("dropped", [share for image, share in shares.items() if image not in kept]),
        ],
        axis="K, share of salient pixels of a training class",
    )


def _build_class_chart(study: SelectStudy) -> DotChart:
    return DotChart(
        "Share kept of the training images that hold a class",
        "The reference is the share kept of all. A training class far below it loses images: it is often not what is "
        "salient. A test class below it leaves the background. Intervals are Wilson's, with the threshold fixed.",
        [
            make_estimate_dot(
                f"{one.name} ({one.images})", one.kept, "test classes" if one.tested else "training classes"
            )
            for one in study.summary.classes
        ],
        axis="share kept",
        references=[("all training images", len(study.selection.kept) / len(study.rows))],
    )


def _select_extremes(study: SelectStudy, *, kept: bool) -> list[Coverage]:
    """The kept images with the highest K, or the dropped ones with the lowest."""
    dropped, sign = set(study.selection.dropped), -1 if kept else 1
    rows = [row for row in study.rows if row.salient and (row.image in dropped) is not kept]
    return sorted(rows, key=lambda row: (sign * row.share, -row.salient, row.image))[:SHOWN]


def _build_gallery(title: str, rows: list[Coverage]) -> Gallery:
    return Gallery(
        title,
        "Left what the saliency model finds, right the training classes.",
        [
            Example(
                row.image,
                f"K = {format_fixed(row.share, 2)}: {row.covered} of {row.salient} salient pixels are labelled.",
            )
            for row in rows
        ],
    )


def _draw_image(study: SelectStudy, row: Coverage) -> list[Picture]:
    (one,) = [image for image in study.images if image.image == row.image]
    image = study.source.read_image(one.tokens[0])
    (salient,) = study.salient.masks([image])
    labels = np.full(image.shape[:2], -1, np.int32)
    for token, name in zip(one.tokens, one.classes, strict=True):
        if name in study.split.training:
            labels[study.source.read_mask(token).mask] = study.source.classes.index(name)
    return [
        Picture("salient", image, mask=salient),
        Picture("training classes", image, label_map=labels, label_names=study.source.classes),
    ]


def _build_leave_out_sections(study: SelectStudy) -> list[Section]:
    if study.left_out is None:
        return []
    kept, left = set(study.selection.kept), set(study.left_out)
    rows = [
        ("kept by both", len(kept & left)),
        ("kept by SGTSS only", len(kept - left)),
        ("kept by leave-out only", len(left - kept)),
        ("kept by neither", len({row.image for row in study.rows} - kept - left)),
    ]
    text = (
        "Leave-out drops every training image that holds a test class. It is an oracle, not a legal one-shot setting: "
        "it knows the test classes at training time. It is an upper bound, not a method."
    )
    table = Table("SGTSS and leave-out", "Counts of training images.", ("images", "count"), rows, decimals=0)
    return [Section("Leave-out, an oracle", text, (table,))]


def _build_edge_case_section(study: SelectStudy) -> Section:
    at_median = sum(row.share == study.selection.median for row in study.rows if row.salient)
    rows = [
        ("images without a training class", study.without_training_class, "no training image"),
        ("images without salient pixels", len(study.selection.without_salience), "no K: kept, not in the median"),
        ("images that could not be read", len(study.unread), "left out of everything; selection.json names them"),
        ("images with K equal to the median", at_median, "kept"),
    ]
    caption = "Pixels that the truth leaves open count as salient where they are, and never as a training class."
    return Section("Edge cases", "", (Table("What the rule does with them", caption, ("what", "count", "rule"), rows),))
