"""`hl.run(..., unit=ID)`: what `hardlook run --unit ID` evaluates, as Python values."""

import json

import numpy as np
import pytest

import hardlook as hl
from hardlook.errors import OptionError

SETTINGS = {"scenes": 6, "progress": False}


class Nothing:
    """A segmenter that calls every pixel the first label, and fails on request."""

    labels = ("cat", "dog")

    def __init__(self, *, broken=False):
        self.broken = broken

    def segment(self, images):
        if self.broken:
            raise ValueError("too much for me")
        return [np.zeros(image.shape[:2], np.int32) for image in images]


def test_the_results_are_those_of_the_command(hardlook):
    words = (
        "run",
        "closed-miou",
        "--scenes",
        6,
        "--quiet",
        "--model",
        "planted-segmenter",
        "--model-arg",
        "stranger=.5",
    )
    (said,) = json.loads(hardlook(*words, "--unit", "scene-0003", "--json").out)["answers"]
    results = hl.run(
        "closed-miou", model="planted-segmenter", model_args={"stranger": 0.5}, unit="scene-0003", **SETTINGS
    )
    (one,) = results
    assert (one.unit.id, one.model, one.caption) == (said["unit"], said["model"], said["caption"])
    assert dict(one.qualities) == said["qualities"]
    assert {name: one.record[name] for name in said["record"]} == said["record"]
    assert repr(results).startswith("scene-0003 by planted-segmenter: ")


def test_objects_and_several_models_on_several_units(tmp_path):
    ids = ["scene-0001", "scene-0004"]
    results = hl.run("closed-miou", model=["planted-segmenter", Nothing()], unit=ids, **SETTINGS)
    assert [one.unit.id for one in results] == ids * 2
    assert results[0].qualities["image-miou"] == 1.0 > results[2].qualities["image-miou"]
    page = results.page(tmp_path / "mine.html")
    assert page.path == tmp_path / "mine.html" and page.path.read_text().count("data:image/jpeg") == 10
    assert "<iframe" in results._repr_html_() and len(results[:2]) == 2


def test_an_error_of_a_unit_is_in_its_result():
    results = hl.run("closed-miou", model=Nothing(broken=True), unit=["scene-0001"], **SETTINGS)
    assert len(results.failed) == 1 and "too much for me" in repr(results)
    assert "too much for me" in results._repr_html_()


def test_nothing_is_written_and_what_cannot_be_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hl.run("closed-miou", model="planted-segmenter", unit="scene-0000", **SETTINGS)
    for wrong, said in (
        ({"unit": "scene-0000", "out": "run"}, "makes no run"),
        ({"unit": "scene-9"}, "the nearest are"),
        ({"unit": "scene-0000", "model": []}, "names no model"),
    ):
        with pytest.raises(OptionError, match=said):
            hl.run("closed-miou", **{"model": "planted-segmenter", **SETTINGS, **wrong})
    assert list(tmp_path.iterdir()) == []


def test_a_benchmark_of_a_notebook_has_units_too():
    @hl.benchmark("halves", role="saliency", units=[np.zeros((2, 2, 3), np.uint8)] * 3, scores={"error": "lower"})
    def evaluate(image, model):
        return {"error": float(model.saliency([image])[0].mean())}

    class Half:
        def saliency(self, images):
            return [np.full(image.shape[:2], 0.5, np.float32) for image in images]

    known = hl.run(evaluate, model=Half(), progress=False)
    name = known.records["unit"][1]
    (one,) = hl.run(evaluate, model=Half(), unit=name, progress=False)
    assert one.record["error"] == 0.5
