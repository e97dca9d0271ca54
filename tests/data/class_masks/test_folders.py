from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardlook.data.class_masks import ClassMaskSource, open_class_mask_folders
from hardlook.data.class_masks.folders import LabelledFolders
from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import DataError, OptionError
from hardlook.world.layouts import write_world
from hardlook.world.planted import PlantedWorld
from hardlook.world.vocabulary import CONCEPTS


def store(path: Path, values: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(np.asarray(values, np.uint8)).save(path)
    return path


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Three images of 3x2; `a` and `b` have label maps of cat and dog, `c` has none."""
    for name in "abc":
        store(tmp_path / "images" / f"{name}.png", np.full((2, 3, 3), 90))
    store(tmp_path / "masks" / "a.png", [[0, 1, 255], [0, 2, 2]])
    store(tmp_path / "masks" / "b.png", [[0, 0, 0], [0, 0, 2]])
    (tmp_path / "names.txt").write_text("# the classes\ncat\ndog\n")
    return tmp_path


def opened(folder: Path, kind: str = "masks") -> ClassMaskSource:
    return open_class_mask_folders({"images": folder / "images", kind: folder / kind}, labels=folder / "names.txt")


def test_label_maps_of_a_folder(folders: Path) -> None:
    source = opened(folders)
    assert source.classes == ("cat", "dog")
    assert source.tokens() == ("1_a", "2_a", "2_b")
    assert (source.class_of("2_b"), source.image_of("2_b")) == ("dog", "b")
    truth = source.read_mask("2_a")
    assert truth.mask.tolist() == [[False, False, False], [False, True, True]]
    assert truth.void.tolist() == [[False, False, True], [False, False, False]]
    assert source.read_classes("a").tolist() == [[0, 1, 255], [0, 2, 2]]
    assert source.read_image("2_a").shape == (2, 3, 3)
    assert [source.missing(token) for token in ("2_a", "2_c", "2_d", "3_a")] == [
        "", "the mask of 2_c", "the image d", "the class number 3 (there are 2 classes)",
    ]  # fmt: skip
    assert set(source.paths().values()) == {folders / "images", folders / "masks", folders / "names.txt"}


@pytest.mark.parametrize(("kind", "other"), [("images", "a.jpg"), ("masks", "a.npy")])
def test_two_files_of_one_name_are_an_error_that_names_both(folders: Path, kind: str, other: str) -> None:
    store(folders / "images" / "a.jpg", np.full((2, 3, 3), 7)).rename(folders / kind / other)
    with pytest.raises(DataError, match=rf"two files are called 'a': {min('a.png', other)} and {max('a.png', other)}"):
        opened(folders).missing("1_a")
    assert opened(folders).missing("2_b") == ""
    assert list(opened(folders).unreadable()) == ["a"]


def test_an_image_and_its_map_may_share_a_name_in_one_folder(folders: Path) -> None:
    for name in "ab":
        store(folders / "masks" / f"{name}.jpg", np.full((2, 3, 3), 90))
    both = {"images": folders / "masks", "masks": folders / "masks"}
    source = open_class_mask_folders(both, labels=folders / "names.txt")
    assert source.tokens() == ("1_a", "2_a", "2_b")
    assert (source.read_image("2_b") == 90).all()


def test_a_class_without_pixels_has_an_empty_mask(folders: Path) -> None:
    source = opened(folders)
    assert source.missing("1_b") == ""
    assert not source.read_mask("1_b").mask.any()


def test_binary_masks(folders: Path) -> None:
    store(folders / "binary" / "2_a.png", [[0, 255, 255], [0, 0, 0]])
    store(folders / "binary" / "1_c.png", [[0, 1, 255], [0, 0, 0]])
    store(folders / "binary" / "2_c.png", np.zeros((2, 3)))
    source = opened(folders, "binary")
    assert source.tokens() == ("1_c", "2_a")
    assert source.read_mask("2_a").mask.tolist() == [[False, True, True], [False, False, False]]
    assert not source.read_mask("2_a").void.any()
    assert source.read_mask("1_c").mask.sum() == source.read_mask("1_c").void.sum() == 1
    assert not source.read_mask("2_c").mask.any()
    assert source.missing("1_a") == "the mask of 1_a"
    assert source.read_classes("c").tolist() == [[0, 1, 255], [0, 0, 0]]
    with pytest.raises(DataError, match="no label map for b"):
        source.read_classes("b")
    store(folders / "binary" / "1_b.png", [[0, 7, 255], [0, 0, 0]])
    with pytest.raises(DataError, match="with the values 7") as caught:
        source = opened(folders, "binary")
        source.read_mask("1_b")
    assert caught.value.unit == "1_b"


def test_every_image_of_a_devkit_takes_the_first_truth_there_is(tmp_path: Path) -> None:
    for name in ("2007_000001", "2007_000002", "2007_000003", "2007_000004"):
        store(tmp_path / "JPEGImages" / f"{name}.png", np.zeros((1, 2, 3)))
    store(tmp_path / "SegmentationClassAug" / "2007_000001.png", [[3, 0]])
    store(tmp_path / "SegmentationClass" / "2007_000001.png", [[4, 255]])
    store(tmp_path / "SegmentationClass" / "2007_000002.png", [[5, 255]])
    store(tmp_path / "SegmentationClass" / "7_2007_000003.png", [[0, 255]])
    store(tmp_path / "elsewhere" / "20_2007_000004.png", [[1, 0]])
    source = open_class_mask_folders({"voc": tmp_path, "binary": tmp_path / "elsewhere"})
    assert isinstance(source, LabelledFolders)
    assert source.classes == VOC_CLASSES
    assert source.tokens() == ("3_2007_000001", "5_2007_000002", "7_2007_000003", "20_2007_000004")
    assert source.read_mask("7_2007_000003").mask.tolist() == [[False, True]]
    assert source.read_mask("5_2007_000002").void.tolist() == [[False, True]]
    assert not source.read_mask("4_2007_000001").mask.any()
    assert source.read_mask("20_2007_000004").mask.tolist() == [[True, False]]
    alone = open_class_mask_folders({"voc": tmp_path})
    assert alone.missing("20_2007_000004") == "the mask of 20_2007_000004"


def test_planted_devkit(tmp_path: Path) -> None:
    source = open_class_mask_folders({"voc": write_world(tmp_path, "voc", seed=3, count=8, size=(96, 72), border=1)})
    assert source.classes == tuple(label.name for label in CONCEPTS)
    tokens = set(source.tokens())
    for index, rendered in enumerate(PlantedWorld(seed=3, count=8, size=(96, 72))):
        for number, label in enumerate(CONCEPTS, start=1):
            token = f"{number}_2026_{index + 1:06d}"
            truth = source.read_mask(token)
            assert np.array_equal(truth.mask, rendered.class_mask(label.name) & ~truth.void)
            assert (token in tokens) == bool(truth.mask.any())
        assert np.array_equal(source.read_image(token), rendered.image)


def damage(folders: Path, kind: str) -> None:
    mask = folders / "masks" / "a.png"
    if kind == "cut off":
        mask.write_bytes(mask.read_bytes()[:45])  # inside the pixels
    elif kind == "not an image":
        mask.write_text("nothing")
    elif kind == "is 4x2, its image 3x2":
        store(mask, np.zeros((2, 4)))
    elif kind == "holds 3, 9: none of the 2 classes":
        store(mask, [[3, 9, 0], [0, 0, 0]])
    elif kind == "channels":
        store(mask, np.arange(18).reshape(2, 3, 3))


@pytest.mark.parametrize(
    "kind", ["cut off", "not an image", "is 4x2, its image 3x2", "holds 3, 9: none of the 2 classes", "channels"]
)
def test_a_damaged_mask_is_named(folders: Path, kind: str) -> None:
    damage(folders, kind)
    with pytest.raises(DataError, match=kind) as caught:
        opened(folders).read_mask("1_a")
    assert (caught.value.file, caught.value.unit) == (str(folders / "masks" / "a.png"), "1_a")
    assert caught.value.remedy


@pytest.mark.parametrize("place", ["masks", "images"])
def test_an_image_that_cannot_be_read_is_left_out_and_named(folders: Path, place: str) -> None:
    (folders / place / "a.png").write_text("nothing")
    source = opened(folders)
    assert source.tokens() == ("2_b",)
    assert dict(source.unreadable()) == {"a": f"{place}/a.png: the file is not an image"}
    assert not pickle.loads(pickle.dumps(source)).__dict__.keys() - {"images", "classes", "maps", "binary", "files"}


def test_one_bad_binary_mask_costs_its_image(folders: Path) -> None:
    for token in ("1_a", "2_a", "2_b"):
        store(folders / "binary" / f"{token}.png", [[0, 255, 255], [0, 0, 0]])
    store(folders / "binary" / "1_b.png", [[0, 7, 255], [0, 0, 0]])
    store(folders / "binary" / "9_c.png", [[0, 255, 255], [0, 0, 0]])
    source = opened(folders, "binary")
    assert source.tokens() == ("1_a", "2_a")
    why = source.unreadable()
    assert set(why) == {"b", "c"} and "with the values 7" in why["b"] and "class number 9" in why["c"]


def test_a_name_that_makes_no_token_is_named(folders: Path) -> None:
    store(folders / "images" / "my dog.png", np.full((2, 3, 3), 90))
    shutil.copy(folders / "masks" / "b.png", folders / "masks" / "my dog.png")
    source = opened(folders)
    assert source.tokens() == ("1_a", "2_a", "2_b") and "not a token" in source.unreadable()["my dog"]


def test_where_binary_masks_overlap_the_smaller_is_in_front(folders: Path) -> None:
    store(folders / "binary" / "1_a.png", [[255, 255, 255], [0, 0, 0]])
    store(folders / "binary" / "2_a.png", [[0, 255, 0], [0, 255, 0]])
    assert opened(folders, "binary").read_classes("a").tolist() == [[1, 2, 1], [0, 2, 0]]


def test_what_a_token_lacks_is_named_when_it_is_read(folders: Path) -> None:
    source = opened(folders)
    for token, what in (("3_a", "class number 3"), ("a", "not a token"), ("1_c", "no label map"), ("1_d", "no")):
        with pytest.raises(DataError, match=what) as caught:
            source.read_mask(token)
        assert caught.value.unit == token
    with pytest.raises(DataError, match="no image 'd'"):
        source.read_image("1_d")
    with pytest.raises(DataError, match="class number 3"):
        source.class_of("3_a")
    (folders / "images" / "a.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match="not an image") as caught:
        source.read_mask("1_a")
    assert caught.value.file == str(folders / "images" / "a.png")


def test_what_cannot_be_opened_is_named(folders: Path) -> None:
    given = {"images": folders / "images", "masks": folders / "masks"}
    with pytest.raises(OptionError, match="unknown class names"):
        open_class_mask_folders(given)
    with pytest.raises(DataError, match="no folder for masks"):
        open_class_mask_folders({**given, "masks": folders / "nowhere"})
    with pytest.raises(OptionError, match="no source of class masks"):
        open_class_mask_folders({"images": folders / "images"})
    with pytest.raises(DataError, match="no such file of class names"):
        open_class_mask_folders(given, labels=folders / "nowhere.txt")
    (folders / "names.txt").write_text("cat\ncat\n")
    with pytest.raises(DataError, match="2 class names, 1 of them different"):
        open_class_mask_folders(given, labels=folders / "names.txt")
    with pytest.raises(DataError, match="no VOC devkit"):
        open_class_mask_folders({"voc": folders})
    (folders / "images").rename(folders / "JPEGImages")
    with pytest.raises(DataError, match="no class masks"):
        open_class_mask_folders({"voc": folders})


@settings(max_examples=40)
@given(labels=arrays(np.uint8, (5, 7), elements=st.sampled_from([0, 1, 2, 3, 255])))
def test_masks_and_void_partition_the_map(tmp_path_factory: pytest.TempPathFactory, labels: np.ndarray) -> None:
    folder = tmp_path_factory.mktemp("law")
    store(folder / "images" / "a.png", np.zeros((5, 7, 3)))
    store(folder / "masks" / "a.png", labels)
    (folder / "classes.txt").write_text("one\ntwo\nthree\n")
    source = open_class_mask_folders({"images": folder / "images", "masks": folder / "masks"})
    truths = [source.read_mask(f"{number}_a") for number in (1, 2, 3)]
    covered = sum(truth.mask.astype(int) for truth in truths) + truths[0].void
    assert np.array_equal(covered, (labels != 0).astype(int))
    assert source.tokens() == tuple(f"{number}_a" for number in (1, 2, 3) if (labels == number).any())


@pytest.mark.real
def test_real_masks_are_the_devkits(shared_data: Path) -> None:
    root = shared_data / "data" / "VOCdevkit" / "VOC2012"
    source = open_class_mask_folders({"voc": shared_data / "data"})
    expected = []
    for path in sorted((root / "SegmentationClass").glob("*.png"))[::25]:
        stored = np.array(PIL.Image.open(path))
        assert np.array_equal(source.read_classes(path.stem), stored)
        for number in range(1, 21):
            token = f"{number}_{path.stem}"
            truth = source.read_mask(token)
            assert np.array_equal(truth.mask, stored == number)
            assert np.array_equal(truth.void, stored == 255)
            if (stored == number).any():
                expected.append(token)
            assert source.missing(token) == ""
    assert len(expected) > 20


@pytest.mark.real
def test_a_pickled_source_is_small_and_answers_alike(shared_data: Path) -> None:
    source = open_class_mask_folders({"voc": shared_data / "data"})
    token = source.tokens()[0]
    packed = pickle.dumps(source)
    assert len(packed) < 5000
    again = pickle.loads(packed)
    assert again == source
    assert np.array_equal(again.read_mask(token).mask, source.read_mask(token).mask)


def test_a_copy_sees_files_that_came_later(folders: Path) -> None:
    assert opened(folders).missing("1_c") == "the mask of 1_c"
    shutil.copy(folders / "masks" / "a.png", folders / "masks" / "c.png")
    assert opened(folders).missing("1_c") == ""
