import json
import tarfile

import numpy as np
import preset_folders
import published_folders as folders
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hardlook.data import rle
from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.launch import launch
from hardlook.open_vocabulary.miou.options import OpenMiouOptions, SemanticOptions
from hardlook.open_vocabulary.miou.units import find_units, list_sources, list_units, prepare_unit


def test_data_without_a_reader_is_refused_with_what_can_be_read(tmp_path):
    with pytest.raises(OptionError, match="no reader for this data") as caught:
        list_units(SemanticOptions(data={"camvid": tmp_path}))
    assert "--data voc=DIR" in caught.value.remedy and "cityscapes" in caught.value.remedy


@pytest.mark.parametrize("given", [{"gt": "x"}, {"pred": "x"}])
def test_truth_and_predictions_go_together(given):
    with pytest.raises(OptionError, match="go together"):
        list_units(SemanticOptions(**given))


def test_label_maps_need_names(tmp_path):
    with pytest.raises(OptionError, match="no option names their labels"):
        list_units(SemanticOptions(data={"images": tmp_path, "masks": tmp_path}))


@pytest.mark.parametrize("content", ["", "cat\ncat\n"])
def test_names_must_be_there_and_differ(tmp_path, content):
    (tmp_path / "labels.txt").write_text(content)
    with pytest.raises(DataError):
        list_units(SemanticOptions(data={"images": tmp_path, "masks": tmp_path}, labels=str(tmp_path / "labels.txt")))


def test_predictions_without_truth_are_listed(tmp_path):
    (tmp_path / "labels.txt").write_text("cat\n")
    for folder in ("gt", "pred"):
        (tmp_path / folder).mkdir()
    np.save(tmp_path / "pred" / "stray.npy", np.zeros((2, 2), int))
    options = SemanticOptions(gt=tmp_path / "gt", pred=tmp_path / "pred", labels=str(tmp_path / "labels.txt"))
    with pytest.raises(DataError, match="1 predictions have no truth: stray"):
        list_units(options)


def test_the_planted_world_is_its_own_fingerprint():
    one, other = (list_sources(SemanticOptions(seed=seed)) for seed in (0, 1))
    assert one != other
    assert set(one) == {"planted world"}


def test_void_of_the_world_is_ignored():
    (unit, *_) = list_units(SemanticOptions(scenes=1))
    content = prepare_unit(unit).payload
    assert set(np.unique(content.truth_map)) <= {*range(len(content.labels)), -1}


def numbered(tmp_path, stored, **options):
    """The true map that the dataset makes of stored numbers."""
    for folder in ("gt", "pred"):
        (tmp_path / folder).mkdir(exist_ok=True)
        np.save(tmp_path / folder / "a.npy", np.array([stored]))
    (unit,) = list_units(SemanticOptions(gt=tmp_path / "gt", pred=tmp_path / "pred", **options))
    return prepare_unit(unit).payload.truth_map[0].tolist()


def test_numberings_of_label_maps(tmp_path):
    assert numbered(tmp_path, [0, 149, 255], labels="ade150") == [0, 149, -1]
    assert numbered(tmp_path, [0, 1, 150], labels="ade150", numbering="one-based") == [-1, 0, 149]
    # COCO's own ids have gaps: 13 is the stop sign (12th), 90 the toothbrush (80th), 200 the rug (133rd).
    ids = {"labels": "coco133", "numbering": "category-id", "ignore": 0}
    assert numbered(tmp_path, [0, 1, 13, 90, 200], **ids) == [-1, 0, 11, 79, 132]


@pytest.mark.parametrize(
    ("stored", "options"),
    [
        ([150], {"labels": "ade150"}),
        ([-1], {"labels": "ade150"}),
        ([151], {"labels": "ade150", "numbering": "one-based"}),
        ([12], {"labels": "coco133", "numbering": "category-id"}),
    ],
)
def test_numbers_that_are_no_label_are_named(tmp_path, stored, options):
    with pytest.raises(DataError, match=rf"the truth holds numbers \[{stored[0]}\]") as caught:
        numbered(tmp_path, stored, **options)
    assert caught.value.unit == "a"
    assert "--numbering" in caught.value.remedy


