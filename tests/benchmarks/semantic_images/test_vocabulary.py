import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.benchmarks.semantic_images.vocabulary import closed, together, translate
from hardlook.errors import DataError, ModelError
from hardlook.labels.label_set import plain_name

words = st.lists(st.sampled_from(["cat", "Cat", "traffic light", "traffic_light", "sky", "sea"]), max_size=6)


@given(words.map(lambda names: list({plain_name(name): name for name in names}.values())), words)
def test_together_keeps_the_truths_numbers_and_finds_every_word(known, spoken):
    names, table = together(known, spoken)
    assert list(names[: len(known)]) == known
    assert [plain_name(names[place]) for place in table] == [plain_name(name) for name in spoken]
    assert len({plain_name(name) for name in names}) == len(names)


def test_unknown_words_are_the_background_where_there_is_one():
    assert closed(["background", "cat"], ["sky", "cat"]).tolist() == [0, 1, 0]
    assert closed(["cat", "dog"], ["sky", "cat"]).tolist() == [-1, 0, -1]


def test_two_vocabularies_without_a_common_word_are_refused():
    with pytest.raises(ModelError, match="no label of the model"):
        closed(["cat"], ["sky"])


def test_translate_maps_what_is_outside_to_nothing():
    answer = np.array([[-1, 0, 1, 9]], np.int32)
    assert translate(answer, np.array([5, 7], np.int32)).tolist() == [[-1, 5, 7, -1]]
    assert translate(answer, np.array([5, 7], np.int32), nothing=0).tolist() == [[0, 5, 7, 0]]


def test_known_names_that_compare_equal_are_refused():
    with pytest.raises(DataError, match="two labels are called 'traffic light'"):
        together(["traffic light", "traffic-light"], ["sky"])
