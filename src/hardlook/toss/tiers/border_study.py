"""Compare how crisp the borders of two saliency models' maps are.

A salient mask is a map thresholded at .5, so where a border is wide, the threshold decides what is inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data.class_masks import ClassMaskSource
from hardlook.errors import DataError
from hardlook.harness.rounding import format_fixed
from hardlook.harness.runs.progress import StartProgress
from hardlook.harness.sections import DistributionChart, DotChart, Example, Gallery, Picture, Section
from hardlook.harness.stats import Estimate, bootstrap_mean
from hardlook.harness.verdicts import judge
from hardlook.metrics.mask_attributes import SIDE
from hardlook.models.answer_checks import check_answers
from hardlook.models.named_model import NamedModel
from hardlook.models.roles import Image
from hardlook.randomness import generator
from hardlook.report.estimates import estimate_to_json, make_estimate_dot
from hardlook.toss.tiers.attribute_report import list_gallery_units
from hardlook.toss.tiers.attributes import FailedImage
from hardlook.toss.tiers.dataset import OpenedData, describe_failures

LOW, HIGH, THRESHOLD = 0.1, 0.9, 0.5
MAX_EXAMPLES = 6


@dataclass(frozen=True)
class Border:
    """The border in one saliency map at 512 x 512.

    `undecided` is the share of pixels between .1 and .9. `width`, in pixels, is their number over the length of the
    contour at .5; NaN where there is no contour.
    """

    undecided: float
    width: float


@dataclass(frozen=True)
class BorderSummary:
    """The borders of one model's maps: means over images with intervals; `blank` counts maps without a contour."""

    model: str
    undecided: Estimate
    width: Estimate | None
    blank: int
    borders: tuple[Border, ...]


