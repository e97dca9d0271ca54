"""`--device` of a run of MetaCoCo, and features that one command encodes for all."""

import pytest

from hardlook.models.planted import encoders as planted
from hardlook.world.layouts import write_world

TASKS = (
    "--modes", "blind", "--shots", 1, "--queries", 1, "--ways", 2, "--tasks", 4, "--repeats", 1, "--resamples", 20,
)  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world") / "w", "concept-context", count=96)


def test_a_gpu_is_for_encoder_and_learner_and_its_absence_is_a_sentence(hardlook, world, tmp_path):
    torch = pytest.importorskip("torch", reason="the extra torch is not installed")
    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    words = ("run", "metacoco", "--data", world, *TASKS, "--quiet", "--encoder", "efficientnet-lite0")
    for learner, named in (("k-nn", "efficientnet-lite0"), ("nearest-centroid", "nearest-centroid")):
        answer = hardlook(*words, "--out", tmp_path / learner, "--device", "cuda", "--model", learner)
        assert answer.code == 1
        assert f"the model '{named}' cannot run on cuda: torch finds 0 GPUs" in answer.err
        assert "AssertionError" not in answer.err


def test_an_encoder_without_a_device_leaves_it_to_the_learner(hardlook, world, tmp_path):
    words = ("run", "metacoco", "--data", world, *TASKS, "--quiet", "--encoder", "planted-encoder", "--device", "cpu")
    answer = hardlook(*words, "--model", "k-nn", "--out", tmp_path / "none")
    assert answer.code == 1 and "'k-nn' has no argument 'device'" in answer.err
    answer = hardlook(*words, "--model", "nearest-centroid", "--out", tmp_path / "run")
    assert answer.code == 0, answer.err


def test_what_a_run_has_encoded_no_other_command_encodes_again(hardlook, world, tmp_path, monkeypatch):
    asked = []
    plain = planted.PlantedEncoder.encode

    def count(self, images):
        asked.append(len(images))
        return plain(self, images)

    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(planted.PlantedEncoder, "encode", count)
    words = ("--data", world, "--encoder", "planted-encoder")
    run = hardlook("run", "metacoco", *words, *TASKS, "--model", "nearest-centroid", "--out", tmp_path / "run")
    assert run.code == 0, run.err
    encoded = len(asked)
    assert encoded > 0
    study = hardlook("data", "spuriousness", *words, "--split", "test", "--out", tmp_path / "study", "--quiet")
    assert study.code == 0, study.err
    assert len(asked) == encoded
    assert not list((tmp_path / "cache").rglob("maps.npy"))
