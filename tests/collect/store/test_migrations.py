"""A database of hardlook 0.1.0 is migrated: nothing is lost, and it has the layout of a new one."""

import re
import sqlite3
from dataclasses import replace

import pytest
import sqlalchemy as sa
from collect_people import RULES, arrive, assert_counts_are_true, at_once, do_batch, rows, some_items

from hardlook.collect.store import migrations
from hardlook.collect.store.database import parse_address
from hardlook.collect.store.store import Store
from hardlook.collect.store.tables import LAYOUT_VERSION
from hardlook.errors import DataError

# What 0.1.0 sent to both kinds of database.
LAYOUT_1 = """
CREATE TABLE facts (name VARCHAR(64) NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name));
CREATE TABLE items (id VARCHAR(64) NOT NULL, task VARCHAR(64) NOT NULL, mode VARCHAR(16) NOT NULL,
    subject TEXT NOT NULL, PRIMARY KEY (id));
CREATE TABLE participants (id VARCHAR(32) NOT NULL, invitation VARCHAR(64), language VARCHAR(16) NOT NULL,
    device VARCHAR(8), joined FLOAT NOT NULL, trained FLOAT, seen FLOAT NOT NULL, finished FLOAT,
    PRIMARY KEY (id), UNIQUE (invitation));
CREATE TABLE progress (item VARCHAR(64) NOT NULL, device VARCHAR(8) NOT NULL, pending INTEGER NOT NULL,
    valid INTEGER NOT NULL, PRIMARY KEY (item, device), FOREIGN KEY(item) REFERENCES items (id));
CREATE TABLE batches (id VARCHAR(32) NOT NULL, participant VARCHAR(32) NOT NULL, number INTEGER NOT NULL,
    device VARCHAR(8) NOT NULL, state VARCHAR(8) NOT NULL, valid INTEGER, opened FLOAT NOT NULL, touched FLOAT NOT NULL,
    closed FLOAT, PRIMARY KEY (id), UNIQUE (participant, number),
    FOREIGN KEY(participant) REFERENCES participants (id));
CREATE INDEX batches_by_state ON batches (state, touched);
CREATE UNIQUE INDEX one_open_batch ON batches (participant) WHERE state = 'open';
CREATE TABLE assignments (id VARCHAR(32) NOT NULL, batch VARCHAR(32) NOT NULL, participant VARCHAR(32) NOT NULL,
    item VARCHAR(64) NOT NULL, subject TEXT NOT NULL, position INTEGER NOT NULL, state VARCHAR(8) NOT NULL,
    shows INTEGER NOT NULL, shown FLOAT, PRIMARY KEY (id), UNIQUE (participant, subject), UNIQUE (batch, position),
    FOREIGN KEY(batch) REFERENCES batches (id), FOREIGN KEY(participant) REFERENCES participants (id),
    FOREIGN KEY(item) REFERENCES items (id));
CREATE TABLE answers (key VARCHAR(64) NOT NULL, assignment VARCHAR(32) NOT NULL, participant VARCHAR(32) NOT NULL,
    item VARCHAR(64) NOT NULL, device VARCHAR(8) NOT NULL, x FLOAT, y FLOAT, inside INTEGER, near INTEGER,
    value INTEGER, early INTEGER NOT NULL, reaction_ms FLOAT, durations TEXT NOT NULL, circumstances TEXT NOT NULL,
    received FLOAT NOT NULL, PRIMARY KEY (key), UNIQUE (assignment),
    FOREIGN KEY(assignment) REFERENCES assignments (id), FOREIGN KEY(participant) REFERENCES participants (id),
    FOREIGN KEY(item) REFERENCES items (id));
CREATE INDEX ix_answers_participant ON answers (participant);
CREATE INDEX ix_answers_item ON answers (item);
INSERT INTO facts VALUES ('layout', '1'), ('fingerprint', 'f'), ('rules', '{"least_inside": 0.5}');
INSERT INTO items VALUES ('t0.', 't0', '', 'image-0'), ('t1.', 't1', '', 'image-1'), ('t2.', 't2', '', 'image-2');
INSERT INTO participants VALUES ('p1', 'invited', 'en', 'pc', 10.5, 11.0, 30.0, NULL),
    ('p2', NULL, 'de', 'pc', 20.25, NULL, 20.25, NULL);
INSERT INTO progress VALUES ('t0.', 'pc', 1, 0), ('t1.', 'pc', 1, 0), ('t2.', 'pc', 0, 0);
INSERT INTO batches VALUES ('b1', 'p1', 1, 'pc', 'open', NULL, 12.0, 13.0, NULL);
INSERT INTO assignments VALUES ('a0', 'b1', 'p1', 't0.', 'image-0', 0, 'answered', 1, 12.5),
    ('a1', 'b1', 'p1', 't1.', 'image-1', 1, 'assigned', 0, NULL);
INSERT INTO answers VALUES ('key-0', 'a0', 'p1', 't0.', 'pc', 1.5, 2.5, 1, 1, NULL, 0, 812.5, '{"image": 1500.5}', '{}',
    13.0);
"""
OLD_TABLES = re.findall(r"CREATE TABLE (\w+)", LAYOUT_1)


