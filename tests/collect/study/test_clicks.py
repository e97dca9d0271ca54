"""Studies of clicks from planted scenes, from folders made here, and from real images.

The training round: clear objects, alike in every study.
"""

import json

import numpy as np
import PIL.Image
import pytest

from hardlook.collect.study.click_regions import TRAINING_WORLD, ClickRegion
from hardlook.collect.study.clicks import make_click_study, make_region_study, write_training_tasks
from hardlook.collect.study.folder import UNFINISHED, open_study
from hardlook.collect.study.instances import Descriptions, list_planted_instances
from hardlook.collect.study.pictures import read_mask
from hardlook.collect.study.settings import DISPLAY_MODES, StudySettings
from hardlook.data.object_instances import list_instances
from hardlook.data.previous_masks import PreviousMasks
from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import DataError
from hardlook.world.planted import PlantedWorld

WORLD = PlantedWorld(seed=3, count=4, size=(96, 72))


def settings(*modes, training=0):
    return StudySettings(kind="clicks", title="Things", modes=modes or ("cut-out",), training_tasks=training)


def shown(study, name):
    return np.asarray(PIL.Image.open(study.file(name)).convert("RGB"))


def squares(folder, stems, size=(20, 16)):
    """A folder of TETRIS's layout: two objects in each image."""
    for part in ("img", "masks"):
        (folder / part).mkdir(parents=True)
    for i, stem in enumerate(stems):
        mask = np.zeros(size[::-1], np.uint8)
        mask[2:6, 2 + i : 7 + i], mask[9:13, 4:9] = 1, 2
        pixels = np.random.default_rng(i).integers(0, 256, (*size[::-1], 3), np.uint8)
        PIL.Image.fromarray(pixels).save(folder / "img" / f"{stem}.png")
        PIL.Image.fromarray(mask).save(folder / "masks" / f"{stem}.png")
    return folder


def test_a_planted_study_has_every_scene_to_the_pixel(tmp_path):
    instances = list_planted_instances(WORLD)
    modes = ("text", "cut-out", "shifted", "silhouette", "highlighted")
    make_click_study(tmp_path / "study", instances, settings(*modes, training=2), describe=Descriptions({}))
    study = open_study(tmp_path / "study")
    tasks = [task for task in study.tasks if not task.training]
    assert [task.id for task in tasks] == ["t000001", "t000002", "t000003", "t000004"]
    for i, task in enumerate(tasks):
        truth = WORLD[i]
        assert (task.dataset, task.full_stem, task.width, task.height) == ("planted", f"{i + 1:06d}", 96, 72)
        assert task.description == truth.scene.subject.concept
        assert np.array_equal(shown(study, task.image), truth.image)
        assert np.array_equal(read_mask(study.file(task.mask)), truth.target_mask)
        assert set(task.targets) == set(modes) - {"text"}
        cut = shown(study, task.targets["cut-out"])
        assert np.array_equal(cut[truth.target_mask], truth.image[truth.target_mask])
        right, down = task.shift
        moved = np.roll(cut, (down, right), axis=(0, 1))
        assert np.array_equal(shown(study, task.targets["shifted"]), moved)
        white = (shown(study, task.targets["silhouette"]) == 255).all(axis=2)
        assert np.array_equal(white, truth.target_mask)
    assert len(study.training) == 2 and len(study.items) == 4 * 5
    assert study.made["schema"] == "hardlook.study-made/1" and study.made["round"] == 1
    assert not (study.path / UNFINISHED).exists()


def test_objects_of_one_image_share_its_file_and_its_subject(tmp_path):
    listed = list_instances({"tetris": squares(tmp_path / "data", ["a", "b", "c"])})
    study = make_click_study(tmp_path / "study", listed.instances, settings("silhouette"), left_out=listed.left_out)
    assert [task.full_stem for task in study.tasks] == [f"{stem}_______{i}" for stem in "abc" for i in (1, 2)]
    assert len({task.subject for task in study.tasks}) == 3
    assert len({task.image for task in study.tasks}) == len(list((study.path / "images").iterdir())) == 3
    # The second square lies at the same place in all three images, so that its mask and picture are stored once.
    assert len(list((study.path / "masks").iterdir())) == len(list((study.path / "targets").iterdir())) == 4


def test_the_same_data_give_the_same_tasks(tmp_path):
    studies = [make_click_study(tmp_path / name, list_planted_instances(WORLD), settings(training=1)) for name in "ab"]
    assert studies[0].tasks == studies[1].tasks and studies[0].fingerprint == studies[1].fingerprint
    assert studies[0].secret != studies[1].secret


