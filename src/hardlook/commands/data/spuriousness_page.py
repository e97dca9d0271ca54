"""The page of `hardlook data spuriousness`: the index, the probes, the cosines beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.benchmarks.metacoco.published_benchmarks import DATASETS
from hardlook.bias.estimate_words import dot, number
from hardlook.contract.sections import Dot, DotChart, ScatterChart, Section, Spot, Table

if TYPE_CHECKING:
    from hardlook.commands.data.spuriousness import Findings
    from hardlook.contexts.readability import Readability
    from hardlook.contexts.spuriousness import LabelStudy
    from hardlook.contexts.text_cosines import MeanCosine, TextCosines


def spuriousness_sections(findings: Findings, words: Sequence[str]) -> list[Section]:
    """What the page shows."""
    sections = [Section("What this means", "\n\n".join(words), (_labels(findings.labels),))]
    if findings.read:
        sections.append(_probes(findings.read))
    if findings.cosines:
        sections.append(_cosines(findings.cosines, findings.means))
    return sections


def _labels(study: LabelStudy) -> Table:
    indices = (("adjusted (0 is chance)", study.adjusted), ("normalised", study.normalised))
    rows = [(name, one.value, number(one.interval.low), number(one.interval.high)) for name, one in indices]
    return Table(
        "Concept and context as labels",
        f"Mutual information is {study.information:.3f} nats; dealing the same contexts at random gives "
        f"{study.chance:.3f}. Both indices divide by the mean of the two entropies; the adjusted one subtracts chance "
        f"from both sides first. {study.empty} of {study.concepts * study.contexts} pairs hold no image. Intervals "
        "leave random halves of the images out.",
        ("index", "value", "low", "high"),
        rows,
    )


def _probes(read: Sequence[Readability]) -> Section:
    chart = DotChart(
        "What a linear probe reads",
        "The share of images read right, a mean over labels. Each image is asked about by a probe that was not trained "
        "on it; intervals draw images anew within their label and keep the probes.",
        [dot(one.what, one.accuracy) for one in read],
        axis="accuracy",
        references=[(f"chance for the {one.what}", one.chance) for one in read[:2]],
    )
    table = Table(
        "The numbers",
        "Above chance: 0 is guessing, 1 is all right. Left out are images of a label that has only one, and in the "
        "last row of a concept with only one context.",
        ("what", "accuracy", "low", "high", "chance", "above chance", "labels", "images", "left out"),
        [
            (
                one.what,
                number(one.accuracy.value),
                number(one.accuracy.interval.low),
                number(one.accuracy.interval.high),
                one.chance,
                number(one.above_chance),
                one.labels,
                one.images,
                one.left_out,
            )
            for one in read
        ],
    )
    text = (
        "Ridge classifiers on frozen features, five folds. In unseen contexts, all images of a concept in a context "
        "are held out together: the probe has seen the concept elsewhere, and there at most other concepts. A fall "
        "says that the concept was read by its context."
    )
    return Section("What frozen features hold", text, (chart, table))


def _cosines(cosines: TextCosines, means: Sequence[MeanCosine]) -> Section:
    scatter = ScatterChart(
        "Context against concept, in words",
        "One spot a concept: the mean cosine of its images with the concept's text, and with their contexts' texts. "
        "Above the diagonal the context is the nearer of the two.",
        [Spot(ce, te, name) for name, _, ce, te in cosines.by_concept()],
        x_axis="M_ce",
        y_axis="M_te",
        diagonal=True,
    )
    table = Table(
        "The means",
        "micro: over images. macro: over concepts for M_ce, over contexts for M_te. nearest: the share of images whose "
        "own text is the nearest of all.",
        ("measure", "micro", "low", "high", "macro", "low", "high", "nearest"),
        [
            (
                one.name,
                one.micro.value,
                number(one.micro.interval.low),
                number(one.micro.interval.high),
                one.macro.value,
                number(one.macro.interval.low),
                number(one.macro.interval.high),
                one.nearest,
            )
            for one in means
        ],
    )
    published = DotChart(
        "M_ce beside the published values",
        "Published values are the paper's, with its encoder and its data. Cosines of another encoder, or of other "
        "prompts, are not comparable with them.",
        [
            dot("this dataset", means[0].micro, "here"),
            *(Dot(one.name, one.similarity, group="published") for one in DATASETS),
        ],
        axis="M_ce",
    )
    text = "M_ce and M_te are similarities: higher is nearer. The paper calls M_ce a distance."
    return Section("Images and words", text, (scatter, table, published))
