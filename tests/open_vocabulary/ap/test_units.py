"""What open AP refuses, and how it says so."""

import io
import json
import re
from contextlib import redirect_stdout

import cv2
import numpy as np
import preset_folders
import published_folders as folders
import pytest
from rich.console import Console

from hardlook.errors import DataError, OptionError
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.launch import launch
from hardlook.open_vocabulary.ap.options import OpenApOptions
from hardlook.open_vocabulary.ap.units import list_sources, list_units, prepare_unit, read_unit
from hardlook.report.terminal import print_scorecard
from hardlook.similarity.label_sets import load_label_set

BOX = {"bbox": [0, 0, 4, 4], "area": 16, "iscrowd": 0}


def write(folder, *, categories=("cat", "dog"), images=("a.png", "b.png"), results=()):
    truth = {
        "images": [{"id": 5 + row, "width": 8, "height": 6, "file_name": name} for row, name in enumerate(images)],
        "categories": [{"id": 1 + row, "name": name} for row, name in enumerate(categories)],
        "annotations": [{"id": 1, "image_id": 5, "category_id": 1, **BOX}],
    }
    (folder / "instances.json").write_text(json.dumps(truth))
    (folder / "results.json").write_text(json.dumps(list(results)))
    return {"gt": folder / "instances.json", "pred": folder / "results.json", "iou": "bbox"}


@pytest.mark.parametrize("given", [{"gt": "x"}, {"pred": "x"}, {"gt": "x", "pred": "y", "data": {"voc": "z"}}])
def test_truth_and_predictions_go_together(given):
    with pytest.raises(OptionError, match="go together"):
        list_units(OpenApOptions(**given))


@pytest.mark.parametrize("names", [("voc",), ("instances",), ("images",)])
def test_data_without_a_reader_is_refused_with_what_can_be_read(tmp_path, names):
    with pytest.raises(OptionError, match="no reader for this data") as caught:
        list_units(OpenApOptions(data=dict.fromkeys(names, tmp_path)))
    assert "--data instances=FILE --data images=DIR" in caught.value.remedy


@pytest.mark.parametrize(
    ("categories", "message"),
    [(("cat", "cat"), "names that come twice: cat"), ((), "unknown category ids|no categories")],
)
def test_categories_need_names_of_their_own(tmp_path, categories, message):
    with pytest.raises(DataError, match=message):
        list_units(OpenApOptions(**write(tmp_path, categories=categories)))


def test_categories_without_a_sense_are_named_before_the_work(tmp_path):
    given = write(tmp_path, categories=("cat", "glorp"))
    with pytest.raises(DataError, match="glorp") as caught:
        list_units(OpenApOptions(**given))
    assert "--labels" in caught.value.remedy
    assert len(list_units(OpenApOptions(**given, unknown="zero"))) == 2


def test_categories_that_the_label_set_lacks_are_listed(tmp_path):
    given = write(tmp_path, categories=("cat", "glorp", "wug"))
    with pytest.raises(DataError, match="2 of 3 categories are not labels of coco80: glorp, wug") as caught:
        list_units(OpenApOptions(**given, labels="coco80"))
    assert caught.value.file.endswith("instances.json")


def test_results_that_do_not_fit_are_listed(tmp_path):
    given = write(tmp_path, results=[{"image_id": 99, "category_id": 1, "score": 1, "bbox": [0, 0, 1, 1]}])
    with pytest.raises(DataError, match="image ids that are not in the ground truth: 99"):
        list_units(OpenApOptions(**given))


def test_stored_detections_in_other_words(tmp_path):
    # 18 is dog and 17 cat among COCO's category ids; the truth numbers them otherwise.
    found = [{"image_id": 5, "category_id": 18, "score": 0.5, "bbox": [0, 0, 4, 4]},
             {"image_id": 5, "category_id": 17, "score": 0.4, "bbox": [0, 0, 4, 4]}]  # fmt: skip
    given = write(tmp_path, results=found)
    done = launch("open-ap", out=tmp_path / "run", given={**given, "pred_labels": "coco80", "resamples": 0})
    card = done.scored.scorecard
    # The dog takes the cat's object and is alike by .2: recall .2, at precision 1, so 21 of 101 levels.
    assert card.get("open-ap").value == pytest.approx(21 / 101)
    assert (card.get("dagger-ap").value, card.get("ap").value) == (0, pytest.approx(1))


def test_units_are_file_stems_or_image_ids(tmp_path):
    assert [unit.id for unit in list_units(OpenApOptions(**write(tmp_path)))] == ["a", "b"]
    for images in (("x/a.png", "y/a.png"), ("", "")):
        units = list_units(OpenApOptions(**write(tmp_path, images=images)))
        assert [unit.id for unit in units] == ["image-5", "image-6"]