def test_text_needs_words_for_every_object(tmp_path):
    listed = list_instances({"tetris": squares(tmp_path / "data", ["a"])})
    words = tmp_path / "words.csv"
    words.write_text("full_stem,description\na_______1,upper square\nelsewhere,a circle\n")
    describe = Descriptions({}, words)
    with pytest.raises(DataError, match="no description for the text mode") as error:
        make_click_study(tmp_path / "study", listed.instances, settings("text"), describe=describe)
    assert error.value.unit == "tetris/a_______2" and "--descriptions" in error.value.remedy
    assert not (tmp_path / "study").exists()
    study = make_click_study(tmp_path / "study", listed.instances[:1], settings("text"), describe=describe)
    assert (study.tasks[0].description, study.tasks[0].targets) == ("upper square", {})
    assert describe.unused == ("elsewhere",)


def test_what_is_to_be_known_of_modes_is_counted(tmp_path):
    image, mask = np.zeros((20, 30, 3), np.uint8), np.ones((20, 30), bool)
    one, other = (
        ClickRegion("d", "a", number, f"a_______{number}", image, mask, mask, subject="d/a", description="square")
        for number in "12"
    )
    study = make_region_study(tmp_path / "study", [one, other], settings("text", "shifted"))
    counted = {note["what"]: note["count"] for note in study.made["counted"]}
    assert counted == {"objects that hardly move in the mode shifted": 2, "descriptions that fit several objects": 2}
    assert [task.shift for task in study.tasks] == [(0, 0), (0, 0)]


def test_errors_of_a_second_round(tmp_path):
    target, previous = np.zeros((2, 20, 30), bool)
    target[5:15, 5:15], previous[5:15, 9:20] = True, True
    image = np.full((20, 30, 3), 90, np.uint8)
    regions = [
        ClickRegion("d", "a", "", f"a_ritm_{kind}_pc_2", image, target, error, "d/a", "", "ritm", kind, previous)
        for kind, error in (("fn", target & ~previous), ("fp", previous & ~target))
    ]
    facts = {"limit": 0.95, "left_out": [{"what": "x", "count": 1, "why": "y", "examples": ["z"]}]}
    made = make_region_study(tmp_path / "study", regions, settings("silhouette", training=4), facts=lambda: facts)
    study = open_study(made.path)
    assert [task.click_type for task in study.tasks] == ["fn", "fp", "fn", "fp", "fn", "fp"]
    assert (study.made["round"], study.made["limit"], study.made["left_out"]) == (2, 0.95, facts["left_out"])
    for task, region in zip(study.tasks, regions, strict=False):
        found = PreviousMasks(study.path / "previous-masks").error(task.full_stem, target, task.click_type, "d")
        assert np.array_equal(found, region.region)
        assert np.array_equal(read_mask(study.file(task.mask)), region.region)


def test_a_stopped_command_leaves_no_study_and_can_be_given_again(tmp_path):
    def some():
        yield from list(regions)[:2]
        raise KeyboardInterrupt

    regions = [
        ClickRegion(
            "planted", one.image_stem, "", one.full_stem, one.read(), *[one.read_target().mask] * 2, one.image_key
        )
        for one in list_planted_instances(WORLD)
    ]
    path = tmp_path / "study"
    with pytest.raises(KeyboardInterrupt):
        make_region_study(path, some(), settings())
    assert (path / UNFINISHED).is_file() and list((path / "images").iterdir())
    with pytest.raises(DataError, match="no study here"):
        open_study(path)
    make_region_study(path, regions[2:], settings())
    named = {name for task in open_study(path).tasks for name in (task.image, task.mask, *task.targets.values())}
    there = {str(file.relative_to(path)) for kind in ("images", "masks", "targets") for file in (path / kind).iterdir()}
    assert there == named
    with pytest.raises(DataError, match="there is a study here already"):
        make_region_study(path, regions, settings())


