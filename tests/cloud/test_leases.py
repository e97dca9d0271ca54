"""Claims in a store: one holder at a time, taken over after their time, and never held by one that slept."""

import os
import subprocess
import threading
import time
import uuid

import pytest

from hardlook.cloud.leases import Lease, LostClaim, get_lease_seconds
from hardlook.cloud.object_store import ObjectStore
from hardlook.errors import OptionError, RunError


@pytest.fixture
def store(bucket, monkeypatch):
    monkeypatch.setenv("HARDLOOK_LEASE", "1")
    return ObjectStore(f"{bucket.address}/run")


def elsewhere(store, name="run", **about):
    """A claim of a process on another machine."""
    return Lease(store, name, {"host": "elsewhere", "machine": "elsewhere", "process": 1, **about})


def test_a_released_claim_is_free_at_once(store):
    first, second = elsewhere(store), elsewhere(store)
    first.acquire()
    first.release()
    start = time.monotonic()
    second.acquire()
    assert time.monotonic() - start < 0.5
    assert len([name for name in store.list() if name.startswith(".claims/run/")]) == 1, "earlier ones are deleted"


def test_of_many_that_wait_one_gets_it(store):
    won, refused, start = [], [], threading.Barrier(4)

    def claim():
        lease = elsewhere(store, owner=uuid.uuid4().hex)
        start.wait()
        try:
            lease.acquire(poll=0.02)
            won.append(lease)
        except RunError as error:
            refused.append(error)

    threads = [threading.Thread(target=claim, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 0.6
    while len(won) < 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(won) == 1
    won[0].renew()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and len(refused) == 3


def test_a_holder_that_renews_is_named_with_the_remedy(store):
    first = elsewhere(store)
    first.acquire()
    with first.hold(), pytest.raises(RunError, match="a run is under way in this folder: process 1 on elsewhere") as no:
        elsewhere(store).acquire()
    assert "--shard" in no.value.remedy and f"delete {store.address}/.claims/run/" in no.value.remedy


def test_a_claim_that_is_not_renewed_is_taken_over_and_its_holder_notices(store):
    sleeper, other = elsewhere(store), elsewhere(store)
    sleeper.acquire()
    sleeper.check()
    start = time.monotonic()
    other.acquire(poll=0.05)
    assert 0.9 < time.monotonic() - start < 2
    with pytest.raises(LostClaim, match="could not be renewed"):
        sleeper.check()
    other.release()
    late = elsewhere(store)
    late._number = sleeper._number  # as one that was suspended before it could notice
    late.renew()
    assert "took it over" in late.lost
    with pytest.raises(LostClaim):
        late.check()
    elsewhere(store).acquire()


def test_one_that_wakes_after_a_release_and_a_new_claim_does_not_get_it_back(store):
    sleeper, holder = elsewhere(store), elsewhere(store)
    sleeper.acquire()
    for _ in range(3):
        holder.acquire() if not holder._number else holder.renew()
    sleeper._until = time.monotonic() + 9
    sleeper.renew()
    assert sleeper.lost
    holder.renew()
    holder.check()


def test_a_claim_of_a_killed_process_of_this_machine_is_free_at_once(store):
    process = subprocess.Popen(["true"])
    process.wait()
    Lease(store, "run", {"process": process.pid}).acquire()
    start = time.monotonic()
    Lease(store, "run").acquire()
    assert time.monotonic() - start < 0.5


def test_a_claim_that_cannot_be_read_is_watched_and_taken_over(store):
    store.write(".claims/run/00000004.json", b"\xff{")
    lease = elsewhere(store)
    lease.acquire()
    assert lease._number == 5


def test_the_age_of_a_claim_is_known_to_a_fraction_of_a_second(store):
    time.sleep((0.7 - time.time()) % 1)  # late in a second
    shard = elsewhere(store, "shard-1-of-2")
    shard.acquire()
    time.sleep(0.5)
    assert elsewhere(store).find_other_holder("shard-") is not None
    time.sleep(0.7)
    assert elsewhere(store).find_other_holder("shard-") is None


def test_a_claim_that_this_process_could_not_release_is_its_own(store):
    left = Lease(store, "run")
    left.acquire()
    with pytest.raises(RunError, match="under way"), left.hold():
        Lease(store, "run").acquire()
    left = Lease(store, "run")
    left.acquire()
    left.release = lambda: None  # the store was away
    with left.hold():
        pass
    start = time.monotonic()
    Lease(store, "run").acquire()
    assert time.monotonic() - start < 0.5


@pytest.mark.parametrize("text", ["0", "x", "1e9", ""])
def test_a_lease_that_is_no_time_is_refused(monkeypatch, text):
    monkeypatch.setenv("HARDLOOK_LEASE", text)
    with pytest.raises(OptionError, match="HARDLOOK_LEASE"):
        get_lease_seconds()
    assert os.environ["HARDLOOK_LEASE"] == text
