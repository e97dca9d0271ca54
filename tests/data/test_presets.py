"""Published datasets: every layout is read as it is published, and what is missing is said.

The numbers come from the datasets' own tables: Cityscapes' ids and train ids, COCO's ids, the category ids of Pascal
Context's trainval_merged.json that mmsegmentation keeps.
"""

import numpy as np
import preset_folders
import published_folders as folders
import pytest

from hardlook.data import presets
from hardlook.errors import DataError, OptionError
from hardlook.similarity.label_sets import load_label_set

# Category ids (1 to 459) of the 59 frequent classes, as in mmsegmentation's tools/dataset_converters/pascal_context.py.
FREQUENT = [
    2, 259, 260, 415, 324, 9, 258, 144, 18, 19, 22, 23, 397, 25, 284, 158, 159, 416, 33, 162, 420, 454, 295, 296, 427,
    44, 45, 46, 308, 59, 440, 445, 31, 232, 65, 354, 424, 68, 326, 72, 458, 34, 207, 80, 355, 85, 347, 220, 349, 360,
    98, 187, 104, 105, 366, 189, 368, 113, 115,
]  # fmt: skip

# Cityscapes' ids of train ids 0 to 18, and the ids that are not evaluated.
TRAIN_IDS = [7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33]
NOT_EVALUATED = {0, 1, 2, 3, 4, 5, 6, 9, 10, 14, 15, 16, 18, 29, 30}


def number(dataset):
    labels = load_label_set(dataset.layout.labels)
    given = labels.names, labels.ids.tolist(), labels.category_ids.tolist()
    return dict(zip(labels.names, presets.number_labels(dataset.layout, *given), strict=True))


def test_ade20k_as_published_and_as_detectron2_has_it(tmp_path):
    folders.make_ade20k(tmp_path / "one", [0, 1, 150])
    folders.make_ade20k(tmp_path / "two", [255, 0, 149], "annotations_detectron2")
    first, second = (presets.open_map_preset("ade20k", tmp_path / name, "val") for name in ("one", "two"))
    assert list(first.maps) == ["ADE_val_00000001", "ADE_val_00000002"]
    assert (number(first)["wall"], number(first)["flag"], first.layout.ignored) == (1, 150, (0,))
    assert (number(second)["wall"], number(second)["flag"], second.layout.ignored) == (0, 149, (255,))
    assert list(presets.open_map_preset("ade20k", tmp_path / "one", "train").maps) == ["ADE_train_00000001"]


def test_the_folder_above_is_as_good(tmp_path):
    folders.make_ade20k(tmp_path / "ADEChallengeData2016", [1])
    assert len(presets.open_map_preset("ade20k", tmp_path, "val").maps) == 2


def test_the_classes_of_pascal_context_are_in_the_order_of_their_category_ids(tmp_path):
    # The 459 are alphabetical, and the 59 are those of them with these ids: so they are alphabetical, too.
    every = load_label_set("pc459").names
    by_id = [every[i - 1] for i in sorted(FREQUENT)]
    folders.make_mmseg_context(tmp_path / "mmseg", [0, 1, 59])
    folders.make_catseg_context(tmp_path / "catseg", [255, 0, 58])
    folders.make_odise_context(tmp_path / "odise", [255, 0, 58])
    for name, offset, ignored in (("mmseg", 1, 0), ("catseg", 0, 255), ("odise", 0, 255)):
        dataset = presets.open_map_preset("pascal-context", tmp_path / name, "val")
        numbers = number(dataset)
        assert dataset.layout.ignored == (ignored,)
        ordered = sorted(numbers, key=numbers.__getitem__)
        assert sorted(numbers.values()) == list(range(offset, 59 + offset))
        assert [one.replace(" ", "") for one in ordered] == [one.replace(" ", "") for one in by_id]
    listed = presets.open_map_preset("pascal-context", tmp_path / "mmseg", "val")
    assert list(listed.maps) == ["2008_000002"], "its list counts, not its folder"


def test_pascal_context_459_counts_from_zero(tmp_path):
    for name, make in (("catseg", folders.make_catseg_context), ("odise", folders.make_odise_context)):
        make(tmp_path / name, [65535, 0, 458], 459)
        dataset = presets.open_map_preset("pascal-context-459", tmp_path / name, "val")
        numbers = number(dataset)
        assert (numbers["accordion"], numbers["wool"], dataset.layout.ignored) == (0, 458, (65535,))


def test_sans_folders_of_pascal_context(tmp_path):
    for classes, ignored in ((59, 255), (459, 65535)):
        preset_folders.make_san_context(tmp_path, [0, 1], classes)
        name = "pascal-context" if classes == 59 else "pascal-context-459"
        dataset = presets.open_map_preset(name, tmp_path, "val")
        assert (list(dataset.maps), dataset.layout.ignored, len(number(dataset))) == (["a", "b"], (ignored,), classes)
    assert number(presets.open_map_preset("pascal-context", tmp_path, "val"))["bag"] == 1


