"""Data of a training: splits, contexts, leaks, decoding once, validation as the data allow."""

import shutil

import numpy as np
import PIL.Image
import pytest
from tiny_images import write_images

from hardlook.errors import DataError, OptionError
from hardlook.metacoco.tasks.checking import check_tasks
from hardlook.metacoco.training.data import DataOptions, decode_images, prepare_data, stored_size
from hardlook.metacoco.units import load_images, make_source
from hardlook.models.preprocessing import preprocess_image
from hardlook.training.recipes import change_recipe, find_recipe


def recipe(**changes):
    given = {"ways": 2, "shots": 1, "queries": 2, **changes}
    return change_recipe(find_recipe("protonet", "conv64f", ("episodes",)), given)


def prepare(root, *, size=16, seed=0, **options):
    changes = options.pop("changes", {})
    return prepare_data(DataOptions(root, **options), recipe(**changes), size=size, seed=seed)


def test_tasks_come_from_the_train_split_and_are_those_of_the_benchmark(images):
    data = prepare(images, validation_tasks=4)
    assert data.classes == tuple(f"train-{number}" for number in range(5)) and len(data.images) == 40
    tasks = data.draw(np.arange(50))
    assert tasks.support.shape == (50, 2, 1) and tasks.query.shape == (50, 2, 2)
    assert (data.labels[tasks.support] == tasks.classes[..., None]).all()
    assert (data.labels[tasks.query] == tasks.classes[..., None]).all()
    some = data.draw(np.array([7, 3]))
    assert (some.query == tasks.query[[7, 3]]).all()
    from hardlook.metacoco.options import MetaCocoOptions
    from hardlook.metacoco.tasks.drawing import draw_tasks
    from hardlook.metacoco.tasks.eligibility import find_eligible_classes

    table = load_images(make_source(MetaCocoOptions(data={"root": images}, split="train"))).table
    same = draw_tasks(
        find_eligible_classes(table, ("blind",), 2, 1, 2, blind_supports="paper"), "blind", range(50), seed=0
    )
    check_tasks(same, table)
    assert (same.query == tasks.query).all() and (same.support == tasks.support).all()


def test_validation_has_every_mode_with_the_same_supports(images):
    data = prepare(images, validation_tasks=6)
    assert list(data.validation) == ["blind", "iid", "ood"] and len(data.validation_images) == 24
    supports = [tasks.support for tasks in data.validation.values()]
    assert all((one == supports[0]).all() for one in supports)
    assert data.facts["validation"]["queries"] == 2 and data.facts["leak_check"]["images_of_other_splits_left_out"] == 0


def test_contexts_that_are_left_out_are_seen_nowhere(images):
    data = prepare(images, contexts=("snow",), validation_tasks=2)
    assert data.facts["contexts"] == ["snow"] and len(data.images) == 20 and len(data.validation_images) == 12
    assert list(data.validation) == ["blind", "iid"]
    with pytest.raises(DataError, match="no context 'beach'"):
        prepare(images, contexts=("beach",))


def test_fewer_queries_where_the_val_split_is_small(tmp_path):
    root = write_images(tmp_path / "images", {"train": 3, "val": 2}, each=3)
    changes = {"queries": 5}
    data = prepare(root, changes=changes, validation_tasks=2)
    assert data.facts["validation"]["queries"] == 5 and list(data.validation) == ["blind"]
    for path in (root / "val").rglob("2.png"):
        path.unlink()
    assert prepare(root, changes=changes, validation_tasks=2).facts["validation"]["queries"] == 3


def test_without_a_usable_val_split_there_is_no_validation(tmp_path, images):
    root = write_images(tmp_path / "images", {"train": 4, "test": 2})
    data = prepare(root)
    assert data.validation_images is None and data.facts["validation"]["why"] == "the data has no val split"
    assert "4 classes of the val split" in prepare(images, changes={"ways": 4}).facts["validation"]["why"]


def test_leaks_between_splits_are_left_out_or_refused(tmp_path):
    root = write_images(tmp_path / "images", {"train": 3, "val": 2, "test": 2})
    shutil.copy(root / "test/test-0/snow/0.png", root / "train/train-0/snow/9.png")
    data = prepare(root, validation_tasks=1)
    assert data.facts["leak_check"]["images_of_other_splits_left_out"] == 1 and len(data.images) == 24
    shutil.copytree(root / "test/test-0", root / "train/test-0")
    with pytest.raises(DataError, match="classes of the splits must differ"):
        prepare(root)


def test_what_cannot_form_tasks_is_an_error(tmp_path, images):
    with pytest.raises(OptionError, match="0 of 5 classes can form 2-way 1-shot"):
        prepare(images, changes={"queries": 30})
    with pytest.raises(DataError, match="no image of split 'train'"):
        prepare(images / "train")
    root = write_images(tmp_path / "images", {"train": 2, "val": 2})
    (root / "train/train-0/snow/0.png").write_bytes(b"no image")
    with pytest.raises(DataError):
        prepare(root)
    assert len(prepare(root, skip_corrupt=True, validation_tasks=1).images) == 15


def test_images_are_decoded_once_as_the_protocol_says(tmp_path):
    root = write_images(tmp_path / "images", {"train": 2}, side=120)
    from hardlook.metacoco.options import MetaCocoOptions

    source = load_images(make_source(MetaCocoOptions(data={"root": root}, split="train")))
    pixels = decode_images(source, stored_size(84), folder=tmp_path / "decoded")
    whole = np.array(PIL.Image.open(source.files[3]))
    assert pixels.shape == (16, 96, 96, 3)
    assert (pixels[3, 6:90, 6:90] == preprocess_image(whole, "paper")).all()
    (kept,) = (tmp_path / "decoded").iterdir()
    written = kept.stat().st_mtime_ns
    assert (decode_images(source, 96, folder=tmp_path / "decoded") == pixels).all()
    assert kept.stat().st_mtime_ns == written
    kept.write_bytes(kept.read_bytes()[:500])
    assert (decode_images(source, 96, folder=tmp_path / "decoded") == pixels).all()
