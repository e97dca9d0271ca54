"""The real datasets of torchvision, on small folders in their layouts, given as objects to runs."""

import json
import shutil

import numpy as np
import PIL.Image
import pytest
import stored_datasets as stored

import hardlook as hl
from hardlook.data.stored_files.python_objects import read_labelled, read_map_classes, read_samples, take_object
from hardlook.errors import RunError
from hardlook.metacoco.options import MetaCocoOptions
from hardlook.metacoco.units import make_source
from hardlook.world.layouts import write_world
from hardlook.world.planted import PlantedWorld

pytestmark = pytest.mark.families
torchvision = pytest.importorskip(
    "torchvision", reason="torchvision is not installed here; `make test` runs this file in .venv-families"
)
SMALL = {"resamples": 0, "progress": False, "report": False}


@pytest.fixture(scope="module")
def voc(tmp_path_factory):
    """A planted world as VOCdevkit/VOC2012; torchvision wants names that end in .jpg, whatever the files hold."""
    root = tmp_path_factory.mktemp("voc")
    world = write_world(root / "world", "voc", count=4, size=(64, 64))
    devkit = root / "VOCdevkit" / "VOC2012"
    shutil.copytree(world / "SegmentationClass", devkit / "SegmentationClass")
    (devkit / "JPEGImages").mkdir()
    names = sorted(path.stem for path in (world / "JPEGImages").iterdir())
    for name in names:
        shutil.copy(world / "JPEGImages" / f"{name}.png", devkit / "JPEGImages" / f"{name}.jpg")
    (devkit / "ImageSets" / "Segmentation").mkdir(parents=True)
    (devkit / "ImageSets" / "Segmentation" / "val.txt").write_text("\n".join(names) + "\n")
    labels = root / "labels.txt"
    labels.write_text("background\n" + (world / "classes.txt").read_text())
    return root, str(labels)


@pytest.mark.parametrize("engine", ["inline", "processes"])
def test_voc_segmentation(voc, tmp_path, engine):
    root, labels = voc
    devkit = root / "VOCdevkit" / "VOC2012"
    given = {"model": "planted-segmenter", "model_args": {"stranger": 0.4}, "labels": labels, **SMALL}
    folders = {"images": devkit / "JPEGImages", "masks": devkit / "SegmentationClass"}
    expected = hl.run("closed-miou", data=folders, out=tmp_path / "folders", **given)
    dataset = torchvision.datasets.VOCSegmentation(root, image_set="val")
    more = {"engine": engine, "workers": 1}
    run = hl.run("closed-miou", data={"dataset": dataset}, out=tmp_path / "run", **given, **more)
    assert {name: one.value for name, one in run.scores.items()} == {
        name: one.value for name, one in expected.scores.items()
    }
    assert sorted(run.records["unit"]) == sorted(expected.records["unit"])
    assert read_map_classes(take_object(dataset)).names[20] == "tvmonitor"


def test_transforms_that_keep_the_pixels_and_those_that_draw(voc, tmp_path):
    from torchvision.transforms import v2

    root, labels = voc
    plain = torchvision.datasets.VOCSegmentation(root, image_set="val")
    tensors = torchvision.datasets.VOCSegmentation(root, image_set="val", transform=torchvision.transforms.ToTensor())
    assert take_object(plain) == take_object(tensors)
    flipped = torchvision.datasets.VOCSegmentation(root, image_set="val", transforms=v2.RandomHorizontalFlip(0.5))
    with pytest.raises(RunError, match="leave out transforms that draw random numbers"):
        hl.run("closed-miou", model="planted-segmenter", data=flipped, labels=labels, out=tmp_path / "run", **SMALL)


def test_coco_detection(tmp_path):
    content = stored.write_coco(tmp_path)
    images, file = tmp_path / "images", tmp_path / "instances.json"
    dataset = torchvision.datasets.CocoDetection(images, str(file))
    given = {"model": "planted-instances", "model_args": {"stranger": 0.4}, **SMALL}
    expected = hl.run("open-ap", data={"instances": file, "images": images}, out=tmp_path / "json", **given)
    run = hl.run("open-ap", data={"dataset": dataset}, out=tmp_path / "run", **given)
    columns = [name for name in run.records.columns if name != "answers"]
    assert run.records.select(columns).sort("unit").equals(expected.records.select(columns).sort("unit"))
    clicks = {"model": "disc", "rounds": 2, "groups": 2, **SMALL}
    expected = hl.run("rclicks", data={"instances": file, "images": images}, out=tmp_path / "a", **clicks)
    run = hl.run("rclicks", data={"dataset": dataset}, out=tmp_path / "b", engine="processes", workers=1, **clicks)
    assert len(run.records) == len(content["annotations"]) == len(expected.records)
    assert run.scores["auc"].value == expected.scores["auc"].value


def write_classes(folder, names):
    """Three scenes of the planted world in each folder."""
    world = PlantedWorld(count=3 * len(names), size=(64, 64), salient=True, distractors=0)
    for place, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for index in range(3):
            path = folder / name / f"image_{index + 1:04d}.jpg"
            PIL.Image.fromarray(world[3 * place + index].image).save(path, "PNG")


def test_caltech_and_image_folders(tmp_path):
    names = ["airplanes", "ant", "bass", "beaver", "cup"]
    write_classes(tmp_path / "caltech101" / "101_ObjectCategories", names)
    (tmp_path / "caltech101" / "Annotations").mkdir()
    (tmp_path / "caltech101" / "101_ObjectCategories" / "BACKGROUND_Google").mkdir()
    caltech = torchvision.datasets.Caltech101(tmp_path)
    (tmp_path / "caltech101" / "101_ObjectCategories" / "BACKGROUND_Google").rmdir()
    folder = torchvision.datasets.ImageFolder(tmp_path / "caltech101" / "101_ObjectCategories")
    for dataset in (caltech, folder):
        source = make_source(MetaCocoOptions(data={"dataset": dataset}))
        assert source.open().cells() == {(name, "any"): 3 for name in names}
    from torch.utils.data import Subset

    labels = [one.label for one in read_labelled(take_object(Subset(folder, [14, 0])))]
    assert labels == ["cup", "airplanes"]
    given = {"modes": "blind", "blind_supports": "paper", "shots": "1", "queries": 1, "tasks": 3, "repeats": 1}
    run = hl.run(
        "metacoco", model="nearest-centroid", encoder="planted-encoder", data=caltech, out=tmp_path / "run",
        **given, **SMALL,
    )  # fmt: skip
    assert len(run.records) == 3


def test_cityscapes_and_its_classes(tmp_path):
    name = "aachen/aachen_000000_000019"
    for kind, end in (("leftImg8bit", "leftImg8bit"), ("gtFine", "gtFine_labelIds")):
        path = tmp_path / kind / "val" / f"{name}_{end}.png"
        path.parent.mkdir(parents=True)
        PIL.Image.fromarray(np.full((4, 6, 3)[: 3 if kind == "leftImg8bit" else 2], 7, np.uint8)).save(path)
    (tmp_path / "gtFine" / "val" / f"{name}_gtFine_polygons.json").write_text(json.dumps({}))
    dataset = torchvision.datasets.Cityscapes(tmp_path, split="val", target_type="semantic")
    classes = read_map_classes(take_object(dataset))
    assert len(classes.names) == 19 and classes.numbers[classes.names.index("road")] == 7
    assert [one.id for one in read_samples(take_object(dataset))] == ["aachen_000000_000019_leftImg8bit"]