def test_nobody_elses_folder_is_touched(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mine.png").write_bytes(b"mine")
    with pytest.raises(DataError, match="the folder holds other files"):
        make_click_study(tmp_path, list_planted_instances(WORLD), settings())
    assert [file.name for file in tmp_path.rglob("*")] == ["images", "mine.png"]
    with pytest.raises(DataError, match="there is a file of this name"):
        make_click_study(tmp_path / "images" / "mine.png", list_planted_instances(WORLD), settings())


def break_image(folder):
    (folder / "img" / "b.png").write_bytes((folder / "img" / "b.png").read_bytes()[:60])


def break_size(folder):
    PIL.Image.fromarray(np.full((5, 5), 1, np.uint8)).save(folder / "masks" / "b.png")


@pytest.mark.parametrize(("damage", "words"), [(break_image, "cut off"), (break_size, "5x5, its image 20x16")])
def test_a_broken_file_is_named_or_counted(tmp_path, damage, words):
    folder = squares(tmp_path / "data", ["a", "b", "c"])
    damage(folder)
    listed = list_instances({"tetris": folder})
    with pytest.raises(DataError, match=words) as error:
        make_click_study(tmp_path / "study", listed.instances, settings())
    assert error.value.unit.startswith(("tetris/b", "b"))
    study = make_click_study(tmp_path / "study", listed.instances, settings(), skip_broken=True)
    assert {task.image_stem for task in study.tasks} == {"a", "c"}
    [note] = study.made["left_out"]
    assert note["count"] == len(listed.instances) - 4 and note["examples"][0] == "tetris/b_______1"


def test_no_region_and_two_of_one_name(tmp_path):
    mask = np.ones((4, 4), bool)
    one = ClickRegion("d", "a", "", "a", np.zeros((4, 4, 3), np.uint8), mask, mask, subject="d/a")
    with pytest.raises(DataError, match="nothing to click on"):
        make_region_study(tmp_path / "none", [], settings())
    with pytest.raises(DataError, match="two regions share a name"):
        make_region_study(tmp_path / "two", [one, one], settings())


@pytest.mark.real
def test_grabcut(tmp_path, shared_data):
    listed = list_instances({"grabcut": shared_data / "data" / "GrabCut"})
    study = make_click_study(tmp_path / "study", listed.instances, settings("cut-out", "highlighted"))
    assert len(study.tasks) == len(listed.instances) == len({task.image for task in study.tasks})
    for task, one in zip(study.tasks, listed.instances, strict=True):
        image, mask = one.read(), one.read_target().mask
        assert np.array_equal(read_mask(study.file(task.mask), (task.width, task.height)), mask)
        cut = shown(study, task.targets["cut-out"])
        # To the pixel and without a trace of the background, though the image itself is stored with loss.
        assert np.array_equal(cut[mask], image[mask]) and set(np.unique(cut[~mask])) == {128}
        stored = shown(study, task.image).astype(int)
        assert stored.shape == image.shape and np.abs(stored - image).mean() < 2
    assert json.loads((study.path / "made.json").read_text())["images"] == len(study.tasks)


@pytest.mark.real
def test_voc_knows_its_objects_by_name(tmp_path, shared_data):
    data = {"voc": shared_data / "data" / "VOCdevkit"}
    listed = list_instances(data, at_most=12, seed=1)
    modes = settings("text", "silhouette")
    study = make_click_study(tmp_path / "study", listed.instances, modes, describe=Descriptions(data))
    assert len(study.tasks) == 12
    [root] = (shared_data / "data" / "VOCdevkit").glob("VOC20*")
    for task in study.tasks:
        objects, classes = (
            np.asarray(PIL.Image.open(root / folder / f"{task.image_stem}.png"))
            for folder in ("SegmentationObject", "SegmentationClass")
        )
        of_it = classes[objects == int(task.object_stem)].tolist()
        assert task.description.replace(" ", "") == VOC_CLASSES[max(set(of_it), key=of_it.count) - 1]


def training_settings(count, *modes):
    return StudySettings(kind="clicks", title="Things", modes=modes or ("cut-out",), training_tasks=count)


def test_clear_objects_of_different_concepts_in_all_modes(tmp_path):
    tasks = write_training_tasks(tmp_path, training_settings(4, *DISPLAY_MODES))
    assert [task.id for task in tasks] == [f"training-{i}" for i in range(4)]
    assert len({task.description for task in tasks}) == len({task.subject for task in tasks}) == 4
    for task in tasks:
        scene = TRAINING_WORLD.scene(int(task.image_stem) - 1)
        assert [thing.concept for thing in scene.objects].count(task.description) == 1
        mask = read_mask(tmp_path / task.mask, (task.width, task.height))
        assert 0.04 <= mask.mean() <= 0.3
        frame = np.ones_like(mask)
        frame[1:-1, 1:-1] = False
        assert not (mask & frame).any()
        assert set(task.targets) == set(DISPLAY_MODES) - {"text"} and task.training


@pytest.mark.parametrize("kinds", [("first",), ("fn", "fp")])
def test_the_same_round_every_time_with_the_kinds_in_turns(tmp_path, kinds):
    once, again = (write_training_tasks(tmp_path / name, training_settings(3), kinds) for name in "ab")
    assert once == again
    assert [task.click_type for task in once] == [kinds[i % len(kinds)] for i in range(3)]
    assert write_training_tasks(tmp_path, training_settings(0), kinds) == ()
