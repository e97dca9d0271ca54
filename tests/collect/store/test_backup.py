"""Backups: one consistent moment of a database in use, as one sound file."""

import shutil
import sqlite3
import subprocess
import threading

import pytest
from collect_people import arrive, assert_counts_are_true, click, do_batch, rows, some_items

from hardlook.collect.store import backup
from hardlook.collect.store.backup import copy_database
from hardlook.collect.store.database import Database, parse_address
from hardlook.collect.store.records import BatchRules
from hardlook.collect.store.store import Store
from hardlook.errors import DataError

RULES = BatchRules(size=10, target=1000, most_batches=1000, return_after=1800.0)
TABLES = ("facts", "items", "progress", "participants", "batches", "assignments", "answers", "practice", "platform_ids")


@pytest.fixture
def store(database_url):
    with Store.open(database_url) as store:
        store.prepare(some_items(40), ("pc", "mobile"), "f")
        yield store


def by_text(tables):
    return [sorted(map(repr, table)) for table in tables]


def test_a_copy_holds_every_row(store, database_url, tmp_path):
    who = store.join("invited", "en", 0.5, {"PROLIFIC_PID": "5f1a", "STUDY_ID": "é 'quoted' \n"}).id
    store.set_device(who, "pc", 1.0)
    store.show_practice(who, "training-0", 2.0)
    store.set_rules({"least_inside": 0.5})
    do_batch(store, who, RULES, 3.25)
    do_batch(store, arrive(store, "mobile", 1 / 3), RULES, 4.0)
    store.delete_participant(arrive(store))
    store.copy(tmp_path / "copies" / "copy.sqlite")
    assert [path.name for path in (tmp_path / "copies").iterdir()] == ["copy.sqlite"]
    url = f"sqlite:///{tmp_path / 'copies' / 'copy.sqlite'}"
    assert by_text(rows(url, *TABLES)) == by_text(rows(database_url, *TABLES))
    # It is a study's database like any other: people go on there.
    with Store.open(url) as copied:
        copied.prepare(some_items(40), ("pc", "mobile"), "f")
        assert copied.participants()["number"].to_list() == store.participants()["number"].to_list()
        assert do_batch(copied, who, RULES, 5.0).batch_valid
    assert_counts_are_true(url)


def test_while_people_answer(store, database_url, tmp_path):
    """Every copy has what was acknowledged before it began, and nothing that is half done."""
    acknowledged, some, over = [], threading.Event(), threading.Event()

    def work(device):
        person = arrive(store, device)
        while not over.is_set() and (batch := store.next_batch(person, RULES, 0.0)):
            for trial in batch.trials:
                key = f"key-{trial.id}"
                store.answer(person, click(key, trial), RULES.needed, 0.0)
                acknowledged.append(key)
            some.set()
            if store.tally(person).answered == 40:
                person = arrive(store, device)

    threads = [threading.Thread(target=work, args=(device,)) for device in ("pc", "mobile", "pc")]
    for thread in threads:
        thread.start()
    try:
        assert some.wait(60)
        for number in range(3):
            before = list(acknowledged)
            copy = tmp_path / f"copy-{number}.sqlite"
            store.copy(copy)
            assert_counts_are_true(f"sqlite:///{copy}")
            keys = {row["key"] for row in rows(f"sqlite:///{copy}", "answers")[0]}
            assert set(before) <= keys
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert len(acknowledged) > len(before)
    assert_counts_are_true(database_url)


def test_the_copy_is_one_file_that_another_program_reads(store, tmp_path):
    do_batch(store, arrive(store), RULES)
    store.copy(tmp_path / "copy.sqlite")
    if shutil.which("sqlite3") is None:
        pytest.skip("the program sqlite3 is not installed")
    question = "PRAGMA integrity_check; PRAGMA journal_mode; SELECT count(*) FROM answers;"
    found = subprocess.run(["sqlite3", tmp_path / "copy.sqlite", question], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["ok", "delete", "10"]


def test_a_file_that_is_there_is_kept(store, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="there is a file already"):
        store.copy(tmp_path / "mine.txt")
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_copy_that_fails_leaves_nothing(store, tmp_path, monkeypatch):
    monkeypatch.setattr(backup, "_check_copy", lambda path: (_ for _ in ()).throw(sqlite3.OperationalError("full")))
    with pytest.raises(DataError, match="the backup failed: full"):
        store.copy(tmp_path / "copies" / "copy.sqlite")
    assert not any((tmp_path / "copies").iterdir())


def test_a_damaged_database_is_not_copied_in_silence(tmp_path):
    file = tmp_path / "answers.sqlite"
    with Store.open(f"sqlite:///{file}") as store:
        store.prepare(some_items(40), ("pc",), "f")
        for _ in range(8):
            do_batch(store, arrive(store), RULES)
    content = bytearray(file.read_bytes())
    content[8192 : len(content) - 4096] = bytes(len(content) - 12288)
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"backup failed|not sound"):
        copy_database(Database(parse_address(f"sqlite:///{file}")), tmp_path / "copy.sqlite")
    assert not (tmp_path / "copy.sqlite").exists()


def test_a_server_without_a_study_is_named(database_url, tmp_path):
    if database_url.startswith("sqlite"):
        pytest.skip("an empty file has no study either, and is copied as it is")
    with Store.open(database_url) as empty, pytest.raises(DataError, match="no study was ever served"):
        empty.copy(tmp_path / "copy.sqlite")
