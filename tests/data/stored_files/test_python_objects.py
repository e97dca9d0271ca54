"""Datasets that are Python objects: what their items may be, their names and classes, their way to other processes."""

import pickle
import threading
from collections import namedtuple

import numpy as np
import PIL.Image
import pytest

from hardlook.data.stored_files import python_objects, read_stored_image, read_stored_map
from hardlook.data.stored_files.python_objects import (
    find_object,
    read_labelled,
    read_map_classes,
    read_objects,
    read_samples,
    take_object,
    take_objects,
)
from hardlook.data.stored_files.shards import read_shards, write_shards
from hardlook.errors import DataError, OptionError

IMAGE = np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)
MAP = np.arange(24, dtype=np.uint8).reshape(4, 6)


class Items(list):
    """A list with attributes, such as `classes`."""


def make(items, **attributes):
    made = Items(items)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def test_images_and_maps_in_every_form():
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(IMAGE.copy()).permute(2, 0, 1)
    images = [PIL.Image.fromarray(IMAGE), IMAGE, tensor, tensor / 255]
    maps = [PIL.Image.fromarray(MAP), MAP, torch.from_numpy(MAP.copy()), MAP[None].astype(np.int64)]
    samples = read_samples(take_object(list(zip(images, maps, strict=True))))
    assert [sample.id for sample in samples] == [f"item-{number:06d}" for number in range(4)]
    for sample in samples:
        assert (read_stored_image(sample.image) == IMAGE).all()
        assert (read_stored_map(sample.mask) == MAP).all()
    [row] = read_samples(take_object([(IMAGE[:3], MAP[:3])]))
    assert (read_stored_image(row.image) == IMAGE[:3]).all(), "three rows are no channels"
    grey = read_samples(take_object([(IMAGE[..., 0], MAP)]))
    assert (read_stored_image(grey[0].image) == IMAGE[..., :1]).all()


def test_images_of_16_bits_are_those_of_their_files(tmp_path):
    grey = np.random.default_rng(0).integers(0, 1 << 16, (4, 6)).astype(np.uint16)
    PIL.Image.fromarray(grey).save(tmp_path / "grey.png")
    expected = np.stack([grey >> 8] * 3, axis=-1)
    images = [PIL.Image.open(tmp_path / "grey.png"), PIL.Image.fromarray(grey.astype(np.int32))]
    for sample in read_samples(take_object([(image, MAP) for image in images])):
        assert np.array_equal(read_stored_image(sample.image), expected)
    write_shards([(image, MAP) for image in images], tmp_path / "shards")
    for shard in read_shards(tmp_path / "shards").values():
        assert np.array_equal(read_stored_image(shard.find_image()), expected)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (IMAGE, "the item is an array"),
        ((PIL.Image.fromarray(IMAGE[..., 0].astype(np.float32)), 0), "grey values are floating-point"),
        ({"image": IMAGE}, "the item is dict"),
        ((IMAGE.astype(float), 0), "type float64"),
        ((IMAGE[..., :2], 0), r"shape \(4, 6, 2\)"),
        ((np.zeros((0, 0, 3), np.uint8), 0), r"shape \(0, 0, 3\)"),
        ((IMAGE, MAP.astype(float)), "a label map of shape"),
        ((IMAGE, MAP.astype(np.int64) << 40), "labels reach"),
        ((IMAGE, object()), "a target with object"),
    ],
)
def test_items_that_are_none(item, message):
    with pytest.raises(DataError, match=message):
        take_object([item])


def test_what_is_no_dataset():
    for given in (3, {"a": 1}, iter([])):
        with pytest.raises(OptionError, match="without a length"):
            take_object(given)
    with pytest.raises(DataError, match="has no items"):
        take_object([])
    with pytest.raises(OptionError, match="data images: not a path"):
        take_objects({"data": {"images": [(IMAGE, 0)]}})
    assert take_objects({"data": {"images": "x"}}) == {"data": {"images": "x"}}

    class Raising:
        def __len__(self):
            return 1

        def __getitem__(self, index):
            raise ZeroDivisionError("oops")

    with pytest.raises(DataError, match=r"item 0 .* cannot be read: oops"):
        take_object(Raising())


def test_the_path_follows_from_the_items():
    pairs = [(IMAGE, {"label": "a", "box": [1, 2]}), (IMAGE, 3)]
    path = take_object(pairs)
    assert path == take_object([(IMAGE.copy(), {"box": [1, 2], "label": "a"}), (IMAGE, 3)])
    for other in (
        [*pairs, pairs[0]],
        pairs[::-1],
        [(IMAGE + 1, pairs[0][1]), pairs[1]],
        [pairs[0], (IMAGE, "3")],
        make(pairs, classes=["x"]),
        [(IMAGE, {"label": "a", "box": [1, 3]}), pairs[1]],
    ):
        assert take_object(other) != path


