"""`hl.run(model=[...])`: a run of each model and their comparison, as `hardlook run --model one,two` makes them."""

import json

import numpy as np
import pytest

import hardlook as hl
from hardlook.errors import ModelError, OptionError

FEW = {"scenes": 480, "tasks": 2, "repeats": 1, "queries": 2, "modes": "iid", "ways": "3", "shots": "1"}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


def test_the_function_and_the_command_make_the_same_runs_and_the_same_page(hardlook, tmp_path):
    runs = hl.run(
        "metacoco", model=["nearest-centroid", "soft-k-means"], model_args={"soft-k-means.steps": 0},
        out=tmp_path / "function", progress=False, **FEW,
    )  # fmt: skip
    flags = [word for name, value in FEW.items() for word in (f"--{name}", value)]
    answer = hardlook(
        "run", "metacoco", "--model", "nearest-centroid,soft-k-means", "--model-arg", "soft-k-means.steps=0",
        "--out", tmp_path / "command", "--quiet", "--json", *flags,
    )  # fmt: skip
    assert answer.code == 0, answer.err
    cards = json.loads(answer.out)
    assert runs.names == tuple(cards) == ("nearest-centroid", "soft-k-means")
    for name in runs.names:
        assert json.loads(runs[name].scorecard.to_json()) == cards[name]
    assert runs["soft-k-means"].manifest["model"]["args"]["steps"] == 0 and runs[0].model == "nearest-centroid"
    assert runs[1:].names == runs.names[1:] and runs[1:][runs.names[1]] is runs[1]
    documents = [json.loads((tmp_path / one / "comparison.json").read_text()) for one in ("function", "command")]
    assert (
        documents[0]["differences"] == documents[1]["differences"] and documents[0]["scores"] == documents[1]["scores"]
    )
    assert runs.overview.page == tmp_path / "function" / "report.html"
    assert runs.compared.models == ("nearest-centroid", "soft-k-means (transductive)")
    assert runs.compared.sentences[0] in repr(runs) and "<table" in runs._repr_html_()
    table = hardlook("table", tmp_path / "command", "all-scores", "--format", "csv").out
    assert runs.compared.format_table(all_scores=True, format="csv") == table
    with pytest.raises(KeyError, match="there are: nearest-centroid"):
        runs["ridge"]


class Everything:
    """Says `cat` everywhere."""

    labels = ("cat", "dog")

    def segment(self, images):
        return [np.zeros(image.shape[:2], np.int32) for image in images]


def test_objects_and_names_side_by_side(tmp_path):
    runs = hl.run("closed-miou", model=("planted-segmenter", Everything()), scenes=4, resamples=0, progress=False,
                  out=tmp_path)  # fmt: skip
    assert runs.names == ("planted-segmenter", "Everything") and (tmp_path / "Everything" / "scores.json").is_file()
    assert runs.compared.ranking["model"].to_list() == ["planted-segmenter", "Everything"]


@pytest.mark.parametrize(
    ("models", "arguments", "said"),
    [
        ([], {}, "names no model"),
        (["planted-segmenter", "planted-segmenter"], {}, "planted-segmenter is there more than once"),
        ([Everything(), Everything()], {}, "Everything is there more than once"),
        (["planted-segmenter", "planted-segmentor"], {}, "there is no model 'planted-segmentor'"),
        (["planted-segmenter", Everything()], {"other.k": 1}, "other.k is for none"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_runs(tmp_path, models, arguments, said):
    with pytest.raises((OptionError, ModelError), match=said):
        hl.run("closed-miou", model=models, model_args=arguments, scenes=4, progress=False, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_words_of_the_benchmark_go_to_each_model_that_needs_some(tmp_path, monkeypatch, hardlook):
    pytest.importorskip("torch")
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    san = {"san.weights": "random:1", "san.size": "tiny", "san.shorter": "48"}
    given = {"scenes": 1, "resamples": 0, "pred_labels": "cat,sofa"}
    runs = hl.run("open-miou", model=["san", "planted-segmenter"], model_args=san, out=tmp_path / "runs", **given)
    stored = [json.loads((run.folder / "run.json").read_text())["model"]["args"] for run in runs]
    assert stored[0]["labels"] == ["cat", "sofa"] and "labels" not in stored[1]
    words = [word for key, value in san.items() for word in ("--model-arg", f"{key}={value}")]
    again = ("--pred-labels", "cat,sofa", "--scenes", "1", "--resamples", "0", "--out", tmp_path / "runs", "-q")
    assert hardlook("run", "open-miou", "--model", "san,planted-segmenter", *words, *again).code == 0
    assert len(list((tmp_path / "runs" / "san" / "records").glob("part-*"))) == 1, "the command resumes these runs"
    with pytest.raises(ModelError, match="'san' needs a value for 'labels'"):
        hl.run("open-miou", model=["san", "planted-segmenter"], model_args=san, out=tmp_path / "none", scenes=1)