def test_the_twenty_classes_of_voc_without_its_background(tmp_path):
    made = {"voc": preset_folders.make_voc, "san": preset_folders.make_san_voc, "odise": preset_folders.make_odise_voc}
    expected = {"voc": (1, 20, (0, 255)), "san": (0, 19, (255,)), "odise": (0, 19, (255,))}
    for name, make in made.items():
        make(tmp_path / name, [0, 1])
        dataset = presets.open_map_preset("pascal-voc-20", tmp_path / name, "val")
        numbers = number(dataset)
        assert (numbers["aeroplane"], numbers["tvmonitor"], dataset.layout.ignored) == expected[name]
        assert len(numbers) == 20
        assert len(dataset.maps) == (1 if name == "voc" else 2)


def test_objects_of_coco_and_ade20k(tmp_path):
    preset_folders.make_coco_instances(tmp_path)
    preset_folders.make_ade_instances(tmp_path)
    coco, ade = (presets.open_instance_preset(name, tmp_path, "val", needs_images=True) for name in
                 ("coco-instances", "ade20k-instances"))  # fmt: skip
    assert (coco.images, ade.images) == (tmp_path / "val2017", tmp_path / "ADEChallengeData2016/images/validation")
    assert set(coco.sources) == {"coco-instances annotations", "coco-instances images"}
    with pytest.raises(DataError, match=r"found .*val2017/") as caught:
        presets.open_instance_preset("coco-instances", tmp_path, "train", needs_images=True)
    assert "annotations/instances_train2017.json" in caught.value.remedy
    assert "with images in train2017" in caught.value.remedy


def test_panoptic_coco_and_ade20k(tmp_path):
    preset_folders.make_coco_panoptic(tmp_path)
    preset_folders.make_ade_panoptic(tmp_path)
    for name, images, segments in (
        ("coco-panoptic", "val2017", "annotations/panoptic_val2017"),
        ("ade20k-panoptic", "ADEChallengeData2016/images/validation", "ADEChallengeData2016/ade20k_panoptic_val"),
    ):
        files = presets.open_panoptic_preset(name, tmp_path, "val", needs_images=True)
        assert (files.images, files.segments) == (tmp_path / images, tmp_path / segments)
        assert set(files.sources) == {f"{name} {part}" for part in ("annotations", "segments", "images")}
        with pytest.raises(DataError, match="no layout of") as caught:
            presets.open_panoptic_preset(name, tmp_path, "train", needs_images=True)
        assert "images" in caught.value.remedy or "train2017" in caught.value.remedy
    assert presets.get_preset_labels("ade20k-panoptic") == "ade150"


def test_ade20k_847_counts_from_zero(tmp_path):
    folders.make_ade20k_847(tmp_path, [65535, 0, 846])
    dataset = presets.open_map_preset("ade20k-847", tmp_path, "val")
    numbers = number(dataset)
    assert presets.get_preset_labels("ade20k-847") == dataset.layout.labels == "ade847"
    assert (numbers["wall"], numbers["adding machine"], dataset.layout.ignored) == (0, 846, (65535,))


def test_cityscapes_by_ids_and_by_train_ids(tmp_path):
    folders.make_cityscapes(tmp_path / "ids", [0, 7, 33])
    folders.make_cityscapes(tmp_path / "train", [255, 0, 18], "labelTrainIds")
    by_id, by_train_id = (presets.open_map_preset("cityscapes", tmp_path / name, "val") for name in ("ids", "train"))
    assert list(number(by_id).values()) == TRAIN_IDS
    assert list(number(by_train_id).values()) == list(range(19))
    assert set(by_id.layout.ignored) == NOT_EVALUATED | {255}
    for dataset in (by_id, by_train_id):
        assert list(dataset.maps) == ["frankfurt_000000_000294", "lindau_000001_000019"]
        file = dataset.maps["lindau_000001_000019"]
        assert (file.image_folder / f"{file.image_stem}.png").is_file()


def test_every_cityscapes_id_is_a_class_or_ignored():
    layout = next(one for one in presets._read_table()[0] if one.dataset == "cityscapes" and one.offset == 0)
    assert set(layout.ignored) | set(TRAIN_IDS) == {*range(34), 255}
    assert not set(layout.ignored) & set(TRAIN_IDS)


