"""Fixtures that several parts of the tests share."""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
import shutil
import sys
from multiprocessing import resource_tracker, spawn
from pathlib import Path

import pytest
import torchvision_operators
from command_server import python_command, start_for_children
from hypothesis import settings

# Three processes run tests on two cores: threads of libraries would wait for each other more than they work. This has
# to be said before numpy, torch and polars are imported, which no import above does.
SINGLE_THREADED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENCV_FOR_THREADS_NUM", "POLARS_MAX_THREADS")

for variable in SINGLE_THREADED:
    os.environ.setdefault(variable, "1")

# Kernels for GPUs are run by Triton's interpreter where there is none. Triton reads this when something imports it.
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# Runs and studies wait for the disc after every file, many thousand times in all: not in memory, where there is plenty
# of it. Folders of tests that pass are removed at once (pyproject.toml), so few are there at a time.
MEMORY, NEEDED_BYTES = Path("/dev/shm"), 6 << 30

if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > NEEDED_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# New objects before the garbage collector looks at them, and how often it looks at older ones too: with Python's own
# numbers it takes a twentieth of the time of all tests.
COLLECT_AFTER = (20_000, 10, 20)

# Collecting imports all modules: little of what that makes is garbage, and looking for it takes a tenth of the time.
gc.disable()

# Only the environment of the families of models has it, perhaps beside a torch of another build.
if importlib.util.find_spec("torchvision") is not None:
    torchvision_operators.install()
    torchvision_operators.install_in_children()

# First calls compile kernels, so no deadline; in CI the same examples every time and half as many, elsewhere new ones.
CI = bool(os.environ.get("CI"))

settings.register_profile("hardlook", deadline=None, derandomize=CI, max_examples=50 if CI else 100)

settings.load_profile("hardlook")

# What takes longest, a file or a folder. It starts first, so that no process is left alone with it at the end.
LONGEST = (
    "docs", "harness/runs/test_lost_work.py", "training/test_methods_learn.py", "harness/runs/test_ray_nodes.py",
    "fuzz", "collect/test_circle.py", "cli/test_demo.py", "models/open_vocabulary/test_clip_segmenter.py",
    "collect/test_kills.py", "harness/runs/test_kill.py", "harness/runs/test_kill_campaign.py",
    "training/test_loop.py", "collect/browser", "collect/research/test_browser.py", "harness/runs/test_engines.py",
    "metacoco/test_real.py",
    "rclicks/test_resuming.py", "rclicks/test_real.py", "report/explorer/test_browser.py", "report/test_browser.py",
    "collect/store/test_processes.py", "toss/commands", "models", "metacoco", "report", "cli", "open_vocabulary",
)  # fmt: skip


# Files whose tests use `ray_cluster`: one process runs them, as the start of a cluster takes as long as twenty tests.
WITH_RAY = (
    "tests/api/test_running.py", "tests/harness/runs/test_engines.py", "tests/harness/runs/test_lost_work.py",
    "tests/harness/runs/test_ray_cluster.py", "tests/rclicks/test_resuming.py",
)  # fmt: skip


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files are run whole, as with `--dist loadfile`, and those that use a Ray cluster by the same process."""
    from xdist.scheduler import LoadFileScheduling

    if config.getvalue("dist") != "loadfile":
        return None

    class WithOneCluster(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "ray" if file in WITH_RAY else file

    return WithOneCluster(config, log)


def pytest_configure(config):
    """One command server for all processes that run tests; it gets ready while they collect these."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        start_for_children()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Sort by file, not by test: tests of one file share fixtures."""
    folder = Path(__file__).parent
    places = [folder / one for one in LONGEST]

    def rank(item):
        among = {item.path, *item.path.parents}
        return next((number for number, place in enumerate(places) if place in among), len(places))

    ranks = {path: rank(item) for path, item in {item.path: item for item in items}.items()}
    items.sort(key=lambda item: ranks[item.path])


def pytest_collection_finish():
    """What was imported stays until the end: the garbage collector need not look at it after each test."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()


REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder that holds `data/` and `reference/`; tests that need it skip with the reason when it is absent."""
    folder = Path(os.environ.get("HARDLOOK_TEST_DATA", REPOSITORY.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder}; set HARDLOOK_TEST_DATA to the folder that holds data/")
    return folder


@pytest.fixture(scope="session", autouse=True)
def many_cached_scenes():
    """Tests share the scenes of a few planted worlds: keep more of them than a run needs, 120 MB at most."""
    from hardlook.world import planted

    with pytest.MonkeyPatch.context() as patch:
        rendered = functools.lru_cache(maxsize=1024)(planted._render_cached.__wrapped__)
        patch.setattr(planted, "_render_cached", rendered)
        yield


@pytest.fixture(scope="session")
def ray_cluster():
    """Connect to a cluster of two workers, started once since that takes seconds; the engine uses what it finds."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("the extra ray is not installed")
    import ray

    support = str(Path(__file__).parent / "support")
    environment = {"PYTHONPATH": ":".join([support, *filter(None, sys.path)]), "OMP_NUM_THREADS": "1"}
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"env_vars": environment},
    )
    yield
    ray.shutdown()


@pytest.fixture
def forked_workers():
    """Worker processes come from the command server, which has imported what they need; else each imports it anew."""
    resource_tracker.ensure_running()
    before = spawn.get_executable()
    spawn.set_executable(python_command()[0])
    yield
    spawn.set_executable(before)


@pytest.fixture
def one_thread():
    """Torch on one thread: sums then come out alike on every machine, and two tests at once do not crowd each other."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def hardlook(capsys, monkeypatch):
    """The command line as a function of words."""
    from command_line import CommandLine

    return CommandLine(capsys, monkeypatch)
