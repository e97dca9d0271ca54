"""A PostgreSQL of the tests' own: started once, a fresh database for each test, gone at the end."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest


def binary(name):
    """A program of PostgreSQL, from the newest installation or from PATH; None where there is none."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    found = str(installed[-1]) if installed else shutil.which(name)
    return found


def missing():
    """Why no PostgreSQL can be started here, or nothing."""
    if importlib.util.find_spec("psycopg") is None:
        return "the extra postgres is not installed"
    if not (binary("initdb") and binary("postgres")):
        return "PostgreSQL is not installed: no initdb and postgres on PATH or in /usr/lib/postgresql"
    if os.geteuid() == 0 and owner() is None:
        return "PostgreSQL does not run as root, and there is no user postgres"
    return ""


def owner():
    """The user to run as when we are root, which PostgreSQL refuses to be."""
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return None


@pytest.fixture(scope="session")
def postgres_url():
    """The address of a running server's first database, by a socket in a folder of its own."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    # Not pytest's folder: only its owner may enter that.
    folder = Path(tempfile.mkdtemp(prefix="hardlook-pg-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    run = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "cwd": folder}
    if os.geteuid() == 0:
        user = owner()
        os.chown(folder, user.pw_uid, user.pw_gid)
        run |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    data = folder / "data"
    made = subprocess.run(
        [binary("initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"], **run
    )
    assert made.returncode == 0, made.stderr.decode()
    log = (folder / "log").open("wb")
    options = ["-c", "listen_addresses=", "-c", "max_connections=400", "-c", "fsync=on"]
    server = subprocess.Popen(
        [binary("postgres"), "-D", data, "-k", folder, *options], **{**run, "stdout": log, "stderr": log}
    )
    try:
        url = f"postgresql://postgres@/postgres?host={folder}"
        wait_for(url, server, folder / "log")
        yield url
    finally:
        # Fast shutdown: open connections are cut.
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(url, server, log):
    """Until the server answers; its log when it does not."""
    import psycopg

    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            assert server.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """The address of an empty database, once in a file and once on a server."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'answers.sqlite'}"
        return
    url = request.getfixturevalue("postgres_url")
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield url.replace("/postgres?", f"/{name}?")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
