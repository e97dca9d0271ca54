"""CAT-Seg as a model: windows with and without stretching, synonyms by reading."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiny_fc_clip import TINY  # noqa: E402

from hardlook.models.open_vocabulary.cat_seg import CatSeg  # noqa: E402

SMALL = {"weights": "random:3", "size": TINY}


@pytest.fixture(autouse=True)
def own_cache(one_thread, tmp_path, monkeypatch):
    """One thread, and a cache of its own."""
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(0, 256, (30, 45, 3), dtype=np.uint8)


def count_views(model, image):
    """How many windows and whole images the network sees."""
    seen = []
    model._network.register_forward_pre_hook(lambda network, given: seen.append(given[0].shape))
    assert model.segment([image])[0].shape == image.shape[:2]
    [shape] = seen
    return shape


def test_windows_cover_the_resized_image_and_the_released_code_stretches_it(image):
    sides = {"shorter": 400, "longer": 600}
    assert count_views(CatSeg(("cat",), **SMALL, **sides), image) == (5, 3, 384, 384)
    assert count_views(CatSeg(("cat",), **SMALL, **sides, reading="released"), image) == (5, 3, 384, 384)
    assert count_views(CatSeg(("cat",), **SMALL, shorter=120, longer=600), image) == (2, 3, 384, 384)
    assert count_views(CatSeg(("cat",), **SMALL, **sides, windows=False), image) == (1, 3, 400, 600)
    padded = count_views(CatSeg(("cat",), **SMALL, **sides, windows=False, reading="released"), image)
    assert padded == (1, 3, 416, 608), "multiples of 32"


@pytest.mark.parametrize("reading", ["ours", "released"])
def test_the_released_reading_is_the_networks_own_evaluation(image, reading):
    model = CatSeg(("cat", "dog"), **SMALL, shorter=120, longer=600, reading=reading)
    with torch.inference_mode():
        scores = model._network.segment_windows(model._stack([image]).float(), model.text, (30, 45))
    same = (model.segment([image])[0] == scores[0].argmax(0).numpy()).mean()
    assert (same > 0.999) == (reading == "released"), same


def test_the_best_synonym_counts_and_the_released_code_takes_the_first(tmp_path, image):
    path = tmp_path / "words.txt"
    path.write_text("lamp post\nfeline, cat, kitten\n")
    given = {**SMALL, "shorter": 64, "longer": 600, "windows": False}
    ours, released = (CatSeg((str(path),), **given, reading=reading) for reading in ("ours", "released"))
    assert ours._words.names == ("lamp post", "feline", "cat", "kitten")
    assert released._words.names == ("lamp post", "feline")
    apart = CatSeg(("lamp post", "feline", "cat", "kitten"), **given).segment([image])[0]
    assert len(np.unique(apart)) > 2
    assert np.array_equal(ours.segment([image])[0], np.minimum(apart, 1))
    assert ours.templates == ("A photo of a {label} in the scene",)
