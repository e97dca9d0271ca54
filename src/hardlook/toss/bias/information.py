"""`hardlook bias information`: mutual information of each attribute of an image with one-shot success.

Success is an IoU of the image above .5. Information is in nats, from k = 3 nearest neighbours; the outcome of a fair
coin has ln 2 = .693 nats.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hardlook.errors import DataError
from hardlook.harness.rounding import format_percent
from hardlook.harness.sections import Dot, DotChart, Section, Table
from hardlook.harness.stats import Estimate
from hardlook.harness.stats.association import mutual_information, mutual_information_interval
from hardlook.harness.verdicts import CANNOT_TELL, judge
from hardlook.randomness import generator
from hardlook.report.estimates import estimate_to_json, finite_or_none, format_estimate, make_estimate_dot
from hardlook.toss.published import read_numbers
from hardlook.toss.tiers.attributes import ATTRIBUTES

SUCCESS = 0.5
NEIGHBOURS = 3
SHUFFLES = 19
MIN_ROWS = 20


@dataclass(frozen=True)
class Information:
    """The mutual information of one attribute with success, in nats.

    `chance` is its maximum over 19 shuffles of the outcomes: information above it is significant at the 5 % level.
    `rows` are class and image pairs with both numbers, `missing` those without.
    """

    attribute: str
    column: str
    information: Estimate
    chance: float
    rows: int
    missing: int

    @property
    def above_chance(self) -> bool:
        """Whether the information exceeds that with any shuffled outcome."""
        return self.information.value > self.chance


@dataclass(frozen=True)
class InformationStudy:
    """All attributes that the table has, the most informative first; `success` is the share of rows above .5 IoU."""

    attributes: tuple[Information, ...]
    absent: tuple[str, ...]
    success: float
    rows: int


def measure_information(table: pl.DataFrame, *, seed: int = 0, halves: int = 200) -> InformationStudy:
    """The information of every attribute about oss_perf > .5; intervals leave random halves of the images out."""
    one_shot = table["oss_perf"].to_numpy()
    scored = np.isfinite(one_shot)
    outcome = one_shot > SUCCESS
    if scored.sum() < MIN_ROWS or len(np.unique(outcome[scored])) < 2:
        what = f"{int(scored.sum())} rows have a one-shot IoU and {int(outcome[scored].sum())} of them exceed {SUCCESS}"
        remedy = f"{MIN_ROWS} rows are needed, some above and some not; give --run, or a table with oss_perf"
        raise DataError(what, remedy=remedy)
    images = table["image"].to_numpy()
    found, absent = [], []
    for column, name in ATTRIBUTES.items():
        values = table[column].to_numpy()
        known = scored & np.isfinite(values)
        if known.sum() < MIN_ROWS:
            absent.append(name)
            continue
        x, y = values[known], outcome[known]
        rng = generator(seed, "information", column)
        estimate = mutual_information_interval(
            x, y, k=NEIGHBOURS, rng=rng, clusters=images[known], halves=halves, resampled="image"
        )
        draws = generator(seed, "shuffled", column)
        chance = max(mutual_information(x, draws.permutation(y), k=NEIGHBOURS, rng=draws) for _ in range(SHUFFLES))
        found.append(Information(name, column, estimate, chance, len(x), len(table) - len(x)))
    found.sort(key=lambda one: -one.information.value)
    return InformationStudy(tuple(found), tuple(absent), float(outcome[scored].mean()), int(scored.sum()))


def write_information(study: InformationStudy, who: str, out: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Write the page and the numbers; return the numbers."""
    from hardlook.report.page import write_study

    document = information_to_json(study, who, given)
    return write_study(
        out,
        "information",
        document,
        build_information_sections(study, document["in_words"]),
        title="Which attribute matters",
        summary="How much each attribute of a class in an image says about whether one-shot segmentation finds it. "
        "Information is in nats: 0 is none; the most, about an outcome of equal odds, is ln 2 = .693.",
        provenance=document,
    )


def information_to_json(study: InformationStudy, who: str, given: dict[str, Any]) -> dict[str, Any]:
    """All numbers of the study; undefined ones are null."""
    import hardlook

    published = read_numbers().information
    return {
        "schema": "hardlook.bias-information/1",
        "hardlook": hardlook.__version__,
        **given,
        "one_shot": who,
        "in_words": describe_information(study, who),
        "rows": study.rows,
        "success": study.success,
        "absent": list(study.absent),
        "attributes": [
            {
                "attribute": one.attribute,
                "column": one.column,
                "information": estimate_to_json(one.information),
                "chance": finite_or_none(one.chance),
                "above_chance": one.above_chance,
                "rows": one.rows,
                "missing": one.missing,
                "published": published[one.column],
            }
            for one in study.attributes
        ],
    }


def describe_information(study: InformationStudy, who: str) -> str:
    """What the study says about this model."""
    first = study.attributes[0]
    uninformative = [one.attribute for one in study.attributes if not one.above_chance]
    text = (
        f"{who[0].upper()}{who[1:]} finds {format_percent(study.success)} of {study.rows} classes in images with an "
        f"IoU above .5. {first.attribute.capitalize()} has the most information about which: "
        f"{format_estimate(first.information, 3)} nats."
    )
    if len(uninformative) == len(study.attributes):
        return f"{text} That is no more than chance: none of the attributes separates success from failure here."
    clear = len(study.attributes) == 1
    if not clear:
        second = study.attributes[1]
        clear = judge(first.information, second.information.interval.high).side == "above"
        text += f" It is followed by {second.attribute} with {format_estimate(second.information, 3)}. "
        text += "Their intervals do not overlap." if clear else f"{CANNOT_TELL} which of the two says more."
    if first.attribute == "salience" and clear:
        text += " A model that depends on salience finds what is salient, whatever the support shows."
    if uninformative:
        text += f" No more than chance: {', '.join(uninformative)}."
    return text


def build_information_sections(study: InformationStudy, summary: str) -> list[Section]:
    """What the page shows."""
    published = read_numbers().information
    rows = [make_estimate_dot(one.attribute, one.information, "here") for one in study.attributes]
    rows += [
        Dot(ATTRIBUTES[column], published[column], group="published")
        for column in sorted(published, key=lambda column: -published[column])
    ]
    caption = (
        "Higher says more. Intervals leave random halves of the images out. The published values are of the paper's "
        "baseline on all of VOC; they are comparable only on the published table."
    )
    references = [("chance, at most", max(one.chance for one in study.attributes))]
    chart = DotChart("Information about one-shot success", caption, rows, axis="nats", references=references)
    table = Table(
        "The numbers",
        "chance is the maximum of an attribute over 19 shuffles of the outcomes. Rows without the attribute or "
        "without a one-shot IoU are counted as missing.",
        ("attribute", "column", "information", "low", "high", "chance", "published", "rows", "missing"),
        [
            (
                one.attribute,
                one.column,
                one.information.value,
                finite_or_none(one.information.interval.low),
                finite_or_none(one.information.interval.high),
                one.chance,
                published[one.column],
                one.rows,
                one.missing,
            )
            for one in study.attributes
        ],
        decimals=4,
    )
    absent = f"Not in the table: {', '.join(study.absent)}." if study.absent else ""
    return [Section("What this means", f"{summary} {absent}".strip(), (chart, table))]
