import json
import os

import numpy as np
import pytest

RUN = ("run", "closed-miou", "--scenes", 8, "--resamples", 50, "--quiet")


def test_run_prints_scores_and_writes_a_report(hardlook, tmp_path):
    answer = hardlook(*RUN, "--model", "planted-segmenter", "--model-arg", "stranger=.4", "--out", tmp_path / "run")
    assert answer.code == 0
    assert "8 units planned, 8 scored, 0 failed" in answer.out
    assert f"report: {tmp_path / 'run' / 'report.html'}" in answer.out
    page = (tmp_path / "run" / "report.html").read_text()
    assert "mIoU in each context" in page
    assert page.count("data:image/jpeg") >= 12


def test_json_is_scores_json_and_nothing_else(hardlook, tmp_path):
    answer = hardlook(*RUN, "--out", tmp_path, "--json")
    assert answer.out == (tmp_path / "scores.json").read_text()
    assert json.loads(answer.out)["schema"] == "hardlook.scores/1"


def test_score_recomputes_the_same_file_without_the_model(hardlook, tmp_path, monkeypatch):
    hardlook(*RUN, "--out", tmp_path)
    before = (tmp_path / "scores.json").read_text()
    (tmp_path / "scores.json").unlink()
    monkeypatch.setattr("hardlook.models.registry.build", lambda *a, **k: pytest.fail("the model was built"))
    assert hardlook("score", tmp_path, "--json").out == before
    assert (tmp_path / "scores.json").read_text() == before


def test_score_under_another_reading_leaves_the_run_alone(hardlook, tmp_path):
    hardlook(*RUN, "--model-arg", "stranger=.6", "--out", tmp_path / "run")
    before = (tmp_path / "run" / "scores.json").read_text()
    words = ("--reading", "mean-over=gt-only", "--set", "level=.5", "--out", tmp_path / "other.json", "--json")
    other = json.loads(hardlook("score", tmp_path / "run", *words).out)
    assert other["readings"][0]["value"] == "gt-only"
    assert other["scores"][0]["interval"]["level"] == 0.5
    assert json.loads((tmp_path / "other.json").read_text()) == other
    assert (tmp_path / "run" / "scores.json").read_text() == before


def test_score_refuses_options_that_change_answers(hardlook, tmp_path):
    hardlook(*RUN, "--out", tmp_path)
    answer = hardlook("score", tmp_path, "--set", "scenes=9")
    assert answer.code == 1
    assert "scenes: this changes the units or their records" in answer.err
    assert "level, reading, resamples" in answer.err
    assert "nope: closed-miou has no such option" in hardlook("score", tmp_path, "--set", "nope=3").err


def test_failed_units_give_exit_3_and_are_named(hardlook, tmp_path):
    words = ("--model", "troubled_segmenters:Raises", "--max-failures", ".5", "--out", tmp_path)
    answer = hardlook(*RUN, *words)
    assert answer.code == 3
    assert "1 units failed" in answer.err
    assert "too much for me" in (tmp_path / "report.html").read_text()


