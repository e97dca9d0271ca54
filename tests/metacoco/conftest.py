"""A planted world on disk, and a cache that goes away with the tests; tests of real images keep the user's."""

import shutil

import pytest

from hardlook.world.layouts import write_world


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARDLOOK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A world that no test changes: two scenes of each concept in each context."""
    folder = tmp_path_factory.mktemp("world") / "world"
    return write_world(folder, "concept-context", count=192, size=(64, 64), distractors=0)


@pytest.fixture
def world(written, tmp_path):
    return shutil.copytree(written, tmp_path / "world")
