"""`hardlook bias negatives`: how much IoU a test class loses because it was background in training images.

How often a test class is background in training is its share of "percent distractors", with two readings:

- `paper`: of the images that hold a training class, the share that holds the test class too;
- `released`: the same over training masks, an image counting once for each training class in it. One-shot training
  draws a class and then an image of it, so this is how often the class is seen as background. The published numbers
  follow it: counted from the published file of statistics they agree within half a point for all classes, those of
  the `paper` reading within 2.4.

>>> images = [("cat",), ("cat", "car"), ("dog", "cat", "car"), ("car",)]
>>> shares = measure_distractor_shares(images, {"car": ("cat", "dog")})
>>> shares["car"].paper.value, shares["car"].released.value
(0.6666666666666666, 0.75)

What it costs is the drop of a class: the mean, over its images, of a supervised model's IoU minus the one-shot IoU. An
image that lacks one of the two is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.harness.sections import Block, DotChart, ScatterChart, Section, Spot, Table
from hardlook.harness.stats import Estimate, bootstrap_indices, bootstrap_mean, pearson, spearman
from hardlook.harness.verdicts import judge
from hardlook.randomness import generator
from hardlook.report.estimates import estimate_to_json, finite_or_none, format_estimate, format_share, make_estimate_dot
from hardlook.toss.bias.one_shot_results import class_iou, read_attribute_frame, read_run, replace_one_shot_iou
from hardlook.toss.bias.selection import build_remedies_section
from hardlook.toss.bias.training_images import assign_folds, estimate_mask_share, estimate_share, split_of_fold
from hardlook.toss.published import read_numbers
from hardlook.toss.tiers.attributes import FailedImage

if TYPE_CHECKING:
    from hardlook.toss.bias.one_shot_results import OneShotResults
    from hardlook.toss.bias.training_images import OpenedImages

READINGS = {
    "paper": "share of the images with a training class that hold the class too",
    "released": "share of the training masks (an image has one for each training class in it) whose image holds it too",
}
MIN_CLASSES = 5  # fewer have no correlation


@dataclass(frozen=True)
class DistractorShare:
    """How often a test class is in the training set: images and masks, and those whose image contains it."""

    images: int
    images_with: int
    masks: int
    masks_with: int
    paper: Estimate
    released: Estimate

    def share(self, reading: str) -> Estimate:
        """The share under a reading, in [0, 1]; NaN when there is no training image."""
        return self.paper if reading == "paper" else self.released


def measure_distractor_shares(
    images: Iterable[Sequence[str]], training_of: Mapping[str, Sequence[str]], *, seed: int = 0, resamples: int = 2000
) -> dict[str, DistractorShare]:
    """The distractor share of each test class.

    `images` are the classes of every image; `training_of` maps a test class to the training classes of its fold.
    """
    image_classes = [frozenset(classes) for classes in images]
    shares = {}
    for name, training in training_of.items():
        trained = frozenset(training)
        counts = [(count, name in classes) for classes in image_classes if (count := len(classes & trained))]
        masks, contains = [count for count, _ in counts], [inside for _, inside in counts]
        released = estimate_mask_share(masks, contains, rng=generator(seed, "distractors", name), resamples=resamples)
        shares[name] = DistractorShare(
            images=len(counts),
            images_with=sum(contains),
            masks=sum(masks),
            masks_with=sum(count for count, inside in counts if inside),
            paper=estimate_share(sum(contains), len(counts)),
            released=released,
        )
    return shares


@dataclass(frozen=True)
class ClassNegatives:
    """One class: the fold that tests it, how often it is background in training, and its IoUs.

    `one_shot` is pooled over a run's pairs, else it is a mean over images of a file, as `supervised` and `drop` are.
    None where it was not measured.
    """

    name: str
    fold: int
    distractors: DistractorShare
    one_shot: Estimate | None = None
    supervised: Estimate | None = None
    drop: Estimate | None = None


@dataclass(frozen=True)
class Association:
    """The correlation of two measurements of `n` classes; intervals over classes."""

    n: int
    spearman: Estimate
    pearson: Estimate


def measure_classes(
    shares: Mapping[str, DistractorShare],
    folds: Mapping[str, int],
    results: OneShotResults | None,
    attributes: pl.DataFrame | None,
    *,
    seed: int = 0,
    resamples: int = 2000,
) -> list[ClassNegatives]:
    """One row per class of `shares`; without a run, oss_perf of the table `attributes` is the one-shot IoU."""
    if attributes is not None and results is not None:
        attributes = replace_one_shot_iou(attributes, results)
    rows = []
    for name, share in shares.items():
        one = supervised = np.empty(0)
        if attributes is not None:
            images = attributes.filter(attributes["class"] == name)
            one, supervised = images["oss_perf"].to_numpy(), images["iou"].to_numpy()
        if results is not None and name in results.frame["class"]:
            one_shot: Estimate | None = class_iou(results, name, generator(seed, "class-iou", name), resamples)
        else:
            one_shot = _bootstrap_known(one, seed, resamples, "one-shot", name)
        expected = _bootstrap_known(supervised, seed, resamples, "supervised", name)
        # NaN where an image lacks one of the two.
        drop = _bootstrap_known(supervised - one, seed, resamples, "drop", name)
        rows.append(ClassNegatives(name, folds[name], share, one_shot, expected, drop))
    return rows


def associate(
    x: Sequence[float], y: Sequence[float], *, seed: int = 0, key: str = "", resamples: int = 2000
) -> Association:
    """Spearman's and Pearson's correlation of two measurements of classes; classes without one of them are left out.

    The interval resamples classes. With some twenty of them it is wide.

    >>> association = associate([1, 2, 3, 4, float("nan")], [1, 3, 2, 4, 5], resamples=100)
    >>> association.n, association.spearman.value
    (4, 0.8)
    """
    first, second = np.asarray(x, np.float64), np.asarray(y, np.float64)
    known = np.isfinite(first) & np.isfinite(second)
    a, b = first[known], second[known]

    def estimate(correlation: Callable[[NDArray[np.float64], NDArray[np.float64]], float]) -> Estimate:
        rng = generator(seed, "association", key)
        return bootstrap_indices(
            len(a), lambda rows: correlation(a[rows], b[rows]), rng=rng, resamples=resamples, resampled="class"
        )

    return Association(len(a), estimate(spearman), estimate(pearson))


def _bootstrap_known(values: NDArray[np.float64], seed: int, resamples: int, what: str, name: str) -> Estimate | None:
    """The mean of the finite values; None if there are none. `what` and `name` key the random draws."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    rng, values_range = generator(seed, what, name), (-1.0 if what == "drop" else 0.0, 1.0)
    return bootstrap_mean(known, rng=rng, resamples=resamples, range=values_range, resampled="image")


