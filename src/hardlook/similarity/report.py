"""The analysis of a label set as one study: everything it looks at, as JSON and as a page.

The part of an analysis' page that is about senses: words of several meanings, and the two variants of a set.

What the page of a label set's analysis shows.

What `hardlook similarity` says on a terminal or as JSON: a matrix in short, and the list of measures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.sections import Block, CurveChart, HeatMap, Line, Section, Table
from hardlook.report.json_values import dump_json
from hardlook.similarity.analysis import (
    KERNEL,
    RUN_LENGTH,
    Analysis,
    NeighbourList,
    list_neighbours,
    select_example_rows,
    select_heat_map_rows,
)
from hardlook.similarity.measures import find_measure
from hardlook.similarity.senses import (
    MAX_PAIRS_PER_LABEL,
    PolysemyCase,
    SharedWord,
    VariantComparison,
    compare_variants,
    find_polysemy,
    find_shared_words,
    has_published_senses,
)

if TYPE_CHECKING:
    from rich.table import Table as table_Table

    from hardlook.similarity.label_synsets import UnknownPolicy
    from hardlook.similarity.labels import LabelSet
    from hardlook.similarity.measures import Measure, SimilarityResult


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


def study_labels(analysis: Analysis, rows: Sequence[int], unknown: UnknownPolicy = "hypernym") -> Study:
    """The study of an analysis; `rows` are the labels whose neighbours are asked for, none for a choice of ours."""
    labels, matrices, measure = analysis.labels, analysis.matrices, analysis.wordnet_measure
    shown = list(rows) or select_example_rows(matrices, count=min(LISTS, len(labels)), nearest=analysis.nearest)
    return Study(
        analysis,
        tuple(list_neighbours(labels, matrices, row, LISTED) for row in shown),
        bool(rows),
        find_polysemy(labels, measure, unknown) if measure else (),
        find_shared_words(labels),
        compare_variants(labels.name, measure) if measure and has_published_senses(labels) else None,
    )


def write_study(study: Study, out: Path) -> dict[str, Any]:
    """Write analysis.html and analysis.json; return the latter."""
    from hardlook.harness.runs.folder import write_whole
    from hardlook.report.page import render_study

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
    write_whole(out / "analysis.json", dump_json(document))
    write_whole(out / "analysis.html", page)
    return document


def study_document(study: Study) -> dict[str, Any]:
    """All numbers of the study; undefined ones are null."""
    import hardlook
    from hardlook.similarity.measures import find_measure

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


MOST_CASES = 30

MOST_SHARED = 40

LONGEST = 80


def polysemy_section(study: Study) -> Section | None:
    """Labels whose word has several senses, and labels that share a word; None where there are neither."""
    cases, measure = study.polysemy, study.analysis.wordnet_measure
    blocks: list[Block] = []
    sentences = []
    if cases:
        later = sum(case.rank is not None and case.rank > 1 for case in cases)
        strange = sum(case.rank is None for case in cases)
        sentences.append(
            f"{len(cases)} of {len(study.analysis.labels)} labels have a word with other noun senses in WordNet. For "
            f"{later} of them the right sense is not the first, which a lookup would take."
        )
        if strange:
            sentences.append(f"For {strange} more it is a synset that WordNet lists under other words.")
        rows = [
            (
                case.label,
                _sense(case.chosen, case.gloss, _rank(case)),
                _sense(case.others[0].synset, case.others[0].gloss),
                case.others[0].mean_change,
                f"{_near(case.nearest)}, then {_near(case.others[0].nearest)}",
            )
            for case in cases[:MOST_CASES]
        ]
        more = f" The {MOST_CASES} that would move most, of {len(cases)}." if len(cases) > MOST_CASES else ""
        blocks.append(
            Table(
                "If another sense were chosen",
                "The chosen sense of a label, with its place among the senses of its word, and the other sense that "
                f"would move its similarities ({measure}) most: by how much on average over all labels, and which "
                f"label is nearest now and would be then.{more}",
                ("label", "chosen sense", "other sense", "mean change", "nearest"),
                rows,
            )
        )
    if study.shared:
        matrices = study.analysis.matrices
        sentences.append(
            f"{len(study.shared)} pairs of labels share a word but not a sense, like crane (the bird) and crane (the "
            "machine). Measures over WordNet tell them apart; measures on words see the wording alone."
        )
        shown = study.shared[:MOST_SHARED]
        more = f" The first {MOST_SHARED} of {len(study.shared)}." if len(study.shared) > MOST_SHARED else ""
        blocks.append(
            Table(
                "Labels that share a word",
                f"Names and aliases count. Similarity of the two under each measure.{more}",
                ("word", "label", "and", *matrices),
                [
                    (one.word, _owner(one.first), _owner(one.second), *(float(s[one.rows]) for s in matrices.values()))
                    for one in shown
                ],
                decimals=2,
            )
        )
    return Section("Words of several senses", " ".join(sentences), tuple(blocks)) if blocks else None


def variants_section(study: Study) -> Section | None:
    """What the corrected senses change; None for a set without published ones."""
    found = study.variants
    if found is None:
        return None
    reasons = {one.label: one.reason for one in found.differences}
    rows = [
        (
            pair.first,
            pair.second,
            pair.published,
            pair.corrected,
            pair.corrected - pair.published,
            "; ".join(f"{name}: {reasons[name]}" for name in (pair.first, pair.second) if name in reasons),
        )
        for pair in found.largest
    ]
    missing = f" {len(found.without)} labels without a published sense are left out." if found.without else ""
    text = (
        f"{len(found.differences)} labels have another sense in the variant `corrected` than in `published`. Under "
        f"{found.measure} this changes {found.changed} of {found.pairs} pairs, by {found.mean_change:.4f} on average "
        f"over all of them.{missing}"
    )
    table = Table(
        "The pairs that change most",
        f"Each label with a changed sense at most {MAX_PAIRS_PER_LABEL} times.",
        ("label", "and", "published", "corrected", "change", "why"),
        rows,
    )
    return Section("Published and corrected senses", text, (table,))


def _sense(name: str, gloss: str, rank: str = "") -> str:
    definition = gloss.split('; "')[0].replace("`", "'")
    short = definition if len(definition) <= LONGEST else definition[: LONGEST - 3].rsplit(" ", 1)[0] + "..."
    return f"`{name}`{rank}: {short}"


def _rank(case: PolysemyCase) -> str:
    return "" if case.rank is None else f" ({case.rank} of {case.senses})"


def _near(near: tuple[str, float]) -> str:
    return f"{near[0]} ({near[1]:.2f})"


def _owner(owner: tuple[str, str | None]) -> str:
    return f"{owner[0]} `{owner[1]}`" if owner[1] else owner[0]


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
            [rank + 1, *(_near_pairs(*near[rank]) for near in one.by_measure.values())] for rank in range(ranks)
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
    rows = select_heat_map_rows(matrices[first], size)
    shown = [names[row] for row in rows]
    text = f"Labels are in the order of a clustering by {first}, the same in all maps, so that blocks are families."
    if len(rows) < len(names):
        text += (
            f" Of {len(names)} labels {len(rows)} are shown: runs of {RUN_LENGTH} that lie next to one another in the "
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


def _near_pairs(name: str, similarity: float) -> str:
    # Without its leading zero, so that six measures fit side by side.
    return f"{name} {similarity:.2f}".replace(" 0.", " .")


PAIRS = 12

SHOWN_TREATED = 8

ON_OTHER_LABELS = "comparable with ours on ImageNet-1k's labels only"


def describe_matrix(labels: LabelSet, result: SimilarityResult, out: Path | None) -> dict[str, Any]:
    """A similarity matrix in short; standard deviations are of the population."""
    from hardlook.similarity.analysis import list_similar_pairs
    from hardlook.similarity.matrix import summarise_matrix
    from hardlook.similarity.measures import find_measure

    measure = find_measure(result.measure)
    pairs = list_similar_pairs(result.matrix, result.names, PAIRS)
    return {
        "schema": "hardlook.similarity/1",
        "labels": labels.name,
        "variant": labels.variant,
        "count": len(labels),
        "measure": result.measure,
        "description": result.description,
        "fingerprint": result.fingerprint,
        **{key: value for key, value in asdict(summarise_matrix(result.matrix)).items() if key != "labels"},
        "published": published_figures(measure),
        "treated": [{"label": label, "how": how} for label, how in result.treated],
        "pairs": [asdict(pair) for pair in pairs],
        "out": None if out is None else str(out),
    }


def published_figures(measure: Measure) -> dict[str, Any] | None:
    """Mean and std that the paper prints for the measure over ImageNet-1k's labels, and what they compare with."""
    if measure.mean is None:
        return None
    note = ON_OTHER_LABELS if measure.comparable else f"not comparable: {measure.note}"
    return {"mean": measure.mean, "std": measure.std, "labels": "ImageNet-1k", "note": note}