def test_names_are_those_of_files_where_they_differ():
    pairs = [(IMAGE, 0), (IMAGE, 1)]
    for names in ({"images": ["x/a.jpg", "x/b.jpg"]}, {"samples": [("a.png", 0), ("b.png", 1)]}):
        assert [one.id for one in read_labelled(take_object(make(pairs, **names)))] == ["a", "b"]
    equal = take_object(make(pairs, images=["x/a.jpg", "y/a.jpg"]))
    assert [one.id for one in read_labelled(equal)] == ["item-000000", "item-000001"]

    class Subset:
        dataset, indices = make(pairs, images=["a.jpg", "b.jpg"], classes=["cat", "dog"]), [1]

        def __len__(self):
            return 1

        def __getitem__(self, index):
            return self.dataset[1]

    (sample,) = read_labelled(take_object(Subset()))
    assert (sample.id, sample.label) == ("b", "dog")


def test_labels_and_contexts():
    targets = [1, "owl", {"label": 0, "context": "snow"}, ("dog", "grass"), np.int64(1)]
    made = make([(IMAGE, target) for target in targets] + [(IMAGE, 0, "fog")], categories=["cat", "dog"])
    found = [(one.label, one.context) for one in read_labelled(take_object(made))]
    assert found == [
        ("dog", "any"), ("owl", "any"), ("cat", "snow"), ("dog", "grass"), ("dog", "any"), ("cat", "fog")
    ]  # fmt: skip
    assert read_labelled(take_object([(IMAGE, 7)]))[0].label == "7"
    for target in (2, -1, 1.5, None):
        with pytest.raises(DataError, match="the label"):
            read_labelled(take_object(make([(IMAGE, target)], classes=["cat", "dog"])))


def test_targets_as_torchvisions_detectors_take_them():
    target = {
        "boxes": np.array([[1.0, 1, 4, 3]]), "labels": np.array([1]), "masks": (MAP > 11)[None].astype(np.uint8),
        "iscrowd": np.array([0]),
    }  # fmt: skip
    empty = {"boxes": np.zeros((0, 4)), "labels": np.zeros(0, np.int64), "masks": np.zeros((0, 4, 6), np.uint8)}
    made = read_objects(take_object(make([(IMAGE, target), (IMAGE, empty)], classes=["background", "dog"])))
    first, second = made.truth.images
    assert first.boxes.tolist() == [[1, 1, 3, 2]] and first.category_ids.tolist() == [1] and len(second.ids) == 0
    assert (first.masks()[0] == (MAP > 11)).all()
    with pytest.raises(DataError, match="of different numbers"):
        read_objects(take_object(make([(IMAGE, {**target, "labels": np.array([1, 1])})], classes=["a", "b"])))
    with pytest.raises(DataError, match="the target is int 3"):
        read_objects(take_object([(IMAGE, 3)]))


def test_classes_of_label_maps():
    Scene = namedtuple("CityscapesClass", "name id train_id ignore_in_eval")
    scenes = [Scene("unlabeled", 0, 255, True), Scene("road", 7, 0, False), Scene("plate", -1, -1, True)]
    found = read_map_classes(take_object(make([(IMAGE, MAP)], classes=scenes)))
    assert (found.names, found.numbers, found.ignored) == (("road",), (7,), (-1, 0, 255))

    class VOCSegmentation(Items):
        pass

    voc = read_map_classes(take_object(VOCSegmentation([(IMAGE, MAP)])))
    assert voc.names[:2] == ("background", "aeroplane") and len(voc.names) == 21
    assert read_map_classes(take_object([(IMAGE, MAP)])) is None


def test_items_that_differ_when_they_are_read_again():
    pairs = [(IMAGE, MAP)]
    (sample,) = read_samples(take_object(pairs))
    pairs[0] = (IMAGE + 1, MAP)
    with pytest.raises(DataError, match="another one than when the units were listed"):
        read_stored_image(sample.image)


def test_an_object_in_another_process(monkeypatch):
    (sample,) = read_samples(take_object([(IMAGE, MAP)]))
    sent = pickle.dumps(sample)
    assert len(sent) < 1000  # the object itself is sent once, as a file
    monkeypatch.setattr(python_objects, "_objects", type(python_objects._objects)())
    python_objects._read_item.cache_clear()
    there = pickle.loads(sent)
    assert there == sample and (read_stored_image(there.image) == IMAGE).all()
    with pytest.raises(DataError, match="cannot be sent to other processes"):
        pickle.dumps(find_object(take_object(make([(IMAGE, MAP)], lock=threading.Lock()))))


def test_a_file_that_another_machine_does_not_have(tmp_path):
    with pytest.raises(DataError, match="cannot be read on this machine"):
        python_objects._load_object("Items", "0", str(tmp_path / "gone"))


def test_few_objects_are_kept():
    paths = [take_object([(np.full((1, 1, 3), number, np.uint8), 0)]) for number in range(9)]
    with pytest.raises(DataError, match="does not have"):
        find_object(paths[0])
    assert find_object(paths[-1])
