"""The pictures of a task: a support of each class, then queries: wrongly answered ones where there are any."""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.benchmarks.metacoco.images import open_images
from hardlook.benchmarks.metacoco.units import TaskUnit
from hardlook.contract.benchmark import Unit
from hardlook.contract.records import Record
from hardlook.contract.sections import Picture

MOST_QUERIES = 5


def pictures_of(unit: Unit, record: Record) -> Sequence[Picture]:
    """Labels say what is shown, where, and for a query what was answered."""
    task: TaskUnit = unit.payload
    opened = open_images(task.settings.source)
    concepts, contexts = record["concepts"].split("\n"), record["contexts"].split("\n")
    pictures = []
    for way, concept in enumerate(concepts):
        place = record["support_context"][way]
        where = contexts[place] if place >= 0 else "several contexts"
        row = record["support"][way * task.shots]
        pictures.append(Picture(f"support: {concept}, {where}", opened.read(row)))
    each = len(record["query"]) // len(concepts)
    for place in _queries(record["predicted"], each):
        concept, answer = concepts[place // each], concepts[record["predicted"][place]]
        where = contexts[record["query_context"][place]]
        pictures.append(Picture(f"{concept}, {where}: answered {answer}", opened.read(record["query"][place])))
    return pictures


def _queries(predicted: Sequence[int], each: int) -> list[int]:
    """Places of the queries to show: wrong ones of every class in turn, right ones where none is wrong.

    >>> _queries([0, 1, 1, 0, 0, 0], each=3), _queries([0, 0, 1, 1], each=2)
    ([1, 3, 2, 4, 5], [0, 2, 1, 3])
    """
    wrong = [place for place, answer in enumerate(predicted) if answer != place // each]
    turns: dict[int, int] = {}
    ordered = []
    for place in wrong or range(len(predicted)):
        turn = turns[place // each] = turns.get(place // each, -1) + 1
        ordered.append((turn, place))
    return [place for _, place in sorted(ordered)[:MOST_QUERIES]]
