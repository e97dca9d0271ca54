"""Mean IoU on label maps of Python objects and exports of FiftyOne: as on the same files in folders."""

import json
import shutil

import numpy as np
import PIL.Image
import pytest

import hardlook as hl
from hardlook.errors import ChangedRun, DataError, OptionError, RunError
from hardlook.open_vocabulary.miou.options import OpenMiouOptions, SemanticOptions
from hardlook.open_vocabulary.miou.units import list_units
from hardlook.world.layouts import write_world

SMALL = {"model": "planted-segmenter", "model_args": {"stranger": 0.4}, "resamples": 0, "progress": False}


class Pairs:
    """As torchvision's VOCSegmentation; `random` images are others with every reading."""

    def __init__(self, images, maps, *, classes=None, random=False):
        self.images, self.maps, self.random = images, maps, random
        self.reads = 0
        if classes:
            self.classes = classes

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = PIL.Image.open(self.images[index])
        self.reads += 1
        if self.random:
            image = np.roll(np.asarray(image), self.reads, axis=1)
        return image, PIL.Image.open(self.maps[index])


@pytest.fixture(scope="module")
def voc(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world") / "voc", "voc", count=4, size=(64, 64))


def make_pairs(voc, **more):
    images, maps = (sorted((voc / name).glob("*.png")) for name in ("JPEGImages", "SegmentationClass"))
    return Pairs(images, maps, **more)


def list_names(voc):
    return ["background", *(voc / "classes.txt").read_text().split("\n")[:-1]]


@pytest.fixture(scope="module")
def labels(voc):
    path = voc.parent / "labels.txt"
    path.write_text("\n".join(list_names(voc)))
    return str(path)


def scores_of(run):
    return {name: score.value for name, score in run.scores.items()}


def test_objects_and_exports_score_as_folders_do(voc, labels, tmp_path, forked_workers):
    folders = {"images": voc / "JPEGImages", "masks": voc / "SegmentationClass"}
    shutil.copytree(folders["images"], tmp_path / "export" / "data")
    shutil.copytree(folders["masks"], tmp_path / "export" / "labels")
    given = {**SMALL, "labels": labels}
    expected = hl.run("closed-miou", data=folders, out=tmp_path / "a", **given)
    assert 0 < expected.scores["miou"].value < 1
    fiftyone = hl.run("closed-miou", data={"fiftyone": tmp_path / "export"}, out=tmp_path / "b", **given)
    named = hl.run("closed-miou", data=make_pairs(voc, classes=list_names(voc)), out=tmp_path / "c", **SMALL)
    processes = hl.run(
        "closed-miou", data={"dataset": make_pairs(voc)}, engine="processes", workers=1, out=tmp_path / "d", **given
    )
    for run in (fiftyone, named, processes):
        assert scores_of(run) == scores_of(expected)
        assert sorted(run.records["unit"]) == sorted(expected.records["unit"])


def test_images_of_an_export_without_a_label_map_are_counted(voc, labels, tmp_path):
    (tmp_path / "data").symlink_to(voc / "JPEGImages")
    shutil.copytree(voc / "SegmentationClass", tmp_path / "labels")
    gone, *others = sorted((tmp_path / "labels").iterdir())
    options = SemanticOptions(data={"fiftyone": tmp_path}, labels=labels)
    assert not list_units(options).left_out
    gone.unlink()
    units = list_units(options)
    assert [unit.id for unit in units] == [path.stem for path in others]
    [note] = units.left_out
    assert (note.what, note.count, note.examples) == ("images without a label map", 1, (gone.stem,))


def test_a_run_on_an_object_says_so_resumes_and_shows_pictures(voc, labels, tmp_path):
    given = {**SMALL, "labels": labels, "out": tmp_path / "run"}
    run = hl.run("closed-miou", data=make_pairs(voc), **given)
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert any("decoded items of the Pairs object" in part for part in manifest["answers"]["parts"])
    assert manifest["options"]["data"]["dataset"].startswith("object:Pairs:")
    again = hl.run("closed-miou", data=make_pairs(voc), **given)
    assert (again.progress.answered, again.progress.before) == (0, 4)
    assert "cannot be read" not in (tmp_path / "run" / "report.html").read_text()
    assert run.unit(run.records["unit"][0])


def test_another_content_is_another_run(voc, labels, tmp_path):
    given = {**SMALL, "labels": labels, "out": tmp_path / "run", "report": False}
    hl.run("closed-miou", data=make_pairs(voc), **given)
    other = make_pairs(voc)
    other.maps = [other.maps[1], *other.maps[1:]]
    with pytest.raises(ChangedRun, match="decoded items"):
        hl.run("closed-miou", data=other, **given)


def test_items_that_change_with_every_reading_fail(voc, labels, tmp_path):
    with pytest.raises(RunError, match="leave out transforms that draw random numbers"):
        hl.run("closed-miou", data=make_pairs(voc, random=True), labels=labels, out=tmp_path / "run", **SMALL)


def test_what_an_object_does_not_have(voc):
    with pytest.raises(OptionError, match="no option names their labels"):
        list_units(SemanticOptions(data={"dataset": make_pairs(voc)}))
    with pytest.raises(DataError, match="the target is not a label map, but int 3"):
        list_units(SemanticOptions(data={"dataset": [(np.zeros((4, 4, 3), np.uint8), 3)]}, labels="voc20"))
    with pytest.raises(OptionError, match="stands for a Python object"):
        list_units(SemanticOptions(data={"dataset": voc}, labels="voc20"))
    with pytest.raises(DataError, match="that this process does not have") as caught:
        list_units(SemanticOptions(data={"dataset": "object:Pairs:0123"}, labels="voc20"))
    assert "the same object" in caught.value.remedy


def test_names_without_senses_are_refused_by_open_miou_as_from_a_file(voc):
    with pytest.raises(DataError, match="blorp"):
        pairs = make_pairs(voc, classes=["blorp", "cat"])
        list_units(OpenMiouOptions(data={"dataset": pairs}, unknown="error"))
