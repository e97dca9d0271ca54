"""Tiny images, and one training on them that the tests of this folder look at."""

import pytest
from tiny_images import write_images

TINY = {
    "image_size": 16,
    "budget": "200images",
    "validations": 2,
    "validation_tasks": 3,
    "progress": False,
    "recipe": {"ways": 2, "shots": 1, "queries": 2, "backbone.channels": 8},
}


@pytest.fixture(autouse=True)
def always_on_one_thread(one_thread, tmp_path, monkeypatch):
    """Every test of this folder, with a cache of its own."""
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    return write_images(tmp_path_factory.mktemp("tiny") / "images", {"train": 5, "val": 3, "test": 3})


@pytest.fixture(scope="session")
def tiny():
    return dict(TINY)


@pytest.fixture(scope="session")
def protonet(images, tmp_path_factory):
    """ProtoNet trained for some steps."""
    pytest.importorskip("torch")
    from hardlook.metacoco.training.run import train

    return train("protonet", data=images, out=tmp_path_factory.mktemp("weights") / "protonet", **TINY)