def test_shards_from_the_command_line(hardlook, tmp_path):
    first = hardlook(*RUN, "--batch-size", 2, "--shard", "1/2", "--out", tmp_path)
    assert (first.code, first.out) == (0, "")
    assert "4 units are left to other shards" in first.err
    assert "8 scored" in hardlook(*RUN, "--batch-size", 2, "--shard", "2/2", "--out", tmp_path).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "closed-mioo", "--out", "x"), "did you mean closed-miou"),
        ((*RUN, "--out", "x", "--model", "planted-segmenta"), "planted-segmenter"),
        ((*RUN, "--out", "x", "--model", "planted-saliency"), "saliency"),
        ((*RUN, "--out", "x", "--model-arg", "strangers=1"), "has no argument 'strangers'"),
        ((*RUN, "--out", "x", "--model-arg", "stranger"), "expected NAME=VALUE"),
        ((*RUN, "--out", "x", "--data", "photos", "--data", "maps"), "--data images=photos --data masks=maps"),
        ((*RUN, "--out", "x", "--engine", "slurm"), "one of inline, processes, ray"),
        ((*RUN, "--out", "x", "--shard", "5/2"), "from 1 to the second"),
        ((*RUN, "--out", "x", "--batch-size", "0"), "a whole number from 1, or auto"),
        ((*RUN, "--out", "x", "--reading", "mean-over=all"), "there is no such reading"),
        ((*RUN, "--out", "x", "--data", "voc=nowhere", "--model", "planted-segmenter"), "no VOC devkit here"),
        ((*RUN, "--out", "x", "--data", "voc=nowhere"), "give --model; `hardlook models --role semantic-"),
        ((*RUN, "--out", "x", "--pred", "p", "--gt", "g", "--model", "planted-segmenter"), "both given"),
        (("score", "nowhere"), "there is no run here"),
        ((*RUN, "--out", "x", "--reading", "nosuch=1"), "closed-miou has no such reading"),
        (("run", "closed-miou", "--scenes", "0", "--out", "x"), "--scenes: input should be greater than"),
    ],
)
def test_errors_are_one_message_without_a_traceback(hardlook, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    answer = hardlook(*words)
    assert answer.code == 1
    assert answer.err.startswith("hardlook: ")
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert not list(tmp_path.iterdir())


def test_help_shows_every_option_with_its_sentence(hardlook):
    from hardlook.harness.registry import find_benchmark

    text = " ".join(hardlook("run", "closed-miou", "--help").out.split())
    for name, field in find_benchmark("closed-miou").options.model_fields.items():
        assert f"--{name.replace('_', '-')}" in text
        if name in ("scenes", "split", "resamples", "level"):
            assert field.description in text
    assert "Example" in text


def test_run_help_lists_benchmarks(hardlook):
    assert "closed-miou" in hardlook("run", "--help").out


def test_an_out_that_is_a_file_is_refused(hardlook, tmp_path):
    (tmp_path / "file").write_text("x")
    assert "this is a file, not a folder" in hardlook(*RUN, "--out", tmp_path / "file").err
    answer = hardlook(*RUN, "--out", tmp_path / "file" / "run")
    assert (answer.code, "Traceback" in answer.err) == (1, False)


@pytest.mark.parametrize("content", ["[]", '{"schema": "hardlook.run/1"}'])
def test_a_damaged_manifest_is_an_error_in_words(hardlook, tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    answer = hardlook("score", tmp_path)
    assert answer.code == 1
    assert answer.err.startswith("hardlook: run.json")


def test_a_prediction_changed_in_its_middle_is_not_scored_as_the_old_one(hardlook, tmp_path):
    truth = np.zeros((400, 400), dtype=np.uint8)
    truth[150:250] = 1
    for name in ("gt", "pred"):
        (tmp_path / name).mkdir()
    np.save(tmp_path / "gt" / "a.npy", truth)
    prediction = tmp_path / "pred" / "a.npy"
    np.save(prediction, np.zeros_like(truth))
    words = ("run", "closed-miou", "--gt", tmp_path / "gt", "--pred", tmp_path / "pred", "--labels", "voc20",
             "--resamples", 50, "--quiet", "--json")  # fmt: skip
    assert score_of(hardlook(*words, "--out", tmp_path / "run")) < 0.5
    times = prediction.stat()
    np.save(prediction, truth)
    os.utime(prediction, ns=(times.st_atime_ns, times.st_mtime_ns))
    again = hardlook(*words, "--out", tmp_path / "run")
    assert again.code == 1
    assert "data pred: " in again.err
    assert score_of(hardlook(*words, "--out", tmp_path / "new")) == 1


def score_of(answer):
    assert answer.code == 0, answer.err
    return json.loads(answer.out)["scores"][0]["value"]
