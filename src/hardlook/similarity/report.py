"""The analysis of a label set as JSON and as a page, and one similarity matrix as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import hardlook
from hardlook.harness.rounding import format_fixed
from hardlook.harness.sections import Block, CurveChart, HeatMap, Line, Section, Table
from hardlook.report.page import write_study
from hardlook.similarity.analysis import KERNEL_WIDTH, RUN_LENGTH, Analysis, list_similar_pairs, select_heat_map_rows
from hardlook.similarity.labels import LabelSet
from hardlook.similarity.matrix import SimilaritySummary, summarise_matrix
from hardlook.similarity.measures import SimilarityResult, describe_published, find_measure
from hardlook.similarity.senses import MAX_PAIRS_PER_LABEL

MAX_SIMILAR_PAIRS = 12
MAX_POLYSEMY_CASES = 30
MAX_SHARED_WORDS = 40
MAX_TREATED_LABELS = 80
MAX_GLOSS_LENGTH = 80
MAX_HEAT_MAP_LABELS = 60
MAX_HEAT_MAP_CELLS = 24_000


def describe_matrix(labels: LabelSet, result: SimilarityResult, out: Path | None) -> dict[str, Any]:
    """A summary of a similarity matrix as JSON; standard deviations are of the population."""
    pairs = list_similar_pairs(result.matrix, result.names, MAX_SIMILAR_PAIRS)
    return {
        "schema": "hardlook.similarity/1",
        "labels": labels.name,
        "variant": labels.variant,
        "count": len(labels),
        "measure": result.measure,
        "description": result.description,
        "fingerprint": result.fingerprint,
        **_summary_values(summarise_matrix(result.matrix)),
        "published": describe_published(find_measure(result.measure)),
        "treated": _list_treated(result),
        "pairs": [{"first": first, "second": second, "similarity": value} for first, second, value in pairs],
        "out": None if out is None else str(out),
    }


def write_analysis(analysis: Analysis, out: Path) -> dict[str, Any]:
    """Write analysis.html and analysis.json; return the latter."""
    labels = analysis.labels
    document = describe_analysis(analysis)
    variant = "from a file" if labels.variant == "file" else f"{labels.variant} senses"
    return write_study(
        out,
        "analysis",
        document,
        build_sections(analysis),
        title=f"Label similarity: {labels.name}",
        summary=f"{len(labels)} labels ({variant}) under {len(analysis.views)} measures. Similarity lies in [0, 1]; a "
        "label has 1 with itself. Open metrics forgive a wrong label by its similarity to the right one.",
        provenance={key: document[key] for key in ("labels", "variant", "count", "hardlook", "sources", "left_out")},
    )


def describe_analysis(analysis: Analysis) -> dict[str, Any]:
    """All numbers of the analysis as JSON; undefined ones are null."""
    views = analysis.views
    measures = {
        name: {
            **_summary_values(view.summary),
            "published": describe_published(find_measure(name)),
            "density": {"centres": view.density.centres.tolist(), "density": view.density.density.tolist()},
            "treated": _list_treated(view.result),
        }
        for name, view in views.items()
    }
    shared = [
        {**asdict(one), "similarity": {name: float(view.result.matrix[one.rows]) for name, view in views.items()}}
        for one in analysis.shared_words
    ]
    return {
        "schema": "hardlook.similarity-analysis/1",
        "labels": analysis.labels.name,
        "variant": analysis.labels.variant,
        "count": len(analysis.labels),
        "hardlook": hardlook.__version__,
        "sources": {
            name: {"description": view.result.description, "fingerprint": view.result.fingerprint}
            for name, view in views.items()
        },
        "left_out": [{"name": name, "why": why} for name, why in analysis.left_out.items()],
        "measures": measures,
        "spearman": _name_cells(list(views), analysis.agreement.tolist()),
        "neighbour_overlap": {"nearest": analysis.nearest, **_name_cells(list(views), analysis.overlap.tolist())},
        "neighbours": analysis.neighbours,
        "polysemy": {"measure": analysis.wordnet_measure, "cases": [asdict(case) for case in analysis.polysemy]},
        "shared_words": shared,
        "variants": None if analysis.variants is None else asdict(analysis.variants),
    }


def _summary_values(summary: SimilaritySummary) -> dict[str, float]:
    return {key: value for key, value in asdict(summary).items() if key != "labels"}


def _list_treated(result: SimilarityResult) -> list[dict[str, str]]:
    return [{"label": label, "how": how} for label, how in result.treated]


def _name_cells(names: Sequence[str], rows: Sequence[Sequence[float]]) -> dict[str, dict[str, float | None]]:
    return {
        name: {other: None if math.isnan(value) else value for other, value in zip(names, row, strict=True)}
        for name, row in zip(names, rows, strict=True)
    }


def build_sections(analysis: Analysis) -> list[Section]:
    """The sections of the page, those without content left out."""
    sections = [
        _spread_section(analysis),
        _neighbours_section(analysis),
        _agreement_section(analysis),
        _polysemy_section(analysis),
        _variants_section(analysis),
        _heat_map_section(analysis),
        _treatment_section(analysis),
    ]
    return [section for section in sections if section is not None]


def _spread_section(analysis: Analysis) -> Section:
    views = analysis.views
    rows = []
    for name, view in views.items():
        measure, one = find_measure(name), view.summary
        rows.append((name, one.mean, one.std, one.mean_off_diagonal, one.std_off_diagonal, measure.mean, measure.std))
    table = Table(
        "Mean and standard deviation",
        "First over all cells with the diagonal, as in the paper, then over pairs of different labels. The published "
        "figures are over ImageNet-1k's labels, not over these: they are not comparable with the columns before them.",
        ("measure", "mean", "std", "mean of pairs", "std of pairs", "published mean", "published std"),
        rows,
        decimals=3,
    )
    chart = CurveChart(
        "Density of similarities",
        f"The distribution of similarities of pairs of different labels over [0, 1], smoothed by a Gaussian of "
        f"{KERNEL_WIDTH}. The height is the square root of the density, so that a peak does not hide the rest. A "
        "narrow curve separates few pairs.",
        [
            Line(name, view.smooth.centres.round(3).tolist(), np.sqrt(view.smooth.density).round(4).tolist())
            for name, view in views.items()
        ],
        x_axis="similarity",
        y_axis="square root of the density",
    )
    definitions = Table(
        "Definitions of the measures",
        "`hardlook similarity measures` lists all of them.",
        ("measure", "definition and source"),
        [(name, view.result.description) for name, view in views.items()],
    )
    left_out = " ".join(f"The measure {name} was left out: {why}." for name, why in analysis.left_out.items())
    return Section("Spread of the measures", left_out, (table, chart, definitions))


def _neighbours_section(analysis: Analysis) -> Section:
    text = (
        "The labels chosen with `--neighbours`."
        if analysis.neighbours_chosen
        else "Example labels: half of them where the measures differ most on the nearest "
        f"{analysis.nearest}, half where they agree most. Choose others with `--neighbours LABEL`."
    )
    blocks = []
    for label, by_measure in analysis.neighbours.items():
        # Without the leading zero, so that six measures fit side by side.
        rows: list[list[str | int]] = [
            [rank, *(f"{name} {format_fixed(value, 2).removeprefix('0')}" for name, value in ranked)]
            for rank, ranked in enumerate(zip(*by_measure.values(), strict=True), 1)
        ]
        caption = "Most similar first, with the similarity; ties in the order of the label set."
        blocks.append(Table(f"Neighbours of {label}", caption, ("rank", *by_measure), rows))
    return Section("Neighbours", text, tuple(blocks))


def _agreement_section(analysis: Analysis) -> Section | None:
    names = list(analysis.views)
    if len(names) < 2:
        return None
    heat_map = HeatMap(
        "Rank agreement",
        "Spearman's correlation of two measures over the pairs of different labels: 1 where their order is the same.",
        names,
        names,
        analysis.agreement.tolist(),
        row_axis="measure",
        column_axis="measure",
    )
    table = Table(
        "Neighbours in common",
        f"The share of a label's {analysis.nearest} nearest labels that two measures have in common, on average over "
        "the labels.",
        ("measure", *names),
        [(name, *map(float, row)) for name, row in zip(names, analysis.overlap, strict=True)],
        decimals=2,
    )
    pairs = [
        (float(analysis.agreement[a, b]), f"{names[a]} and {names[b]}")
        for b, a in combinations(range(len(names)), 2)
        if not math.isnan(analysis.agreement[a, b])
    ]
    text = ""
    if len(pairs) > 1:
        (high, most), (low, least) = max(pairs), min(pairs)
        text = f"{most[:1].upper()}{most[1:]} agree most ({format_fixed(high, 2)}), "
        text += f"{least} least ({format_fixed(low, 2)})."
    return Section("Agreement between measures", text, (heat_map, table))


def _polysemy_section(analysis: Analysis) -> Section | None:
    """Labels whose word has several senses, and labels that share a word; None where there are neither."""
    cases, shared = analysis.polysemy, analysis.shared_words
    blocks: list[Block] = []
    sentences = []
    if cases:
        later = sum(case.rank is not None and case.rank > 1 for case in cases)
        other_words = sum(case.rank is None for case in cases)
        sentences.append(
            f"{len(cases)} of {len(analysis.labels)} labels have a word with other noun senses in WordNet. For "
            f"{later} of them the right sense is not the first, which a lookup would take."
        )
        if other_words:
            sentences.append(f"For {other_words} more it is a synset that WordNet lists under other words.")
        rows = []
        for case in cases[:MAX_POLYSEMY_CASES]:
            other = case.others[0]
            rank = "" if case.rank is None else f" ({case.rank} of {case.senses})"
            nearest = ", then ".join(
                f"{name} ({format_fixed(value, 2)})" for name, value in (case.nearest, other.nearest)
            )
            chosen = _format_sense(case.chosen, case.gloss, rank)
            rows.append((case.label, chosen, _format_sense(other.synset, other.gloss), other.mean_change, nearest))
        more = f" The first {MAX_POLYSEMY_CASES} of {len(cases)}." if len(cases) > MAX_POLYSEMY_CASES else ""
        blocks.append(
            Table(
                "If another sense were chosen",
                "The chosen sense of a label, with its rank among the senses of its word, and the other sense that "
                f"would change its similarities ({analysis.wordnet_measure}) most: the mean change over all labels, "
                f"and the nearest label before and after.{more}",
                ("label", "chosen sense", "other sense", "mean change", "nearest"),
                rows,
            )
        )
    if shared:
        matrices = analysis.matrices
        sentences.append(
            f"{len(shared)} pairs of labels share a word but not a sense, like crane (the bird) and crane (the "
            "machine). Measures over WordNet distinguish them; measures on words do not."
        )
        more = f" The first {MAX_SHARED_WORDS} of {len(shared)}." if len(shared) > MAX_SHARED_WORDS else ""
        blocks.append(
            Table(
                "Labels that share a word",
                f"Names and aliases count. Similarity of the two under each measure.{more}",
                ("word", "label", "and", *matrices),
                [
                    (
                        one.word,
                        *(f"{name} `{sense}`" if sense else name for name, sense in (one.first, one.second)),
                        *(float(matrix[one.rows]) for matrix in matrices.values()),
                    )
                    for one in shared[:MAX_SHARED_WORDS]
                ],
                decimals=2,
            )
        )
    return Section("Words of several senses", " ".join(sentences), tuple(blocks)) if blocks else None


def _format_sense(name: str, gloss: str, rank: str = "") -> str:
    text = gloss.split('; "')[0].replace("`", "'")
    if len(text) > MAX_GLOSS_LENGTH:
        text = text[: MAX_GLOSS_LENGTH - 3].rsplit(" ", 1)[0] + "..."
    return f"`{name}`{rank}: {text}"


def _variants_section(analysis: Analysis) -> Section | None:
    """What the corrected senses change; None for a set without published ones."""
    if (variants := analysis.variants) is None:
        return None
    reasons = {one.label: one.reason for one in variants.differences}
    rows = [
        (
            pair.first,
            pair.second,
            pair.published,
            pair.corrected,
            pair.corrected - pair.published,
            "; ".join(f"{name}: {reasons[name]}" for name in (pair.first, pair.second) if name in reasons),
        )
        for pair in variants.largest
    ]
    missing = f" {len(variants.without)} labels without a published sense are left out." if variants.without else ""
    text = (
        f"{len(variants.differences)} labels have another sense in the variant `corrected` than in `published`. Under "
        f"{variants.measure} this changes {variants.changed} of {variants.pairs} pairs, by "
        f"{format_fixed(variants.mean_change, 4)} on average over all of them.{missing}"
    )
    table = Table(
        "The pairs that change most",
        f"Each label with a changed sense at most {MAX_PAIRS_PER_LABEL} times.",
        ("label", "and", "published", "corrected", "change", "why"),
        rows,
    )
    return Section("Published and corrected senses", text, (table,))


def _heat_map_section(analysis: Analysis) -> Section:
    matrices, names = analysis.matrices, analysis.labels.names
    size = min(MAX_HEAT_MAP_LABELS, int(math.sqrt(MAX_HEAT_MAP_CELLS / len(matrices))))
    first = next(iter(matrices))
    rows = select_heat_map_rows(matrices[first], size)
    shown = [names[row] for row in rows]
    text = f"Labels are in the order of a clustering by {first}, the same in all maps, so that blocks are clusters."
    if len(rows) < len(names):
        text += (
            f" Of {len(names)} labels {len(rows)} are shown: runs of {RUN_LENGTH} neighbours in the clustering of all "
            "labels, spread evenly over it."
        )
    # The colour scale ends at the highest value: with the diagonal in it, clusters under path are hard to see.
    diagonal = np.eye(len(rows), dtype=bool)
    maps: list[Block] = [
        HeatMap(
            f"Similarity by {name}",
            f"{find_measure(name).sentence} Dark is similar; the diagonal, 1 everywhere, is left empty.",
            shown,
            shown,
            np.where(diagonal, np.nan, matrix[np.ix_(rows, rows)].round(3)).tolist(),
        )
        for name, matrix in matrices.items()
    ]
    return Section("Heat maps", text, maps)


def _treatment_section(analysis: Analysis) -> Section | None:
    treated = {name: view.result.treated for name, view in analysis.views.items() if view.result.treated}
    if not treated:
        return None
    rows = [(label, name, how) for name, labels in treated.items() for label, how in labels]
    counts = ", ".join(f"{len(labels)} under {name}" for name, labels in treated.items())
    text = f"Labels that were not simply looked up: {counts}."
    if len(rows) > MAX_TREATED_LABELS:
        text += f" The first {MAX_TREATED_LABELS} are shown; `analysis.json` has all {len(rows)}."
    table = Table("Labels treated specially", "", ("label", "measure", "how"), rows[:MAX_TREATED_LABELS])
    return Section("How labels were treated", text, (table,))
