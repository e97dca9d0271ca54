import json

import polars as pl
import pytest

RUN = ("run", "closed-miou", "--scenes", 8, "--quiet", "--model", "planted-segmenter")

UNIT = ("--unit", "scene-0003")


def test_the_record_is_the_one_that_a_run_makes(hardlook, tmp_path):
    hardlook(*RUN, "--model-arg", "stranger=.5", "--resamples", 10, "--out", tmp_path / "run")
    kept = pl.read_parquet(tmp_path / "run" / "records" / "part-*.parquet").drop("prediction", "answers")
    document = json.loads(hardlook(*RUN, "--model-arg", "stranger=.5", *UNIT, "--json").out)
    (answer,) = document["answers"]
    assert answer["record"] == kept.row(by_predicate=pl.col("unit") == "scene-0003", named=True)
    assert answer["caption"].endswith(".")
    assert 0 <= answer["qualities"]["image-miou"] <= 1
    assert (document["schema"], document["page"], answer["error"]) == ("hardlook.units/1", None, None)


def test_it_is_printed_as_a_table_and_makes_no_run(hardlook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = hardlook(*RUN, *UNIT)
    assert answer.code == 0
    assert "scene-0003 by planted-segmenter" in answer.out
    assert "mIoU of the image" in answer.out
    assert "page:" not in answer.out
    assert list(tmp_path.iterdir()) == []


def test_show_writes_a_page_with_pictures(hardlook, tmp_path):
    answer = hardlook(*RUN, *UNIT, "--unit", "scene-0005", "--show", "--out", tmp_path / "page")
    path = tmp_path / "page" / "units.html"
    assert f"page: {path}" in answer.out
    page = path.read_text()
    assert page.count("data:image/jpeg") == 6
    assert "scene-0003" in page
    assert "scene-0005" in page


def test_without_out_the_page_goes_to_a_temporary_folder(hardlook, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    document = json.loads(hardlook(*RUN, *UNIT, "--show", "--json").out)
    assert document["page"].startswith(str(tmp_path))


def test_a_page_can_be_named_and_a_run_folder_stays_a_run(hardlook, tmp_path):
    hardlook(*RUN, *UNIT, "--show", "--out", tmp_path / "one.html")
    assert (tmp_path / "one.html").is_file()
    hardlook(*RUN, "--resamples", 10, "--out", tmp_path / "run")
    hardlook(*RUN, "--resamples", 10, *UNIT, "--show", "--out", tmp_path / "run")
    again = hardlook(*RUN, "--resamples", 10, "--out", tmp_path / "run")
    assert again.code == 0
    assert "8 scored" in again.out


def test_several_models_stand_side_by_side(hardlook, tmp_path):
    words = [word if word != "planted-segmenter" else "planted-segmenter,troubled_segmenters:Raises" for word in RUN]
    answer = hardlook(*words, "--unit", "scene-0000", "--unit", "scene-0001", "--show", "--out", tmp_path, "--json")
    rows = json.loads(answer.out)["answers"]
    assert [row["model"] for row in rows] == ["planted-segmenter"] * 2 + ["troubled_segmenters:Raises"] * 2
    assert (tmp_path / "units.html").read_text().count("scene-0000") > 1


def test_a_unit_that_fails_says_why_and_exits_3(hardlook):
    ids = [word for number in range(8) for word in ("--unit", f"scene-{number:04d}")]
    words = [word if word != "planted-segmenter" else "troubled_segmenters:Raises" for word in RUN]
    answer = hardlook(*words, *ids)
    assert answer.code == 3
    assert "too much for me" in answer.out


def test_features_are_got_ready_first(hardlook, tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path))
    words = ("run", "metacoco", "--scenes", 480, "--model", "ridge", "--encoder", "planted-encoder", "--quiet")
    answer = hardlook(*words, "--unit", "5way-1shot-iid-00001", "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["answers"][0]["record"]["queries"] == 20


def test_stored_predictions_have_units_too(hardlook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hardlook("world", "make", "data", "--layout", "voc", "--scenes", 6)
    names = (tmp_path / "data" / "classes.txt").read_text()
    (tmp_path / "labels.txt").write_text(f"background\n{names}")
    masks = tmp_path / "data" / "SegmentationClass"
    unit = sorted(masks.iterdir())[0].stem
    words = ("run", "closed-miou", "--gt", masks, "--pred", masks, "--labels", "labels.txt", "--unit", unit, "--json")
    (answer,) = json.loads(hardlook(*words).out)["answers"]
    assert (answer["model"], answer["qualities"]) == ("stored predictions", {"image-miou": 1.0})


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((*RUN, "--unit", "scene-3"), 1, "the nearest are: scene-0003"),
        ((*RUN, "--unit", "../../etc/passwd"), 1, "none of the 8 units"),
        ((*RUN, "--show"), 2, "--unit"),
        (RUN, 2, "--out"),
        ((*RUN, *UNIT, "--reading", "nosuch=1"), 1, "has no such reading"),
        ((*RUN, *UNIT, "--pred", "p", "--gt", "g"), 1, "both given"),
    ],
)
def test_errors_are_one_message(hardlook, tmp_path, monkeypatch, words, code, said):
    monkeypatch.chdir(tmp_path)
    answer = hardlook(*words)
    assert answer.code == code
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert list(tmp_path.iterdir()) == []


def test_the_command_of_a_report_answers_the_unit(hardlook, tmp_path):
    import shlex

    from hardlook.harness.runs.rerun_command import build_rerun_command

    hardlook(*RUN, "--model-arg", "stranger=.5", "--resamples", 10, "--out", tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    words = shlex.split(build_rerun_command(manifest, "scene-0003"))[1:]
    (answer,) = json.loads(hardlook(*words, "--json", "--out", tmp_path / "page").out)["answers"]
    assert answer["unit"] == "scene-0003"
