"""Addresses of databases: what is taken, and errors that never show a password."""

import sys

import pytest

from hardlook.collect.store.addresses import address_of, shown
from hardlook.collect.store.store import Store
from hardlook.errors import DataError, MissingExtra

SECRET = "s3cr:t/@ü"
QUOTED = "s3cr%3At%2F%40%C3%BC"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_all_spellings_of_postgresql_mean_psycopg(scheme):
    address = address_of(f"{scheme}://ann:{QUOTED}@db:5433/study")
    assert (address.drivername, address.host, address.port, address.password) == (
        "postgresql+psycopg",
        "db",
        5433,
        SECRET,
    )
    assert shown(address) == "postgresql+psycopg://ann:***@db:5433/study"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "cannot be read"),
        ("nonsense", "cannot be read"),
        (f"postgresql://ann:{QUOTED}@db:port/study", "cannot be read"),
        (f"mysql://ann:{QUOTED}@db/study", "'mysql' is not supported"),
        (f"postgresql+asyncpg://ann:{QUOTED}@db/study", "is not supported"),
        ("sqlite://", "would forget"),
        ("sqlite:///:memory:", "would forget"),
    ],
)
def test_other_addresses_are_refused_without_showing_them(url, words):
    with pytest.raises(DataError, match=words) as refused:
        address_of(url)
    assert "s3cr" not in str(refused.value) and "sqlite:///PATH" in refused.value.remedy
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{QUOTED}@127.0.0.1:1/study",
        f"postgresql://ann@127.0.0.1:1/study?password={QUOTED}",
        # What is no integer is quoted by the driver, so a password in the wrong place would be told.
        f"postgresql://ann:{QUOTED}@127.0.0.1:1/study?connect_timeout={QUOTED}",
    ],
)
def test_a_server_that_cannot_be_reached_is_named_and_the_password_is_not(url):
    pytest.importorskip("psycopg")
    with pytest.raises(DataError, match="cannot be used") as refused:
        Store.open(url)
    error = refused.value
    assert "127.0.0.1:1/study" in error.file and "PostgreSQL runs" in error.remedy
    assert "s3cr" not in str(error)
    assert error.__suppress_context__


def test_without_psycopg_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"hardlook\[postgres\]"):
        Store.open("postgresql://ann@db/study")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="unable to open") as refused:
        Store.open(f"sqlite:///{tmp_path}/nowhere/answers.sqlite")
    assert "nowhere" in refused.value.remedy and "writable" in refused.value.remedy


def test_a_file_that_cannot_be_written_is_told_in_words(tmp_path):
    path = tmp_path / "answers.sqlite"
    with Store.open(f"sqlite:///{path}") as store:
        store.prepare([], (), "f")
    # As on a read-only disk, which a test run as root cannot make of a folder.
    with (
        Store.open(f"sqlite:///file:{path}?mode=ro&uri=true") as store,
        pytest.raises(DataError, match="readonly") as no,
    ):
        store.join(None, "en", 0.0)
    assert "writable" in no.value.remedy


def test_a_file_that_is_no_database_is_told_in_words(tmp_path):
    path = tmp_path / "answers.sqlite"
    path.write_bytes(b"clicks\n" * 1000)
    with pytest.raises(DataError, match="not a database") as refused:
        Store.open(f"sqlite:///{path}")
    assert "restore it" in refused.value.remedy