@dataclass(frozen=True)
class NegativesStudy:
    """One row per class, and how the distractor shares correlate with `measured` ("drop", "one-shot IoU", or "").

    `values` are that measurement of each class, NaN where there is none.
    """

    rows: Sequence[ClassNegatives]
    images: int
    reading: str
    measured: str
    values: Sequence[float]
    association: Association | None
    model: str
    pairs: str
    unread: Sequence[FailedImage]


def parse_reading(readings: dict[str, str]) -> str:
    """The reading of percent distractors, from NAME=VALUE pairs."""
    if unknown := sorted(set(readings) - {"distractors"}):
        raise OptionError(f"--reading {unknown[0]}: there is no such reading", remedy="the one reading is distractors")
    value = readings.get("distractors", "paper")
    if value not in READINGS:
        raise OptionError(f"--reading distractors={value}: no such value", remedy=f"one of {', '.join(READINGS)}")
    return value


def run_negatives(
    opened: OpenedImages, folds: int, run: Path | None, attributes: Path | None, reading: str, seed: int
) -> NegativesStudy:
    """Measure every class, and correlate distractor share and drop (or IoU); one-shot IoUs are of `run` if given."""
    source, images = opened.source, opened.images
    tested = assign_folds(source.classes, folds)
    training = {name: split_of_fold(source.classes, fold, folds).training for name, fold in tested.items()}
    shares = measure_distractor_shares((one.classes for one in images), training, seed=seed)
    results = read_run(run) if run else None
    rows = measure_classes(shares, tested, results, read_attribute_frame(attributes) if attributes else None, seed=seed)
    measured, estimates = "drop", [row.drop for row in rows]
    if not any(estimates):
        measured, estimates = "one-shot IoU", [row.one_shot for row in rows]
    values = [float("nan") if one is None else one.value for one in estimates]
    association = None
    if any(estimates):
        association = associate([row.distractors.share(reading).value for row in rows], values, seed=seed, key=measured)
    else:
        measured = ""
    model = f"the one-shot model of {attributes.name}" if attributes and measured else ""
    pairs = "images of the table"
    if results:
        model, pairs = results.model, results.pairs
    return NegativesStudy(rows, len(images), reading, measured, values, association, model, pairs, opened.unread)


