import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.api.several_models import split_model_arguments
from hardlook.cli.arguments import parse_model_names
from hardlook.errors import OptionError

NAMES = ["net", "net.small", "pack.module:Model"]

FEW = ("--scenes", 480, "--tasks", 2, "--repeats", 1, "--queries", 2, "--modes", "iid", "--ways", 3, "--shots", 1)


@given(st.lists(st.sampled_from(["a", "b-2", "p.m:C"]), min_size=1, unique=True))
def test_names_come_back_in_their_order_whatever_the_blanks(names):
    assert parse_model_names(" , ".join(names) + ",") == names
    with pytest.raises(OptionError, match=f"--model names {names[0]} more than once"):
        parse_model_names(",".join([*names, names[0]]))


def test_no_model_at_all_is_not_an_empty_flag():
    assert parse_model_names(None) == []
    with pytest.raises(OptionError, match="names no model"):
        parse_model_names(" ,")


def test_an_argument_of_one_model_goes_to_it_alone_and_before_the_shared_one():
    found = split_model_arguments(
        NAMES, {"net.small.k": "1", "k": "2", "net.k": "3", "pack.module:Model.k": "4", "j": "5"}
    )
    assert found == {
        "net": {"k": "3", "j": "5"},
        "net.small": {"k": "1", "j": "5"},
        "pack.module:Model": {"k": "4", "j": "5"},
    }
    with pytest.raises(OptionError, match=r"other\.k is for none of the models"):
        split_model_arguments(NAMES, {"other.k": "1"})


def run(hardlook, out, *words):
    return hardlook("run", "closed-miou", "--out", out, "--scenes", 6, "--resamples", 20, "--quiet", *words)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--model", "planted-segmenter,planted-segmentor"), "there is no model 'planted-segmentor'"),
        (("--model", "planted-segmenter,planted-saliency"), "does not have the role semantic-segmenter"),
        (("--model", "planted-segmenter,planted-segmenter"), "more than once"),
        (("--model", "planted-segmenter,troubled_segmenters:Raises", "--model-arg", "sibling=.3"), "NAME.KEY=VALUE"),
        (("--model", "planted-segmenter,troubled_segmenters:Raises", "--model-arg", "planted.sibling=.3"), "none of"),
    ],
)
def test_a_name_or_argument_that_is_wrong_is_refused_before_anything_runs(hardlook, tmp_path, words, told):
    answer = run(hardlook, tmp_path / "out", *words)
    assert answer.code == 1
    assert told in answer.err
    assert not (tmp_path / "out").exists()


def test_several_models_do_not_replace_the_report_of_a_run(hardlook, tmp_path):
    assert run(hardlook, tmp_path, "--model", "planted-segmenter").code == 0
    page = (tmp_path / "report.html").read_bytes()
    answer = run(hardlook, tmp_path, "--model", "planted-segmenter,troubled_segmenters:Raises")
    assert answer.code == 1 and "this folder holds a run" in answer.err
    assert (tmp_path / "report.html").read_bytes() == page and not (tmp_path / "planted-segmenter").exists()


def test_a_run_that_stops_leaves_an_overview_of_those_before_it(hardlook, tmp_path):
    answer = run(hardlook, tmp_path, "--model", "planted-segmenter,troubled_segmenters:Raises", "--on-error", "stop")
    assert answer.code == 1
    page = (tmp_path / "report.html").read_text()
    assert "planted-segmenter" in page
    assert "Not scored yet: troubled_segmenters:Raises" in page


def test_one_json_of_all_models_with_arguments_for_one_and_marks_on_every_page(hardlook, tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    models = ("--model", "nearest-centroid,soft-k-means", "--model-arg", "soft-k-means.steps=0")
    answer = hardlook("run", "metacoco", "--out", tmp_path, "--quiet", "--json", *FEW, *models)
    assert answer.code == 0, answer.err
    cards = json.loads(answer.out)
    assert list(cards) == ["nearest-centroid", "soft-k-means"]
    args = {name: json.loads((tmp_path / name / "run.json").read_text())["model"]["args"] for name in cards}
    assert args["soft-k-means"]["steps"] == 0
    assert "steps" not in args["nearest-centroid"]
    assert f"all models: {tmp_path / 'report.html'}" in answer.err
    overview = (tmp_path / "report.html").read_text()
    assert "soft-k-means (transductive)" in overview
    assert "nearest-centroid (transductive)" not in overview
    assert "GL, TT, transductive" in overview
    for name, marked in (("nearest-centroid", False), ("soft-k-means", True)):
        page = (tmp_path / name / "report.html").read_text()
        assert "GL (pretrained on the labels of all training classes)" in page
        assert ("transductive (answers all queries of a task together)" in page) == marked
