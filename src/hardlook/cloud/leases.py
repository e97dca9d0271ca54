"""Claims on what is in an object store: one process holds a name, by conditional PUT, for as long as it renews it.

The claims on a name are numbered objects, `.claims/NAME/00000007.json`, each made only where it does not exist yet; the
highest number counts, and earlier ones are deleted. A holder renews its claim by making the next number. One that was
not renewed for its time can be taken over, also by making the next number, and so only by one process; a holder that
wakes up later finds a higher number and stops. A released claim stays as an object that says so: numbers only grow.

Only times that one machine measures itself decide whether a claim that is being watched has ended, so clocks need not
agree. A claim whose own time is long past is taken over without watching. Whether shards hold a run that is wanted
whole, and the other way round, is read from the times in their claims: clocks may differ by two thirds of a lease.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from hardlook.cloud.object_store import ObjectStore, StoreError
from hardlook.errors import OptionError, RunError

CLAIMS = ".claims"


def get_lease_seconds() -> float:
    """For how long a claim holds without being renewed: `HARDLOOK_LEASE`, else 60 seconds."""
    text = os.environ.get("HARDLOOK_LEASE", "60")
    with contextlib.suppress(ValueError):
        if 1 <= (seconds := float(text)) <= 3600:
            return seconds
    raise OptionError(f"HARDLOOK_LEASE={text}: expected a number of seconds from 1 to 3600", remedy="for example 60")


_owned: set[str] = set()
"""The claims that this process has."""


@lru_cache(maxsize=1)
def identify_machine() -> str:
    """What tells this machine and container from others, where the same number is another process."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts) if len(parts) == 3 else uuid.uuid4().hex


class LostClaim(RunError):
    """A claim was taken over, or could not be renewed in time."""


