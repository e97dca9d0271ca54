"""`hardlook data spuriousness`, `plant-contexts` and `contexts-from-voc`, as a user types them."""

import json

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

from hardlook.data.concept_context import list_images
from hardlook.metacoco.published import list_rows
from hardlook.world.layouts import write_world


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """The planted world at two settings of its dial."""
    root = tmp_path_factory.mktemp("worlds")
    for name, correlation in (("even", 0.0), ("tied", 0.9)):
        write_world(root / name, "concept-context", count=96, size=(96, 72), correlation=correlation)
    return root


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


def test_labels_alone(hardlook, tmp_path, worlds):
    found = {}
    for name in ("even", "tied"):
        answer = hardlook("data", "spuriousness", "--data", worlds / name, "--out", tmp_path / name)
        assert answer.code == 0 and f"page: {tmp_path / name / 'spuriousness.html'}" in answer.out
        found[name] = json.loads((tmp_path / name / "spuriousness.json").read_text())
        rows = list_images(worlds / name)
        labels = [row.concept for row in rows], [row.context for row in rows]
        scores = found[name]["labels"]
        assert scores["adjusted"]["value"] == pytest.approx(adjusted_mutual_info_score(*labels), abs=1e-9)
        assert scores["normalised"]["value"] == pytest.approx(normalized_mutual_info_score(*labels), abs=1e-9)
        assert found[name]["read_from_features"] == [] and found[name]["image_text"] is None
    assert "That is less than by chance." in found["even"]["in_words"][0]
    assert "Context predicts the concept better than chance" in found["tied"]["in_words"][0]
    assert found["even"]["labels"]["adjusted"]["high"] < found["tied"]["labels"]["adjusted"]["low"]


def test_with_both_encoders(hardlook, tmp_path, worlds):
    words = ("data", "spuriousness", "--data", worlds / "even", "--quiet", "--json", "--encoder", "planted-encoder")
    words += ("--encoder-arg", "context=.5", "--image-text", "planted-image-text-encoder", "--model-arg", "context=.2")
    answer = hardlook(*words, "--out", tmp_path / "a")
    document = json.loads(answer.out)
    assert answer.code == 0 and answer.err == ""
    assert [one["what"] for one in document["read_from_features"]] == [
        "context",
        "concept",
        "concept in unseen contexts",
    ]
    assert all(one["above_chance"] > 0.5 for one in document["read_from_features"])
    text = document["image_text"]
    assert text["M_ce"]["micro"]["value"] > text["M_te"]["micro"]["value"] > 0
    assert len(text["by_concept"]) == 12 and sum(one["images"] for one in text["by_concept"]) == 96
    weighted = np.mean([one["M_ce"] for one in text["by_concept"]])
    assert text["M_ce"]["macro"]["value"] == pytest.approx(weighted)
    page = (tmp_path / "a" / "spuriousness.html").read_text()
    for said in (
        "What frozen features hold",
        "Context against concept",
        *(row["dataset"] for row in list_rows("table-1")),
    ):
        assert said in page
    again = hardlook(*words, "--out", tmp_path / "b")
    assert json.loads(again.out) == document
    for name in ("spuriousness.html", "spuriousness.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_plant_and_measure(hardlook, tmp_path, worlds):
    indices = []
    for dial in ("0", ".5", "1"):
        out = tmp_path / f"planted{dial}"
        words = ("--data", worlds / "even" / "test", "--contexts", "snow,dusk,grey", "--split-by", "image", "--quiet")
        answer = hardlook("data", "plant-contexts", *words, "--correlation", dial, "--out", out)
        assert answer.code == 0 and "48 images in 3 contexts, 48 of them new" in answer.out
        document = json.loads(
            hardlook("data", "spuriousness", "--data", out, "--split", "train", "--out", tmp_path / "s", "--json").out
        )
        indices.append(document["labels"]["adjusted"]["value"])
    assert indices[0] < indices[1] < indices[2] and indices[0] < 0.02 and indices[2] > 0.3
    again = hardlook("data", "plant-contexts", *words, "--correlation", "1", "--out", out, "--json")
    assert json.loads(again.out)["written"] == 0


def test_what_is_left_out_is_said(hardlook, tmp_path, worlds):
    source = tmp_path / "source"
    for name, count in (("cat", 4), ("dog", 2)):
        (source / name).mkdir(parents=True)
        for path in sorted((worlds / "even" / "test" / name).rglob("*.png"))[:count]:
            (source / name / path.name).write_bytes(path.read_bytes())
    words = ("--data", source, "--contexts", "fog", "--fewest", 3, "--quiet")
    answer = hardlook("data", "plant-contexts", *words, "--out", tmp_path / "a")
    assert answer.code == 0 and "left out: 1 concepts with too few images (dog)" in answer.out


def test_contexts_from_voc(hardlook, tmp_path):
    write_world(tmp_path / "voc", "voc", count=12, size=(96, 72))
    out = tmp_path / "contexts"
    answer = hardlook("data", "contexts-from-voc", "--data", tmp_path / "voc", "--out", out, "--quiet", "--json")
    document = json.loads(answer.out)
    rows = list_images(out)
    assert document["images"] == len(rows) == sum(one["images"] for one in document["pairs"])
    again = hardlook("data", "contexts-from-voc", "--data", tmp_path / "voc", "--out", out, "--quiet")
    assert again.code == 0 and "0 new" in again.out and f"folder: {out}" in again.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("spuriousness", "--data", "nowhere"), "no such folder or manifest"),
        (("spuriousness", "--data", "{even}", "--split", "none"), "no image of split 'none'"),
        (("spuriousness", "--data", "{even}", "--encoder", "planted-saliency"), "does not have the role encoder"),
        (
            ("spuriousness", "--data", "{even}", "--image-text", "planted-encoder"),
            "does not have the role image-text-encoder",
        ),
        (
            ("spuriousness", "--data", "{even}", "--image-text", "planted-image-text-encoder", "--concept-prompt", "x"),
            "no place for the label",
        ),
        (("plant-contexts", "--data", "nowhere"), "no such folder"),
        (("plant-contexts", "--data", "{even}", "--contexts", "rain"), "no context 'rain'"),
        (("plant-contexts", "--data", "{even}", "--contexts", "grass"), "needs masks"),
        (("plant-contexts", "--data", "{even}", "--split-by", "luck"), "no way to split"),
        (("contexts-from-voc", "--data", "nowhere"), "no VOC devkit here"),
        (("contexts-from-voc", "--data", "nowhere", "--files", "move"), "copy or link"),
    ],
)
def test_errors_say_what_to_do(hardlook, tmp_path, monkeypatch, worlds, words, said):
    monkeypatch.chdir(tmp_path)
    answer = hardlook("data", *(word.format(even=worlds / "even") for word in words), "--out", tmp_path / "out")
    assert answer.code == 1 and said in answer.err and "Traceback" not in answer.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [(), ("spuriousness",), ("plant-contexts",), ("contexts-from-voc",)])
def test_help_has_an_example(hardlook, words):
    answer = hardlook("data", *words, "--help")
    assert answer.code == 0 and "Example" in answer.out and "hardlook data" in answer.out
