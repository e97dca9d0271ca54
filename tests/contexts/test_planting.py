"""Planted folders: what is written, that it repeats, goes on after a stop, and refuses what is not its own."""

import csv
import json

import cv2
import numpy as np
import pytest
from PIL import Image

from hardlook.contexts.planting import Planting, plant_contexts
from hardlook.data.concept_context import read_rows
from hardlook.errors import DataError, OptionError
from hardlook.world.planted import PlantedWorld


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
    planting = Planting(("snow", "sketch", "blur"), correlation=0.5, image_format=image_format, seed=4)
    for name in ("a", "b"):
        made = plant_contexts(source / "images", tmp_path / name, planting)
    assert made.images == made.written == 24
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert not [name for name in content(tmp_path / "a") if name.rsplit("/", 1)[-1].startswith(".")]
    other = plant_contexts(source / "images", tmp_path / "c", Planting(("snow", "sketch", "blur"), seed=5))
    assert content(tmp_path / "c") != content(tmp_path / "a") and other.images == 24


def test_the_reader_finds_what_the_manifest_says(source, tmp_path):
    plant_contexts(source / "images", tmp_path / "a", Planting(("fog", "grey"), split_by="image"))
    through_manifest = read_rows(tmp_path / "a")
    (tmp_path / "a" / "manifest.csv").rename(tmp_path / "manifest.csv")
    by_folders = read_rows(tmp_path / "a")
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
        made = plant_contexts(source / "images", out, Planting(("snow", "dusk"), correlation=dial))
        sets[dial] = {(one.source, one.context): (out / f"{one.place}.jpg").read_bytes() for one in made.rows}
    both = sets[0.0].keys() & sets[1.0].keys()
    assert both and all(sets[0.0][key] == sets[1.0][key] for key in both)


def test_goes_on_where_it_was_stopped(source, tmp_path):
    planting = Planting(("snow", "dusk"))

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
    plant_contexts(source / "images", tmp_path / "a", Planting(("snow", "dusk")))
    before = content(tmp_path / "a")
    with pytest.raises(DataError, match="other contexts were planted here"):
        plant_contexts(source / "images", tmp_path / "a", Planting(("snow", "dusk"), correlation=0.1))
    assert content(tmp_path / "a") == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(DataError, match="something else"):
        plant_contexts(source / "images", tmp_path / "mine", Planting(("snow",)))
    assert content(tmp_path / "mine") == {"letter.txt": b"dear"}


def test_backdrops_use_the_masks(source, tmp_path):
    planting = Planting(("grass", "water"), image_format="png")
    made = plant_contexts(source / "images", tmp_path / "a", planting, masks=source / "masks")
    assert made.images == 24 and made.without_mask == 0
    for one in made.rows:
        picture = cv2.imread(str(tmp_path / "a" / f"{one.place}.png"))[..., ::-1]
        original = cv2.imread(str(source / "images" / one.source))[..., ::-1]
        mask = cv2.imread(str(source / "masks" / one.source), cv2.IMREAD_GRAYSCALE)
        inside = cv2.erode(mask, np.ones((7, 7), np.uint8)) > 0
        assert (picture[inside] == original[inside]).all() and (picture[mask == 0] != original[mask == 0]).any()


def test_what_is_left_out_is_counted(source, tmp_path):
    few = tmp_path / "masks" / "cat"
    few.mkdir(parents=True)
    for path in sorted((source / "masks" / "cat").iterdir())[:4]:
        (few / path.name).write_bytes(path.read_bytes())
    made = plant_contexts(source / "images", tmp_path / "a", Planting(("grass",)), masks=tmp_path / "masks")
    assert made.images == 4 and made.without_mask == 20
    with pytest.raises(DataError, match="no concept has 7 images"):
        plant_contexts(source / "images", tmp_path / "b", Planting(("snow",), fewest=7))
    with pytest.raises(OptionError, match="needs masks"):
        plant_contexts(source / "images", tmp_path / "c", Planting(("water", "snow")))
    with pytest.raises(DataError, match="no image has a mask"):
        plant_contexts(source / "images", tmp_path / "c", Planting(("water",)), masks=tmp_path)
    assert not (tmp_path / "b").exists() and not (tmp_path / "c").exists()


def test_a_mask_of_another_size_is_named(source, tmp_path):
    (tmp_path / "m" / "cat").mkdir(parents=True)
    name = sorted((source / "images" / "cat").iterdir())[0].name
    Image.new("L", (5, 4), 255).save(tmp_path / "m" / "cat" / name)
    with pytest.raises(DataError, match=r"the mask is \(4, 5\)"):
        plant_contexts(source / "images", tmp_path / "a", Planting(("grass",)), masks=tmp_path / "m")


@pytest.mark.parametrize(
    "settings",
    [{"contexts": ("rain",)}, {"strength": 2.0}, {"image_format": "gif"}, {"split_by": "luck"}],
)
def test_settings_that_cannot_be(settings):
    with pytest.raises(OptionError):
        Planting(**{"contexts": ("snow",), **settings})


def test_the_record_says_what_was_made(source, tmp_path):
    plant_contexts(source / "images", tmp_path / "a", Planting(("snow",), correlation=0.25, seed=7))
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
    made = plant_contexts(folder, tmp_path / "out", Planting(("snow", "dusk", "fog", "autumn")))
    brightness = {}
    for row in read_rows(tmp_path / "out"):
        brightness.setdefault(row.context, []).append(row.read().mean())
    assert made.images == 40 and np.mean(brightness["dusk"]) < 110 < 150 < np.mean(brightness["snow"])
