"""Addresses of databases, and what a driver's complaint means, without the password.

>>> address_of("postgresql://ann:secret@db/study").drivername
'postgresql+psycopg'
>>> shown(address_of("postgresql://ann:secret@db/study?sslmode=require"))
'postgresql+psycopg://ann:***@db/study'
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError, TimeoutError

from hardlook.errors import DataError
from hardlook.extras import require

_KINDS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_EXPECTED = "give sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE"


def address_of(url: str) -> URL:
    """A checked address with the driver that is used here; another database, or none, is a `DataError`."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # Not chained and not shown: what cannot be parsed may hold a password anywhere.
        raise DataError("the address of the database cannot be read", remedy=_EXPECTED) from None
    kind = _KINDS.get(parsed.drivername)
    if kind is None:
        raise DataError(f"a database of kind {parsed.drivername!r} is not supported", remedy=_EXPECTED)
    if kind == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise DataError("a database in memory would forget the answers", remedy=_EXPECTED)
    if kind != "sqlite":
        require("psycopg", extra="postgres")
    return parsed.set(drivername=kind)


def shown(address: URL) -> str:
    """The address without its password and its query, which may hold one too."""
    return address.set(query={}).render_as_string(hide_password=True)


def in_words(address: URL, error: SQLAlchemyError) -> DataError:
    """What went wrong with a database, as an error that names it and a remedy, never a password."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        said = str(error.orig).strip()
    elif isinstance(error, TimeoutError):
        said = "all connections were in use for too long"
    else:
        # A complaint of the layer itself may quote values; its kind is enough.
        said = type(error).__name__
    for secret in _secrets(address):
        said = said.replace(secret, "***")
    return DataError(f"the database cannot be used: {said}", file=shown(address), remedy=_remedy(address, said))


def _remedy(address: URL, said: str) -> str:
    if address.get_backend_name() != "sqlite":
        return "check that PostgreSQL runs there, and the name, user and password in the address"
    place = Path(str(address.database)).parent
    if "readonly" in said or "unable to open" in said:
        return f"answers are written beside each other in {place}: it must exist and be writable, on a disk with room"
    if "not a database" in said or "malformed" in said:
        return "this file is damaged or is no database: restore it from a copy, or name another"
    if "locked" in said:
        return "another program holds the database: close it"
    if "full" in said:
        return "make room on the disk"
    return f"look at {place}"


def _secrets(address: URL) -> list[str]:
    values: list[Any] = [address.password, *(address.query.get(name) for name in ("password", "sslpassword"))]
    found = [str(value) for value in values if value]
    return found + [quote(value, safe="") for value in found]
