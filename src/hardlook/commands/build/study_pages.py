"""Pages and JSON of the design studies, with the published values beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.toss.published_biases import ENCODER_AGREEMENT, WEIGHT_STUDY
from hardlook.contract.sections import (
    DistributionChart,
    Dot,
    DotChart,
    Example,
    Gallery,
    Picture,
    ScatterChart,
    Section,
    Spot,
    Table,
)
from hardlook.tiers.encoder_agreement import EncoderAgreement
from hardlook.tiers.partition_weights import ORDER, PartitionWeight
from hardlook.tiers.saliency_borders import BorderSummary

if TYPE_CHECKING:
    from hardlook.data.class_masks import ClassMasks
    from hardlook.stats import Estimate
    from hardlook.tiers.attribute_table import FailedImage

_MOST_SPOTS = 1500
_SHOWN = 6
Study = tuple[list[Section], dict[str, Any]]


def encoder_study(cosines: Mapping[str, NDArray[np.float64]], found: EncoderAgreement) -> Study:
    """Agreement of two encoders, the published ones as lines, and their cosines against each other."""
    estimate = found.agreement
    published = {name: round(100 * one.share, 2) for name, one in ENCODER_AGREEMENT.items()}
    dot = Dot(f"{found.first} and {found.second}", 100 * estimate.value, *_bounds(estimate, 100))
    references = [(f"{name} and CLIP (published)", value) for name, value in published.items()]
    x, y = cosines[found.first], cosines[found.second]
    step = max(-(-len(x) // _MOST_SPOTS), 1)
    spots = [
        Spot(float(a), float(b), "", "agree" if (a > x.mean()) == (b > y.mean()) else "disagree")
        for a, b in zip(x[::step], y[::step], strict=True)
    ]
    summary = (
        f"{found.first} and {found.second} agree on {100 * estimate.value:.1f} % of {found.pairs:,} same-class pairs "
        f"(kappa {found.kappa:.2f}, Spearman of the cosines {found.spearman:.2f})."
    )
    text = "A pair is similar when its cosine is above the encoder's mean. Half agree by chance; kappa leaves that out."
    section = Section(
        "Agreement",
        text,
        [
            DotChart("Pairs with equal verdict", "Interval over query images.", [dot], "percent", references),
            ScatterChart(
                "Cosines of the same pairs",
                f"One point a pair, every {step}. drawn. Pairs that disagree lie between the two means.",
                spots,
                found.first,
                found.second,
            ),
            DistributionChart(
                "Cosines",
                "An encoder whose cosines are all alike splits at noise.",
                [(k, v.tolist()) for k, v in cosines.items()],
                "cosine",
            ),
        ],
    )
    document = {
        "schema": "hardlook.study-encoders/1",
        "summary": summary,
        "pairs": found.pairs,
        "agreement": _estimate(estimate),
        "kappa": _finite(found.kappa),
        "spearman": _finite(found.spearman),
        "published_percent_with_clip": published,
    }
    return [section], document


def weight_study(found: Mapping[str, Sequence[PartitionWeight]], intervals: Mapping[str, Estimate]) -> Study:
    """Weights under every reading, the published ones beside, and how far each reading is from them."""
    gaps = {
        reading: max(
            max(abs(one.salience_share - WEIGHT_STUDY[one.partition].salience) for one in weights),
            max(abs(one.iou_share - WEIGHT_STUDY[one.partition].supervised_miou) for one in weights),
        )
        for reading, weights in found.items()
    }
    nearest = min(gaps, key=lambda reading: gaps[reading])
    dots = [
        Dot(name, intervals[name].value, *_bounds(intervals[name]), group="mask mean, with interval") for name in ORDER
    ]
    dots += [Dot(name, WEIGHT_STUDY[name].proportion, group="published proportion") for name in ORDER]
    dots += [Dot(name, WEIGHT_STUDY[name].adjusted, group="published weight") for name in ORDER]
    rows = []
    for reading, weights in found.items():
        for one in weights:
            theirs = WEIGHT_STUDY[one.partition]
            shares = (one.salience_share, theirs.salience, one.iou_share, theirs.supervised_miou)
            rows.append((reading, one.partition, one.masks, *shares, one.weight, theirs.proportion, theirs.adjusted))
    columns = (
        "reading", "partition", "masks", "salience", "published", "IoU", "published",
        "product", "published", "taken",
    )  # fmt: skip
    listed = ", ".join(f"{name} {intervals[name].value:.2f}" for name in ORDER)
    printed = ", ".join(f"{WEIGHT_STUDY[name].proportion:g}" for name in ORDER)
    taken = ", ".join(f"{WEIGHT_STUDY[name].adjusted:g}" for name in ORDER)
    summary = (
        f"Salience times supervised IoU gives {listed} as parts of five; published {printed}, taken as {taken}. The "
        f"reading `{nearest}` is nearest: its shares differ from the published by up to {gaps[nearest]:.2f}."
    )
    section = Section(
        "Weights",
        "Each partition weighs by how salient and how easy its masks are. The published columns are shares that add up "
        "to 1; the released scores use .5, not .25, for the last weight.",
        [
            DotChart("Weights, parts of five", "Intervals over images.", dots, "weight"),
            Table(
                "Readings",
                "Shares of salience and of IoU, and their product as parts of five.",
                columns,
                rows,
                decimals=3,
            ),
        ],
    )
    document = {
        "schema": "hardlook.study-weights/1",
        "summary": summary,
        "readings": {reading: [asdict(one) for one in weights] for reading, weights in found.items()},
        "largest_difference_of_shares": gaps,
        "weights": {name: _estimate(one) for name, one in intervals.items()},
        "published": {name: asdict(WEIGHT_STUDY[name]) for name in ORDER},
    }
    return [section], document


def border_study(found: Sequence[BorderSummary], tokens: Sequence[str]) -> Study:
    """Shares of undecided pixels and widths of borders, and the images where the two models differ most."""
    undecided = [Dot(one.model, 100 * one.undecided.value, *_bounds(one.undecided, 100)) for one in found]
    widths = [Dot(one.model, one.width.value, *_bounds(one.width)) for one in found if one.width]
    crisp = min(found, key=lambda one: one.undecided.value)
    first, second = (np.array([border.undecided for border in one.borders]) for one in found)
    apart = np.argsort(-np.abs(first - second), kind="stable")[:_SHOWN].tolist()
    examples = [
        Example(tokens[place], f"undecided: {100 * first[place]:.1f} % and {100 * second[place]:.1f} %")
        for place in apart
    ]
    summary = (
        f"{crisp.model} has the crisper borders: {100 * crisp.undecided.value:.1f} % of its pixels lie between .1 and "
        f".9 ({', '.join(f'{one.model} {100 * one.undecided.value:.1f} %' for one in found)}), on {len(tokens)} images."
    )
    groups = [(one.model, [100 * border.undecided for border in one.borders]) for one in found]
    section = Section(
        "Borders",
        "Salience cuts the map at .5. Where many pixels lie between, the cut decides what the model did not.",
        [
            DotChart("Undecided pixels", "Between .1 and .9, interval over images.", undecided, "percent of the image"),
            DotChart(
                "Width of the border", "Undecided pixels over the contour's length, at 512 x 512.", widths, "pixels"
            ),
            DistributionChart("Undecided pixels an image", "Left is crisp.", groups, "percent of the image"),
            Gallery("Where the two differ most", "The maps: white is salient.", examples),
        ],
    )
    document = {
        "schema": "hardlook.study-saliency/1",
        "summary": summary,
        "images": len(tokens),
        "borders": {
            one.model: {
                "undecided": _estimate(one.undecided),
                "width_pixels": _estimate(one.width) if one.width else None,
                "blank_maps": one.blank,
            }
            for one in found
        },
    }
    return [section], document


def border_pictures(
    source: ClassMasks, models: Sequence[Any], names: Sequence[str], sections: Sequence[Section]
) -> dict[str, list[Picture]]:
    """The images that the gallery shows, with both models' maps in grey."""
    galleries = [block for section in sections for block in section.blocks if isinstance(block, Gallery)]
    found = {}
    for token in [example.unit for gallery in galleries for example in gallery.examples]:
        image = source.read_image(token)
        maps = [(255 * np.asarray(model.saliency([image])[0])).astype(np.uint8) for model in models]
        grey = [Picture(name, np.repeat(one[..., None], 3, axis=2)) for name, one in zip(names, maps, strict=True)]
        found[token] = [Picture("image", image), *grey]
    return found


def failed_sections(failures: Sequence[FailedImage]) -> list[Section]:
    """A table of the images that failed, where some did."""
    if not failures:
        return []
    rows = [(failure.image, failure.error) for failure in failures]
    table = Table("Images that failed", "They are in no number of this page.", ("image", "error"), rows)
    return [Section("What was left out", f"{len(rows)} images failed.", (table,))]


def _bounds(estimate: Estimate, times: float = 1.0) -> tuple[float | None, float | None]:
    interval = estimate.interval
    return (interval.low * times, interval.high * times) if interval.defined else (None, None)


def _estimate(estimate: Estimate) -> dict[str, Any]:
    low, high = _bounds(estimate)
    return {"value": _finite(estimate.value), "low": low, "high": high, "n": estimate.interval.n}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
