"""Run folders in an object store, through a copy on this machine.

A file is uploaded before it appears in the copy, so the copy never has what the store has not. Parts of records have
the hash of their content as name and are created once; other files are replaced. `refresh` makes the copy equal to
the store. Folders that are in no store are left as they are by every function here.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from hardlook.cloud.addresses import find_address, find_run_address, get_copies_folder, locate_copy
from hardlook.cloud.leases import CLAIMS, Lease
from hardlook.cloud.object_store import ObjectStore, StoredObject, run_all
from hardlook.errors import RunError

MANIFEST = "run.json"

OWN_NAMES = {MANIFEST, "records", "failures", "failures.parquet", "sessions", "scores.json", "report.html", "damaged",
             "parts", "cost.json"}  # fmt: skip
"""The files and folders of a run."""

_WRITE_ONCE = re.compile(r"part-[0-9a-f]{24}\.parquet")

_held: dict[Path, list[Lease]] = {}
"""The claims of this process by the folder of the copy."""


def open_run(path: str | Path, *, write: bool = False, thorough: bool = False) -> Path:
    """The local folder of a run, or of a folder of runs: the path itself, or the refreshed copy of an address.

    With `write` the run need not exist; an address that has other objects is then an error. `thorough` as in `refresh`.
    """
    address = find_address(path)
    if address is None:
        return Path(path)
    folder = locate_copy(address, "runs")
    refresh(folder, write=write, thorough=thorough)
    return folder


def locate_run(path: str | Path) -> Path:
    """As `open_run`, but without asking the store."""
    address = find_address(path)
    return Path(path) if address is None else locate_copy(address, "runs")


def refresh(folder: Path, *, write: bool = False, thorough: bool = False) -> None:
    """Make the copy of a run, or of a folder of runs, equal to what is in the store.

    Parts of records are known by name and size; `thorough` looks at their content, too, so that damage in the store is
    seen here.
    """
    address = find_run_address(folder)
    if address is None:
        return
    # Listed first: what is here by now was uploaded before, so what the store does not list is gone from it.
    here = {path.relative_to(folder).as_posix() for path in _list_files(folder)}
    store = ObjectStore(address)
    there = {name: one for name, one in store.list().items() if not _is_hidden(name)}
    roots = {name[: -len(MANIFEST)] for name in there if PurePosixPath(name).name == MANIFEST}
    if write and "" not in roots:
        if other := sorted({name.split("/")[0] for name in there} - OWN_NAMES):
            raise RunError(
                f"the folder holds other files ({', '.join(other[:4])})",
                file=address,
                remedy="choose an empty or a new folder for --out",
            )
        roots = {*roots, ""}
    wanted = {name: one for name, one in there.items() if _belongs(name, roots)}
    missing = [name for name, one in wanted.items() if not _is_same(folder / name, one, thorough)]
    run_all(lambda name: store.download(name, wanted[name], folder / name), missing)
    local_roots = {name[: -len(MANIFEST)] for name in here if PurePosixPath(name).name == MANIFEST}
    for name in here - set(wanted):
        if _belongs(name, roots | local_roots):
            (folder / name).unlink(missing_ok=True)


def _list_files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        for path in folder.rglob("*"):
            if not _is_hidden(path.relative_to(folder).as_posix()) and path.is_file():
                yield path


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def _belongs(name: str, roots: set[str]) -> bool:
    """Whether a name is one of the files of the runs in these folders (each '' or with a slash at its end)."""
    folders = ["", *(f"{parent}/" for parent in reversed([str(one) for one in PurePosixPath(name).parents][:-1]))]
    return any(folder in roots and name[len(folder) :].split("/")[0] in OWN_NAMES for folder in folders)


def _is_same(path: Path, stored: StoredObject, thorough: bool) -> bool:
    """Whether the file here has the content of the object; of what is written once, its name and size say so."""
    if not path.is_file() or path.stat().st_size != stored.size:
        return False
    if _WRITE_ONCE.fullmatch(path.name) and not thorough:
        return True
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "md5").hexdigest() == stored.version


def upload(path: Path, content: bytes) -> None:
    """Upload a file of a run before it is written to the copy; a part that is there already has the same content."""
    if (address := find_run_address(path)) is None:
        return
    _check_claims(path)
    store, name = _split(address)
    if not _WRITE_ONCE.fullmatch(name):
        store.write(name, content)
    elif not store.create(name, content):
        raise RunError(
            "this part is in the store with another content than its name says",
            file=address,
            remedy=f"`hardlook verify {address.rpartition('/records/')[0]} --repair` sets it aside",
        )


def create(path: Path, content: bytes) -> bool:
    """Upload a file unless the store has it; whether this call may write it to the copy, too."""
    if (address := find_run_address(path)) is None:
        return True
    _check_claims(path)
    store, name = _split(address)
    if store.create(name, content):
        return True
    if (there := store.read(name)) is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(there)
    return False


def refuse_address(path: Path) -> None:
    """Raise an error for an address where a local path is expected: it would make a folder named `s3:`."""
    if not path.is_absolute() and find_address(path) is not None:
        what = "this is an address of an object store, and a local path was expected"
        raise RunError(what, file=find_address(path), remedy="give a local path")


def _split(address: str) -> tuple[ObjectStore, str]:
    folder, _, name = address.rpartition("/")
    return ObjectStore(folder), name


def move_file(path: Path, aside: Path) -> None:
    """Move an object as its file is about to be moved: it is copied before it is deleted."""
    source, target = find_run_address(path), find_run_address(aside)
    if source is None or target is None:
        return
    _check_claims(path)
    store, name = _split(source)
    store.copy(name, target)
    store.delete(name)


def move_folder_aside(folder: Path) -> Path | None:
    """Move all objects of a run to a free name beside it, and its copy; None for a local folder.

    Everything is copied before anything is deleted, so a kill in between loses nothing.
    """
    address = find_run_address(folder)
    if address is None:
        return None
    number = 1
    while ObjectStore(f"{address}.old-{number}").list() or folder.with_name(f"{folder.name}.old-{number}").exists():
        number += 1
    store = ObjectStore(address)
    names = [name for name in store.list() if name.split("/")[0] != CLAIMS]
    run_all(lambda name: store.copy(name, f"{address}.old-{number}/{name}"), names)
    _check_claims(folder)
    run_all(store.delete, names)
    aside = folder.with_name(f"{folder.name}.old-{number}")
    folder.rename(aside)
    return aside


@contextlib.contextmanager
def claim(folder: Path, shard: tuple[int, int] | None, about: Mapping[str, Any]) -> Iterator[None]:
    """Hold a run in a store, or one shard of it, and refresh its copy; for a local folder do nothing."""
    address = find_run_address(folder)
    if address is None:
        yield
        return
    lease = Lease(ObjectStore(address), f"shard-{shard[0]}-of-{shard[1]}" if shard else "run", about)
    lease.acquire()
    with lease.hold():
        # Both sides claim first and check afterwards, so at most one of a run and its shards continues.
        if other := lease.find_other_holder("run" if shard else "shard-"):
            raise other
        leases = _held.setdefault(folder, [])
        leases.append(lease)
        try:
            refresh(folder, write=True)
            yield
        finally:
            leases.remove(lease)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the files that all processes of a run change, and refresh the copy."""
    address = find_run_address(folder)
    if address is None:
        yield
        return
    lease = Lease(ObjectStore(address), "files")
    lease.wait(patience=2 * lease.seconds)
    try:
        refresh(folder, write=True)
        yield
    finally:
        lease.release()


def _check_claims(path: Path) -> None:
    """Raise an error where this process has lost its claim on the run that the file belongs to."""
    if get_copies_folder() in path.parents:
        for folder in (path, *path.parents):
            for lease in _held.get(folder, ()):
                lease.check()
