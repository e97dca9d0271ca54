"""The pictures of a task: a support of each class, then queries that were answered wrongly."""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.benchmarks.metacoco.images import open_images
from hardlook.benchmarks.metacoco.units import TaskUnit
from hardlook.contract.benchmark import Unit
from hardlook.contract.records import Record
from hardlook.contract.sections import Picture

MOST_WRONG = 5


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
    wrong = [place for place, answer in enumerate(record["predicted"]) if answer != place // each]
    for place in wrong[:MOST_WRONG]:
        concept, answer = concepts[place // each], concepts[record["predicted"][place]]
        where = contexts[record["query_context"][place]]
        pictures.append(Picture(f"{concept}, {where}: answered {answer}", opened.read(record["query"][place])))
    return pictures
