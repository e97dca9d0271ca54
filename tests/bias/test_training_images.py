import numpy as np
import pytest
from PIL import Image

from hardlook.bias.class_folds import ClassSplit, split_of_fold
from hardlook.bias.salient_masks import SalientMasks
from hardlook.bias.training_images import labelled_images, measure_coverage, read_training_mask, training_images
from hardlook.data.class_masks import open_class_masks
from hardlook.models.registry import build
from hardlook.world.planted import PlantedWorld
from hardlook.world.write import write_world


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world") / "voc"
    write_world(folder, layout="voc", seed=0, count=16, size=(96, 72))
    return folder


def stored(world, image):
    return np.array(Image.open(world / "SegmentationClass" / f"{image}.png"))


def test_images_have_the_classes_of_their_masks(world):
    source = open_class_masks({"voc": world})
    images = labelled_images(source)
    assert [one.image for one in images] == sorted(one.image for one in images)
    for one in images:
        numbers = sorted(set(np.unique(stored(world, one.image)).tolist()) - {0, 255})
        assert sorted(one.classes) == sorted(source.classes[number - 1] for number in numbers)


def test_named_images_only_also_one_without_classes(world):
    source = open_class_masks({"voc": world})
    first, empty = labelled_images(source, ["2026_000001", "nowhere"])
    assert first.image == "2026_000001" and first.tokens and empty.tokens == ()
    assert training_images([empty], split_of_fold(source.classes, 0)) == []


def test_coverage_equals_the_planted_truth(world, tmp_path):
    source = open_class_masks({"voc": world})
    split = split_of_fold(source.classes, 1)
    images = training_images(labelled_images(source), split)
    told = []
    salient = SalientMasks(build("planted-saliency", role="saliency"), "planted", tmp_path)
    rows, unread = measure_coverage(source, images, split, salient, lambda done, failed: told.append((done, failed)))
    assert not unread and sum(done for done, _ in told) == len(images) == len(rows)
    numbers = [source.classes.index(name) + 1 for name in split.training]
    scenes = {f"2026_{place + 1:06d}": scene for place, scene in enumerate(PlantedWorld(0, 16, (96, 72)))}
    for row in rows:
        (seen,) = build("planted-saliency", role="saliency").saliency([scenes[row.image].image])
        truth = np.isin(stored(world, row.image), numbers)
        assert (row.salient, row.covered) == (int((seen > 0.5).sum()), int((truth & (seen > 0.5)).sum()))


def test_the_training_mask_is_the_union_without_test_classes(world):
    source = open_class_masks({"voc": world})
    one = max(labelled_images(source), key=lambda image: len(image.classes))
    split = ClassSplit(one.classes[:-1], one.classes[-1:], "by hand")
    numbers = [source.classes.index(name) + 1 for name in split.training]
    assert (read_training_mask(source, one, split) == np.isin(stored(world, one.image), numbers)).all()


def test_an_image_that_cannot_be_read_is_named_and_stops_nothing(world, tmp_path):
    source = open_class_masks({"voc": world})
    split = split_of_fold(source.classes, 0)
    images = training_images(labelled_images(source), split)
    path = world / "JPEGImages" / f"{images[0].image}.png"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    try:
        salient = SalientMasks(build("planted-saliency", role="saliency"), "planted", tmp_path)
        told = []
        rows, unread = measure_coverage(source, images, split, salient, lambda done, failed: told.append(failed))
    finally:
        path.write_bytes(content)
    assert [one.image for one in unread] == [images[0].image] and unread[0].reason
    assert len(rows) == len(images) - 1 and sum(told) == 1