class Lease:
    """A claim on a name in a store; `hold` keeps it with a thread that renews it."""

    def __init__(self, store: ObjectStore, name: str, about: Mapping[str, Any] | None = None) -> None:
        self.store, self.name = store, name
        self.seconds = get_lease_seconds()
        self.lost = ""
        """Why the claim does not hold any more; empty while it does."""
        who = {"process": os.getpid(), "host": socket.gethostname(), "machine": identify_machine()}
        self._about = {**who, "owner": uuid.uuid4().hex, **(about or {})}
        self._number, self._until = 0, 0.0
        self._lock = threading.Lock()

    def acquire(self, poll: float = 1.0) -> None:
        """Take the claim, once the one before has ended; a `RunError` where its holder is alive.

        A holder that is alive renews its claim within a third of its time; it is looked for every `poll` seconds.
        """
        watched, since = -1, 0.0
        while True:
            number, holder = self._read_last()
            if number != watched:
                if watched >= 0 and not holder.get("released"):
                    raise self._held_error(number, holder)
                watched, since = number, time.monotonic()
            lease = _as_seconds(holder.get("seconds"), self.seconds)
            if not holder or _has_ended(holder, lease) or time.monotonic() - since > lease:
                if self._make(number + 1):
                    return
                continue
            time.sleep(min(poll, lease / 20))

    def wait(self, patience: float) -> None:
        """Take the claim as soon as its holders have released it; for claims that are held for moments."""
        deadline = time.monotonic() + patience
        while True:
            try:
                return self.acquire(poll=0.1)
            except RunError as error:
                if isinstance(error, StoreError) or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def renew(self) -> None:
        """Make the next number; `lost` says so where another process made it, or where the time has run out."""
        with self._lock:
            if not self.lost and not self._make(self._number + 1):
                _, holder = self._read_last()
                self.lost = f"process {holder.get('process')} on {holder.get('host')} took it over"

    def release(self) -> None:
        """Give the claim back, unless it is lost."""
        with self._lock:
            if not self.lost:
                self._make(self._number + 1, released=True)

    def check(self) -> None:
        """Raise a `RunError` where the claim does not hold any more."""
        if not self.lost and time.monotonic() > self._until:
            self.lost = f"it could not be renewed for {self.seconds:g} seconds"
        if self.lost:
            raise LostClaim(
                f"this process no longer has its claim on the run: {self.lost}",
                file=self.store.address,
                remedy="what it uploaded is kept; repeat the command when no other process works there",
            )

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the claim that was acquired: renew it three times in its time, and release it at the end."""
        ended = threading.Event()

        def keep() -> None:
            while not ended.wait(self.seconds / 3) and not self.lost:
                # Another attempt follows; `check` notices when there were none for too long.
                with contextlib.suppress(StoreError):
                    self.renew()

        keeper = threading.Thread(target=keep, daemon=True, name=f"claim on {self.store.address}")
        keeper.start()
        try:
            yield
        finally:
            ended.set()
            keeper.join()
            _owned.discard(str(self._about["owner"]))
            with contextlib.suppress(StoreError):  # It ends by itself.
                self.release()

    def _make(self, number: int, *, released: bool = False) -> bool:
        """Make the claim of this number; False where it was made by another, or is not the highest."""
        begun = time.monotonic()
        # Whole seconds would make a claim of one second look a second older than it is.
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        facts = {"since": now, **self._about, "renewed": now, "seconds": self.seconds, "released": released}
        self._about.setdefault("since", now)
        content = json.dumps(facts, indent=1).encode()
        if not self.store.create(self._key(number), content):
            return False
        numbers = self._list_numbers()
        if max(numbers, default=0) != number:
            self.store.delete(self._key(number))
            return False
        self._number, self._until = number, begun + self.seconds
        (_owned.discard if released else _owned.add)(str(self._about["owner"]))
        for earlier in numbers:
            if earlier < number:
                self.store.delete(self._key(earlier))
        return True

    def _key(self, number: int) -> str:
        return f"{CLAIMS}/{self.name}/{number:08d}.json"

    def _list_numbers(self) -> list[int]:
        names = ObjectStore(f"{self.store.address}/{CLAIMS}/{self.name}").list()
        return [int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit()]

    def _read_last(self) -> tuple[int, dict[str, Any]]:
        """The highest number and its content; empty where there is none, or where it cannot be read."""
        number = max(self._list_numbers(), default=0)
        content = self.store.read(self._key(number)) if number else None
        return number, _parse(content)

    def _held_error(self, number: int, holder: Mapping[str, Any]) -> RunError:
        who = f"process {holder.get('process', 'unknown')} on {holder.get('host', 'an unknown machine')}"
        return RunError(
            f"a run is under way in this folder: {who}, since {holder.get('since', 'an unknown time')}",
            file=self.store.address,
            remedy="wait for it; or end that process (its records are kept) and repeat this command, which takes over "
            f"when the claim was not renewed for {_as_seconds(holder.get('seconds'), self.seconds):g} seconds; or "
            "start each process with its own --shard i/N to share the work. To take over at once, delete "
            f"{self.store.address}/{self._key(number)}",
        )

    def find_other_holder(self, names: str) -> RunError | None:
        """The error where a claim whose name begins like this, other than this one, is held."""
        listed = ObjectStore(f"{self.store.address}/{CLAIMS}").list()
        for name in sorted({key.split("/")[0] for key in listed} - {self.name}):
            other = Lease(self.store, name)
            number, holder = other._read_last()
            lease = _as_seconds(holder.get("seconds"), self.seconds)
            if name.startswith(names) and holder and not _has_ended(holder, lease, slack=0):
                return other._held_error(number, holder)
        return None


def _parse(content: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(content or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _as_seconds(value: Any, default: float) -> float:
    return float(value) if isinstance(value, int | float) and 0 < value <= 3600 else default


def _has_ended(holder: Mapping[str, Any], lease: float, slack: float = 1.0) -> bool:
    """Whether a claim is released, of a process of this machine that is gone, or long past.

    `slack`: how many times its length it must have ended ago, so that clocks may differ by that much.
    """
    if holder.get("released"):
        return True
    if holder.get("machine") == identify_machine() and isinstance(pid := holder.get("process"), int):
        if pid == os.getpid():
            return holder.get("owner") not in _owned
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass
    try:
        age = (datetime.now(UTC) - datetime.fromisoformat(str(holder["renewed"]))).total_seconds()
    except (KeyError, ValueError, TypeError):
        return False
    return age > lease * (1 + slack)