def test_images_of_another_size_fail_their_unit(tmp_path):
    write(tmp_path)
    assert cv2.imwrite(str(tmp_path / "a.png"), np.zeros((9, 9, 3), np.uint8))
    options = OpenApOptions(data={"instances": tmp_path / "instances.json", "images": tmp_path})
    first, second = list_units(options)
    with pytest.raises(DataError, match="9x9 pixels \\(width x height\\), its annotation says 8x6"):
        read_unit(first, pixels=True)
    with pytest.raises(DataError, match="no image 'b'"):
        read_unit(second, pixels=True)


def test_stored_detections_need_no_images(tmp_path):
    given = write(tmp_path)
    done = launch("open-ap", out=tmp_path / "run", given={**given, "data": {"images": tmp_path}, "resamples": 0})
    assert done.scored.scorecard.units.failed == 0


def test_what_the_run_depends_on(tmp_path):
    given = write(tmp_path)
    assert set(list_sources(OpenApOptions(**given))) == {"gt", "pred"}
    one, other = (list_sources(OpenApOptions(seed=seed)) for seed in (0, 1))
    assert set(one) == {"planted world"}
    assert one != other


def test_cocos_names_find_their_senses_and_its_base_and_novel_classes(tmp_path):
    found = [{"image_id": 5, "category_id": 2, "score": 0.5, "bbox": [0, 0, 4, 4]}]
    given = write(tmp_path, categories=load_label_set("coco80").names, results=found)
    given |= {"labels": "coco80", "class_sets": "coco-48-17", "resamples": 0}
    card = launch("open-ap", out=tmp_path / "run", given=given).scored.scorecard
    # The one object is a person (base), found as a bicycle.
    assert card.get("ap", classes="base", setting="generalised").value == 0
    assert 0 < card.get("open-ap", classes="base", setting="generalised").value < 0.2
    assert np.isnan(card.get("open-ap", classes="novel", setting="generalised").value)


def test_detectron2s_folder_is_read_as_its_results_file(tmp_path):
    row = {"image_id": 5, "category_id": 2, "score": 0.5, "bbox": [0, 0, 4, 4], "keypoints": [1.0, 2.0, 0.3]}
    given = write(tmp_path, results=[row])
    folder = tmp_path / "inference"
    folder.mkdir()
    (folder / "coco_instances_results.json").write_text(json.dumps([row]))
    (folder / "instances_predictions.pth").write_bytes(b"never read")
    cards = [
        launch("open-ap", out=tmp_path / name, given={**given, "pred": pred, "resamples": 0}).scored.scorecard
        for name, pred in (("file", given["pred"]), ("folder", folder))
    ]
    assert str(cards[0].scores) == str(cards[1].scores)
    assert cards[1].get("open-ap").value > 0
    options = OpenApOptions(**{**given, "pred": folder})
    assert list_sources(options)["pred"] == folder / "coco_instances_results.json"
    (folder / "coco_instances_results.json").unlink()
    with pytest.raises(DataError, match="is pickled, which can run code, and is not read"):
        list_units(options)


def test_lvis_is_read_from_its_folder(tmp_path):
    folders.make_lvis(tmp_path)
    options = OpenApOptions(data={"lvis": tmp_path})
    assert options.labels == str(tmp_path / "lvis_v1_val.json"), "its categories have the senses"
    first, second = list_units(options)
    assert (first.id, second.id) == ("000000000139", "000000000285")
    assert first.payload.frequencies == {1: "f", 2: "c"}
    for unit in (first, second):
        assert read_unit(unit, pixels=True).payload.image.shape[1::-1] == folders.SIZE
    assert set(list_sources(options)) == {"lvis annotations", "lvis train2017", "lvis val2017"}


def test_stored_detections_on_lvis_need_no_images(tmp_path):
    folders.make_lvis(tmp_path, images="elsewhere")
    found = [{"image_id": 139, "category_id": 2, "score": 0.9, "bbox": [0, 0, 4, 3]}]
    (tmp_path / "results.json").write_text(json.dumps(found))
    given = {"data": {"lvis": tmp_path}, "pred": tmp_path / "results.json", "iou": "bbox", "resamples": 0}
    done = launch("open-ap", out=tmp_path / "run", given=given)
    assert done.scored.scorecard.get("ap").value == pytest.approx(1)
    assert {reading.name: reading.value for reading in done.scored.scorecard.readings}["protocol"] == "lvis"
    assert set(list_sources(OpenApOptions(**given))) == {"lvis annotations", "pred"}