def test_an_ignored_number_that_is_a_label_is_refused(tmp_path):
    # The 256th of Pascal Context's 459 labels has the number 255.
    with pytest.raises(OptionError, match="--ignore 255 is the number of the label") as caught:
        numbered(tmp_path, [255], labels="pc459")
    assert "65535" in caught.value.remedy
    assert numbered(tmp_path, [255, 65535], labels="pc459", ignore=65535) == [255, -1]


def test_ids_of_a_label_file_are_its_numbers(tmp_path):
    (tmp_path / "labels.csv").write_text("id,name\n1,cat\n7,dog\n")
    assert numbered(tmp_path, [7, 1, 255], labels=str(tmp_path / "labels.csv")) == [1, 0, -1]
    with pytest.raises(DataError, match=r"numbers \[0\]"):
        numbered(tmp_path, [0], labels=str(tmp_path / "labels.csv"))


def test_predictions_have_their_own_numbers_and_nothing_of_them_is_ignored(tmp_path):
    for folder, stored in (("gt", [0, 1, 5]), ("pred", [1, 0, -1])):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a.npy", np.array([stored]))
    options = OpenMiouOptions(
        gt=tmp_path / "gt", pred=tmp_path / "pred", labels="coco133", numbering="category-id", ignore=0,
        pred_numbering="index", pred_labels="voc20",
    )  # fmt: skip
    (unit,) = list_units(options)
    content = prepare_unit(unit).payload
    assert content.truth_map.tolist() == [[-1, 0, 4]]
    assert content.predicted_map.tolist() == [[1, 0, -1]]
    assert content.predicted_labels[0] == "aeroplane"


@pytest.mark.parametrize(
    ("stored", "options", "unknown"),
    [
        ([0, 149, 255, -1], {}, []),
        ([0, 30000, 150], {}, [150, 30000]),
        ([0, 1, 150, 255], {"pred_numbering": "one-based"}, []),
        ([1, 151], {"pred_numbering": "one-based"}, [151]),
        ([0, 255], {"ignore": 65535}, [255]),
        ([20, -1], {"pred_labels": "voc20"}, [20]),
    ],
)
def test_numbers_of_predictions_that_are_no_label_are_counted(tmp_path, stored, options, unknown):
    for folder, numbers in (("gt", [0] * 2 * len(stored)), ("pred", stored * 2)):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a.npy", np.array([numbers]))
    (unit,) = list_units(OpenMiouOptions(gt=tmp_path / "gt", pred=tmp_path / "pred", labels="ade150", **options))
    content = prepare_unit(unit).payload
    assert content.unknown_numbers == dict.fromkeys(unknown, 2)
    assert (content.predicted_map[0][: len(stored)][np.isin(stored, unknown)] == -1).all()


def write_detectron2(folder, *, images=3, numbers=(0, 1, 2)):
    """Truth, predictions as label maps, and the same as detectron2's file in `inference`; the options of both runs."""
    rng = np.random.default_rng(4)
    (folder / "labels.csv").write_text("id,name,synset\n0,cat,cat.n.01\n1,dog,dog.n.01\n2,car,car.n.01\n")
    rows = []
    for name in ("gt", "pred", "inference"):
        (folder / name).mkdir()
    for image in range(images):
        truth, predicted = np.array(numbers)[rng.integers(0, len(numbers), (2, 6, 5))]
        np.save(folder / "gt" / f"{image}.npy", truth)
        np.save(folder / "pred" / f"{image}.npy", predicted)
        for number in np.unique(predicted).tolist():
            mask = rle.encode(predicted == number)
            rows.append({"file_name": f"datasets/val/{image}.jpg", "category_id": number, "segmentation": mask})
    (folder / "inference" / "sem_seg_predictions.json").write_text(json.dumps(rows))
    (folder / "inference" / "sem_seg_evaluation.pth").write_bytes(b"never read")
    given = {"gt": folder / "gt", "labels": str(folder / "labels.csv"), "resamples": 0}
    return rows, given


