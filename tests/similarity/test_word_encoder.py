"""Word vectors as a text encoder: phrases, unknown words named, length 1."""

import numpy as np
import pytest

from hardlook.errors import DataError
from hardlook.models.registry import build
from hardlook.models.weights.install import get_weights_status
from hardlook.similarity.word_encoder import WordEncoder

FILE = "cat 3 4\ndog 0 2\ntraffic 1 0\nlight 0 1\nthe 1 1\nnothing 0 0\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(FILE)
    return path


def test_vectors_have_length_one_and_phrases_are_means(source):
    encoder = WordEncoder(source)
    assert encoder.dimension == 2 and encoder.weights_files == (source,)
    found = encoder.encode_text(["Cats", "traffic lights", "red dog"])
    assert found.dtype == np.float32
    assert found == pytest.approx(np.array([[0.6, 0.8], [0.5**0.5, 0.5**0.5], [0, 1]]))
    assert encoder.encode_text([]).shape == (0, 2)


def test_unknown_texts_are_all_named(source):
    with pytest.raises(DataError, match="3 of 4 texts have no word vector: 'glorp', 'nothing', ''") as caught:
        WordEncoder(source).encode_text(["glorp", "cat", "nothing", ""])
    assert caught.value.file == str(source) and "after a comma" in caught.value.remedy
    zeros = WordEncoder(source, unknown="zero").encode_text(["glorp", "cat"])
    assert zeros.tolist() == [[0, 0], pytest.approx([0.6, 0.8])]


def test_it_is_a_text_encoder_of_the_registry(source):
    encoder = build("glove", "text-encoder", {"source": str(source)})
    assert encoder.encode_text(["dog"]).tolist() == [[0, 1]]


@pytest.mark.real
def test_installed_glove_knows_dogs_from_cars():
    if get_weights_status("glove-6b-50d") != "installed":
        pytest.skip("glove-6b-50d is not installed; hardlook weights install glove-6b-50d")
    dog, cat, car = WordEncoder().encode_text(["dog", "cat", "car"])
    assert dog @ cat > 0.8 > dog @ car
