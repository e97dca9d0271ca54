"""Addresses of folders in object stores, and where their copies are on this machine.

The copy of `s3://bucket/VOC` as data is `addresses/data/s3/bucket/VOC` in the cache folder (`HARDLOOK_CACHE`), that of
a run `addresses/runs/s3/...`: the place follows from the address and the address from the place.

>>> find_address("s3://bucket/runs/first/"), find_address(Path("s3://bucket/runs/first")), find_address("runs/first")
('s3://bucket/runs/first', 's3://bucket/runs/first', None)
>>> find_address(locate_copy("s3://bucket/runs/first", "runs") / "run.json")
's3://bucket/runs/first/run.json'
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal

from hardlook.errors import OptionError

SCHEMES = ("s3", "gs", "memory")
"""The kinds of addresses; `memory` is fsspec's store within one process, for tests."""

Kind = Literal["data", "runs"]

# Two letters at least: one is a drive of Windows. A `Path` has one slash where the address has two.
_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<slashes>/*)(?P<rest>.*)", re.DOTALL)


def find_address(path: str | Path) -> str | None:
    """The address that a text, a `Path` made from one, or a file of a copy stands for; None for a local path.

    Kinds of addresses that are not known are an error: as a path they would name a new local folder.
    """
    text = str(path)
    if (place := _find_place(Path(text))) is not None:
        return _join(place[1:])
    match = _ADDRESS.fullmatch(text)
    if match is None or not (match["slashes"] or match["scheme"].lower() in SCHEMES):
        return None
    scheme, rest = match["scheme"].lower(), match["rest"].rstrip("/")
    if scheme == "file":
        raise OptionError("file: addresses are not read", file=text, remedy="give the path itself")
    if scheme not in SCHEMES:
        raise OptionError(
            f"{scheme}:// is not a known kind of address", file=text, remedy="give a local path, s3://... or gs://..."
        )
    if not rest or not match["slashes"]:
        raise OptionError("this address has no bucket", file=text, remedy=f"for example {scheme}://bucket/folder")
    parts = rest.split("/")
    if {"", ".", ".."} & set(parts):
        raise OptionError("an address has no empty parts, `.` or `..`", file=text, remedy="write it without them")
    return _join((scheme, *parts))


def _join(parts: tuple[str, ...]) -> str:
    return f"{parts[0]}://{'/'.join(parts[1:])}"


def get_copies_folder() -> Path:
    """The folder of all copies: `addresses` in `HARDLOOK_CACHE`, else in `hardlook` in the user's cache folder."""
    if chosen := os.environ.get("HARDLOOK_CACHE"):
        return Path(chosen).expanduser().absolute() / "addresses"
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser().absolute() / "hardlook" / "addresses"


def locate_copy(address: str, kind: Kind) -> Path:
    """Where the copy of an address is on this machine."""
    scheme, _, rest = address.partition("://")
    return get_copies_folder().joinpath(kind, scheme, *rest.split("/"))


def _find_place(path: Path) -> tuple[str, ...] | None:
    """Kind, scheme, bucket and the rest of a path in the folder of copies."""
    if not path.is_absolute() or not path.is_relative_to(root := get_copies_folder()):
        return None
    place = path.relative_to(root).parts
    return place if len(place) > 2 and place[0] in ("data", "runs") and place[1] in SCHEMES else None


def find_run_address(path: Path) -> str | None:
    """The address of a run folder or of a file in it, where the path is in the copy of a run; else None."""
    place = _find_place(path)
    return _join(place[1:]) if place is not None and place[0] == "runs" else None


def name_addresses(value: Any) -> Any:
    """A JSON-like value in which addresses stand in place of the paths of their copies."""
    if isinstance(value, dict):
        return {key: name_addresses(one) for key, one in value.items()}
    if isinstance(value, list):
        return [name_addresses(one) for one in value]
    if isinstance(value, str) and _find_place(Path(value)) is not None:
        return find_address(value)
    return value


def list_data_prefixes() -> list[tuple[str, str]]:
    """How paths of copies of data begin, and their addresses; empty where this machine has no copies."""
    root = get_copies_folder() / "data"
    return [(f"{root / scheme}/", f"{scheme}://") for scheme in SCHEMES if (root / scheme).is_dir()]


def format_path(path: str | Path) -> str:
    """A path for people: the address where it is in a copy."""
    return find_address(path) or str(path)


def replace_copies(text: str) -> str:
    """A message with addresses in place of the paths of copies."""
    root = re.escape(str(get_copies_folder()))
    return re.sub(rf"{root}/(?:data|runs)/({'|'.join(SCHEMES)})/", r"\1://", text)