@pytest.mark.parametrize("benchmark", ["open-miou", "closed-miou"])
@pytest.mark.parametrize("place", ["inference", "inference/sem_seg_predictions.json"])
def test_detectron2s_masks_score_as_label_maps_do(tmp_path, benchmark, place):
    _, given = write_detectron2(tmp_path)
    maps = launch(benchmark, out=tmp_path / "maps", given={**given, "pred": tmp_path / "pred"}).scored.scorecard
    masks = launch(benchmark, out=tmp_path / "masks", given={**given, "pred": tmp_path / place}).scored.scorecard
    assert masks.scores == maps.scores
    assert masks.units.scored == 3
    sources = list_sources(OpenMiouOptions(**given, pred=tmp_path / place))
    assert sources["pred"] == tmp_path / "inference" / "sem_seg_predictions.json"


def test_detectron2s_numbers_follow_the_numbering(tmp_path):
    _, given = write_detectron2(tmp_path, numbers=(1, 2, 3))
    options = OpenMiouOptions(**given, pred=tmp_path / "inference", numbering="one-based")
    unit = prepare_unit(list_units(options)[0])
    assert np.array_equal(unit.payload.predicted_map, np.load(tmp_path / "pred" / "0.npy") - 1)
    assert unit.payload.predicted_labels == ("cat", "dog", "car")


def test_an_image_without_masks_fails_and_images_without_truth_are_listed(tmp_path):
    rows, given = write_detectron2(tmp_path)
    file = tmp_path / "inference" / "sem_seg_predictions.json"
    file.write_text(json.dumps([row for row in rows if "1.jpg" not in row["file_name"]]))
    options = SemanticOptions(**given, pred=file)
    units = list_units(options)
    prepare_unit(units[0])
    with pytest.raises(DataError, match="no prediction for this image") as caught:
        prepare_unit(units[1])
    assert (caught.value.unit, caught.value.file) == ("1", str(file))
    file.write_text(json.dumps([{**rows[0], "file_name": "stray.jpg"}]))
    with pytest.raises(DataError, match="1 predictions have no truth: stray"):
        list_units(options)


def test_masks_of_another_size_fail_their_unit(tmp_path):
    rows, given = write_detectron2(tmp_path, images=1)
    file = tmp_path / "inference" / "sem_seg_predictions.json"
    file.write_text(json.dumps([{**rows[0], "segmentation": rle.encode(np.ones((5, 6), bool))}]))
    with pytest.raises(DataError, match="the prediction has 6x5 pixels"):
        prepare_unit(list_units(SemanticOptions(**given, pred=file))[0])


def test_a_folder_with_masks_and_maps_is_ambiguous(tmp_path):
    _, given = write_detectron2(tmp_path)
    np.save(tmp_path / "inference" / "0.npy", np.zeros((6, 5), int))
    with pytest.raises(DataError, match=r"has sem_seg_predictions\.json and label maps, such as 0\.npy"):
        list_units(SemanticOptions(**given, pred=tmp_path / "inference"))


