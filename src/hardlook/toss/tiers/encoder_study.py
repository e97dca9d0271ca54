"""How far two encoders agree on which same-class pairs are similar, each split at its own mean cosine.

The published study uses 70,000 pairs. Half of all pairs would agree by chance, so kappa is given too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.harness.rounding import format_fixed
from hardlook.harness.runs.progress import StartProgress
from hardlook.harness.sections import DistributionChart, DotChart, ScatterChart, Section, Spot
from hardlook.harness.stats import Estimate, bootstrap_mean, spearman
from hardlook.models.named_model import NamedModel
from hardlook.randomness import generator
from hardlook.report.estimates import estimate_to_json, finite_or_none, make_estimate_dot
from hardlook.toss.published import read_numbers
from hardlook.toss.tiers.attribute_report import MAX_SPOTS
from hardlook.toss.tiers.attributes import FailedImage
from hardlook.toss.tiers.dataset import OpenedData, describe_failures
from hardlook.toss.tiers.rules import draw_similarity_pools
from hardlook.toss.tiers.similarity import encode_images, pair_cosines


@dataclass(frozen=True)
class EncoderAgreement:
    """Two encoders on the same pairs: share of equal verdicts in [0, 1], Cohen's kappa, Spearman of the cosines."""

    first: str
    second: str
    pairs: int
    agreement: Estimate
    kappa: float
    spearman: float


def compare_encoders(
    cosines: Mapping[str, NDArray[np.float64]], queries: Sequence[str], *, seed: int = 0
) -> EncoderAgreement:
    """The agreement of two encoders; `cosines` (n,) by encoder, `queries` the query's image of each pair.

    Intervals resample query images, since pairs of one image are correlated.

    >>> agreement = compare_encoders({"a": np.array([0.1, 0.9, 0.8]), "b": np.array([0.2, 0.7, 0.1])}, ["x", "y", "z"])
    >>> round(agreement.agreement.value, 3), round(agreement.kappa, 3)
    (0.667, 0.4)
    """
    (first, x), (second, y) = cosines.items()
    similar, other = x > x.mean(), y > y.mean()
    same = similar == other
    chance = float(similar.mean() * other.mean() + (1 - similar.mean()) * (1 - other.mean()))
    estimate = bootstrap_mean(
        same.astype(np.float64),
        rng=generator(seed, "encoder agreement", first, second),
        clusters=list(queries),
        range=(0.0, 1.0),
        resamples=2000,
        resampled="query image",
    )
    kappa = (float(same.mean()) - chance) / (1 - chance) if chance < 1 else float("nan")
    return EncoderAgreement(first, second, len(same), estimate, kappa, spearman(x, y))


def run_encoder_study(
    opened: OpenedData, models: Mapping[str, NamedModel], *, seed: int, start: StartProgress
) -> tuple[list[Section], dict[str, Any], list[FailedImage]]:
    """Encode every image with both models and compare them: sections and numbers of the page, and failed images."""
    source, tokens = opened.source, opened.tokens
    by_class: dict[str, list[str]] = {}
    for token in tokens:
        by_class.setdefault(source.class_of(token), []).append(token)
    images = len({source.image_of(token) for token in tokens})
    encoded = {
        name: encode_images(source, tokens, model.model, advance=start(images, 0)) for name, model in models.items()
    }
    known = set.intersection(*(set(one.vectors) for one in encoded.values()))
    pairs = [
        pair
        for pool in draw_similarity_pools(by_class, seed=seed).values()
        for pair in pool
        if all(source.image_of(token) in known for token in pair)
    ]
    # A file that cannot be read fails with both models: it is listed once.
    every = [*opened.failures, *(failure for one in encoded.values() for failure in one.failures)]
    failed = list({failure.image: failure for failure in reversed(every)}.values())[::-1]
    if not pairs:
        why = describe_failures(failed) if failed else "every class has one image"
        raise DataError(f"no two images of one class to compare ({why})", remedy="give more images, or other models")
    cosines = {name: pair_cosines(one.vectors, source.image_of, pairs) for name, one in encoded.items()}
    agreement = compare_encoders(cosines, [source.image_of(query) for query, _ in pairs], seed=seed)
    sections, document = build_encoder_page(cosines, agreement)
    document["models"] = [model.facts() for model in models.values()]
    return sections, document, failed


def build_encoder_page(
    cosines: Mapping[str, NDArray[np.float64]], agreement: EncoderAgreement
) -> tuple[list[Section], dict[str, Any]]:
    """Agreement of two encoders, the published ones as lines, and their cosines against each other."""
    estimate = agreement.agreement
    published = dict(read_numbers().agreement)
    dot = make_estimate_dot(f"{agreement.first} and {agreement.second}", estimate, scale=100)
    references = [(f"{name} and CLIP (published)", value) for name, value in published.items()]
    x, y = cosines[agreement.first], cosines[agreement.second]
    step = max(-(-len(x) // MAX_SPOTS), 1)
    spots = [
        Spot(float(a), float(b), "", "agree" if (a > x.mean()) == (b > y.mean()) else "disagree")
        for a, b in zip(x[::step], y[::step], strict=True)
    ]
    summary = (
        f"{agreement.first} and {agreement.second} agree on {format_fixed(100 * estimate.value, 1)} % of "
        f"{agreement.pairs:,} "
        f"same-class pairs (kappa {format_fixed(agreement.kappa, 2)}, Spearman of the cosines "
        f"{format_fixed(agreement.spearman, 2)})."
    )
    text = "A pair is similar if its cosine is above the encoder's mean. Half agree by chance; kappa leaves that out."
    section = Section(
        "Agreement",
        text,
        [
            DotChart("Pairs with equal verdict", "Interval over query images.", [dot], "percent", references),
            ScatterChart(
                "Cosines of the same pairs",
                f"One point per pair, every {step}. drawn. Pairs that disagree lie between the two means.",
                spots,
                agreement.first,
                agreement.second,
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
        "pairs": agreement.pairs,
        "agreement": estimate_to_json(estimate, ("value", "low", "high", "n")),
        "kappa": finite_or_none(agreement.kappa),
        "spearman": finite_or_none(agreement.spearman),
        "published_percent_with_clip": published,
    }
    return [section], document
