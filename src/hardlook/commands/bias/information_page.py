"""The page and the numbers of `hardlook bias information`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hardlook.bias.estimate_words import document_of, dot, number, said
from hardlook.commands.bias.published import published_information
from hardlook.contract.sections import Dot, DotChart, Section, Table

if TYPE_CHECKING:
    from hardlook.bias.information import InformationStudy


def information_document(study: InformationStudy, who: str, given: dict[str, Any]) -> dict[str, Any]:
    """All numbers of the study; undefined ones are null."""
    import hardlook

    published = published_information()
    return {
        "schema": "hardlook.bias-information/1",
        "hardlook": hardlook.__version__,
        **given,
        "one_shot": who,
        "in_words": in_words(study, who),
        "rows": study.rows,
        "success": study.success,
        "absent": list(study.absent),
        "attributes": [
            {
                "attribute": one.attribute,
                "column": one.column,
                "information": document_of(one.information),
                "chance": number(one.chance),
                "above_chance": one.above_chance,
                "rows": one.rows,
                "missing": one.missing,
                "published": published.get(one.attribute),
            }
            for one in study.attributes
        ],
    }


def in_words(study: InformationStudy, who: str) -> str:
    """What the study says about this model, in plain sentences."""
    first = study.attributes[0]
    silent = [one.attribute for one in study.attributes if not one.above_chance]
    text = (
        f"{who[0].upper()}{who[1:]} finds {100 * study.success:.0f} % of {study.rows} classes in images with an IoU "
        f"above .5. {first.attribute.capitalize()} says most about which: {said(first.information, 3)} nats."
    )
    if len(silent) == len(study.attributes):
        return f"{text} That is no more than chance: none of the attributes tells success from failure here."
    if len(study.attributes) > 1:
        second = study.attributes[1]
        clear = first.information.interval.low > second.information.interval.high
        text += (
            f" It is followed by {second.attribute} with {said(second.information, 3)}"
            f"{'.' if clear else '; the two intervals overlap.'}"
        )
    if first.attribute == "salience":
        text += " A model that depends on salience finds what draws the eye, whatever the support shows."
    if silent:
        text += f" No more than chance: {', '.join(silent)}."
    return text


def information_sections(study: InformationStudy, words: str) -> list[Section]:
    """What the page shows."""
    published = published_information()
    rows = [dot(one.attribute, one.information, "here") for one in study.attributes]
    rows += [Dot(name, value, group="published") for name, value in sorted(published.items(), key=lambda x: -x[1])]
    chart = DotChart(
        "Information about one-shot success",
        "Higher says more. Intervals leave random halves of the images out. The published values are of the paper's "
        "baseline on all of VOC; they are comparable only on the published table.",
        rows,
        axis="nats",
        references=[("chance, at most", max(one.chance for one in study.attributes))],
    )
    table = Table(
        "The numbers",
        "chance is the most that an attribute says in 19 shuffles of the outcomes. Rows without the attribute or "
        "without a one-shot IoU are counted as missing.",
        ("attribute", "column", "information", "low", "high", "chance", "published", "rows", "missing"),
        [
            (
                one.attribute,
                one.column,
                one.information.value,
                number(one.information.interval.low),
                number(one.information.interval.high),
                one.chance,
                published.get(one.attribute),
                one.rows,
                one.missing,
            )
            for one in study.attributes
        ],
        decimals=4,
    )
    absent = f"Not in the table: {', '.join(study.absent)}." if study.absent else ""
    return [Section("What this means", f"{words} {absent}".strip(), (chart, table))]