def measure_border(saliency: NDArray[np.float32]) -> Border:
    """Measure the border in a map (H, W) in [0, 1]; a crisp border has no pixels between .1 and .9.

    >>> crisp = np.zeros((64, 64), np.float32)
    >>> crisp[16:48, 16:48] = 1
    >>> faint = cv2.GaussianBlur(crisp, (0, 0), 6)
    >>> measure_border(crisp).width < measure_border(faint).width
    True
    """
    square = cv2.resize(saliency, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
    undecided = int(np.count_nonzero((square > LOW) & (square < HIGH)))
    inside = (square > THRESHOLD).astype(np.uint8)
    contours, _ = cv2.findContours(inside, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    length = sum(cv2.arcLength(contour, True) for contour in contours)
    return Border(undecided / SIDE**2, undecided / length if length else float("nan"))


def summarise_borders(model: str, borders: Sequence[Border], *, seed: int = 0) -> BorderSummary:
    """Means over images, with intervals that resample them."""
    widths = [border.width for border in borders if not np.isnan(border.width)]
    undecided = bootstrap_mean(
        [border.undecided for border in borders],
        rng=generator(seed, "undecided"),
        range=(0.0, 1.0),
        resampled="image",
        resamples=2000,
    )
    width = None
    if widths:
        rng = generator(seed, "border width")
        width = bootstrap_mean(widths, rng=rng, range=(0.0, np.inf), resampled="image", resamples=2000)
    return BorderSummary(model, undecided, width, len(borders) - len(widths), tuple(borders))


def run_border_study(
    opened: OpenedData, models: Mapping[str, NamedModel], *, images: int, seed: int, start: StartProgress
) -> tuple[list[Section], dict[str, Any], list[FailedImage]]:
    """Measure at most `images` images with both models; return the page's sections, its numbers and failed images."""
    source = opened.source
    token_per_image = sorted({source.image_of(token): token for token in opened.tokens}.values())
    order = generator(seed, "study-saliency").permutation(len(token_per_image))[:images]
    chosen = [token_per_image[place] for place in sorted(order.tolist())]
    borders: dict[str, list[Border]] = {name: [] for name in models}
    measured, failures = [], list(opened.failures)
    advance = start(len(chosen), 0)
    for token in chosen:
        try:
            image = source.read_image(token)
            both = [measure_border(_predict_saliency(model, image)) for model in models.values()]
        except Exception as error:  # a model may raise anything; one failed image must not stop the study
            failures.append(FailedImage(source.image_of(token), f"{type(error).__name__}: {error}"))
            advance(1, 1)
            continue
        measured.append(token)
        for own, border in zip(borders.values(), both, strict=True):
            own.append(border)
        advance(1, 0)
    if not measured:
        raise DataError(f"no image could be measured ({describe_failures(failures)})", remedy="check the models")
    summaries = [summarise_borders(name, own, seed=seed) for name, own in borders.items()]
    sections, document = build_border_page(summaries, measured)
    document["models"] = [model.facts() for model in models.values()]
    return sections, document, failures


def build_border_page(
    summaries: Sequence[BorderSummary], tokens: Sequence[str]
) -> tuple[list[Section], dict[str, Any]]:
    """Shares of undecided pixels and widths of borders, and the images where the two models differ most."""
    undecided = [make_estimate_dot(one.model, one.undecided, scale=100) for one in summaries]
    widths = [make_estimate_dot(one.model, one.width) for one in summaries if one.width]
    crisp = min(summaries, key=lambda one: one.undecided.value)
    first, second = (np.array([border.undecided for border in one.borders]) for one in summaries)
    most_different = np.argsort(-np.abs(first - second), kind="stable")[:MAX_EXAMPLES].tolist()
    examples = [
        Example(
            tokens[place],
            f"undecided: {format_fixed(100 * first[place], 1)} % and {format_fixed(100 * second[place], 1)} %",
        )
        for place in most_different
        if first[place] != second[place]
    ]
    apart = judge(bootstrap_mean(first - second, rng=generator(0, "undecided difference"), resampled="image"))
    shares = " and ".join(f"{format_fixed(100 * one.undecided.value, 1)} % ({one.model})" for one in summaries)
    summary = f"Between .1 and .9 lie {shares} of the pixels, on {len(tokens)} images. " + (
        f"{crisp.model} has the crisper borders." if not apart.why else apart.why
    )
    groups = [(one.model, [100 * border.undecided for border in one.borders]) for one in summaries]
    section = Section(
        "Borders",
        "The attribute salience thresholds the map at .5. Where many pixels lie between .1 and .9, the threshold "
        "decides, not the model.",
        [
            DotChart("Undecided pixels", "Between .1 and .9, interval over images.", undecided, "percent of the image"),
            DotChart(
                "Width of the border", "Undecided pixels over the contour's length, at 512 x 512.", widths, "pixels"
            ),
            DistributionChart("Undecided pixels per image", "Left is crisp.", groups, "percent of the image"),
            Gallery("Where the two differ most", "The maps: white is salient.", examples),
        ],
    )
    document = {
        "schema": "hardlook.study-saliency/1",
        "summary": summary,
        "images": len(tokens),
        "borders": {
            one.model: {
                "undecided": estimate_to_json(one.undecided, ("value", "low", "high", "n")),
                "width_pixels": estimate_to_json(one.width, ("value", "low", "high", "n")),
                "blank_maps": one.blank,
            }
            for one in summaries
        },
    }
    return [section], document


def _predict_saliency(model: NamedModel, image: Image) -> NDArray[np.float32]:
    [found] = check_answers("saliency", model.model, model.model.saliency([image]), [image])
    return np.asarray(found)


def draw_borders(
    source: ClassMaskSource, models: Mapping[str, NamedModel], sections: Sequence[Section]
) -> dict[str, list[Picture]]:
    """The images that the gallery shows, with both models' maps in grey."""
    pictures = {}
    for token in list_gallery_units(sections):
        image = source.read_image(token)
        pictures[token] = [Picture("image", image)]
        for name, model in models.items():
            grey = (255 * _predict_saliency(model, image)).astype(np.uint8)
            pictures[token].append(Picture(name, np.repeat(grey[..., None], 3, axis=2)))
    return pictures
