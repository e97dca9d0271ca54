"""Objects to train on: components of class masks, object masks, what is left out and counted."""

import doctest
import shutil

import numpy as np
import PIL.Image
import pytest

pytest.importorskip("torch")

from hardlook.errors import DataError
from hardlook.rclicks.network_training import data
from hardlook.rclicks.network_training.data import ObjectDataOptions, prepare_objects, split_components
from hardlook.training.interactive.recipes import change_interactive_recipe, find_interactive_recipe
from hardlook.world.layouts import write_world


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="module")
def devkit(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world") / "voc", "voc", count=10)


def make_recipe(**changes):
    return change_interactive_recipe(find_interactive_recipe("ritm", "resnet50-keras"), {"least_area": 0, **changes})


def prepare(folder, recipe=None, **options):
    return prepare_objects(ObjectDataOptions({"voc": folder}, **options), recipe or make_recipe())


def test_doctest():
    assert doctest.testmod(data).failed == 0


def test_parts_of_a_class_that_do_not_touch_are_objects_and_void_stays():
    classes = np.zeros((6, 9), int)
    classes[0:2, 0:4], classes[4:6, 0:2], classes[0:2, 4:6], classes[5, 8] = 3, 3, 7, 255
    classes[2, 6] = 7  # touches at a corner
    found, surplus = split_components(classes)
    assert surplus == 0 and found[5, 8] == 255
    areas = {int(number): int((found == number).sum()) for number in np.unique(found) if number not in (0, 255)}
    assert areas == {1: 8, 2: 5, 3: 4}
    assert (found[0:2, 0:4] == 1).all() and found[2, 6] == found[0, 4] == 2


def test_more_objects_than_a_byte_has_are_counted():
    classes = np.zeros((2, 2 * 300), int)
    classes[0, ::2] = 1
    found, surplus = split_components(classes)
    assert surplus == 46 and found.max() == 254


def test_object_masks_are_taken_where_all_images_have_them(devkit, tmp_path):
    whole = prepare(devkit)
    assert whole.facts["objects"] == "masks of objects"
    other = tmp_path / "voc"
    shutil.copytree(devkit, other)
    shutil.rmtree(other / "SegmentationObject")
    parts = prepare(other)
    assert parts.facts["objects"] == "connected components of class masks"
    assert parts.facts["fingerprint"] != whole.facts["fingerprint"]
    for given in (whole, parts):
        for row, number in given.training.tolist():
            assert (given.images.classes[row] == number).any()


def test_images_that_are_held_back_do_not_train(devkit):
    given = prepare(devkit, held_back=0.5)
    rows = [set(part[:, 0].tolist()) for part in (given.training, given.held)]
    assert all(rows) and not rows[0] & rows[1]
    assert given.facts["validation"]["images"] == len(rows[1])
    assert prepare(devkit, held_back=0.0).facts["validation"]["why"] == "no image was held back"


def test_excluded_images_and_their_copies_do_not_train(devkit, tmp_path):
    names = sorted(path.stem for path in (devkit / "JPEGImages").iterdir())
    listed = tmp_path / "names.txt"
    listed.write_text(f"{names[0]}\n{names[1]}\n")
    given = prepare(devkit, exclude=listed)
    assert given.facts["leak_check"] == {"excluded_by_name": 2, "copies_of_excluded": 0}
    assert not set(names[:2]) & set(given.names)
    tested = tmp_path / "tested"
    tested.mkdir()
    image = PIL.Image.open(next((devkit / "JPEGImages").glob(f"{names[2]}.*")))
    image.resize((image.width * 3 // 4, image.height * 3 // 4), PIL.Image.Resampling.BILINEAR).save(
        tested / "other.png"
    )
    given = prepare(devkit, exclude=tested)
    assert given.facts["leak_check"]["copies_of_excluded"] == 1
    assert given.facts["leak_check"]["copies"] == [f"{names[2]} shows other.png"] and names[2] not in given.names
    with pytest.raises(DataError, match="all 10 images are excluded"):
        prepare(devkit, exclude=devkit)


def test_small_objects_are_left_out_and_counted(devkit):
    whole = prepare(devkit)
    areas = [int((whole.images.classes[row] == number).sum()) for row, number in whole.training.tolist()]
    side = int(whole.images.sizes.max())
    least = int(np.median(areas) * (500 / side) ** 2)
    fewer = prepare(devkit, make_recipe(least_area=least))
    assert fewer.facts["too_small_objects"] > 0
    assert len(fewer.training) + len(fewer.held) + fewer.facts["too_small_objects"] == len(whole.training) + len(
        whole.held
    )
    with pytest.raises(DataError, match="no object is left to train on"):
        prepare(devkit, make_recipe(least_area=10**7))


def test_large_images_are_made_smaller_with_their_objects(devkit):
    given = prepare(devkit, make_recipe(size=32))
    assert given.images.sizes.max() == 80
    for row, number in given.training.tolist():
        assert (given.images.classes[row] == number).any()


def test_a_mask_of_another_size_is_named(devkit, tmp_path):
    other = tmp_path / "voc"
    shutil.copytree(devkit, other)
    path = sorted((other / "SegmentationObject").iterdir())[0]
    PIL.Image.fromarray(np.zeros((5, 7), np.uint8)).save(path)
    with pytest.raises(DataError, match="the mask has 7 x 5 pixels") as caught:
        prepare(other)
    assert caught.value.file == str(path) and caught.value.unit == path.stem


def test_objects_of_other_datasets(tmp_path):
    folder = write_world(tmp_path / "berkeley", "isegm", count=4)
    given = prepare_objects(ObjectDataOptions({"mine": folder}), make_recipe())
    assert len(given.training) and given.facts["objects"] == "masks of objects"


def test_copies_are_found_where_two_datasets_have_the_same_names(tmp_path):
    folders = {name: write_world(tmp_path / name, "isegm", count=3, seed=seed) for seed, name in enumerate(("a", "b"))}
    first = {name: sorted((folder / "data_GT").iterdir())[0] for name, folder in folders.items()}
    assert first["a"].name == first["b"].name and first["a"].read_bytes() != first["b"].read_bytes()
    for name in folders:
        tested = tmp_path / f"tested {name}"
        tested.mkdir()
        shutil.copy(first[name], tested / f"other{first[name].suffix}")
        given = prepare_objects(ObjectDataOptions(folders, exclude=tested), make_recipe())
        assert given.facts["leak_check"]["copies"] == [f"{first[name].stem} shows other{first[name].suffix}"]
        assert sorted(given.names).count(first[name].stem) == 1 and len(given.names) == 5


def test_what_the_mask_of_a_copy_ignores_may_be_an_object(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (40, 60, 3), np.uint8)
    for stem, left in (("cup", 0), ("cup2", 30)):
        mask = np.zeros((40, 60), np.uint8)
        mask[:, left : left + 20], mask[:, left + 20 : left + 30] = 255, 128
        if stem == "cup":
            mask[:, 30:35] = 128  # a part of the other object
        for folder, content in (("images", pixels), ("masks", mask)):
            (tmp_path / folder).mkdir(exist_ok=True)
            PIL.Image.fromarray(content).save(tmp_path / folder / f"{stem}.png")
    given = prepare_objects(ObjectDataOptions({"mine": tmp_path}), make_recipe())
    assert given.names == ("cup",)
    found = given.images.classes[0, 0, :60].tolist()
    assert found == [1] * 20 + [255] * 10 + [2] * 20 + [255] * 10


def write_objects(folder, boxes, width=60):
    """One image with an object in each of `boxes` (left, right), of its whole height."""
    pixels = np.random.default_rng(0).integers(0, 255, (40, width, 3), np.uint8)
    for place, (left, right) in enumerate(boxes):
        mask = np.zeros((40, width), np.uint8)
        mask[:, left:right] = 255
        for kind, content in (("images", pixels), ("masks", mask)):
            (folder / kind).mkdir(exist_ok=True)
            PIL.Image.fromarray(content).save(folder / kind / f"cup{place}.png")


def test_objects_that_smaller_ones_cover_are_counted_and_named(tmp_path):
    write_objects(tmp_path, [(0, 20), (0, 12), (12, 20), (30, 50), (30, 40)])
    given = prepare_objects(ObjectDataOptions({"mine": tmp_path}), make_recipe())
    assert (given.facts["covered_objects"], given.facts["covered"]) == (1, ["mine/cup0"])
    assert len(given.training) == 4
    (tmp_path / "fewer").mkdir()
    write_objects(tmp_path / "fewer", [(0, 20), (0, 12)])
    given = prepare_objects(ObjectDataOptions({"mine": tmp_path / "fewer"}), make_recipe())
    assert given.facts["covered_objects"] == 0 and "covered" not in given.facts and len(given.training) == 2


def test_objects_of_which_nothing_is_left_in_a_smaller_image_are_too_small(tmp_path):
    write_objects(tmp_path, [(0, 20), (30, 31), (33, 34)], width=240)
    given = prepare_objects(ObjectDataOptions({"mine": tmp_path}), make_recipe(size=32))
    assert given.images.sizes.max() == 80
    assert (len(given.training), given.facts["too_small_objects"]) == (1, 2)
    assert given.facts["covered_objects"] == 0
