"""Which images train: folds, selections, what is excluded and held back, and what is said of it."""

import numpy as np
import pytest

from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import DataError, OptionError
from hardlook.toss.bias.training_images import open_images
from hardlook.toss.training.data import (
    OneShotDataOptions,
    choose_images,
    choose_split,
    is_held_back,
    prepare_data,
    read_excluded,
)
from hardlook.world.layouts import write_world


@pytest.fixture(scope="module")
def devkit(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world") / "voc", "voc", count=24, border=1)


def choose(devkit, **options):
    given = OneShotDataOptions({"voc": devkit}, 0, 2, **options)
    opened = open_images({"voc": devkit}, None, None)
    split = choose_split(tuple(opened.source.classes), 0, 2, coco=False)
    images, counts = choose_images(opened, split, given)
    return images, counts, split, opened


def test_folds_are_those_of_the_benchmarks():
    assert choose_split(VOC_CLASSES, 3, 4, coco=False).test == VOC_CLASSES[15:]
    names = tuple(f"c{number}" for number in range(80))
    split = choose_split(names, 1, 4, coco=True)
    assert split.test == names[1::4] and len(split.training) == 60 and split.name == "fold 1 of COCO-20i"
    with pytest.raises(OptionError, match="--fold 4"):
        choose_split(names, 4, 4, coco=True)


def test_all_images_of_a_training_class_train(devkit):
    images, counts, split, opened = choose(devkit)
    assert {one.image for one in images} == {
        one.image for one in opened.images if set(one.classes) & set(split.training)
    }
    assert counts["images"] == 24 and counts["dropped by the selection"] == 0
    assert len(images) + counts["without a training class"] == 24


def test_leave_out_drops_images_with_a_test_class(devkit):
    images, counts, split, _ = choose(devkit, selection="leave-out")
    assert images and not any(set(one.classes) & set(split.test) for one in images)
    assert counts["dropped by the selection"] == len(choose(devkit)[0]) - len(images) > 0


def test_sgtss_keeps_what_bias_select_keeps(hardlook, devkit, tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "selection"
    options = "--fold 0 --folds 2 --saliency planted-saliency -q"
    assert not hardlook("bias", "select", "--data", f"voc={devkit}", "--out", out, *options.split()).code
    images, counts, _, _ = choose(devkit, selection="sgtss", saliency="planted-saliency")
    kept = (out / "kept.txt").read_text().split()
    assert sorted(one.image for one in images) == sorted(kept) and counts["dropped by the selection"] > 0
    listed, _, _, _ = choose(devkit, selection=str(out))
    assert [one.image for one in listed] == [one.image for one in images]


def test_a_list_of_other_images_is_refused(devkit, tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("nowhere\n")
    with pytest.raises(DataError, match="1 of 1 images of the list are no training images here: nowhere"):
        choose(devkit, selection=str(path))
    with pytest.raises(OptionError, match="no such selection"):
        choose(devkit, selection="saliency")


def test_excluded_images_do_not_train(devkit, tmp_path):
    first = choose(devkit)[0][0].image
    listed = tmp_path / "test.txt"
    listed.write_text(f"{first}\n")
    images, counts, _, _ = choose(devkit, exclude=listed)
    assert first not in {one.image for one in images} and counts["excluded"] == 1
    assert read_excluded(devkit) == {path.stem for path in (devkit / "JPEGImages").iterdir()}
    with pytest.raises(DataError, match="no image is left to train on"):
        choose(devkit, exclude=devkit)
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    with pytest.raises(DataError, match="no image is named here"):
        read_excluded(empty)


def test_what_is_held_back_depends_on_the_image_alone():
    shares = [is_held_back(f"image {number}", 0.1) for number in range(2000)]
    assert np.mean(shares) == pytest.approx(0.1, abs=0.02)
    assert [is_held_back(f"image {number}", 0.1) for number in range(2000)] == shares


def test_data_have_the_maps_of_the_source(devkit):
    pytest.importorskip("torch")
    from hardlook.training.one_shot_recipes import change_one_shot_recipe, find_one_shot_recipe

    recipe = change_one_shot_recipe(find_one_shot_recipe("simpropnet"), {"size": 1000})
    data = prepare_data(OneShotDataOptions({"voc": devkit}, 0, 2, held_back=0.3), recipe)
    images, _, split, opened = choose(devkit)
    assert len(data.images) == len(images) == len(data.rows) + len(data.held)
    for place, one in enumerate(images):
        height, width = data.images.sizes[place]
        wanted = opened.source.read_classes(one.image)
        assert np.array_equal(data.images.classes[place, :height, :width].numpy(), wanted)
        assert np.array_equal(
            data.images.images[place, :height, :width].numpy(), opened.source.read_image(one.tokens[0])
        )
    assert [data.names[number] for number in data.training] == list(split.training)
    assert [data.names[number] for number in data.novel] == list(split.test)
    assert data.facts["validation"]["images"] == len(data.held) > 0
    assert (data.images.classes == 255).any()


def test_large_images_are_made_smaller_and_the_fingerprint_follows_pixels(devkit):
    pytest.importorskip("torch")
    from hardlook.training.one_shot_recipes import change_one_shot_recipe, find_one_shot_recipe

    small, large = (
        prepare_data(
            OneShotDataOptions({"voc": devkit}, 0, 2),
            change_one_shot_recipe(find_one_shot_recipe("simpropnet"), {"size": size}),
        )
        for size in (33, 49)
    )
    assert small.images.sizes.max() == 33 and large.images.sizes.max() == 49
    assert small.facts["fingerprint"] != large.facts["fingerprint"]