def test_lvis_that_is_not_there_is_said_when_units_are_listed(tmp_path):
    with pytest.raises(DataError, match="no layout of lvis") as caught:
        list_units(OpenApOptions(data={"lvis": tmp_path}))
    assert "lvis_v1_val.json" in caught.value.remedy
    with pytest.raises(OptionError, match="no split 'test'"):
        list_units(OpenApOptions(data={"lvis": tmp_path}, split="test"))
    with pytest.raises(OptionError, match="no reader for this data"):
        list_units(OpenApOptions(data={"lvis": tmp_path, "images": tmp_path}))


ASYMMETRIC = [[1, 0.9], [0.2, 1]]


@pytest.mark.parametrize(
    ("matrix", "words", "remedy"),
    [
        ([[1, 1.5], [1.5, 1]], "values in \\[0, 1\\]", "within \\[0, 1\\]"),
        (ASYMMETRIC, "a symmetric matrix, got 0.9 at row 0 \\(cat\\)", "--asymmetric"),
        (None, "does not exist", "check the path"),
    ],
)
def test_a_bad_matrix_is_found_before_units_are_evaluated(tmp_path, matrix, words, remedy):
    given = write(tmp_path) | {"similarity": tmp_path / "S.npy"}
    if matrix:
        np.save(tmp_path / "S.npy", np.array(matrix))
        (tmp_path / "S.txt").write_text("cat\ndog\n")
    with pytest.raises(DataError, match=words) as caught:
        list_units(OpenApOptions(**given))
    assert re.search(remedy, caught.value.remedy)
    assert caught.value.file.endswith("S.npy")


def test_an_asymmetric_matrix_is_taken_when_it_is_said_to_be_meant(tmp_path):
    found = [{"image_id": 5, "category_id": 2, "score": 0.5, "bbox": [0, 0, 4, 4]}]
    given = write(tmp_path, results=found) | {"similarity": tmp_path / "S.npy", "resamples": 2, "asymmetric": True}
    values = []
    for matrix in (ASYMMETRIC, np.transpose(ASYMMETRIC)):
        np.save(tmp_path / "S.npy", np.array(matrix))
        (tmp_path / "S.txt").write_text("cat\ndog\n")
        card = launch("open-ap", out=tmp_path / f"run-{len(values)}", given=given).scored.scorecard
        values.append(card.get("open-ap").value)
    # A cat that is called dog: the row of cat, the column of dog; 91 and 21 of 101 levels of recall.
    assert values == pytest.approx([91 / 101, 21 / 101])
    with pytest.raises(OptionError, match="--asymmetric says how a matrix is meant, and there is none"):
        list_units(OpenApOptions(**write(tmp_path), asymmetric=True))


def test_a_matrix_may_name_labels_that_only_a_model_knows(tmp_path):
    given = write(tmp_path)
    np.save(tmp_path / "S.npy", np.eye(3))
    (tmp_path / "S.txt").write_text("cat\ndog\nwug\n")
    with pytest.raises(DataError, match="names that it does not have: wug"):
        list_units(OpenApOptions(**given, similarity=tmp_path / "S.npy"))
    data = {"instances": given["gt"], "images": tmp_path}
    assert len(list_units(OpenApOptions(data=data, similarity=tmp_path / "S.npy"))) == 2


def write_shifted(folder, added, *, right=0.8):
    """Five categories, one object per image; of the detections `right` have the right label, plus `added`."""
    rng, names = np.random.default_rng(0), ["cat", "dog", "car", "bus", "owl", "horse", "sheep"]
    truth = {"images": [], "categories": [{"id": 1 + row, "name": name} for row, name in enumerate(names)]}
    truth["annotations"], results = [], []
    for image in range(40):
        label = 2 + image % 5  # the first and the last label have no object, so that shifted ids are categories too
        truth["images"].append({"id": image + 1, "width": 8, "height": 6, "file_name": f"{image}.png"})
        truth["annotations"].append({"id": image + 1, "image_id": image + 1, "category_id": label, **BOX})
        called = label if rng.random() < right else 2 + (image + 2) % 5
        results.append({"image_id": image + 1, "category_id": called + added, "score": 0.5, "bbox": BOX["bbox"]})
    (folder / "instances.json").write_text(json.dumps(truth))
    (folder / "results.json").write_text(json.dumps(results))
    return {"gt": folder / "instances.json", "pred": folder / "results.json", "iou": "bbox", "resamples": 0}


