"""Making the tables and filling in what is handed out; safe when two servers start at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, inspect, select, text

from hardlook.collect.store.checking import DEVICE, KEY, text_of
from hardlook.collect.store.records import Refusal
from hardlook.collect.store.tables import FACTS, ITEMS, METADATA, PROGRESS
from hardlook.collect.study.tasks import Item
from hardlook.errors import DataError

LAYOUT = "1"
FINGERPRINT = "fingerprint"
_MODE, _SUBJECT = 16, 2000
# Any number will do, as long as every hardlook takes the same.
_POSTGRES_LOCK = 0x6861_7264


@dataclass(frozen=True)
class Catalogue:
    """What is handed out now: items by their id, and the devices that answers are balanced over."""

    items: Mapping[str, Item]
    devices: frozenset[str]


def prepare(connection: Connection, items: Sequence[Item], devices: Iterable[str], fingerprint: str) -> Catalogue:
    """Make what is missing of tables, items and progress rows.

    A database of other tasks is a `DataError`: its answers would be taken for answers to these.
    """
    catalogue = Catalogue({item.id: item for item in items}, frozenset(devices))
    _check(catalogue)
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _POSTGRES_LOCK})
    METADATA.create_all(connection)
    _state(connection, "layout", LAYOUT, "this database was made by another version of hardlook")
    _state(connection, FINGERPRINT, fingerprint, "this database holds answers to other tasks")
    known = set(connection.scalars(select(ITEMS.c.id)))
    new = [vars(item) for item in catalogue.items.values() if item.id not in known]
    if new:
        connection.execute(insert(ITEMS), new)
    counted = {(row.item, row.device) for row in connection.execute(select(PROGRESS.c.item, PROGRESS.c.device))}
    rows = [
        {"item": item, "device": device, "pending": 0, "valid": 0}
        for item in catalogue.items
        for device in sorted(catalogue.devices)
        if (item, device) not in counted
    ]
    if rows:
        connection.execute(insert(PROGRESS), rows)
    return catalogue


def read_catalogue(connection: Connection) -> Catalogue:
    """What an earlier `prepare` filled in; a `DataError` where there was none."""
    if not is_prepared(connection):
        raise DataError("nothing was ever handed out from this database", remedy="serve the study first")
    rows = connection.execute(select(ITEMS.c.id, ITEMS.c.task, ITEMS.c.mode, ITEMS.c.subject))
    devices = connection.scalars(select(PROGRESS.c.device).distinct())
    return Catalogue({row.id: Item(*row) for row in rows}, frozenset(devices))


def is_prepared(connection: Connection) -> bool:
    """Whether the tables are there."""
    return inspect(connection).has_table(FACTS.name)


def _check(catalogue: Catalogue) -> None:
    for item in catalogue.items.values():
        try:
            text_of("id", item.id, KEY)
            text_of("task", item.task, KEY)
            text_of("subject", item.subject, _SUBJECT)
            # A review has no mode.
            text_of("mode", item.mode or "-", _MODE)
        except Refusal as refusal:
            raise DataError(f"an item that no database can hold: {refusal}", unit=repr(item.id)) from None
    for device in catalogue.devices:
        try:
            text_of("device", device, DEVICE)
        except Refusal as refusal:
            raise DataError(f"a device that no database can hold: {refusal}") from None


def _state(connection: Connection, name: str, value: str, otherwise: str) -> None:
    found = connection.scalar(select(FACTS.c.value).where(FACTS.c.name == name))
    if found is None:
        connection.execute(insert(FACTS), {"name": name, "value": value})
    elif found != value:
        remedy = "name another database, or serve the study that it belongs to"
        raise DataError(f"{otherwise} ({name} {found}, not {value})", remedy=remedy)
