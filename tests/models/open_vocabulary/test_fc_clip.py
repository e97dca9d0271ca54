"""FC-CLIP as a model: free words, roles, batches, files."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiny_fc_clip import TINY, write_tokenizer  # noqa: E402

from hardlook.errors import OptionError  # noqa: E402
from hardlook.models.conformance import check_model  # noqa: E402
from hardlook.models.open_vocabulary.clip_segmenter import resize_image  # noqa: E402
from hardlook.models.open_vocabulary.fc_clip import FcClip  # noqa: E402
from hardlook.networks.open_vocabulary.fc_clip_checkpoints import build_random  # noqa: E402

SMALL = {"weights": "random:1", "size": TINY, "shorter": 64, "longer": 96}


@pytest.fixture(autouse=True)
def quick(one_thread, tmp_path, monkeypatch):
    """One thread, and a cache of its own."""
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 60, 3), (40, 60, 3), (50, 30, 3))]


@pytest.mark.parametrize("role", ["semantic-segmenter", "instance-segmenter", "panoptic-segmenter"])
def test_each_role_is_fulfilled(role):
    model = FcClip(("cat", "dog", "sky"), things=("cat", "dog"), **SMALL)
    assert [finding.line() for finding in check_model(model, role) if not finding.passed] == []


def test_batches_change_nothing(images):
    words = {"labels": ("cat", "dog", "sky"), "things": ("cat", "dog"), "overlap": 0.05}
    alone, together = FcClip(**words, **SMALL), FcClip(**words, **SMALL, batch=3)
    for one, other in zip(alone.segment(images), together.segment(images), strict=True):
        assert (one != other).mean() < 0.01
    for one, other in zip(alone.segment_panoptic(images), together.segment_panoptic(images), strict=True):
        assert one.labels == other.labels


def test_synonyms_of_a_file_count_and_the_trained_labels_tell_which_were_seen(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("feline,cat,kitten\nlamp post\nDog\n")
    model = FcClip((str(path),), **SMALL)
    assert model.labels == ("feline", "lamp post", "Dog") and path in model.weights_files
    assert model._text.counts == (3, 1, 1) and len(model._text.rows) == 5
    assert model._text.seen == (True, False, True)
    assert FcClip((str(path),), **SMALL, reading="released")._text.seen == (True, False, False)
    torch.testing.assert_close(model._text.rows.norm(dim=1), torch.ones(5))


def test_without_known_things_all_labels_are_instances_and_none_panoptic(images):
    model = FcClip(("gnu", "emu"), **SMALL, limit=7)
    [found] = model.detect(images[:1])
    assert len(found.scores) <= 7 and (np.diff(found.scores) <= 0).all() and found.masks.any((1, 2)).all()
    with pytest.raises(OptionError, match="countable"):
        model.segment_panoptic(images[:1])


def test_images_are_resized_by_the_shorter_side_unless_the_longer_would_be_too_long():
    model = FcClip(("cat",), **SMALL)
    assert model._stack([np.zeros((40, 50, 3), np.uint8)] * 2).shape == (2, 3, 64, 80)
    assert model._stack([np.zeros((400, 100, 3), np.uint8)]).shape == (1, 3, 96, 24)


@pytest.mark.parametrize(
    ("size", "expected"),
    [((222, 372), (795, 1333)), ((312, 624), (666, 1333)), ((298, 596), (667, 1333)), ((638, 319), (1333, 666))],
)
def test_half_pixels_are_rounded_as_by_detectron2(size, expected):
    """Values of its rule: the shorter side first, then both sides by what the longer one is too long."""
    assert resize_image(np.zeros((*size, 3), np.uint8), 800, 1333).shape[:2] == expected


def test_files_in_place_of_random_parameters_answer_the_same(tmp_path, images):
    torch.save(build_random(TINY, seed=1).state_dict(), tmp_path / "all.pth")
    given = {"weights": str(tmp_path / "all.pth"), "shorter": 64, "longer": 96}
    with pytest.raises(OptionError, match="without the tokenizer"):
        FcClip(("dog", "bus"), **given)
    pytest.importorskip("transformers")
    model = FcClip(("dog", "bus"), **given, tokenizer=write_tokenizer(tmp_path / "clip"))
    assert {path.name for path in model.weights_files} == {"all.pth", "vocab.json", "merges.txt"}
    expected = FcClip(("dog", "bus"), **SMALL).segment(images[:1])[0]
    assert np.array_equal(model.segment(images[:1])[0], expected)


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"weights": "random:x"}, "no seed"),
        ({"weights": f"random:{2**64}"}, "no seed"),
        ({"clip": "clip.bin"}, "weights=random:1 and clip=clip.bin are both given"),
        ({"reading": "paper"}, "reading"),
        ({"longer": 32}, "sides of 64 and 32"),
        ({"overlap": 1.1}, "overlap is 1.1"),
        ({"overlap": -0.1}, "overlap is -0.1"),
        ({"limit": 0}, "limit is 0"),
    ],
)
def test_wrong_options_are_refused(wrong, words):
    with pytest.raises(OptionError, match=words):
        FcClip(("cat",), **(SMALL | wrong))