@pytest.mark.parametrize(("added", "hint"), [(0, ""), (1, "lower"), (-1, "higher")])
def test_categories_that_are_off_by_one_and_still_valid_are_warned_of(tmp_path, added, hint):
    done = launch("open-ap", out=tmp_path / "run", given=write_shifted(tmp_path, added))
    card = done.scored.scorecard
    right = launch("open-ap", out=tmp_path / "right", given=write_shifted(tmp_path, 0)).scored.scorecard.get("ap").value
    warnings = [note.why for note in card.noted if note.warning]
    with redirect_stdout(io.StringIO()) as output:
        print_scorecard(card, Console(width=300, file=output))
    page = " ".join(section.text for section in find_benchmark("open-ap").report(done.scored.records, card))
    if not hint:
        assert not warnings and "off by one" not in output.getvalue() + page
        return
    (why,) = warnings
    assert card.get("ap").value < 0.1 and f"and {right:.3f} with every predicted label one {hint}: check the" in why
    assert "Warning: predicted category ids look off by one: the AP is 0.0" in output.getvalue()
    assert page.startswith("Predicted category ids look off by one: the AP is 0.0")


def test_a_shift_that_helps_little_is_not_warned_of(tmp_path):
    card = launch("open-ap", out=tmp_path / "run", given=write_shifted(tmp_path, 1, right=0.1)).scored.scorecard
    assert not [note for note in card.noted if note.warning]


def test_synsets_of_the_json_are_senses_without_labels(tmp_path):
    found = [{"image_id": 5, "category_id": 2, "score": 0.5, "bbox": [0, 0, 4, 4]}]
    given = write(tmp_path, categories=("glorp", "wug"), results=found) | {"resamples": 0, "compare": ("wup",)}
    truth = json.loads(given["gt"].read_text())
    for category, synset in zip(truth["categories"], ("cat.n.01", "dog.n.01"), strict=True):
        category["synset"] = synset
    given["gt"].write_text(json.dumps(truth))
    own = launch("open-ap", out=tmp_path / "own", given=given).scored
    named = launch("open-ap", out=tmp_path / "named", given={**given, "labels": str(given["gt"])}).scored
    assert own.scorecard.get("open-ap").value == named.scorecard.get("open-ap").value > 0
    assert [one.value for one in own.scorecard.scores] == pytest.approx(
        [one.value for one in named.scorecard.scores], nan_ok=True
    )
    assert "labels with the senses of the data's json" in [note.what for note in own.scorecard.noted]
    # The senses are in the records: the file is not needed again.
    given["gt"].unlink()
    benchmark = find_benchmark("open-ap")
    again = benchmark.score(own.records, own.options)
    assert again.get("open-ap").value == own.scorecard.get("open-ap").value
    judged, empty = benchmark.qualities(own.records, own.options)["image-open-ap50"].to_list()
    assert judged == pytest.approx(0.2 * 0.2) and np.isnan(empty)


def test_ade20ks_objects_pair_by_the_names_of_images(tmp_path):
    truth = preset_folders.make_ade_instances(tmp_path)
    preset_folders.write_results(tmp_path / "inference" / "coco_instances_results.json", truth, {149: 7})
    options = OpenApOptions(data={"ade20k-instances": tmp_path}, pred=tmp_path / "inference")
    assert options.labels == "ade150"
    units = list_units(options)
    assert [unit.id for unit in units] == ["ADE_val_00000001", "ADE_val_00000002"]
    assert [unit.payload.stored.category_ids.tolist() for unit in units] == [[7, 7], [7, 7]]
    assert set(list_sources(options)) == {"ade20k-instances annotations", "pred"}
    content = json.loads(truth.read_text())
    content["images"].reverse()  # ties of scores must not depend on the order of the file
    truth.write_text(json.dumps(content))
    assert [unit.payload.objects.id for unit in list_units(options)] == [2, 1]


def test_a_detection_of_an_unknown_image_name_is_refused(tmp_path):
    truth = preset_folders.make_ade_instances(tmp_path)
    results = tmp_path / "coco_instances_results.json"
    preset_folders.write_results(results, truth)
    results.write_text(results.read_text().replace("ADE_val_00000002", "ADE_val_00000009"))
    with pytest.raises(DataError, match="ADE_val_00000009"):
        list_units(OpenApOptions(data={"ade20k-instances": tmp_path}, pred=results))


def test_coco_is_read_from_its_folder_for_a_model(tmp_path):
    preset_folders.make_coco_instances(tmp_path)
    options = OpenApOptions(data={"coco-instances": tmp_path})
    assert options.labels == "coco80"
    unit = prepare_unit(list_units(options)[0])
    assert unit.id == "000000000139"
    assert unit.payload.image.shape == (4, 6, 3)