@pytest.fixture
def old_url(database_url):
    """The address of a database in which two people took part under 0.1.0."""
    engine = sa.create_engine(parse_address(database_url))
    with engine.begin() as connection:
        for statement in LAYOUT_1.split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)
    engine.dispose()
    return database_url


def open_old(url):
    store = Store.open(url)
    store.prepare(some_items(3), ("pc",), "f")
    return store


def test_nothing_is_lost_and_people_go_on(old_url, caplog):
    before = rows(old_url, *OLD_TABLES)
    with open_old(old_url) as store:
        after = dict(zip(OLD_TABLES, rows(old_url, *OLD_TABLES), strict=True))
        facts = {row["name"]: row["value"] for row in after.pop("facts")}
        assert facts == {"layout": str(LAYOUT_VERSION), "fingerprint": "f", "rules": '{"least_inside": 0.5}'}
        assert list(after.values()) == before[1:]
        assert store.rules() == {"least_inside": 0.5} and store.participants()["number"].to_list() == [1, 2]
        # Each goes on where they were; what came with the new layout works for them too.
        assert [trial.state for trial in store.next_batch("p1", RULES, 40.0).trials] == ["answered", "assigned"]
        store.show_practice("p2", "training-0", 41.0)
        store.answer_practice("p2", "training-0", True, 42.0)
        assert store.practice("p2")["training-0"].passed
        assert store.join(None, "en", 43.0, {"PROLIFIC_PID": "5f1a"}).id == store.person("5f1a").id
        assert do_batch(store, "p1", now=44.0).batch_valid and do_batch(store, arrive(store, now=45.0), now=45.0)
        one_each = replace(RULES, most_per_address=1)
        assert store.next_batch(arrive(store, now=46.0), one_each, 46.0, "a1b2") is not None
        assert store.delete_participant("p1") == 1
    assert_counts_are_true(old_url)
    assert old_url.startswith("postgresql") or f"migrating from layout 1 to {LAYOUT_VERSION}" in caplog.text


def describe(url):
    """Columns, keys and indexes of all tables, as the database itself tells."""
    engine = sa.create_engine(parse_address(url))
    inspector = sa.inspect(engine)
    found = {}
    for table in inspector.get_table_names():
        columns = [
            (column["name"], str(column["type"]), column["nullable"], column["default"])
            for column in inspector.get_columns(table)
        ]
        keys = [(key["constrained_columns"], key["referred_table"]) for key in inspector.get_foreign_keys(table)]
        unique = [key["column_names"] for key in inspector.get_unique_constraints(table)]
        indexes = [
            (index["name"], index["column_names"], bool(index["unique"])) for index in inspector.get_indexes(table)
        ]
        primary = inspector.get_pk_constraint(table)["constrained_columns"]
        found[table] = (columns, primary, sorted(keys), sorted(unique), sorted(indexes, key=str))
    engine.dispose()
    return found


