"""Planting contexts: the plan (correlation in training, even contexts in the test, no image twice) and the folders."""

import csv
import json
from collections import Counter

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from hardlook.data.concept_context import list_images
from hardlook.errors import DataError, OptionError
from hardlook.metacoco.contexts.planting import PlantingOptions, plan_contexts, plant_contexts
from hardlook.world.planted import PlantedWorld

sizes = st.lists(st.integers(1, 40), min_size=1, max_size=15)

CONTEXTS = ("snow", "dusk", "fog", "grey")


def folders_of(counts):
    return {f"c{i}": tuple(f"c{i}/{j}.jpg" for j in range(count)) for i, count in enumerate(counts)}


@settings(max_examples=60)
@given(sizes, st.integers(1, 4), st.floats(0, 1), st.integers(0, 99), st.sampled_from(["concept", "image"]))
def test_laws(counts, contexts, correlation, seed, split_by):
    folders = folders_of(counts)
    plan = plan_contexts(folders, CONTEXTS[:contexts], correlation=correlation, seed=seed, split_by=split_by)
    assert sorted(one.source for one in plan) == sorted(name for names in folders.values() for name in names)
    assert len({one.target for one in plan}) == len(plan)
    cells = Counter((one.split, one.concept, one.context) for one in plan)
    for split, concept in {(one.split, one.concept) for one in plan}:
        dealt = [cells[split, concept, context] for context in CONTEXTS[:contexts]]
        total = sum(dealt)
        if split == "train" and contexts > 1 and correlation * contexts > 1:
            # One context has just the share that was asked for, and the others are even.
            favoured = round(correlation * total)
            assert favoured in dealt
            dealt.remove(favoured)
            assert max(dealt) - min(dealt) <= 1
        else:
            assert max(dealt) - min(dealt) <= 1
    if split_by == "concept":
        assert len({(one.split, one.concept) for one in plan}) == len(folders)
    else:
        by = Counter((one.split, one.concept) for one in plan)
        assert all(by["train", name] == round(0.64 * len(names)) for name, names in folders.items())


def test_shares_of_concepts_are_the_papers():
    plan = plan_contexts(folders_of([3] * 100), CONTEXTS, correlation=0.5, seed=0)
    by = {split: {one.concept for one in plan if one.split == split} for split in ("train", "test", "val")}
    assert {split: len(held) for split, held in by.items()} == {"train": 64, "test": 20, "val": 16}


def test_the_correlation_is_the_share_of_the_favourite():
    plan = plan_contexts(folders_of([50] * 4), CONTEXTS, correlation=0.8, seed=0, split_by="image")
    train = Counter((one.concept, one.context) for one in plan if one.split == "train")
    for concept in ("c0", "c1", "c2", "c3"):
        shares = sorted(train[concept, context] / 32 for context in CONTEXTS)
        assert shares[-1] == pytest.approx(0.8, abs=1 / 64) and shares[-2] < 0.1


def test_favourites_are_spread_and_the_dial_moves_no_concept():
    whole = plan_contexts(folders_of([4] * 20), CONTEXTS, correlation=1.0, seed=3, split_by="image")
    train = {(one.concept, one.context) for one in whole if one.split == "train"}
    assert Counter(context for _, context in train) == dict.fromkeys(CONTEXTS, 5)
    none = plan_contexts(folders_of([4] * 20), CONTEXTS, correlation=0.0, seed=3, split_by="image")
    assert {(one.source, one.split) for one in whole} == {(one.source, one.split) for one in none}


def test_the_order_of_folders_does_not_count():
    folders = folders_of([5, 9, 2, 7])
    backwards = dict(reversed(folders.items()))
    assert plan_contexts(folders, CONTEXTS, correlation=0.4, seed=1) == plan_contexts(
        backwards, CONTEXTS, correlation=0.4, seed=1
    )


