"""Stored predictions through the command line: the specification's check, and files that do not fit."""

import json

import numpy as np
import polars as pl
import pytest
from command_line import CommandLine
from panoptic_files import Drawn, write_panoptic, write_png

CATEGORIES = {1: ("one", True), 2: ("two", True), 3: ("three", False), 4: ("four", False)}

SIMILARITY = ",one,two,three,four\none,1,.5,0,0\ntwo,.5,1,0,0\nthree,0,0,1,.25\nfour,0,0,.25,1\n"

PETS = {1: ("cat", True), 2: ("dog", True), 3: ("sky", False)}


@pytest.fixture
def hardlook(capsys, monkeypatch):
    return CommandLine(capsys, monkeypatch)


def worked_check():
    """The 10 x 10 image of the specification: truth and prediction."""
    truth, prediction = np.zeros((2, 10, 10), int)
    for k, area in enumerate((slice(0, 2), slice(2, 4), slice(4, 8), slice(8, 9)), 1):
        truth[area] = k
    flat = prediction.reshape(-1)
    flat[0:18], flat[20:36], flat[90:92], flat[40:70], flat[80:88] = 500, 70000, 70000, 13, 14
    said = {500: 1, 70000: 1, 13: 4, 14: 1}
    return Drawn(truth, {1: 1, 2: 2, 3: 3, 4: 4}), Drawn(prediction, said)


def words_of(folder, *more):
    return (
        "run", "open-pq", "--gt", folder / "gt.json", "--gt-masks", folder / "gt",
        "--pred", folder / "pred.json", "--pred-masks", folder / "pred", "--out", folder / "run", *more,
    )  # fmt: skip


def write_pets(folder, predicted=None, categories=PETS):
    """Two images of a cat (id 5) under the sky (id 6); the truth predicts itself unless told otherwise."""
    image = Drawn([[6, 6], [5, 5]], {5: 1, 6: 3})
    write_panoptic(folder, "gt", {1: image, 2: image}, PETS)
    write_panoptic(folder, "pred", predicted or {1: image, 2: image}, categories)