@pytest.mark.parametrize(
    ("images", "maps", "end", "numbers"),
    [
        ("val2017", "stuffthingmaps/val2017", ".png", (0, 12, 91, 181)),
        ("images/val2017", "annotations/val2017", ".png", (0, 12, 91, 181)),
        ("images/val2017", "annotations/val2017", "_labelTrainIds.png", (0, 11, 80, 170)),
        ("val2017", "stuffthingmaps_detectron2/val2017", ".png", (0, 11, 80, 170)),
        ("images/val2017", "annotations_detectron2/val2017", ".png", (0, 11, 80, 170)),
    ],
)
def test_coco_stuff_in_five_layouts(tmp_path, images, maps, end, numbers):
    folders.make_coco_stuff(tmp_path, [255, 0], images, maps, end)
    dataset = presets.open_map_preset("coco-stuff", tmp_path, "val")
    assert list(dataset.maps) == ["000000000139", "000000000285"]
    named = number(dataset)
    # COCO's id 13 is the stop sign (12 has no masks), 92 the banner (the first stuff), 182 wood.
    assert tuple(named[name] for name in ("person", "stop sign", "banner", "wood")) == numbers
    assert dataset.layout.ignored == (255,)


def test_maps_of_both_kinds_in_one_folder_are_not_mixed(tmp_path):
    folders.make_coco_stuff(tmp_path, [91], "images/val2017", "annotations/val2017")
    folders.make_coco_stuff(tmp_path, [80], "images/val2017", "annotations/val2017", "_labelTrainIds.png")
    dataset = presets.open_map_preset("coco-stuff", tmp_path, "val")
    assert list(dataset.maps) == ["000000000139", "000000000285"]
    assert number(dataset)["banner"] == 91


@pytest.mark.parametrize("name", presets.list_map_presets())
def test_an_error_says_which_folders_were_expected_and_which_are_there(tmp_path, name):
    (tmp_path / "pictures").mkdir()
    with pytest.raises(DataError, match="found pictures/") as caught:
        presets.open_map_preset(name, tmp_path, "val")
    for layout in (one for one in presets._read_table()[0] if one.dataset == name):
        assert layout.maps[0].replace("{split}", layout.splits["val"]) in caught.value.remedy
    with pytest.raises(DataError, match="no such folder"):
        presets.open_map_preset(name, tmp_path / "nowhere", "val")
    with pytest.raises(OptionError, match="no split 'minival'") as caught:
        presets.open_map_preset(name, tmp_path, "minival")
    assert "--split train or val" in caught.value.remedy


@pytest.mark.parametrize(
    ("annotations", "images"),
    [("lvis_v1_val.json", "."), ("annotations/lvis_v1_val.json", "images"), ("lvis/lvis_v1_val.json", "coco")],
)
def test_lvis_beside_coco_s_images(tmp_path, annotations, images):
    folders.make_lvis(tmp_path, annotations, images)
    files = presets.open_instance_preset("lvis", tmp_path, "val", needs_images=True)
    assert files.annotations == tmp_path / annotations
    assert set(files.sources) == {"lvis annotations", "lvis train2017", "lvis val2017"}


def test_lvis_without_images_is_enough_for_stored_detections(tmp_path):
    folders.make_lvis(tmp_path, images="elsewhere")
    assert presets.open_instance_preset("lvis", tmp_path, "val", needs_images=False).images is None
    with pytest.raises(DataError, match=r"found elsewhere/, lvis_v1_val\.json") as caught:
        presets.open_instance_preset("lvis", tmp_path, "val", needs_images=True)
    assert "train2017 or val2017" in caught.value.remedy


def test_a_list_with_an_id_twice_is_refused(tmp_path):
    folders.make_mmseg_context(tmp_path, [1])
    (tmp_path / "VOCdevkit/VOC2010/ImageSets/SegmentationContext/val.txt").write_text("2008_000002\n2008_000002\n")
    with pytest.raises(DataError, match="duplicate id"):
        presets.open_map_preset("pascal-context", tmp_path, "val")


def test_every_row_of_the_table_names_its_origin_and_a_shipped_set():
    table = presets._read_table()
    assert all(len(one.origin) > 20 for one in (*table.maps, *table.instances, *table.panoptic))
    assert all(load_label_set(one.labels) for one in (*table.instances, *table.panoptic) if one.labels)
    for layout in table.maps:
        if layout.labels:
            labels = load_label_set(layout.labels)
            numbers = presets.number_labels(layout, labels.names, labels.ids.tolist(), labels.category_ids.tolist())
            assert len(set(numbers)) == len(labels)
            assert not set(numbers) & set(layout.ignored)
            assert np.min(numbers) >= 0


def test_two_label_maps_of_one_name_are_both_named(tmp_path):
    folders.make_cityscapes(tmp_path, [7])
    maps = tmp_path / "gtFine" / "val"
    name = "frankfurt_000000_000294_gtFine_labelIds.png"
    (maps / "lindau" / name).write_bytes((maps / "frankfurt" / name).read_bytes())
    with pytest.raises(DataError, match="two label maps are called 'frankfurt_000000_000294'") as caught:
        presets.open_map_preset("cityscapes", tmp_path, "val")
    assert all(str(maps / city / name) in caught.value.what for city in ("frankfurt", "lindau"))
