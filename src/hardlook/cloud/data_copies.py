"""Data of an object store, copied file by file to this machine before it is read.

A file is fetched where it is not here yet, or where the store lists another size or ETag than it had when it was
fetched; what the store no longer lists is deleted here. Readers and fingerprints see local files only, so that a run
over an address equals one over the same files in a local folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from hardlook.cloud.addresses import SCHEMES, find_address, get_copies_folder, locate_copy
from hardlook.cloud.object_store import ObjectStore, StoredObject, run_all
from hardlook.errors import DataError

Options = TypeVar("Options", bound=BaseModel)
ShowProgress = Callable[[int, int], Any]

_SAVED_EVERY = 500  # files


def fetch_data(path: str | Path, show_progress: ShowProgress | None = None) -> Path:
    """The path itself, or the copy of an address, with all files as they are in the store now."""
    if (address := find_address(path)) is None:
        return Path(path)
    target = locate_copy(address, "data")
    store = ObjectStore(address)
    listed = store.list()
    if not listed:
        raise DataError("there is nothing at this address", file=address, remedy="check the address")
    if "" in listed and len(listed) > 1:
        raise DataError("this address is an object and a folder at once", file=address, remedy="rename one of them")
    _check_names(address, listed)
    ledger_path = get_copies_folder() / "fetched" / f"{hashlib.sha256(address.encode()).hexdigest()[:24]}.json"
    with _locked(ledger_path):
        _update(store, listed, target, ledger_path, show_progress)
    return target


def fetch_options(options: Options, show_progress: ShowProgress | None = None) -> Options:
    """The options with copies in place of the addresses among their paths; copies are left as they are."""
    changes: dict[str, Any] = {}
    for name in type(options).model_fields:
        value = getattr(options, name)
        if _is_address(value):
            fetched = fetch_data(value, show_progress)
            changes[name] = str(fetched) if isinstance(value, str) else fetched
        elif isinstance(value, dict) and any(map(_is_address, value.values())):
            changes[name] = {
                key: fetch_data(one, show_progress) if _is_address(one) else one for key, one in value.items()
            }
    return options.model_copy(update=changes) if changes else options


def _is_address(value: Any) -> bool:
    """Whether an option names an address; some options take a path or another text."""
    if isinstance(value, str):
        return value.partition("://")[0] in SCHEMES and "://" in value
    return isinstance(value, Path) and not value.is_absolute() and find_address(value) is not None


def _check_names(address: str, listed: Mapping[str, StoredObject]) -> None:
    """Raise an error for names that cannot be files of one folder."""
    for name in listed:
        parts = name.split("/")
        if name and ({"", ".", ".."} & set(parts) or "\0" in name):
            raise DataError(f"the object {name!r} cannot be a file", file=address, remedy="rename or delete it")
        for end in range(1, len(parts)):
            if (above := "/".join(parts[:end])) in listed:
                what = f"{above!r} is an object and a folder at once"
                raise DataError(what, file=address, remedy="rename one of them")


def _update(
    store: ObjectStore,
    listed: Mapping[str, StoredObject],
    target: Path,
    ledger_path: Path,
    show_progress: ShowProgress | None,
) -> None:
    fetched = _read_ledger(ledger_path)

    def place(name: str) -> Path:
        return target / name if name else target

    def is_here(name: str) -> bool:
        one, row = listed[name], fetched.get(name)
        return row is not None and row[:2] == [one.size, one.version] and row[2:] == _get_state(place(name))

    def fetch(name: str) -> None:
        path = place(name)
        _clear(path, target)
        store.download(name, listed[name], path)
        fetched[name] = [listed[name].size, listed[name].version, *_get_state(path)]

    if "" not in listed:
        _delete_others(target, listed)
    missing = [name for name in listed if not is_here(name)]
    with show_progress(len(listed), len(listed) - len(missing)) if show_progress and missing else _NoProgress() as bar:
        done = 0

        def count() -> None:
            nonlocal done
            done += 1
            bar.advance(1, 0)
            if done % _SAVED_EVERY == 0:
                _write_ledger(ledger_path, dict(fetched))

        try:
            run_all(fetch, missing, count)
        finally:
            _write_ledger(ledger_path, {name: row for name, row in dict(fetched).items() if name in listed})


class _NoProgress:
    def __enter__(self) -> _NoProgress:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def advance(self, units: int, failed: int) -> None:
        pass


def _get_state(path: Path) -> list[int]:
    """Size, modification and inode: other than they were where somebody changed the copy."""
    try:
        state = path.stat()
    except OSError:
        return []
    return [state.st_size, state.st_mtime_ns, state.st_ino]


def _clear(path: Path, target: Path) -> None:
    """Make room where an earlier version of the data had a folder in place of this file, or a file above it."""
    if path.is_dir():
        shutil.rmtree(path)
    for above in path.parents:
        if above == target.parent:
            break
        if above.is_file():
            above.unlink()


def _delete_others(target: Path, listed: Mapping[str, StoredObject]) -> None:
    if target.is_file():
        target.unlink()
    for path in sorted(target.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):  # not empty
                path.rmdir()
        elif path.relative_to(target).as_posix() not in listed:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(ledger: Path) -> Iterator[None]:
    """One process at a time fetches an address."""
    ledger.parent.mkdir(parents=True, exist_ok=True)
    with ledger.with_suffix(".lock").open("w") as stream:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _read_ledger(path: Path) -> dict[str, list[Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_ledger(path: Path, fetched: Mapping[str, list[Any]]) -> None:
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(fetched), encoding="utf-8")
    temporary.replace(path)
