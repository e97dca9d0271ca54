"""Writers of one process: in the order of asking, several to a commit, and each for itself when one fails."""

import threading
import time

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.exc import OperationalError

from hardlook.collect.store.addresses import address_of
from hardlook.collect.store.database import Database
from hardlook.collect.store.shared_commits import SharedCommits


@pytest.fixture
def engine(tmp_path):
    # The database's own engine, for its way of beginning transactions.
    database = Database(address_of(f"sqlite:///{tmp_path}/a.sqlite"))
    made = database._engine
    with made.begin() as connection:
        connection.execute(text("CREATE TABLE written (name int PRIMARY KEY)"))
    yield made
    database.close()


def written(engine):
    with engine.begin() as connection:
        return list(connection.scalars(text("SELECT name FROM written ORDER BY rowid")))


def put(connection, name):
    connection.execute(text("INSERT INTO written VALUES (:name)"), {"name": name})
    return name


def queued(commits, works):
    """Do all works while a first one holds the turn, in line in this order; what each gave or raised."""
    held, results = threading.Event(), [None] * len(works)

    def attempt(index, work):
        try:
            results[index] = commits.write(work)
        except Exception as error:
            results[index] = error

    first = threading.Thread(target=commits.write, args=(lambda connection: held.wait(30),))
    first.start()
    while not commits._busy or commits._queue:
        time.sleep(0.0005)
    threads = []
    for index, work in enumerate(works):
        threads.append(threading.Thread(target=attempt, args=(index, work)))
        threads[-1].start()
        while len(commits._queue) <= index:
            time.sleep(0.0005)
    held.set()
    for thread in [first, *threads]:
        thread.join()
    assert not commits._busy and not commits._queue
    return results


def test_writers_come_in_the_order_of_asking_and_share_a_commit(engine):
    commits = []
    event.listen(engine, "commit", lambda connection: commits.append(1))
    works = [lambda connection, n=n: put(connection, n) for n in range(20)]
    assert queued(SharedCommits(engine), works) == list(range(20))
    # The one that held the turn, and one for all the others.
    assert len(commits) == 2
    assert written(engine) == list(range(20))


def test_more_than_go_together_take_further_commits(engine):
    works = [lambda connection, n=n: put(connection, n) for n in range(80)]
    assert queued(SharedCommits(engine), works) == list(range(80))
    assert written(engine) == list(range(80))


def test_one_that_fails_takes_nobody_with_it(engine):
    def half(connection):
        put(connection, 100)
        raise KeyError("mine alone")

    def twice(connection):
        put(connection, 0)

    works = [lambda connection: put(connection, 0), half, twice, lambda connection: put(connection, 1)]
    first, failed, refused, last = queued(SharedCommits(engine), works)
    assert (first, last) == (0, 1)
    assert isinstance(failed, KeyError)
    assert "UNIQUE constraint failed: written.name" in str(refused)
    assert written(engine) == [0, 1]


def test_when_the_commit_fails_nobody_is_told_that_it_is_stored(engine):
    commits = SharedCommits(engine)

    def fail(connection):
        if len(attempts) == 1:
            attempts.append("failed")
            raise OperationalError("COMMIT", {}, Exception("disk I/O error"))
        attempts.append("done")

    attempts = []
    event.listen(engine, "commit", fail)
    results = queued(commits, [lambda connection, n=n: put(connection, n) for n in range(5)])
    assert [str(result.orig) for result in results] == ["disk I/O error"] * 5
    event.remove(engine, "commit", fail)
    assert written(engine) == []
    assert commits.write(lambda connection: put(connection, 7)) == 7


def test_a_transaction_that_is_lost_in_the_middle_is_lost_for_all(engine):
    def lost(connection):
        # As SQLite itself does when the disk is full.
        connection.exec_driver_sql("ROLLBACK")
        raise OperationalError("INSERT", {}, Exception("database or disk is full"))

    works = [lambda connection: put(connection, 0), lost, lambda connection: put(connection, 1)]
    results = queued(SharedCommits(engine), works)
    assert [str(result.orig) for result in results] == ["database or disk is full"] * 3
    assert written(engine) == []


def test_a_thread_that_is_ended_hands_its_turn_on(engine):
    commits = SharedCommits(engine)

    def ended(connection):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commits.write(ended)
    assert commits.write(lambda connection: put(connection, 3)) == 3


def test_it_needs_no_engine_of_ours(tmp_path):
    plain = create_engine(f"sqlite:///{tmp_path}/b.sqlite")
    assert SharedCommits(plain).write(lambda connection: connection.scalar(text("SELECT 41 + 1"))) == 42
    plain.dispose()