def print_matrix(document: Mapping[str, Any]) -> None:
    """The summary; where nothing was written, the most similar pairs as well."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    variant = "" if document["variant"] == "file" else f" ({document['variant']})"
    head = f"{document['labels']}{variant}, {document['count']} labels: {document['measure']}"
    console.print(Text(head, style="bold"))
    console.print(Text(document["description"], style="dim"))
    table = _measure_table("", "mean", "std")
    table.add_row("all cells, with the diagonal", f"{document['mean']:.4f}", f"{document['std']:.4f}")
    table.add_row("pairs of different labels", *(f"{document[f'{key}_off_diagonal']:.4f}" for key in ("mean", "std")))
    if published := document["published"]:
        table.add_row("published, other labels (ImageNet-1k)", f"{published['mean']:.3f}", f"{published['std']:.3f}")
    console.print(table)
    if published:
        console.print(Text(f"The published figures are {published['note']}.", style="dim"))
    treated = document["treated"]
    if treated:
        console.print(Text(f"{len(treated)} of {document['count']} labels were not simply looked up:"))
        for one in treated[:SHOWN_TREATED]:
            console.print(Text(f"  {one['label']}: {one['how']}"))
        if len(treated) > SHOWN_TREATED:
            console.print(Text(f"  and {len(treated) - SHOWN_TREATED} more (--json lists all)"))
    if document["out"]:
        console.print(Text(f"written: {document['out']}"))
        return
    console.print(Text("\nMost similar pairs", style="bold"))
    for pair in document["pairs"]:
        console.print(Text(f"  {pair['similarity']:.4f}  {pair['first']}, {pair['second']}"))


def measure_rows() -> list[dict[str, Any]]:
    """Every measure with `state`: `ready`, `source` (a file or folder must be given) or `install`, and the commands."""
    from hardlook.similarity.measures import MEASURES

    rows = []
    for measure in MEASURES.values():
        install = _to_install(measure)
        state = "install" if install else "source" if measure.source and not measure.weights else "ready"
        rows.append({**asdict(measure), "state": state, "install": install})
    return rows


def print_measures(rows: Sequence[Mapping[str, Any]]) -> None:
    """The measures as a table."""
    from rich.console import Console
    from rich.markup import escape

    table = _measure_table("measure", "here", "what it is and needs")
    for row in rows:
        here = {"ready": "ready", "source": "with --source", "install": "to install"}[row["state"]]
        install = f" Install: {'; '.join(row['install'])}." if row["install"] else ""
        needs = f"Needs {row['needs']}.{install}"
        table.add_row(row["name"], here, f"{escape(row['sentence'])} [dim]{escape(needs)}[/dim]")
    Console(highlight=False).print(table)


def _to_install(measure: Measure) -> list[str]:
    from hardlook.extras import installed
    from hardlook.models.weights.install import status

    modules = ("torch", "tokenizers" if measure.weights else "transformers")
    commands = []
    if measure.extra and not all(installed(module) for module in modules):
        commands.append(f'pip install "hardlook[{measure.extra}]"')
    if measure.weights and status(measure.weights) != "installed":
        commands.append(f"hardlook weights install {measure.weights}")
    return commands


def _measure_table(*titles: str) -> table_Table:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold", no_wrap=title != titles[-1])
    return table
