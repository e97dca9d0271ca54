"""Readings are shared, kept for a while, never waited for long, and tried again after an error."""

import threading

import pytest
from research_crowd import Person, open_store, take_part

from hardlook.collect.research import snapshot
from hardlook.collect.research.snapshot import SnapshotPending, Snapshots
from hardlook.errors import DataError

from .conftest import Clock, crowd, dashboard


class Slow:
    """A store that counts readings, and can be held up or broken."""

    def __init__(self, store):
        self.store, self.readings, self.go, self.broken = store, 0, threading.Event(), False
        self.go.set()

    def answers(self):
        self.readings += 1
        assert self.go.wait(30)
        if self.broken:
            raise DataError("the database is away")
        return self.store.answers()

    def __getattr__(self, name):
        return getattr(self.store, name)


@pytest.fixture
def slow(gathered):
    return Slow(gathered[1])


def test_a_reading_is_kept_for_seconds_and_then_made_anew(gathered, slow):
    clock = Clock()
    snapshots = Snapshots(gathered[0], slow, clock)
    first = snapshots.latest()
    assert snapshots.latest() is first
    clock.now += snapshot.MAX_KEEP_SECONDS
    second = snapshots.latest()
    assert second is not first
    assert second.taken == clock.now
    assert slow.readings == 2


def test_concurrent_requests_share_one_reading(gathered, slow):
    snapshots = Snapshots(gathered[0], slow, Clock())
    slow.go.clear()
    found = []
    threads = [threading.Thread(target=lambda: found.append(snapshots.latest())) for _ in range(8)]
    for thread in threads:
        thread.start()
    slow.go.set()
    for thread in threads:
        thread.join(60)
    assert len(found) == 8
    assert len(set(map(id, found))) == 1
    assert slow.readings == 1


def test_a_slow_reading_is_not_waited_for(gathered, slow, monkeypatch):
    monkeypatch.setattr(snapshot, "WAIT_SECONDS", 0.01)
    clock = Clock()
    snapshots = Snapshots(gathered[0], slow, clock)
    slow.go.clear()
    with pytest.raises(SnapshotPending):
        snapshots.latest()
    slow.go.set()
    monkeypatch.setattr(snapshot, "WAIT_SECONDS", 60.0)
    old = snapshots.latest()
    clock.now += 1000
    slow.go.clear()
    monkeypatch.setattr(snapshot, "WAIT_SECONDS", 0.01)
    assert snapshots.latest() is old
    slow.go.set()


def test_a_page_that_cannot_be_made_yet_asks_to_wait(gathered, slow, monkeypatch):
    monkeypatch.setattr(snapshot, "WAIT_SECONDS", 0.01)
    slow.go.clear()
    answer = dashboard(gathered[0], slow).log_in().get("/research")
    slow.go.set()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert "The answers are being read." in answer.text


def test_an_error_is_shown_and_the_next_request_tries_again(gathered, slow):
    someone = dashboard(gathered[0], slow).log_in()
    slow.broken = True
    answer = someone.get("/research")
    assert answer.status_code == 503
    assert "the database is away" in answer.text
    slow.broken = False
    assert someone.get("/research").status_code == 200


def test_new_answers_show_after_a_while(tmp_path):
    study, store, _ = crowd(tmp_path / "study", {"one": Person("pc")})
    with store:
        someone = dashboard(study, store).log_in()
        assert "4 answers in all" in someone.words("/research")
        with open_store(study) as other:
            take_part(study, other, Person("mobile"), now=9000.0)
        someone.clock.now += snapshot.MAX_KEEP_SECONDS
        assert "8 answers in all" in someone.words("/research")


def test_nothing_is_shown_of_what_was_discarded(gathered, slow):
    snapshots = Snapshots(gathered[0], slow, Clock())
    first = snapshots.latest()
    assert snapshots.latest() is first
    snapshots.discard()
    second = snapshots.latest()
    assert second is not first
    # Also of a reading that is under way, as long as it takes.
    snapshots.discard()
    slow.go.clear()
    waiting = threading.Thread(target=snapshots.latest)
    waiting.start()
    while slow.readings < 3:
        pass
    snapshots.discard()
    slow.go.set()
    waiting.join()
    assert slow.readings == 3 and snapshots.latest() is not second and slow.readings == 4