# A published dataset: how it is made, the numbers of some labels and of ignored pixels in its maps, and these labels.
PUBLISHED = {
    "ade20k": (folders.make_ade20k, [1, 2, 150, 0], ["wall", "building", "flag", None]),
    "pascal-context": (folders.make_mmseg_context, [1, 2, 59, 0], ["aeroplane", "bag", "wood", None]),
    "pascal-context-459": (
        lambda root, numbers: folders.make_catseg_context(root, numbers, 459),
        [0, 255, 458, 65535],
        ["accordion", 255, "wool", None],
    ),
    "cityscapes": (folders.make_cityscapes, [7, 33, 24, 0, 9, 29], ["road", "bicycle", "person", None, None, None]),
    "coco-stuff": (folders.make_coco_stuff, [0, 12, 91, 181, 255], ["person", "stop sign", "banner", "wood", None]),
}


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("kind", [SemanticOptions, OpenMiouOptions])
def test_published_datasets_know_labels_and_numbers(tmp_path, name, kind):
    make, numbers, expected = PUBLISHED[name]
    make(tmp_path, numbers)
    units = list_units(kind(data={name: tmp_path}))
    for unit in units:
        content = prepare_unit(unit).payload
        assert content.image.shape[:2] == content.truth_map.shape
        found = content.truth_map.ravel()[: len(numbers)].tolist()
        labels = [content.labels[index] if index >= 0 else None for index in found]
        assert labels == [content.labels[one] if isinstance(one, int) else one for one in expected]
    assert len(units) == (1 if name == "pascal-context" else 2)


def test_a_published_dataset_is_known_by_the_folders_of_its_split(tmp_path):
    folders.make_ade20k(tmp_path, [1])
    sources = list_sources(SemanticOptions(data={"ade20k": tmp_path}))
    folder = tmp_path / "images" / "validation"
    assert sources == {"ade20k images": folder, "ade20k maps": tmp_path / "annotations" / "validation"}


def test_stored_predictions_of_a_published_dataset_count_from_zero(tmp_path):
    folders.make_ade20k(tmp_path / "data", [1, 2, 150, 0])
    stems = ("ADE_val_00000001", "ADE_val_00000002")
    for stem in stems:
        folders.save_map(tmp_path / "pred" / f"{stem}.png", [0, 1, 149, 255])
    given = {"data": {"ade20k": tmp_path / "data"}, "pred": tmp_path / "pred"}
    (unit, _) = list_units(SemanticOptions(**given))
    content = prepare_unit(unit).payload
    assert content.predicted_map.ravel()[:4].tolist() == content.truth_map.ravel()[:4].tolist() == [0, 1, 149, -1]
    assert not content.unknown_numbers
    for stem in stems:
        folders.save_map(tmp_path / "pred" / f"{stem}.png", [1, 2, 150, 0])
    (unit, _) = list_units(SemanticOptions(**given, pred_numbering="one-based"))
    assert prepare_unit(unit).payload.predicted_map.ravel()[:4].tolist() == [0, 1, 149, -1]


@pytest.mark.parametrize(
    "given", [{"numbering": "one-based"}, {"ignore": 0}, {"labels": "coco171"}, {"gt": "x", "pred": "y"}]
)
def test_options_that_contradict_a_published_dataset_are_refused(tmp_path, given):
    folders.make_ade20k(tmp_path, [1])
    with pytest.raises(OptionError, match="has its own"):
        list_units(SemanticOptions(data={"ade20k": tmp_path}, **given))


def test_ade20k_s_847_classes_need_no_labels(tmp_path):
    folders.make_ade20k_847(tmp_path, [0, 258, 846, 65535])
    (unit, _) = list_units(SemanticOptions(data={"ade20k-847": tmp_path}))
    payload = prepare_unit(unit).payload
    assert payload.truth_map.ravel()[:4].tolist() == [0, 258, 846, -1]
    assert (payload.labels[258], payload.labels[846], len(payload.labels)) == ("crane", "adding machine", 847)


def test_ade20k_s_847_classes_take_their_names_from_a_file(tmp_path):
    folders.make_ade20k_847(tmp_path, [0, 1, 2, 3, 65535])
    # As MaskFormer lists them: some differ only in their second word.
    rows = ["wall", "bag", "bag, handbag, pocketbook, purse", "bag, traveling bag, grip"]
    content = [{"name": name, "id": 90 + row, "trainId": row} for row, name in enumerate(rows)]
    (tmp_path / "names.json").write_text(json.dumps(content))
    (unit, _) = list_units(SemanticOptions(data={"ade20k-847": tmp_path}, labels=str(tmp_path / "names.json")))
    payload = prepare_unit(unit).payload
    assert payload.truth_map.ravel()[:5].tolist() == [0, 1, 2, 3, -1]
    assert payload.labels[:2] == ("wall", "bag") and len(set(payload.labels)) == 4