@pytest.mark.parametrize(("contexts", "correlation"), [((), 0.5), (("snow", "snow"), 0.5), (("snow",), 1.5)])
def test_settings_that_make_no_plan(contexts, correlation):
    with pytest.raises(OptionError):
        plan_contexts(folders_of([3]), contexts, correlation=correlation, seed=0)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Class folders and masks from the planted world: four concepts of six images."""
    root = tmp_path_factory.mktemp("source")
    world = PlantedWorld(count=96, size=(96, 72), salient=True)
    for concept in ("cat", "dog", "bus", "cup"):
        for part in ("images", "masks"):
            (root / part / concept).mkdir(parents=True)
        for i in [i for i in range(96) if world.concept(i) == concept][:6]:
            rendered = world[i]
            Image.fromarray(rendered.image).save(root / "images" / concept / f"{i}.png")
            mask = (rendered.salient > 0).astype(np.uint8) * 255
            Image.fromarray(mask).save(root / "masks" / concept / f"{i}.png")
    return root


def content(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("image_format", ["jpg", "png"])
def test_the_same_seed_gives_the_same_bytes(source, tmp_path, image_format):
    planting = PlantingOptions(("snow", "sketch", "blur"), correlation=0.5, image_format=image_format, seed=4)
    for name in ("a", "b"):
        made = plant_contexts(source / "images", tmp_path / name, planting)
    assert len(made.rows) == made.written == 24
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert not [name for name in content(tmp_path / "a") if name.rsplit("/", 1)[-1].startswith(".")]
    other = plant_contexts(source / "images", tmp_path / "c", PlantingOptions(("snow", "sketch", "blur"), seed=5))
    assert content(tmp_path / "c") != content(tmp_path / "a") and len(other.rows) == 24


def test_the_reader_finds_what_the_manifest_says(source, tmp_path):
    plant_contexts(source / "images", tmp_path / "a", PlantingOptions(("fog", "grey"), split_by="image"))
    through_manifest = list_images(tmp_path / "a")
    (tmp_path / "a" / "manifest.csv").rename(tmp_path / "manifest.csv")
    by_folders = list_images(tmp_path / "a")
    assert [(row.name, row.concept, row.context, row.split) for row in through_manifest] == [
        (row.name, row.concept, row.context, row.split) for row in by_folders
    ]
    with (tmp_path / "manifest.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {row["source"] for row in rows} == {
        path.relative_to(source / "images").as_posix() for path in (source / "images").rglob("*.png")
    }
    for row in through_manifest:
        image = row.read()
        assert image.shape == (72, 96, 3)
        if row.context == "grey":
            assert np.abs(np.diff(image.astype(int), axis=2)).max() <= 2  # JPEG keeps grey almost grey


def test_the_dial_changes_no_picture(source, tmp_path):
    """An image that stays in its context is the same file at any dial."""
    sets = {}
    for dial in (0.0, 1.0):
        out = tmp_path / str(dial)
        made = plant_contexts(source / "images", out, PlantingOptions(("snow", "dusk"), correlation=dial))
        sets[dial] = {(one.source, one.context): (out / f"{one.target}.jpg").read_bytes() for one in made.rows}
    both = sets[0.0].keys() & sets[1.0].keys()
    assert both and all(sets[0.0][key] == sets[1.0][key] for key in both)


def test_goes_on_where_it_was_stopped(source, tmp_path):
    planting = PlantingOptions(("snow", "dusk"))

    class Stop(Exception):
        pass

    def progress(total, done):
        count = iter(range(100))

        def moved(units, failed):
            if next(count) == 8:
                raise Stop

        return moved

    with pytest.raises(Stop):
        plant_contexts(source / "images", tmp_path / "a", planting, progress=progress)
    assert not (tmp_path / "a" / "manifest.csv").exists()
    begun = []
    made = plant_contexts(
        source / "images",
        tmp_path / "a",
        planting,
        progress=lambda total, done: begun.append((total, done)) or (lambda units, failed: None),
    )
    assert begun == [(24, 9)] and made.written == 15
    plant_contexts(source / "images", tmp_path / "b", planting)
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_refuses_other_settings_and_other_folders(source, tmp_path):
    plant_contexts(source / "images", tmp_path / "a", PlantingOptions(("snow", "dusk")))
    before = content(tmp_path / "a")
    with pytest.raises(DataError, match="other contexts were planted here"):
        plant_contexts(source / "images", tmp_path / "a", PlantingOptions(("snow", "dusk"), correlation=0.1))
    assert content(tmp_path / "a") == before
    (tmp_path / "a" / "contexts.json").write_text('{"made": ')
    with pytest.raises(DataError, match="not the settings of planted contexts"):
        plant_contexts(source / "images", tmp_path / "a", PlantingOptions(("snow", "dusk")))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(DataError, match="something else"):
        plant_contexts(source / "images", tmp_path / "mine", PlantingOptions(("snow",)))
    assert content(tmp_path / "mine") == {"letter.txt": b"dear"}


def test_backdrops_use_the_masks(source, tmp_path):
    planting = PlantingOptions(("grass", "water"), image_format="png")
    made = plant_contexts(source / "images", tmp_path / "a", planting, masks=source / "masks")
    assert len(made.rows) == 24 and made.without_mask == 0
    for one in made.rows:
        picture = cv2.imread(str(tmp_path / "a" / f"{one.target}.png"))[..., ::-1]
        original = cv2.imread(str(source / "images" / one.source))[..., ::-1]
        mask = cv2.imread(str(source / "masks" / one.source), cv2.IMREAD_GRAYSCALE)
        inside = cv2.erode(mask, np.ones((7, 7), np.uint8)) > 0
        assert (picture[inside] == original[inside]).all() and (picture[mask == 0] != original[mask == 0]).any()


def test_what_is_left_out_is_counted(source, tmp_path):
    few = tmp_path / "masks" / "cat"
    few.mkdir(parents=True)
    for path in sorted((source / "masks" / "cat").iterdir())[:4]:
        (few / path.name).write_bytes(path.read_bytes())
    made = plant_contexts(source / "images", tmp_path / "a", PlantingOptions(("grass",)), masks=tmp_path / "masks")
    assert len(made.rows) == 4 and made.without_mask == 20
    with pytest.raises(DataError, match="no concept has 7 images"):
        plant_contexts(source / "images", tmp_path / "b", PlantingOptions(("snow",), fewest=7))
    with pytest.raises(OptionError, match="needs masks"):
        plant_contexts(source / "images", tmp_path / "c", PlantingOptions(("water", "snow")))
    with pytest.raises(DataError, match="no image has a mask"):
        plant_contexts(source / "images", tmp_path / "c", PlantingOptions(("water",)), masks=tmp_path)
    assert not (tmp_path / "b").exists() and not (tmp_path / "c").exists()


def test_a_mask_of_another_size_is_named(source, tmp_path):
    (tmp_path / "m" / "cat").mkdir(parents=True)
    name = sorted((source / "images" / "cat").iterdir())[0].name
    Image.new("L", (5, 4), 255).save(tmp_path / "m" / "cat" / name)
    with pytest.raises(DataError, match=r"the mask is \(4, 5\)"):
        plant_contexts(source / "images", tmp_path / "a", PlantingOptions(("grass",)), masks=tmp_path / "m")


@pytest.mark.parametrize(
    "settings",
    [{"contexts": ("rain",)}, {"strength": 2.0}, {"image_format": "gif"}, {"split_by": "luck"}],
)
def test_settings_that_cannot_be(settings):
    with pytest.raises(OptionError):
        PlantingOptions(**{"contexts": ("snow",), **settings})


def test_the_record_says_what_was_made(source, tmp_path):
    plant_contexts(source / "images", tmp_path / "a", PlantingOptions(("snow",), correlation=0.25, seed=7))
    record = json.loads((tmp_path / "a" / "contexts.json").read_text())
    assert record["planting"]["correlation"] == 0.25 and record["planting"]["seed"] == 7
    assert str(source) not in json.dumps(record)


@pytest.mark.real
def test_caltech_in_contexts(shared_data, tmp_path):
    folder = tmp_path / "some"
    folder.mkdir()
    for name in ("elephant", "ferry", "chair", "bonsai", "crab"):
        (folder / name).mkdir()
        for path in sorted((shared_data / "data" / "caltech101" / name).iterdir())[:8]:
            (folder / name / path.name).symlink_to(path)
    made = plant_contexts(folder, tmp_path / "out", PlantingOptions(("snow", "dusk", "fog", "autumn")))
    brightness = {}
    for row in list_images(tmp_path / "out"):
        brightness.setdefault(row.context, []).append(row.read().mean())
    assert len(made.rows) == 40 and np.mean(brightness["dusk"]) < 110 < 150 < np.mean(brightness["snow"])