def edit(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def scores(place):
    path = place / "run" / "scores.json" if place.is_dir() else place
    rows = json.loads(path.read_text())["scores"]
    return {(row["name"], *row["slice"].values()): row["value"] for row in rows}


def failures(folder):
    return pl.read_parquet(folder / "run" / "failures.parquet").to_dicts()


def test_the_worked_check_of_the_specification(hardlook, tmp_path):
    truth, prediction = worked_check()
    write_panoptic(tmp_path, "gt", {"check": truth}, CATEGORIES)
    write_panoptic(tmp_path, "pred", {"check": prediction}, {})
    (tmp_path / "S.csv").write_text(SIMILARITY)
    answer = hardlook(*words_of(tmp_path, "--similarity", tmp_path / "S.csv"))
    assert answer.code == 0, answer.err
    found = scores(tmp_path)
    assert found["open-pq",] == pytest.approx(0.336905, abs=5e-7)
    assert found["open-sq",] == pytest.approx(0.6125)
    assert found["open-rq",] == pytest.approx(0.409524, abs=5e-7)
    assert found["open-pq", "things"] == pytest.approx(0.523810, abs=5e-7)
    assert found["open-pq", "stuff"] == pytest.approx(0.15)
    assert found["pq",] == pytest.approx(0.1125)
    assert found["open-gain",] == pytest.approx(0.336905 - 0.1125, abs=5e-7)
    # One of two was called "one" (S .5), three was called "four" (S .25); four as a thing is wholly wrong.
    assert found["unforgiven-segments", "two", "one"] == pytest.approx(0.5)
    assert found["unforgiven-segments", "three", "four"] == pytest.approx(0.75)
    assert found["unforgiven-segments", "four", "one"] == pytest.approx(1)


def test_another_matrix_scores_the_stored_run_again_without_the_files(hardlook, tmp_path):
    truth, prediction = worked_check()
    write_panoptic(tmp_path, "gt", {"check": truth}, CATEGORIES)
    write_panoptic(tmp_path, "pred", {"check": prediction}, {})
    (tmp_path / "S.csv").write_text(SIMILARITY)
    assert hardlook(*words_of(tmp_path, "--similarity", tmp_path / "S.csv")).code == 0
    for path in (tmp_path / "gt" / "check.png", tmp_path / "pred" / "check.png", tmp_path / "gt.json"):
        path.unlink()
    (tmp_path / "I.csv").write_text(SIMILARITY.replace(".25", "0").replace(".5", "0"))
    again = tmp_path / "again.json"
    words = ("score", tmp_path / "run", "--set", f"similarity={tmp_path / 'I.csv'}", "--out", again)
    assert hardlook(*words).code == 0
    assert scores(again)["open-pq",] == pytest.approx(0.1125)


def test_vocabularies_pair_by_name_and_keep_their_own_words(hardlook, tmp_path):
    said = {1: Drawn([[6, 6], [5, 5]], {5: 9, 6: 4}), 2: Drawn([[6, 6], [5, 5]], {5: 7, 6: 4})}
    write_pets(tmp_path, said, {4: ("SKY", False), 7: ("Cat", True), 9: ("owl", True)})
    assert hardlook(*words_of(tmp_path)).code == 0
    found = scores(tmp_path)
    assert found["misnamed-segments", "cat", "owl"] == 1
    # cat: 1 hit, 1 missed: 1 / 1.5; owl: one false claim, 0; sky: 1.
    assert found["pq",] == pytest.approx((1 / 1.5 + 0 + 1) / 3)


def test_a_line_break_in_a_name_moves_no_score_to_another_class(hardlook, tmp_path):
    write_pets(tmp_path)
    for side in ("gt", "pred"):
        edit(tmp_path / f"{side}.json", lambda d: d["categories"][0].update(name="cat\nor kitten"))
    assert hardlook(*words_of(tmp_path, "--unknown", "zero")).code == 0
    values = scores(tmp_path)
    assert (values["pq", "cat or kitten"], values["pq", "sky"]) == (1, 1)


def test_results_that_only_a_model_would_write(hardlook, tmp_path):
    write_pets(tmp_path, categories={})
    edit(tmp_path / "pred.json", lambda d: [row.pop("file_name") for row in d["annotations"]])
    bare = json.loads((tmp_path / "pred.json").read_text())["annotations"]
    for row in bare:
        row["segments_info"] = [{"id": s["id"], "category_id": s["category_id"]} for s in row["segments_info"]]
    (tmp_path / "pred.json").write_text(json.dumps(bare))
    assert hardlook(*words_of(tmp_path)).code == 0
    assert scores(tmp_path)["pq",] == 1


def test_an_empty_prediction_is_an_answer(hardlook, tmp_path):
    full, empty = Drawn([[6, 6], [5, 5]], {5: 1, 6: 3}), Drawn(np.zeros((2, 2)), {})
    write_pets(tmp_path, {1: full, 2: empty})
    assert hardlook(*words_of(tmp_path)).code == 0
    assert scores(tmp_path)["pq",] == pytest.approx(1 / 1.5)


def test_masks_lie_beside_their_json_by_default(hardlook, tmp_path):
    write_pets(tmp_path)
    words = ("run", "open-pq", "--gt", tmp_path / "gt.json", "--pred", tmp_path / "pred.json")
    assert hardlook(*words, "--out", tmp_path / "run").code == 0
    (tmp_path / "pred").rename(tmp_path / "elsewhere")
    answer = hardlook(*words, "--out", tmp_path / "other")
    assert answer.code == 1
    assert "--pred-masks" in answer.err


def test_predictions_mostly_on_void_are_counted_and_left_out(hardlook, tmp_path):
    truth = Drawn([[5, 5, 0, 0]], {5: 1})
    write_panoptic(tmp_path, "gt", {1: truth}, PETS)
    write_panoptic(tmp_path, "pred", {1: Drawn([[5, 5, 8, 8]], {5: 1, 8: 2})}, PETS)
    assert hardlook(*words_of(tmp_path)).code == 0
    assert scores(tmp_path)["pq",] == 1
    notes = json.loads((tmp_path / "run" / "scores.json").read_text())["left_out"]
    assert {note["what"]: note["count"] for note in notes}["predicted segments"] == 1


@pytest.mark.parametrize(("crowds", "expected"), [("last", 0.0), ("all", None)])
def test_which_crowds_excuse_is_a_reading(hardlook, tmp_path, crowds, expected):
    write_panoptic(tmp_path, "gt", {1: Drawn([[4, 4, 5, 5]], {4: 1, 5: 1}, crowd=(4, 5))}, PETS)
    write_panoptic(tmp_path, "pred", {1: Drawn([[8, 8, 8, 8]], {8: 1})}, PETS)
    assert hardlook(*words_of(tmp_path, "--reading", f"crowds={crowds}")).code == 0
    assert scores(tmp_path)["pq",] == expected


BAD_UNITS = {
    "a PNG is missing": (lambda f: (f / "pred" / "2.png").unlink(), "the file does not exist", "pred/2.png"),
    "a true PNG is missing": (lambda f: (f / "gt" / "2.png").unlink(), "the file does not exist", "gt/2.png"),
    "a PNG is cut off": (lambda f: (f / "pred" / "2.png").write_bytes(b"\x89PNG\r\n\x1a\n"), "image", "pred/2.png"),
    "another size": (lambda f: write_png(f / "pred" / "2.png", [[5]]), "1x1 pixels (width x height), the truth is 2x2",
                     "pred/2.png"),
    "truth of another size": (lambda f: write_png(f / "gt" / "2.png", [[5, 6, 6]]), "the JSON says 2x2", "gt/2.png"),
    "an id that nobody listed": (lambda f: write_png(f / "pred" / "2.png", [[6, 6], [5, 9]]),
                                 "prediction: segments 9 are drawn but not listed", "pred/2.png"),
    "an id that is not drawn": (lambda f: write_png(f / "gt" / "2.png", [[5, 5], [5, 5]]),
                                "truth: segments 6 are listed but not drawn", "gt/2.png"),
    "no row": (lambda f: edit(f / "pred.json", lambda d: d["annotations"].pop()), "is no prediction", "pred.json"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_UNITS)
def test_what_is_wrong_with_one_image_fails_that_unit(hardlook, tmp_path, case):
    spoil, message, file = BAD_UNITS[case]
    write_pets(tmp_path)
    spoil(tmp_path)
    answer = hardlook(*words_of(tmp_path, "--max-failures", ".6"))
    assert answer.code == 3
    (row,) = failures(tmp_path)
    assert row["unit"] == "2"
    assert message in row["error"]
    assert f"file: {tmp_path / file}" in row["error"]
    assert "remedy: " in row["error"]


BAD_FILES = {
    "one image twice": (lambda d: d["annotations"].append(d["annotations"][0]), "image ids that come twice: 1"),
    "an image without truth": (lambda d: d["annotations"][0].update(image_id=77), "predicted image ids: 77"),
    "an unknown category": (lambda d: d["annotations"][1]["segments_info"][0].update(category_id=99), "category 99"),
    "one segment twice": (lambda d: d["annotations"][0]["segments_info"][0].update(id=6), "two segments of one id: 1"),
    "void as a segment": (lambda d: d["annotations"][0]["segments_info"][0].update(id=0), "not above 0"),
    "one category twice": (lambda d: d["categories"].append(d["categories"][0]), "category ids that come twice: 1"),
    "one name twice": (lambda d: d["categories"].append({"id": 8, "name": "CAT", "isthing": 1}), "'CAT' (category 8)"),
    "half a category": (
        lambda d: d["annotations"][0]["segments_info"][0].update(category_id=1.5),
        "the id 1.5 is not a whole number",
    ),
    "half a segment": (
        lambda d: d["annotations"][0]["segments_info"][0].update(id=6.5),
        "the id 6.5 is not a whole number",
    ),
    "a kind as a text": (lambda d: d["categories"][2].update(isthing="0"), "isthing of 3 is '0', neither 1 nor 0"),
    "a crowd as a text": (
        lambda d: d["annotations"][0]["segments_info"][0].update(iscrowd="0"),
        "iscrowd of 5 is '0', neither 1 nor 0",
    ),
    "no segments": (lambda d: d["annotations"][0].pop("segments_info"), "not COCO's panoptic format"),
    "no annotations": (lambda d: d.pop("annotations"), "not COCO's panoptic format"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_what_is_wrong_with_the_whole_is_refused_before_the_work(hardlook, tmp_path, case):
    spoil, message = BAD_FILES[case]
    write_pets(tmp_path)
    edit(tmp_path / "pred.json", spoil)
    answer = hardlook(*words_of(tmp_path))
    assert answer.code == 1
    assert message in answer.err
    assert "pred.json" in answer.err
    assert "remedy" in answer.err
    assert not (tmp_path / "run").exists()


def test_truth_without_categories_or_prediction_is_refused(hardlook, tmp_path):
    write_pets(tmp_path)
    answer = hardlook("run", "open-pq", "--gt", tmp_path / "gt.json", "--out", tmp_path / "run")
    assert (answer.code, "--gt and --pred go together" in answer.err) == (1, True)
    answer = hardlook(
        "run", "open-pq", "--model", "planted-panoptic", "--data", f"panoptic={tmp_path}", "--out", tmp_path / "run"
    )
    assert (answer.code, "no reader for this data" in answer.err) == (1, True)
    edit(tmp_path / "gt.json", lambda d: d.pop("categories"))
    answer = hardlook(*words_of(tmp_path))
    assert (answer.code, "lists no categories" in answer.err) == (1, True)


def test_words_without_a_sense_are_refused_before_the_work(hardlook, tmp_path):
    write_pets(tmp_path)
    edit(tmp_path / "gt.json", lambda d: d["categories"][1].update(name="snark"))
    edit(tmp_path / "pred.json", lambda d: d.pop("categories"))
    answer = hardlook(*words_of(tmp_path))
    assert answer.code == 1
    assert "snark" in answer.err
    assert "--labels" in answer.err
    assert hardlook(*words_of(tmp_path, "--unknown", "zero")).code == 0


def test_labels_must_have_the_words_and_their_kind(hardlook, tmp_path):
    write_pets(tmp_path)
    edit(
        tmp_path / "gt.json", lambda d: (d["categories"][0].update(isthing=0), d["categories"][1].update(name="snark"))
    )
    answer = hardlook(*words_of(tmp_path, "--labels", "coco133"))
    assert answer.code == 1
    assert "categories that coco133 does not have: snark" in answer.err
    assert "things here and stuff in coco133, or the other way: cat" in answer.err


def test_detectron2s_output_folder_is_read_as_it_is(hardlook, tmp_path):
    write_pets(tmp_path, {1: Drawn([[6, 6], [5, 5]], {5: 2, 6: 3}), 2: Drawn([[6, 6], [5, 5]], {5: 1, 6: 3})})
    assert hardlook(*words_of(tmp_path)).code == 0
    expected = scores(tmp_path)
    folder = tmp_path / "inference"
    (tmp_path / "pred").rename(folder)
    document = json.loads((tmp_path / "pred.json").read_text())
    for row in document["annotations"]:
        row["segments_info"] = [{"id": one["id"], "category_id": one["category_id"]} for one in row["segments_info"]]
    (folder / "predictions.json").write_text(json.dumps(document))
    words = ("run", "open-pq", "--gt", tmp_path / "gt.json", "--pred", folder, "--out", tmp_path / "other")
    assert hardlook(*words).code == 0
    assert scores(tmp_path / "other" / "scores.json") == expected
    for png in folder.glob("*.png"):
        png.unlink()
    answer = hardlook(*words[:-1], tmp_path / "third")
    assert (answer.code, "has no PNG" in answer.err, "--pred-masks" in answer.err) == (1, True, True)


@pytest.mark.parametrize(("added", "hint"), [(0, ""), (1, "lower"), (-1, "higher")])
def test_categories_that_are_off_by_one_and_still_valid_are_warned_of(hardlook, tmp_path, added, hint):
    names = ("cat", "dog", "horse", "sheep", "cow", "bus")
    categories = {1 + row: (name, True) for row, name in enumerate(names)}
    images = {k: Drawn([[7, 7], [8, 8]], {7: 2 + k % 4, 8: 2 + (k + 1) % 4}) for k in range(8)}
    called = {k: Drawn(one.map, {i: label + added for i, label in one.segments.items()}) for k, one in images.items()}
    write_panoptic(tmp_path, "gt", images, categories)
    write_panoptic(tmp_path, "pred", called, {})
    answer = hardlook(*words_of(tmp_path))
    assert answer.code == 0, answer.err
    text = " ".join(answer.out.split())
    warning = "Warning: predicted category ids look off by one: the PQ is 0.000, and 1.000 with every predicted label"
    assert (f"{warning} one {hint}: check the category_id" in text) == bool(hint)
    assert ("look off by one" in (tmp_path / "run" / "report.html").read_text()) == bool(hint)


def test_a_bad_matrix_is_found_before_units_are_evaluated(hardlook, tmp_path):
    write_pets(tmp_path)
    (tmp_path / "S.csv").write_text(",cat,dog,sky\ncat,1,.5,0\ndog,.25,1,0\nsky,0,0,1\n")
    answer = hardlook(*words_of(tmp_path, "--similarity", tmp_path / "S.csv"))
    assert answer.code != 0 and "expected a symmetric matrix" in answer.err and "--asymmetric" in answer.err
    assert not (tmp_path / "run" / "records").exists()
    assert hardlook(*words_of(tmp_path, "--similarity", tmp_path / "S.csv", "--asymmetric")).code == 0
