"""`hardlook clicks evaluate`, as a user types it."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from hardlook.data import object_instances
from hardlook.harness.scorecard import LeftOut
from hardlook.rclicks.click_evaluation import evaluation
from hardlook.rclicks.user_clicks.loading import load_clicked_data

WORLD = ("clicks", "evaluate", "--models", "uniform,distance,planted-users", "--scenes", 4, "--draws", 4, "-q")


@pytest.fixture(scope="module")
def words(clicked):
    given = ("--user-clicks", clicked.clicks, "--data", f"grabcut={clicked.folder}", "--draws", 8, "--quiet")
    return ("clicks", "evaluate", *given)


def rows_of(path):
    with path.open() as stream:
        return list(csv.DictReader(stream))


def test_the_planted_world_is_judged_without_any_file(hardlook, tmp_path):
    out = tmp_path / "deep" / "evaluation"
    answer = hardlook(*WORLD, "--out", out)
    assert answer.code == 0 and "simulated people on 4 stems" in answer.out and f"page: {out}" in answer.out
    document = json.loads((out / "evaluation.json").read_text())
    # The simulated people are a click model themselves, and nothing fits them better.
    assert {one["metric"]: one["model"] for one in document["best"]}["nss"] == "planted-users"
    stems = rows_of(out / "per_stem.csv")
    whole = [row for row in stems if row["model"] == "distance" and not row["device"]]
    assert len(whole) == 4 and {row["clicks"] for row in whole} == {"48"}
    [overall] = [row for row in rows_of(out / "table.csv") if (row["model"], row["slice"]) == ("distance", "all")]
    for metric in ("ks", "pl1", "wd", "nss", "pde"):
        assert float(overall[metric]) == pytest.approx(np.mean([float(row[metric]) for row in whole]), rel=1e-5)
        assert float(overall[f"{metric}_low"]) <= float(overall[metric]) <= float(overall[f"{metric}_high"])
    page = (out / "page.html").read_text()
    for said in (
        "PC beside mobile",
        "KS by click type",
        "KS by device",
        "Which model is better",
        "do not differ significantly",
    ):
        assert said in page
    assert "Beside the published numbers" not in page


def test_a_second_call_asks_no_model_and_a_new_model_costs_only_itself(hardlook, tmp_path, monkeypatch):
    out = ("--out", tmp_path)
    first = hardlook(*WORLD, *out, "--json")
    asked = []
    map_distribution = evaluation.map_distribution
    monkeypatch.setattr(
        evaluation, "map_distribution", lambda stem, model: asked.append(type(model)) or map_distribution(stem, model)
    )
    again = hardlook(*WORLD, *out, "--json")
    assert json.loads(again.out) == json.loads(first.out) and asked == []
    (tmp_path / "answers.jsonl").write_text((tmp_path / "answers.jsonl").read_text() + '{"answers": "cut o')
    more = [word.replace("uniform,", "uniform,center,") if isinstance(word, str) else word for word in WORLD]
    assert hardlook(*more, *out).code == 0
    assert len(asked) == 4 and len(set(asked)) == 1
    assert hardlook(*WORLD, *out, "--json", "--seed", 1).out != first.out and len(asked) == 4 + 12


def count_repeated(path):
    rows = path.read_text().splitlines()
    return len(rows) - len({*rows})


def test_files_of_clicks_are_joined_and_what_is_left_out_is_counted(hardlook, tmp_path, words, clicked):
    previous = ("--previous-masks", clicked.previous, "--previews", clicked.previews)
    answer = hardlook(*words, *previous, "--out", tmp_path, "--json")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert {note["what"]: note["count"] for note in document["left_out"]} == {
        "stems without an instance": 1,
        "stems of later rounds": 1,
        "datasets of the file": 1,
        "clicks in the previews that equal an earlier row": count_repeated(clicked.previews),
        "stems in the comparison of devices": 1,
    }
    assert count_repeated(clicked.clicks) == 0
    sliced = {(row["model"], row["slice"], row["value"]): row["stems"] for row in document["scores"]}
    assert sliced["uniform", "all", ""] == 6
    assert sliced["uniform", "click_type", "first"] == 5 and sliced["uniform", "click_type", "fn"] == 1
    # The later round was on a PC alone, so no device is judged by it.
    assert sliced["uniform", "device", "mobile"] == 5 and sliced["uniform", "device", "pc"] == 5
    assert any(text.startswith("1 stem of later rounds was left out") for text in document["in_words"])
    assert sliced["uniform", "display_mode", "object-cutout"] == 5
    assert document["pc_against_mobile"][0]["stems"] == 5
    assert list(document["modes_against_text"]) == ["object-cutout"]
    # Visitors clicked anywhere in the mask, so NSS of the uniform map has its closed form on each first stem.
    for row in rows_of(tmp_path / "per_stem.csv"):
        if row["model"] == "uniform" and row["click_type"] == "first":
            share = clicked.masks[row["full_stem"]].mean()
            assert float(row["nss"]) == pytest.approx(np.sqrt((1 - share) / share), rel=1e-3)
    page = (tmp_path / "page.html").read_text()
    for said in (
        "Beside the published numbers",
        "Table 8",
        "stems that both devices have",
        "Ways of showing the object",
        "nowhere",
        "0.630",
    ):
        assert said in page


@pytest.fixture
def devkit(tmp_path, clicked):
    """Two scenes as a VOC devkit, 000001 in train and 000002 in val, one object each; clicks on both."""
    folder = tmp_path / "devkit"
    for kind in ("JPEGImages", "SegmentationClass", "SegmentationObject", "ImageSets/Segmentation"):
        (folder / kind).mkdir(parents=True)
    rows = []
    for stem, name in (("000001", "train"), ("000002", "val")):
        mask = clicked.masks[stem]
        (folder / f"ImageSets/Segmentation/{name}.txt").write_text(stem)
        Image.fromarray(np.zeros((*mask.shape, 3), np.uint8)).save(folder / f"JPEGImages/{stem}.jpg")
        for kind in ("SegmentationClass", "SegmentationObject"):
            Image.fromarray(mask.astype(np.uint8)).save(folder / kind / f"{stem}.png")
        ys, xs = np.nonzero(mask)
        row = f"voc,{stem},1,,first,{stem}_______1,pc"
        rows += [f"{row},{xs[i]},{ys[i]},{mask.shape[1]},{mask.shape[0]}" for i in range(0, len(xs), len(xs) // 9)]
    header = "dataset,image_stem,object_stem,model_type,click_type,full_stem,device,x,y,w,h"
    (tmp_path / "voc.csv").write_text("\n".join([header, *rows, ""]))
    return ("--user-clicks", tmp_path / "voc.csv", "--data", f"voc={folder}")


def test_a_list_of_a_devkit_is_chosen(hardlook, tmp_path, devkit):
    words = ("clicks", "evaluate", *devkit, "--models", "uniform", "--draws", 2, "-q", "--json", "--out", tmp_path)
    answer = hardlook(*words)
    assert answer.code == 1 and "2 splits" in answer.err
    answer = hardlook(*words, "--split", "val")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert document["split"] == "val" and document["scores"][0]["stems"] == 1
    [note] = document["left_out"][:1]
    assert note["what"] == "stems without an instance" and note["examples"] == ["voc/000001_______1"]
    # One device has no other to be set beside.
    assert "device" not in {row["slice"] for row in document["scores"]}
    # Training reads the same list, in which one image is too few.
    answer = hardlook("clicks", "train", *devkit, "--split", "val", "--out", tmp_path / "out")
    assert answer.code == 1 and "0 stems to train on and 1 to validate" in answer.err


def test_what_the_listing_leaves_out_is_told(clicked, monkeypatch):
    listed = object_instances.list_instances({"grabcut": clicked.folder})
    crowd = object_instances.LeftOutNote("crowds of grabcut", 2, "a crowd is not one object", ("a", "b"))
    noted = replace(listed, left_out=(crowd,))
    monkeypatch.setattr(object_instances, "list_instances", lambda paths, **more: noted)
    data = load_clicked_data(clicked.clicks, {"grabcut": clicked.folder}, None, None, scenes=2, seed=0)
    assert data.left_out[0] == LeftOut("crowds of grabcut", 2, "a crowd is not one object", ("a", "b"))


def test_the_paper_reading_of_wd_changes_wd_alone(hardlook, tmp_path, words):
    given = (*words, "--models", "distance", "--json")
    released = json.loads(hardlook(*given, "--out", tmp_path / "a").out)["scores"][0]
    paper = json.loads(hardlook(*given, "--out", tmp_path / "b", "--reading", "wd=paper").out)["scores"][0]
    assert paper["wd"]["value"] > released["wd"]["value"]
    assert {name: paper[name] for name in ("ks", "pl1", "nss")} == {
        name: released[name] for name in ("ks", "pl1", "nss")
    }


def test_a_broken_image_is_left_out_with_exit_code_3(hardlook, tmp_path, clicked, broken):
    given = ("--user-clicks", clicked.clicks, "--data", f"grabcut={broken}", "--draws", 2, "-q")
    answer = hardlook("clicks", "evaluate", *given, "--out", tmp_path / "out", "--json")
    assert answer.code == 3
    document = json.loads(answer.out)
    [note] = [note for note in document["left_out"] if note["what"] == "stems that cannot be read"]
    assert note["count"] == 1 and "000003" in note["examples"][0]
    assert document["scores"][0]["stems"] == 4
    assert document["in_words"][-1].startswith("1 stem could not be read: grabcut/000003 (")


def test_clicks_on_an_image_of_another_shape_are_left_out_by_name(hardlook, tmp_path, clicked, turned):
    given = ("--user-clicks", turned, "--data", f"grabcut={clicked.folder}", "--models", "uniform", "--draws", 2, "-q")
    answer = hardlook("clicks", "evaluate", *given, "--out", tmp_path / "out")
    assert answer.code == 3
    assert "1 click model against the clicks of people on 4 stems." in answer.out
    said = "1 stem could not be read: grabcut/000002 (clicks on an image of 72x96, but here it has 96x72)"
    assert said in answer.out and said in (tmp_path / "out/page.html").read_text()


def test_previews_of_another_shape_are_refused_by_stem(hardlook, tmp_path, words, clicked):
    text = clicked.previews.read_text().replace(",96,72", ",72,96")
    (tmp_path / "previews.csv").write_text(text)
    answer = hardlook(*words, "--previews", tmp_path / "previews.csv", "--out", tmp_path / "out")
    assert answer.code == 1 and "72x96" in answer.err and "object-cutout/grabcut/000001" in answer.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--models", "unifrom"), "did you mean 'uniform'"),
        (("--models", "disc"), "does not have the role click-model"),
        (("--models", "clickability"), "no weights of its own"),
        (("--model-arg", "saliency.size=3"), "for none of the models"),
        (("--reading", "wd=mine"), "choose one of: released"),
        (("--reading", "ks=paper"), "there are wd, maps"),
        (("--data", "grabcut=somewhere"), "--data without --user-clicks"),
        (("--previews", "previews.csv"), "--previews without --user-clicks"),
        (("--split", "val"), "--split without --user-clicks"),
        (("--previous-masks", "masks"), "--previous-masks without --user-clicks"),
        (("--previews", "a.csv", "--previous-masks", "b"), "--previous-masks, --previews without --user-clicks"),
    ],
)
def test_mistakes_are_named_before_any_work(hardlook, tmp_path, more, said):
    answer = hardlook("clicks", "evaluate", "--out", tmp_path / "out", *more)
    assert answer.code == 1 and said in answer.err and not (tmp_path / "out").exists()


def test_files_that_do_not_fit_are_named(hardlook, tmp_path, words, clicked):
    out = ("--out", tmp_path)
    given = ("clicks", "evaluate", "--user-clicks", clicked.clicks, "--data")
    answer = hardlook(*given, f"mine={clicked.folder}", *out)
    assert answer.code == 1 and "no stem of the file can be used" in answer.err and "DAVIS, GrabCut" in answer.err
    few = tmp_path / "few.csv"
    few.write_text("".join(line for line in clicked.clicks.open() if "GrabCut" not in line))
    answer = hardlook(*given[:3], few, "--data", f"grabcut={clicked.folder}", *out)
    assert answer.code == 1 and "no stem of the file can be used: 1 dataset of the file" in answer.err
    answer = hardlook(*given, f"grabcut={tmp_path / 'gone'}", *out)
    assert answer.code == 1 and "gone" in answer.err
    answer = hardlook("clicks", "evaluate", "--user-clicks", tmp_path / "no.csv", "--data", f"a={clicked.folder}", *out)
    assert answer.code == 1 and "no.csv" in answer.err
    answer = hardlook(*words, "--previews", clicked.clicks, *out)
    assert answer.code == 1 and "display mode with text" in answer.err
