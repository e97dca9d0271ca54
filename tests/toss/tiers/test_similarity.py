"""Vectors of images: a failure costs one image, and pairs are split at the mean cosine."""

import numpy as np
import pytest

from hardlook.data.class_masks import open_class_mask_folders
from hardlook.models.roles import Features
from hardlook.toss.tiers.similarity import encode_images, pair_cosines, split_at_mean
from hardlook.world.layouts import write_world


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world") / "voc"
    write_world(folder, layout="voc", seed=0, count=10, size=(96, 72), image_format="png")
    return open_class_mask_folders({"voc": folder})


class Troubled:
    """Mean colours; an error, no number or a row too few for one picture."""

    dimension = 3

    def __init__(self, trouble="", picture=None):
        self.trouble, self.picture = trouble, picture

    def encode(self, images):
        vectors = np.array([image.mean(axis=(0, 1)) for image in images], np.float32)
        for place, image in enumerate(images):
            if self.picture is not None and np.array_equal(image, self.picture):
                if self.trouble == "raises":
                    raise RuntimeError("no such picture")
                vectors = np.delete(vectors, place, axis=0) if self.trouble == "short" else vectors
                if self.trouble == "nan":
                    vectors[place] = np.nan
        return Features(vectors)


@pytest.mark.parametrize("trouble", ["raises", "nan", "short"])
def test_an_image_that_the_encoder_fails_on_is_named_and_stops_nothing(source, trouble):
    token = source.tokens()[3]
    calls = []
    found = encode_images(
        source, source.tokens(), Troubled(trouble, source.read_image(token)), advance=lambda *n: calls.append(n)
    )
    whole = encode_images(source, source.tokens(), Troubled())
    assert [failure.image for failure in found.failures] == [source.image_of(token)]
    assert set(whole.vectors) - set(found.vectors) == {source.image_of(token)}
    assert all(np.array_equal(vector, whole.vectors[image]) for image, vector in found.vectors.items())
    assert sum(done for done, _ in calls) == len(whole.vectors) and sum(failed for _, failed in calls) == 1


def test_pairs_split_at_the_mean_over_all_classes():
    pools = {"cat": [("1_a", "1_b")], "dog": [("2_a", "2_b"), ("2_b", "2_a")]}
    similar, mean = split_at_mean(pools, {"cat": np.array([0.9]), "dog": np.array([0.3, 0.6])})
    assert mean == pytest.approx(0.6)
    assert similar == {("1_a", "1_b"): True, ("2_a", "2_b"): False, ("2_b", "2_a"): False}


def test_a_vector_of_zeros_stays_and_all_others_have_length_one(source):
    class Blind(Troubled):
        def encode(self, images):
            vectors = np.asarray(super().encode(images).vectors).copy()
            vectors[0] = 0.0
            return Features(vectors)

    lengths = [
        float(np.linalg.norm(vector)) for vector in encode_images(source, source.tokens(), Blind()).vectors.values()
    ]
    assert 0.0 in lengths and {round(length, 9) for length in lengths} == {0.0, 1.0}


def test_without_pairs_there_are_no_cosines_and_no_mean():
    assert pair_cosines({}, str, []).shape == (0,)
    similar, mean = split_at_mean({}, {})
    assert similar == {} and np.isnan(mean)
    similar, mean = split_at_mean({"cat": []}, {"cat": np.zeros(0)})
    assert similar == {} and np.isnan(mean)