def test_a_migrated_database_has_the_layout_of_a_new_one(old_url):
    open_old(old_url).close()
    migrated = describe(old_url)
    engine = sa.create_engine(parse_address(old_url))
    with engine.begin() as connection:
        for table in (*reversed(OLD_TABLES), *(set(migrated) - set(OLD_TABLES))):
            cascade = "" if old_url.startswith("sqlite") else " CASCADE"
            connection.exec_driver_sql(f"DROP TABLE {table}{cascade}")
    engine.dispose()
    open_old(old_url).close()
    assert describe(old_url) == migrated


def test_a_database_of_layout_2_gets_the_table_of_addresses(old_url):
    engine = sa.create_engine(parse_address(old_url))
    with engine.begin() as connection:
        for statement in (*migrations.MIGRATIONS[1], "UPDATE facts SET value = '2' WHERE name = 'layout'"):
            connection.exec_driver_sql(statement)
    assert "batch_addresses" not in sa.inspect(engine).get_table_names()
    engine.dispose()
    with open_old(old_url) as store:
        assert store.participants().height == 2 and rows(old_url, "batch_addresses") == [[]]


def test_a_database_of_layout_3_keeps_the_numbers_that_people_had(old_url):
    """Numbers were those from 1 in the order of joining, without those of deleted people."""
    engine = sa.create_engine(parse_address(old_url))
    with engine.begin() as connection:
        for statement in (
            *migrations.MIGRATIONS[1],
            *migrations.MIGRATIONS[2],
            "UPDATE facts SET value = '3' WHERE name = 'layout'",
            "INSERT INTO participants VALUES ('p0', NULL, 'en', 'pc', 25.0, NULL, 25.0, NULL)",
            "INSERT INTO deleted_participants VALUES (2), (5)",
        ):
            connection.exec_driver_sql(statement)
    engine.dispose()
    with open_old(old_url) as store:
        assert store.participants().select("id", "number").rows() == [("p1", 1), ("p2", 3), ("p0", 4)]
        assert store.delete_participant("p2") == 3
        newest = store.join(None, "en", 1.0).id
        assert store.participants().select("id", "number").rows() == [("p1", 1), ("p0", 4), (newest, 6)]


def test_servers_that_start_at_once_migrate_once(old_url):
    def serve():
        with open_old(old_url) as store:
            return store.participants().height

    assert at_once([serve] * 4) == [2] * 4


def test_a_copy_of_a_file_is_kept(tmp_path):
    file = tmp_path / "answers.sqlite"
    with sqlite3.connect(file) as connection:
        connection.executescript(LAYOUT_1)
    connection.close()
    open_old(f"sqlite:///{file}").close()
    copy = tmp_path / "answers.layout-1.sqlite"
    connection = sqlite3.connect(copy)
    assert connection.execute("SELECT value FROM facts WHERE name = 'layout'").fetchone() == ("1",)
    assert connection.execute("SELECT key FROM answers").fetchall() == [("key-0",)]
    connection.close()
    changed = copy.stat().st_mtime_ns
    open_old(f"sqlite:///{file}").close()
    assert copy.stat().st_mtime_ns == changed


def test_a_step_that_fails_leaves_the_database_as_it_was(old_url, monkeypatch):
    monkeypatch.setattr(migrations, "MIGRATIONS", {1: (*migrations.MIGRATIONS[1], "CREATE TABLE facts (a INTEGER)")})
    with pytest.raises(DataError, match="exists"):
        open_old(old_url)
    assert set(describe(old_url)) == set(OLD_TABLES)
    assert {"name": "layout", "value": "1"} in rows(old_url, "facts")[0]


@pytest.mark.parametrize(("layout", "message"), [("5", "newer version"), ("0", "not known"), ("x", "not known")])
def test_other_layouts_are_refused(old_url, layout, message):
    engine = sa.create_engine(parse_address(old_url))
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE facts SET value = :layout WHERE name = 'layout'"), {"layout": layout})
    engine.dispose()
    with pytest.raises(DataError, match=message) as refused:
        open_old(old_url)
    assert refused.value.remedy and refused.value.file
    assert set(describe(old_url)) == set(OLD_TABLES)
