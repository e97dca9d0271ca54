from __future__ import annotations

import importlib.util
import shutil
import threading
import time
from pathlib import Path

import pytest
from explorer_requests import Asking
from hostile_runs import write_hostile_run

from hardlook.harness.runs.launch import launch

SCENES = 14

FAULTS = {"strange": {"stranger": 0.4}, "ragged": {"ragged": 0.8}}


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """Tables go into a folder of the tests' own."""
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("cache")
    patch.setenv("HARDLOOK_CACHE", str(folder))
    yield folder
    patch.undo()


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Path:
    """Two runs of one benchmark and a hostile one; tests that change something copy it."""
    if importlib.util.find_spec("starlette") is None:
        pytest.skip("the extra web is not installed")
    root = tmp_path_factory.mktemp("made") / "runs"
    for name, faults in FAULTS.items():
        given = {"scenes": SCENES, "resamples": 20}
        launch("closed-miou", out=root / "seg" / name, model="planted-segmenter", model_args=faults, given=given)
        gather_parts(root / "seg" / name / "records")
    write_hostile_run(root)
    return root


def gather_parts(folder: Path) -> None:
    """One part, however slowly the run went, so that tests know which it is."""
    import polars as pl

    parts = sorted(folder.glob("*.parquet"))
    frame = pl.concat([pl.read_parquet(part) for part in parts])
    for part in parts:
        part.unlink()
    frame.write_parquet(folder / "part-5.parquet")


@pytest.fixture
def copied(made, tmp_path) -> Path:
    """A copy of the runs that a test may change."""
    return Path(shutil.copytree(made, tmp_path / "runs"))


@pytest.fixture(scope="session")
def ask(made) -> Asking:
    from hardlook.report.explorer.app import make_app

    return Asking(make_app(made))


@pytest.fixture(scope="session")
def keys(made) -> dict[str, str]:
    """Keys of the runs by the last part of their name."""
    from hardlook.report.explorer.run_index import RunIndex

    return {run.folder.path.name if run.name.startswith("seg") else "hostile": run.key for run in RunIndex(made).runs()}


@pytest.fixture(scope="session")
def address(made):
    """A server on a free port, in a thread."""
    import socket

    import uvicorn

    from hardlook.report.explorer.app import make_app

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(make_app(made), log_level="warning", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
    listening.close()
