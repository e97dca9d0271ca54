import json
import os

import pytest

from hardlook.data.voc import open_devkit


def test_every_command_has_help_with_an_example(hardlook):
    for words in (
        ("score",), ("report",), ("calibrate",), ("demo",), ("models",), ("check",),
        ("weights", "list"), ("weights", "install"), ("weights", "where"), ("world", "make"),
    ):  # fmt: skip
        answer = hardlook(*words, "--help")
        assert answer.code == 0
        assert "Example" in answer.out, words
        assert "--json" in answer.out, words


@pytest.mark.parametrize(
    "words",
    [
        ("build", "toss"), ("build", "study-encoders"), ("build", "study-saliency"), ("bias", "select"),
        ("attributes",), ("data", "spuriousness"), ("clicks", "cost"), ("calibrate",), ("check",), ("run", "metacoco"),
    ],
)  # fmt: skip
def test_commands_that_build_models_can_be_kept_from_downloads(hardlook, words):
    assert "--offline" in hardlook(*words, "--help").out


def test_offline_no_weights_are_fetched_and_the_next_command_may_fetch_them(hardlook, tmp_path, monkeypatch):
    monkeypatch.delenv("HARDLOOK_OFFLINE", raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    for words in (
        ("clicks", "cost", "hf:owner/net"),
        ("calibrate", "toss", "--set", "saliency=hf:owner/net", "--set", "scenes=24", "--out", tmp_path / "out"),
    ):
        answer = hardlook(*words, "--offline")
        assert answer.code == 1 and "downloads are forbidden" in answer.err, words
        assert "HARDLOOK_OFFLINE" not in os.environ
    assert "could not be downloaded from" in hardlook("clicks", "cost", "hf:owner/net").err


def test_models_are_listed_with_role_licence_and_what_to_install(hardlook):
    rows = {row["name"]: row for row in json.loads(hardlook("models", "--json").out)}
    assert rows["planted-segmenter"]["roles"] == ["semantic-segmenter"]
    assert rows["u2netp"]["extra"] == "onnx"
    assert (
        len({role for row in rows.values() for role in row["roles"] if row["name"].startswith(("planted", "disc"))})
        == 11
    )
    only = json.loads(hardlook("models", "planted-*", "--role", "saliency", "--json").out)
    assert [row["name"] for row in only] == ["planted-saliency"]
    assert "hardlook weights install u2netp" in hardlook("models", "u2*").out


def test_models_are_listed_with_their_marks_and_what_these_mean(hardlook):
    rows = {row["name"]: row["marks"] for row in json.loads(hardlook("models", "--json").out)}
    assert rows["label-propagation"] == ["GL", "TT", "transductive"]
    assert rows["nearest-centroid"] == ["GL"]
    assert rows["planted-segmenter"] == []
    shown = hardlook("models", "label-*").out
    assert "(GL, TT, transductive; MIT)" in shown
    assert "transductive: answers all queries of a task together" in shown
    assert "marks" not in hardlook("models", "planted-seg*").out


def test_check_passes_a_sound_model_and_names_what_is_wrong_with_another(hardlook):
    sound = hardlook("check", "semantic-segmenter", "planted-segmenter")
    assert sound.code == 0
    assert "WRONG" not in sound.out
    broken = hardlook("check", "semantic-segmenter", "troubled_segmenters:WrongSize")
    assert broken.code == 1
    assert "WRONG" in broken.out


def test_check_needs_a_role_that_exists(hardlook):
    answer = hardlook("check", "segmenter", "planted-segmenter")
    assert answer.code == 1
    assert "semantic-segmenter" in answer.err


def test_weights_are_listed_and_unknown_ones_refused(hardlook):
    rows = json.loads(hardlook("weights", "list", "--json").out)
    assert {"mobile-sam", "u2netp", "deeplabv3-voc", "efficientnet-lite0"} <= {row["name"] for row in rows}
    assert hardlook("weights", "where", "u2netq").code == 1
    assert "no weights given" in hardlook("weights", "install").err


@pytest.mark.parametrize("layout", ["voc", "concept-context", "coco-panoptic", "isegm"])
def test_world_make_writes_every_layout(hardlook, tmp_path, layout):
    answer = hardlook("world", "make", tmp_path / layout, "--layout", layout, "--scenes", 12, "--json")
    facts = json.loads(answer.out)
    assert (facts["scenes"], facts["layout"]) == (12, layout)
    assert facts["files"] > 12


def test_a_world_is_a_devkit(hardlook, tmp_path):
    hardlook("world", "make", tmp_path / "w", "--scenes", 6, "--width", 96, "--height", 72)
    devkit = open_devkit(tmp_path / "w")
    assert devkit.image(devkit.ids("val")[0]).read().shape == (72, 96, 3)


def test_calibrate_writes_its_proof(hardlook, tmp_path):
    answer = hardlook(
        "calibrate", "closed-miou", "--out", tmp_path, "--set", "scenes=48", "--set", "resamples=0", "--json"
    )
    document = json.loads(answer.out)
    assert document["passed"]
    assert answer.code == 0
    assert len(document["dials"][0]["values"]) == 6
    assert "Spearman" in (tmp_path / "calibration.html").read_text()


def test_report_is_drawn_again_and_says_when_the_data_are_gone(hardlook, tmp_path):
    hardlook("world", "make", tmp_path / "w", "--scenes", 12)
    run = tmp_path / "run"
    given = ("--data", f"voc={tmp_path / 'w'}", "--model", "planted-segmenter", "--resamples", 20)
    hardlook("run", "closed-miou", *given, "--out", run, "--quiet")
    first = (run / "report.html").read_text()
    assert hardlook("report", run).out.strip() == str(run / "report.html")
    assert (run / "report.html").read_text() == first
    (tmp_path / "w").rename(tmp_path / "elsewhere")
    assert hardlook("report", run).code == 0
    assert "the data cannot be read any more" in (run / "report.html").read_text()
