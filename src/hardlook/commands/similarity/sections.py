"""What the page of a label set's analysis shows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.commands.similarity.senses import polysemy_section, variants_section
from hardlook.commands.similarity.study import Study
from hardlook.contract.sections import Block, CurveChart, HeatMap, Line, Section, Table
from hardlook.labels.analysis import KERNEL
from hardlook.labels.label_order import RUN, rows_for_a_picture
from hardlook.labels.measures import find_measure

MOST_LABELS = 60
MOST_CELLS = 24_000
MOST_TREATED = 80


def similarity_sections(study: Study) -> list[Section]:
    """The sections, those without content left out."""
    found = [
        _spread(study),
        _neighbours(study),
        _agreement(study),
        polysemy_section(study),
        variants_section(study),
        _maps(study),
        _treated(study),
    ]
    return [section for section in found if section is not None]


def _spread(study: Study) -> Section:
    views = study.analysis.views
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
        f"How similarities of pairs of different labels spread over [0, 1], smoothed by a Gaussian of {KERNEL}. The "
        "height is the square root of the density, so that a peak leaves the rest to be seen. A narrow curve tells few "
        "pairs apart.",
        [
            Line(name, view.smooth.centres.round(3).tolist(), np.sqrt(view.smooth.density).round(4).tolist())
            for name, view in views.items()
        ],
        x_axis="similarity",
        y_axis="square root of the density",
    )
    about = Table(
        "What the measures are",
        "`hardlook similarity measures` lists all of them.",
        ("measure", "definition and source"),
        [(name, view.result.description) for name, view in views.items()],
    )
    left = " ".join(f"The measure {one.name} was left out: {one.why}." for one in study.analysis.left_out)
    return Section("How the measures spread", left, (table, chart, about))


def _neighbours(study: Study) -> Section:
    text = (
        "The labels that were asked for."
        if study.chosen
        else "Labels chosen for being telling: half of them where the measures differ most on the nearest "
        f"{study.analysis.nearest}, half where they agree most. `--neighbours LABEL` lists another."
    )
    blocks = []
    for one in study.lists:
        columns = list(one.by_measure)
        ranks = max(len(near) for near in one.by_measure.values())
        rows: list[list[str | float | int | None]] = [
            [rank + 1, *(_near(*near[rank]) for near in one.by_measure.values())] for rank in range(ranks)
        ]
        caption = "Most similar first, with the similarity; equals in the order of the label set."
        blocks.append(Table(f"Neighbours of {one.label}", caption, ("rank", *columns), rows))
    return Section("Neighbours", text, tuple(blocks))


def _agreement(study: Study) -> Section | None:
    names = list(study.analysis.views)
    if len(names) < 2:
        return None
    heat = HeatMap(
        "Rank agreement",
        "Spearman's correlation of two measures over the pairs of different labels: 1 where they order them alike.",
        names,
        names,
        study.analysis.agreement.tolist(),
        row_axis="measure",
        column_axis="measure",
    )
    table = Table(
        "Neighbours in common",
        f"The share of a label's {study.analysis.nearest} nearest labels that two measures have in common, on average "
        "over the labels.",
        ("measure", *names),
        [(name, *map(float, row)) for name, row in zip(names, study.analysis.overlap, strict=True)],
        decimals=2,
    )
    pairs = [
        (float(study.analysis.agreement[a, b]), f"{names[a]} and {names[b]}")
        for a in range(len(names))
        for b in range(a)
        if not math.isnan(study.analysis.agreement[a, b])
    ]
    text = ""
    if len(pairs) > 1:
        (high, most), (low, least) = max(pairs), min(pairs)
        text = f"{most} agree most ({high:.2f}), {least} least ({low:.2f})."
    return Section("Agreement between measures", text[:1].upper() + text[1:], (heat, table))


def _maps(study: Study) -> Section:
    matrices, names = study.analysis.matrices, study.analysis.labels.names
    size = min(MOST_LABELS, int(math.sqrt(MOST_CELLS / len(matrices))))
    first = next(iter(matrices))
    rows = rows_for_a_picture(matrices[first], size)
    shown = [names[row] for row in rows]
    text = f"Labels are in the order of a clustering by {first}, the same in all maps, so that blocks are families."
    if len(rows) < len(names):
        text += (
            f" Of {len(names)} labels {len(rows)} are shown: runs of {RUN} that lie next to one another in the "
            "clustering of all, spread evenly over it."
        )
    maps: Sequence[Block] = [
        HeatMap(
            f"Similarity by {name}",
            f"{find_measure(name).sentence} Dark is similar; the diagonal, 1 everywhere, is left empty.",
            shown,
            shown,
            _without_diagonal(matrix[np.ix_(rows, rows)]).tolist(),
        )
        for name, matrix in matrices.items()
    ]
    return Section("Heat maps", text, maps)


def _without_diagonal(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    # The ramp of a map runs up to its highest value: with the diagonal in it, path's families are hard to see.
    return np.asarray(np.where(np.eye(len(matrix), dtype=bool), np.nan, matrix.round(3)))


def _treated(study: Study) -> Section | None:
    views = study.analysis.views
    rows = [(label, name, how) for name, view in views.items() for label, how in view.result.treated]
    if not rows:
        return None
    counts = ", ".join(
        f"{len(view.result.treated)} under {name}" for name, view in views.items() if view.result.treated
    )
    text = f"Labels that were not simply looked up: {counts}."
    if len(rows) > MOST_TREATED:
        text += f" The first {MOST_TREATED} are shown; `analysis.json` has all {len(rows)}."
    table = Table("Labels treated specially", "", ("label", "measure", "how"), rows[:MOST_TREATED])
    return Section("How labels were treated", text, (table,))


def _near(name: str, similarity: float) -> str:
    # Without its leading zero, so that six measures fit side by side.
    return f"{name} {similarity:.2f}".replace(" 0.", " .")
