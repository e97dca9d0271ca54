"""What `hardlook similarity` says on a terminal or as JSON: a matrix in short, and the list of measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from hardlook.labels.label_set import LabelSet
    from hardlook.labels.measures import Measure, SimilarityResult

PAIRS = 12
SHOWN_TREATED = 8
ON_OTHER_LABELS = "comparable with ours on ImageNet-1k's labels only"


def describe_matrix(labels: LabelSet, result: SimilarityResult, out: Path | None) -> dict[str, Any]:
    """A similarity matrix in short; standard deviations are of the population."""
    from hardlook.labels.measures import find_measure
    from hardlook.labels.neighbour_lists import most_similar_pairs
    from hardlook.similarity.summary import summarise

    measure = find_measure(result.measure)
    pairs = most_similar_pairs(result.matrix, result.names, PAIRS)
    return {
        "schema": "hardlook.similarity/1",
        "labels": labels.name,
        "variant": labels.variant,
        "count": len(labels),
        "measure": result.measure,
        "description": result.description,
        "fingerprint": result.fingerprint,
        **{key: value for key, value in asdict(summarise(result.matrix)).items() if key != "labels"},
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
    table = _table("", "mean", "std")
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
    from hardlook.labels.measures import MEASURES

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

    table = _table("measure", "here", "what it is and needs")
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


def _table(*titles: str) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold", no_wrap=title != titles[-1])
    return table
