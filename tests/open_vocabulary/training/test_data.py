"""What a projection is trained on: unseen classes leave no trace, shares by hand, words, images that are left out."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hardlook.data.voc import open_devkit  # noqa: E402
from hardlook.errors import DataError, ModelError, OptionError  # noqa: E402
from hardlook.open_vocabulary.training.data import (  # noqa: E402
    ProjectionDataOptions,
    choose_unseen,
    choose_words,
    count_shares,
    prepare_data,
)
from hardlook.training.projection.recipes import change_projection_recipe, find_projection_recipe  # noqa: E402
from hardlook.world.layouts import write_world  # noqa: E402

RECIPE = find_projection_recipe("planted-encoder", "planted-text-encoder")


@pytest.fixture(scope="module")
def devkit(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world") / "voc", "voc", count=12)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


def prepare(devkit, recipe=RECIPE, **options):
    return prepare_data(ProjectionDataOptions(devkit, **options), recipe)


def test_shares_of_a_cell():
    classes = np.array([[0, 0, 1, 2], [0, 255, 1, 3]])
    cells = count_shares(classes, [1, 3], (1, 2))
    assert cells.tolist() == [[[0.75, 0, 0], [0, 0.5, 0.25]]]
    assert count_shares(classes, [1, 3], (1, 2), novel="background").tolist() == [[[0.75, 0, 0], [0.25, 0.5, 0.25]]]


def test_folds_are_those_of_pascal():
    from hardlook.data.voc import VOC_CLASSES

    assert choose_unseen(VOC_CLASSES, 1) == ("bus", "car", "cat", "chair", "cow")
    assert choose_unseen(VOC_CLASSES, None) == ()
    assert choose_unseen(VOC_CLASSES, None, unseen=["TV monitor", "Bus"]) == ("bus", "tvmonitor")
    for arguments, message in (
        ((4, 4), "there is no such fold"),
        ((0, 1), "there is no such fold"),
        ((0, 4, ["cat"]), "both given"),
        ((None, 4, ["glorp"]), "glorp: no class of the data"),
        ((None, 4, VOC_CLASSES), "no class is left"),
    ):
        with pytest.raises(OptionError, match=message):
            choose_unseen(VOC_CLASSES, *arguments)


def test_words_of_classes(tmp_path):
    assert [word.text for word in choose_words(["tvmonitor", "diningtable", "red_barn"], None)] == [
        "tv monitor", "dining table", "red barn",
    ]  # fmt: skip
    (tmp_path / "words.txt").write_text("cat, kitten\ncar\n")
    assert choose_words(["Cat"], str(tmp_path / "words.txt"))[0].names == ("cat", "kitten")
    with pytest.raises(OptionError, match="do not name the class 'dog'"):
        choose_words(["dog"], str(tmp_path / "words.txt"))


def test_unseen_classes_leave_no_trace(devkit):
    """Neither a column nor a pixel; the same cells as with all classes, but for theirs, which have no label."""
    names = open_devkit(devkit).classes
    whole, part = prepare(devkit), prepare(devkit, unseen=names[:3])
    assert part.names == names[3:] and part.words.shape == (len(names) - 3, 64)
    assert torch.equal(part.shares[..., 1:], whole.shares[..., 4:]) and torch.equal(
        part.shares[..., 0], whole.shares[..., 0]
    )
    hidden = whole.shares[..., 1:4].sum(-1) > 0
    assert hidden.any() and float(part.shares.sum(-1)[hidden].max()) < 1
    as_background = prepare(devkit, change_projection_recipe(RECIPE, {"novel": "background"}), unseen=names[:3])
    assert torch.allclose(as_background.shares.sum(-1), whole.shares.sum(-1), atol=1e-5)
    assert part.facts["unseen"] == list(names[:3]) and part.facts["fingerprint"] == whole.facts["fingerprint"]


def test_images_are_encoded_once_over_trainings(devkit, monkeypatch):
    from hardlook.models.planted.encoders import PlantedEncoder

    first = prepare(devkit)
    monkeypatch.setattr(PlantedEncoder, "encode", None)
    assert torch.equal(prepare(devkit).maps, first.maps)


def test_excluded_images_do_not_train(devkit, tmp_path):
    ids = open_devkit(devkit).ids("train")
    (tmp_path / "test.txt").write_text("\n".join(ids[:2]))
    part = prepare(devkit, exclude=tmp_path / "test.txt")
    assert set(part.images) == set(ids[2:]) and part.facts["excluded_by_name"] == 2
    test = tmp_path / "test"
    test.mkdir()
    copied = open_devkit(devkit).image(ids[0]).path
    (test / f"other{copied.suffix}").write_bytes(copied.read_bytes())
    part = prepare(devkit, exclude=test)
    assert ids[0] not in part.images and ids[0] in part.facts["copies_of_excluded_images"]
    (tmp_path / "all.txt").write_text("\n".join(ids))
    with pytest.raises(DataError, match="no image is left to train on"):
        prepare(devkit, exclude=tmp_path / "all.txt")


def test_held_back_images_do_not_train(devkit):
    part = prepare(devkit, held_back=0.4)
    assert (
        len(part.held) and not set(part.held) & set(part.rows) and len(part.held) + len(part.rows) == len(part.images)
    )
    assert part.facts["validation"] == {"images": len(part.held)}
    assert prepare(devkit, held_back=0.0).facts["validation"]["why"] == "no image was held back"


def test_encoders_without_maps_are_refused(devkit, monkeypatch):
    from hardlook.models.planted.encoders import PlantedEncoder
    from hardlook.models.roles import Features

    monkeypatch.setattr(
        PlantedEncoder, "encode", lambda self, images: Features(np.zeros((len(images), 64), np.float32))
    )
    with pytest.raises(ModelError, match="'planted-encoder' has no maps"):
        prepare(devkit)


def test_words_without_a_vector_are_named(devkit, tmp_path):
    (tmp_path / "vectors.txt").write_text("cat 1 0\nthe 0 1\n")
    recipe = find_projection_recipe("planted-encoder", "glove")
    recipe = change_projection_recipe(recipe, {"text.source": str(tmp_path / "vectors.txt")})
    with pytest.raises(OptionError, match=r"no vector of glove: .*dog") as caught:
        prepare(devkit, recipe)
    assert "after a comma" in caught.value.remedy
