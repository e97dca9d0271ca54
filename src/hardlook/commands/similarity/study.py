"""The analysis of a label set as one study: everything it looks at, as JSON and as a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.export.plain_values import json_text
from hardlook.labels.analysis import Analysis
from hardlook.labels.neighbour_lists import NeighbourList, neighbour_list, telling_rows
from hardlook.labels.polysemy import PolysemyCase, SharedWord, polysemy_cases, shared_words
from hardlook.labels.variant_changes import VariantComparison, compare_variants, has_two_variants

if TYPE_CHECKING:
    from hardlook.labels.unknown import Unknown

LISTED = 10
LISTS = 4


@dataclass(frozen=True)
class Study:
    """An analysis with lists of neighbours (`chosen`: by the user), words of several senses, and the variants."""

    analysis: Analysis
    lists: tuple[NeighbourList, ...]
    chosen: bool
    polysemy: tuple[PolysemyCase, ...]
    shared: tuple[SharedWord, ...]
    variants: VariantComparison | None


def study_labels(analysis: Analysis, rows: Sequence[int], unknown: Unknown = "hypernym") -> Study:
    """The study of an analysis; `rows` are the labels whose neighbours are asked for, none for a choice of ours."""
    labels, matrices, measure = analysis.labels, analysis.matrices, analysis.wordnet_measure
    shown = list(rows) or telling_rows(matrices, count=min(LISTS, len(labels)), nearest=analysis.nearest)
    return Study(
        analysis,
        tuple(neighbour_list(labels, matrices, row, LISTED) for row in shown),
        bool(rows),
        polysemy_cases(labels, measure, unknown) if measure else (),
        shared_words(labels),
        compare_variants(labels.name, measure) if measure and has_two_variants(labels) else None,
    )


def write_study(study: Study, out: Path) -> dict[str, Any]:
    """Write analysis.html and analysis.json; return the latter."""
    from hardlook.commands.similarity.sections import similarity_sections
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

    labels = study.analysis.labels
    document = study_document(study)
    variant = "from a file" if labels.variant == "file" else f"{labels.variant} senses"
    page = render_study(
        similarity_sections(study),
        title=f"Label similarity: {labels.name}",
        summary=f"{len(labels)} labels ({variant}) under {len(study.analysis.views)} measures. Similarity lies in "
        "[0, 1]; a label has 1 with itself. What a measure finds alike, open metrics forgive.",
        provenance={key: document[key] for key in ("labels", "variant", "count", "hardlook", "sources", "left_out")},
    )
    write_whole(out / "analysis.json", json_text(document))
    write_whole(out / "analysis.html", page)
    return document


def study_document(study: Study) -> dict[str, Any]:
    """All numbers of the study; undefined ones are null."""
    import hardlook
    from hardlook.commands.similarity.listing import published_figures
    from hardlook.labels.measures import find_measure

    analysis = study.analysis
    views = analysis.views
    measures = {
        name: {
            **{key: value for key, value in asdict(view.summary).items() if key != "labels"},
            "published": published_figures(find_measure(name)),
            "density": {"centres": view.density.centres.tolist(), "density": view.density.density.tolist()},
            "treated": [{"label": label, "how": how} for label, how in view.result.treated],
        }
        for name, view in views.items()
    }
    shared = [
        {**asdict(one), "similarity": {name: float(view.result.matrix[one.rows]) for name, view in views.items()}}
        for one in study.shared
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
        "left_out": [asdict(one) for one in analysis.left_out],
        "measures": measures,
        "spearman": _table(list(views), analysis.agreement.tolist()),
        "neighbour_overlap": {"nearest": analysis.nearest, **_table(list(views), analysis.overlap.tolist())},
        "neighbours": {one.label: {name: list(near) for name, near in one.by_measure.items()} for one in study.lists},
        "polysemy": {"measure": analysis.wordnet_measure, "cases": [asdict(case) for case in study.polysemy]},
        "shared_words": shared,
        "variants": None if study.variants is None else asdict(study.variants),
    }


def _table(names: Sequence[str], rows: Sequence[Sequence[float]]) -> dict[str, dict[str, float | None]]:
    return {
        name: {other: None if math.isnan(value) else value for other, value in zip(names, row, strict=True)}
        for name, row in zip(names, rows, strict=True)
    }