def associate_published(seed: int = 0) -> dict[str, Association]:
    """The published distractor share correlated with the base IoU and with what leave-out training gains."""
    classes = read_numbers().classes
    measured = {
        "base": [one.base for one in classes],
        "base_gain": [one.base_leave_out - one.base for one in classes],
        "rpmm_gain": [one.rpmm_leave_out - one.rpmm for one in classes],
    }
    shares = [one.distractors for one in classes]
    return {name: associate(shares, values, seed=seed, key=f"published {name}") for name, values in measured.items()}


def _describe_association(association: Association) -> str:
    spearman, pearson = format_estimate(association.spearman), format_estimate(association.pearson)
    return f"Spearman {spearman}, Pearson {pearson}"


def build_published_scatters(associations: dict[str, Association]) -> tuple[ScatterChart, ScatterChart]:
    """The published classes: share as background against IoU, and against the gain of leave-out training."""
    classes = read_numbers().classes
    base, gain, rpmm = (associations[name] for name in ("base", "base_gain", "rpmm_gain"))
    x_axis = "published share as background"
    first = ScatterChart(
        "Published: share as background against one-shot IoU",
        f"The paper's own base network. {_describe_association(base)}; the intervals resample classes.",
        [Spot(one.distractors, one.base, one.name, f"fold {one.fold}") for one in classes],
        x_axis=x_axis,
        y_axis="published one-shot IoU",
    )
    second = ScatterChart(
        "Published: share as background against what leave-out training gains",
        f"Base: {_describe_association(gain)}. RPMM: {_describe_association(rpmm)}. One class, person, is an outlier "
        "on both axes and determines Pearson's value.",
        [
            *(Spot(one.distractors, one.base_leave_out - one.base, one.name, "Base") for one in classes),
            *(Spot(one.distractors, one.rpmm_leave_out - one.rpmm, one.name, "RPMM") for one in classes),
        ],
        x_axis=x_axis,
        y_axis="leave-out IoU minus base IoU",
    )
    return first, second


def negatives_to_json(study: NegativesStudy, published: dict[str, Association], seed: int) -> dict[str, Any]:
    """All numbers of the study; undefined ones are null."""
    import hardlook

    return {
        "schema": "hardlook.bias-negatives/1",
        "hardlook": hardlook.__version__,
        "seed": seed,
        "in_words": describe_negatives(study),
        "images": study.images,
        "unread": [{"image": one.image, "reason": one.error} for one in study.unread],
        "reading": {"distractors": study.reading, "meaning": READINGS[study.reading]},
        "model": study.model,
        "pairs": study.pairs,
        "measured": study.measured or None,
        "association": None if study.association is None else _association_to_json(study.association),
        "classes": [_class_to_json(row) for row in study.rows],
        "published": {name: _association_to_json(one) for name, one in published.items()},
    }


def describe_negatives(study: NegativesStudy) -> str:
    """The study's result in sentences."""
    known = [row for row in study.rows if finite_or_none(row.distractors.share(study.reading).value) is not None]
    if not known:
        return "No image holds a training class, so there is no share to compare."
    top = max(known, key=lambda row: row.distractors.share(study.reading).value)
    text = (
        f"The class that is background most often is {top.name}: in "
        f"{format_share(top.distractors.share(study.reading))} of the training "
        f"{'images' if study.reading == 'paper' else 'masks'} of its fold."
    )
    found = study.association
    if found is None:
        return f"{text} No one-shot result was given, so what that costs is not shown."
    if finite_or_none(found.spearman.value) is None or found.n < MIN_CLASSES:
        return f"{text} No correlation can be computed: {found.n} classes have a result, or all of them are equal."
    worse = study.measured == "drop"
    lost = "lose more against the supervised model" if worse else "have a lower one-shot IoU"
    kept = "lose less" if worse else "have a higher one-shot IoU"
    judged = judge(found.spearman)
    with_bias = (found.spearman.value > 0) == worse
    verdict = f"Classes that are background more often {lost if with_bias else kept}." if not judged.why else judged.why
    return (
        f"{text} For {study.model} Spearman's correlation of that share with the {study.measured} is "
        f"{format_estimate(found.spearman)} over {found.n} classes. {verdict} A correlation over classes is no proof "
        "of a cause: small classes in cluttered scenes both occur in other images and are hard to find."
    )


