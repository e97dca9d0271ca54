"""People's first clicks, joined to the instances that they were made on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hardlook.benchmarks.rclicks.units import InstanceUnit
from hardlook.contract.scorecard import LeftOut
from hardlook.data.click_table import ClickTable
from hardlook.data.object_instances import dataset_name, scaled_points
from hardlook.errors import DataError

SHOWN = 5


def with_people(units: Sequence[InstanceUnit], table: ClickTable) -> tuple[list[InstanceUnit], list[LeftOut]]:
    """The units with the clicks on them, and what of the file found no instance."""
    first = table.first()
    joined: dict[str, InstanceUnit] = {f"{unit.dataset}/{unit.name}": unit for unit in units}
    lonely: list[str] = []
    for dataset in sorted({unit.dataset for unit in units}):
        for stem, clicks in first.for_dataset(dataset).by_full_stem().items():
            unit = joined.get(f"{dataset}/{stem}")
            if unit is None:
                lonely.append(f"{dataset}/{stem}")
                continue
            assert unit.source is not None
            points = scaled_points(clicks.points, clicks.size, unit.source.size(), unit=f"{dataset}/{stem}")
            joined[f"{dataset}/{stem}"] = replace(unit, people=points, mobile=clicks.devices == "mobile")
    if not any(unit.people is not None for unit in joined.values()):
        spelt = ", ".join(first.datasets()) or "none"
        asked = ", ".join(sorted({unit.dataset for unit in units}))
        raise DataError(
            f"no first click of the file is on an instance of {asked}",
            remedy=f"the file's datasets are: {spelt}; its stems are names of images",
        )
    return list(joined.values()), _notes(units, table, lonely)


def _notes(units: Sequence[InstanceUnit], table: ClickTable, lonely: Sequence[str]) -> list[LeftOut]:
    notes = []
    if lonely:
        why = "no instance of that name is in the data, or it was not drawn"
        notes.append(LeftOut("stems of people's clicks", len(lonely), why, tuple(lonely[:SHOWN])))
    here = {unit.dataset for unit in units}
    absent = [name for name in table.first().datasets() if dataset_name(name) not in here]
    if absent:
        notes.append(LeftOut("datasets of people's clicks", len(absent), "not given as --data", tuple(absent)))
    if later := len(table) - len(table.first()):
        notes.append(LeftOut("people's clicks of later rounds (fn, fp)", later, "only first clicks are used here"))
    if table.clipped:
        notes.append(LeftOut("clicks outside of their image", table.clipped, "moved to its edge and kept"))
    return notes
