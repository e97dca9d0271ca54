"""One folder of an object store, by fsspec: listing, reading, writing, and creating what must not exist yet.

`create` is a conditional PUT (`If-None-Match: *`): of several processes one succeeds. Listings are never cached.
Requests that fail for a passing reason are repeated a few times; then, and for all other reasons, the error is a
`StoreError` that names the address and the remedy.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from hardlook.errors import DataError, MissingExtra, RunError
from hardlook.extras import is_installed, require

T = TypeVar("T")

RETRY_SECONDS = (0.5, 1.0, 2.0, 4.0)
"""The waits before a request is repeated."""

THREADS = 16
"""Downloads and copies at a time."""

_NO_BUCKET = "bucket does not exist"
_MD5 = re.compile(r"[0-9a-f]{32}")


class StoreError(RunError):
    """An object store does not answer, or refuses."""


@dataclass(frozen=True)
class StoredObject:
    """The size of an object in bytes, and a text that changes with its content: its ETag where the store has one."""

    size: int
    version: str

    @property
    def md5(self) -> str:
        """The MD5 of its content where its ETag may be one, else empty; of an encrypted object it may be another."""
        return self.version if _MD5.fullmatch(self.version) else ""


class ObjectStore:
    """The objects below an address; their names are relative to it."""

    def __init__(self, address: str) -> None:
        scheme, _, self.path = address.partition("://")
        self.address, self.bucket = address, self.path.partition("/")[0]
        self._fs = _open_file_system(scheme)

    def list(self) -> dict[str, StoredObject]:
        """All objects below the address by name; where the address is an object itself, that one with the name ''."""
        rows = self._ask("", lambda: self._fs.find(self.path, detail=True))
        found = {}
        for key, row in rows.items():
            name = key.lstrip("/").removeprefix(self.path)
            # Some tools make empty objects that stand for folders.
            if not name.endswith("/") and (not name or name[0] == "/"):
                found[name[1:]] = StoredObject(int(row["size"]), _find_version(row))
        return found

    def read(self, name: str) -> bytes | None:
        """The content of an object; None where there is none."""
        return self._ask(name, lambda: _none_if_absent(partial(self._fs.cat_file, self._key(name))))

    def download(self, name: str, expected: StoredObject, target: Path) -> None:
        """Write an object to a file beside its target and rename it once it has the size and hash of the listing.

        The ETag of some encrypted objects looks like an MD5 and is none: there two equal downloads count.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{time.monotonic_ns():x}.part")
        try:
            seen = set()
            for _ in range(3):
                self._ask(name, partial(self._fs.get_file, self._key(name), str(temporary)), absent_is_error=True)
                with temporary.open("rb") as stream:
                    digest = hashlib.file_digest(stream, "md5").hexdigest()
                if temporary.stat().st_size == expected.size and (expected.md5 in ("", digest) or digest in seen):
                    temporary.replace(target)
                    return
                seen.add(digest)
        finally:
            temporary.unlink(missing_ok=True)
        raise DataError(
            f"the object has other bytes than its listing says (size {expected.size}): it changed while it was read",
            file=self._name(name),
            remedy="wait until nothing writes there any more, and repeat the command",
        )

    def write(self, name: str, content: bytes) -> None:
        """Write or replace an object."""
        self._ask(name, lambda: self._fs.pipe_file(self._key(name), content))

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless it exists; whether its content is this one's now.

        Where the answer to a request was lost, its repetition finds the object that it made itself.
        """
        try:
            self._ask(name, lambda: self._fs.pipe_file(self._key(name), content, mode="create"))
        except FileExistsError:
            return self.read(name) == content
        return True

    def delete(self, name: str) -> None:
        """Delete an object; it may be gone already."""
        self._ask(name, lambda: _none_if_absent(partial(self._fs.rm_file, self._key(name))))

    def copy(self, name: str, target: str) -> None:
        """Copy an object within the store to another address."""
        to = target.partition("://")[2]
        self._ask(name, lambda: self._fs.cp_file(self._key(name), to))

    def _key(self, name: str) -> str:
        return f"{self.path}/{name}" if name else self.path

    def _name(self, name: str) -> str:
        return f"{self.address}/{name}" if name else self.address

    def _ask(self, name: str, request: Callable[[], T], *, absent_is_error: bool = False) -> T:
        """Make a request, repeated where that can help."""
        for wait in (*RETRY_SECONDS, None):
            try:
                return request()
            except FileExistsError:
                raise
            except Exception as error:
                if (known := self._explain(error, name, absent_is_error)) is not None:
                    raise known from None
                if wait is None:
                    raise StoreError(
                        f"the object store does not answer ({_describe(error)})",
                        file=self._name(name),
                        remedy="check the network and AWS_ENDPOINT_URL, and repeat the command: it resumes",
                    ) from error
                time.sleep(wait)
        raise AssertionError

    def _explain(self, error: Exception, name: str, absent_is_error: bool) -> Exception | None:
        """The error for what does not pass by itself; None for what may."""
        kinds = {type(one).__name__ for one in (error, error.__cause__, error.__context__) if one is not None}
        text = f"{error} {error.__cause__ or ''}"
        if kinds & {"NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError", "ProfileNotFound"}:
            return StoreError(
                f"there are no credentials for this address ({_describe(error)})",
                file=self._name(name),
                remedy="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; docs/cloud.md",
            )
        if "NoSuchBucket" in kinds or (isinstance(error, FileNotFoundError) and _NO_BUCKET in text):
            return StoreError(
                f"there is no bucket {self.bucket!r}", file=self._name(name), remedy="make it, or check its name"
            )
        if isinstance(error, FileNotFoundError):
            what = "the object is gone: it was deleted while it was read"
            remedy = "repeat the command when nothing deletes objects there"
            return DataError(what, file=self._name(name), remedy=remedy) if absent_is_error else error
        if isinstance(error, PermissionError):
            return StoreError(
                f"the object store refuses access ({_describe(error)})",
                file=self._name(name),
                remedy="check that the credentials may list, read and write there; docs/cloud.md lists the rights",
            )
        if isinstance(error, TypeError | NotImplementedError | AttributeError):
            return error  # an error of ours, or a store that lacks something
        return None


def run_all(work: Callable[[Any], Any], items: list[Any], done: Callable[[], None] = lambda: None) -> None:
    """Call a function of each item in threads; after the first error no further item is begun."""
    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            for future in futures:
                future.result()
                done()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


@lru_cache(maxsize=4)
def _open_file_system(scheme: str) -> Any:
    fsspec = require("fsspec", extra="cloud")
    if scheme == "gs" and not is_installed("gcsfs"):
        raise MissingExtra("gs:// needs the package 'gcsfs', which is not installed", remedy="pip install gcsfs")
    if scheme == "s3":
        require("s3fs", extra="cloud")
    settings: dict[str, Any] = {"use_listings_cache": False} if scheme != "memory" else {}
    if scheme == "s3":
        # Requests are repeated above, where the end of it is known.
        settings["config_kwargs"] = {"connect_timeout": 10, "read_timeout": 60, "retries": {"total_max_attempts": 1}}
    file_system = fsspec.filesystem(scheme, skip_instance_cache=scheme != "memory", **settings)
    if scheme == "s3":
        file_system.retries = 1
    return file_system


def _find_version(row: dict[str, Any]) -> str:
    for name in ("ETag", "etag", "md5Hash", "generation", "LastModified", "mtime", "created"):
        if row.get(name):
            return str(row[name]).strip('"')
    return ""


def _none_if_absent(request: Callable[[], T]) -> T | None:
    try:
        return request()
    except FileNotFoundError as error:
        if _NO_BUCKET in str(error):
            raise
        return None


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}".rstrip(": ")