def write_negatives(study: NegativesStudy, out: Path, seed: int) -> dict[str, Any]:
    """Write the page and the JSON file of the study to the folder `out`; return the JSON document."""
    from hardlook.report.page import write_study

    published = associate_published(seed)
    document = negatives_to_json(study, published, seed)
    shares = DotChart(
        "How often a class is background",
        f"Per class, {READINGS[study.reading]}, in the fold that tests it. Published: person 30.05 %, chair 12.24 %.",
        [make_estimate_dot(row.name, row.distractors.share(study.reading), f"fold {row.fold}") for row in study.rows],
        axis="share of the training set",
    )
    sections = [
        Section("What this means", document["in_words"], (shares, *_build_scatter(study))),
        Section("All classes", "", (_build_table(study),)),
        _build_published_section(study.rows, published),
        build_remedies_section("leave-out"),
    ]
    if study.unread:
        rows = [(one.image, one.error) for one in study.unread]
        table = Table("Images that could not be read", "They are in no share.", ("image", "why"), rows)
        sections.append(Section("What was left out", f"{len(rows)} images could not be read.", (table,)))
    return write_study(
        out,
        "negatives",
        document,
        sections,
        title="Class negative bias",
        summary="A one-shot model is trained on images in which its later test classes are background. This study "
        "compares how often that happens to a class with how well the class is found afterwards.",
        provenance=document,
    )


def _build_scatter(study: NegativesStudy) -> list[ScatterChart]:
    if study.association is None:
        return []
    drop = "supervised IoU minus one-shot IoU, mean over images"
    chart = ScatterChart(
        f"Share as background against {study.measured}",
        f"One point per class. {_describe_association(study.association)}; the intervals resample classes.",
        [
            Spot(row.distractors.share(study.reading).value, value, row.name, f"fold {row.fold}")
            for row, value in zip(study.rows, study.values, strict=True)
        ],
        x_axis="share of the training set in which the class is background",
        y_axis=drop if study.measured == "drop" else "one-shot IoU of the class",
    )
    return [chart]


def _build_table(study: NegativesStudy) -> Table:
    rows = []
    for row in study.rows:
        share = row.distractors
        values = [None if one is None else format_estimate(one, 3) for one in (row.one_shot, row.supervised, row.drop)]
        rows.append((row.name, row.fold, share.paper.value, share.released.value, *values))
    caption = (
        f"paper and released are the two readings of percent distractors: {READINGS['paper']}; {READINGS['released']}. "
        f"The one-shot IoU is over {study.pairs}; supervised IoU and drop are means over images, the drop over images "
        "that have both."
    )
    columns = ("class", "fold", "paper", "released", "one-shot IoU", "supervised IoU", "drop")
    return Table("Shares and scores per class", caption, columns, rows)


def _build_published_section(rows: Sequence[ClassNegatives], published: dict[str, Association]) -> Section:
    blocks: list[Block] = [*build_published_scatters(published)]
    ours = {row.name: row.distractors for row in rows}
    both = [one for one in read_numbers().classes if one.name in ours]
    if both:
        table = [(one.name, one.distractors, ours[one.name].paper.value, ours[one.name].released.value) for one in both]
        caption = "Shares of the training set. They differ where the images are not the paper's."
        columns = ("class", "published", "paper", "released")
        blocks.append(Table("Shares beside the published ones", caption, columns, table))
    return Section("The published values", "", blocks)


def _association_to_json(association: Association) -> dict[str, Any]:
    spearman, pearson = estimate_to_json(association.spearman), estimate_to_json(association.pearson)
    return {"classes": association.n, "spearman": spearman, "pearson": pearson}


def _class_to_json(row: ClassNegatives) -> dict[str, Any]:
    share = row.distractors
    return {
        "class": row.name,
        "fold": row.fold,
        "training_images": share.images,
        "training_images_with": share.images_with,
        "training_masks": share.masks,
        "training_masks_with": share.masks_with,
        "distractors": {"paper": estimate_to_json(share.paper), "released": estimate_to_json(share.released)},
        "one_shot": estimate_to_json(row.one_shot),
        "supervised": estimate_to_json(row.supervised),
        "drop": estimate_to_json(row.drop),
    }