def test_a_run_on_a_published_dataset_end_to_end(tmp_path):
    folders.make_cityscapes(tmp_path / "data", [7, 8, 11, 0])
    for name in ("frankfurt_000000_000294", "lindau_000001_000019"):
        folders.save_map(tmp_path / "pred" / f"{name}.png", [0, 1, 3, 2])
    given = {"data": {"cityscapes": tmp_path / "data"}, "pred": tmp_path / "pred", "resamples": 0}
    done = launch("open-miou", out=tmp_path / "run", given=given)
    # Of road, sidewalk and building the last is called wall: 2 of 4 classes, 2 of 3 pixels.
    assert done.scored.scorecard.get("miou").value == 0.5
    assert done.scored.scorecard.get("pixel-accuracy").value == pytest.approx(2 / 3)
    assert done.scored.scorecard.get("open-miou").value > 0.5


def test_shards_and_tables_are_scored_as_the_same_files_in_folders_are(tmp_path):
    folders.make_pairs(tmp_path, "images", "masks", [0, 1, 1, 255], image_end=".png")
    folders.save_map(tmp_path / "pred" / "a.png", [0, 1, 0, 0])
    folders.save_map(tmp_path / "pred" / "b.png", [1, 1, 1, 0])
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    with tarfile.open(tmp_path / "0000.tar", "w") as shard:
        for stem in ("a", "b"):
            shard.add(tmp_path / "images" / f"{stem}.png", f"{stem}.png")
            shard.add(tmp_path / "masks" / f"{stem}.png", f"{stem}.seg.png")
    shared = {"labels": str(tmp_path / "labels.txt"), "pred": tmp_path / "pred", "resamples": 0}
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    cells = {
        column: [
            {"bytes": (tmp_path / name / f"{stem}.png").read_bytes(), "path": f"{stem}.png"} for stem in ("a", "b")
        ]
        for column, name in (("image", "images"), ("mask", "masks"))
    }
    pq.write_table(pa.table({name: pa.array(rows, kind) for name, rows in cells.items()}), tmp_path / "val.parquet")
    sources = {
        "tables": {"data": {"hf-dataset": tmp_path / "val.parquet"}},
        "folders": {"gt": tmp_path / "masks", "data": {"images": tmp_path / "images"}},
        "shards": {"data": {"webdataset": tmp_path / "0000.tar"}},
    }
    values = {}
    for name, given in sources.items():
        done = launch("closed-miou", out=tmp_path / name, given={**shared, **given})
        values[name] = [(score.name, score.slice, score.value) for score in done.scored.scorecard.scores]
        (unit, _) = list_units(SemanticOptions(**{**shared, **given}))
        assert prepare_unit(unit).payload.image.shape == (4, 6, 3)
    assert values["folders"] == values["shards"] == values["tables"]
    assert values["shards"][0][2] not in (0, 1)


@pytest.mark.parametrize("stored", [True, False])
def test_files_are_found_by_id_without_a_look_at_all_others(tmp_path, stored):
    for name in ("images", "masks", "answers"):
        (tmp_path / name).mkdir()
        for stem in ("a", "b", "c"):
            (tmp_path / name / f"{stem}.png").touch()
    given = {"labels": "voc20", "data": {"images": tmp_path / "images"}}
    if stored:
        given |= {"gt": tmp_path / "masks", "pred": tmp_path / "answers"}
    else:
        given["data"] = {**given["data"], "masks": tmp_path / "masks"}
    for options in (SemanticOptions(**given), OpenMiouOptions(**given)):
        listed = {unit.id: unit for unit in list_units(options)}
        assert find_units(options, ["c", "a"]) == {name: listed[name] for name in ("c", "a")}
    assert find_units(options, ["a", "z"]) is None
    assert find_units(options, ["../masks/a"]) is None
    (tmp_path / "masks" / "b.png").rename(tmp_path / "masks" / "b.PNG")
    assert find_units(options, ["b"]) is None


def test_two_maps_with_one_stem_are_an_error_that_names_both(tmp_path):
    for name in ("gt", "pred"):
        (tmp_path / name).mkdir()
    np.save(tmp_path / "gt" / "a.npy", np.zeros((2, 2), np.int64))
    (tmp_path / "gt" / "a.png").touch()
    with pytest.raises(DataError, match=r"a\.npy and a\.png") as caught:
        list_units(SemanticOptions(gt=tmp_path / "gt", pred=tmp_path / "pred", labels="voc20"))
    assert caught.value.file == str(tmp_path / "gt")


def test_an_asymmetric_matrix_is_taken_when_it_is_said_to_be_meant(tmp_path):
    for name, label in (("gt", 0), ("pred", 1)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", np.full((2, 2), label))
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    (tmp_path / "S.csv").write_text(",cat,dog\ncat,1,.75\ndog,.25,1\n")
    given = {"gt": tmp_path / "gt", "pred": tmp_path / "pred", "labels": str(tmp_path / "labels.txt")}
    given |= {"similarity": tmp_path / "S.csv", "compare": (), "resamples": 0}
    with pytest.raises(DataError, match="expected a symmetric matrix") as caught:
        list_units(OpenMiouOptions(**given))
    assert "--asymmetric" in caught.value.remedy
    card = launch("open-miou", out=tmp_path / "run", given={**given, "asymmetric": True}).scored.scorecard
    assert card.get("open-pixel-accuracy").value == 0.75
    assert "rows true" in next(one.meaning for one in card.readings if one.name == "similarity")


def test_detectron2s_numbers_of_pascal_context_are_alphabetical(tmp_path):
    preset_folders.make_san_context(tmp_path, [1])
    preset_folders.write_masks(tmp_path / "out" / "sem_seg_predictions.json", {
        stem: np.ones((4, 6), int) for stem in ("a", "b")
    })  # fmt: skip
    options = OpenMiouOptions(data={"pascal-context": tmp_path}, pred=tmp_path / "out", pred_numbering="alphabetical")
    unit = prepare_unit(list_units(options)[0])
    assert (unit.payload.truth_map == unit.payload.predicted_map).all()
    assert unit.payload.labels[unit.payload.truth_map[0, 0]] == "bag"


def test_images_without_a_label_map_are_counted(tmp_path):
    folders.make_pairs(tmp_path, "images", "masks", [0, 1], image_end=".png")
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    given = {"images": tmp_path / "images", "masks": tmp_path / "masks"}
    whole = list_units(SemanticOptions(data=given, labels=str(tmp_path / "labels.txt")))
    assert whole.left_out == ()
    gone = sorted((tmp_path / "masks").iterdir())[0]
    gone.unlink()
    (tmp_path / "images" / "Thumbs.db").write_bytes(b"")
    units = list_units(SemanticOptions(data=given, labels=str(tmp_path / "labels.txt")))
    assert [unit.id for unit in units] == [unit.id for unit in whole if unit.id != gone.stem]
    [note] = units.left_out
    assert (note.what, note.count, note.examples) == ("images without a label map", 1, (gone.stem,))


@pytest.mark.parametrize(("name", "message"), [("a.jpg", "which has 1 .jpg"), (None, "which has no file")])
def test_a_folder_without_label_maps_says_what_it_has(tmp_path, name, message):
    (tmp_path / "masks").mkdir()
    if name:
        (tmp_path / "masks" / name).write_bytes(b"")
    (tmp_path / "labels.txt").write_text("cat\n")
    options = SemanticOptions(
        data={"images": tmp_path, "masks": tmp_path / "masks"}, labels=str(tmp_path / "labels.txt")
    )
    with pytest.raises(DataError, match=message) as refused:
        list_units(options)
    assert ("JPEG" in refused.value.remedy) == (name == "a.jpg")
