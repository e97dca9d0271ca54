import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import DataError, ModelError
from hardlook.open_vocabulary.vocabulary import join_labels, join_run_labels, map_to_closed_labels, relabel_map
from hardlook.similarity.labels import normalise_name

WORDS = st.lists(st.sampled_from(["ape", "Ape", "ox", "yak", "sea lion", "sea-lion", "emu"]), unique_by=normalise_name)


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_all_words_have_one_place_each(spoken):
    lists = [["cat", "sky", *words] for words in spoken]
    names, tables = join_run_labels(lists, [2] * len(lists))
    assert names[:2] == ("cat", "sky")
    assert len({normalise_name(name) for name in names}) == len(names)
    assert {normalise_name(name) for name in names} == {normalise_name(name) for words in lists for name in words}
    for words, table in zip(lists, tables, strict=True):
        assert [normalise_name(names[place]) for place in table] == [normalise_name(word) for word in words]


@given(WORDS, WORDS)
def test_the_order_of_runs_does_not_matter(one, other):
    lists = [["cat", *one], ["cat", *other]]
    assert join_run_labels(lists, [1, 1])[0] == join_run_labels(lists[::-1], [1, 1])[0]


def test_what_follows_the_shared_beginning_is_sorted():
    names, _ = join_run_labels([["cat", "zebra", "owl"], ["cat", "owl", "bat"]], [1, 1])
    assert names == ("cat", "bat", "owl", "zebra")


def test_a_list_that_lacks_a_true_label():
    with pytest.raises(DataError, match="label 2 is 'sky' in run 1 and missing in run 3"):
        join_run_labels([["cat", "sky"], ["cat", "sky"], ["cat"]], [2, 2, 1])


words = st.lists(st.sampled_from(["cat", "Cat", "traffic light", "traffic_light", "sky", "sea"]), max_size=6)


@given(words.map(lambda names: list({normalise_name(name): name for name in names}.values())), words)
def test_joined_labels_keep_the_truths_numbers_and_have_every_label(known, spoken):
    names, table = join_labels(known, spoken)
    assert list(names[: len(known)]) == known
    assert [normalise_name(names[place]) for place in table] == [normalise_name(name) for name in spoken]
    assert len({normalise_name(name) for name in names}) == len(names)


def test_unknown_words_are_the_background_where_there_is_one():
    assert map_to_closed_labels(["background", "cat"], ["sky", "cat"]).tolist() == [0, 1, 0]
    assert map_to_closed_labels(["cat", "dog"], ["sky", "cat"]).tolist() == [-1, 0, -1]


def test_two_vocabularies_without_a_common_word_are_refused():
    with pytest.raises(ModelError, match="no label of the model"):
        map_to_closed_labels(["cat"], ["sky"])


def test_translate_maps_what_is_outside_to_nothing():
    answer = np.array([[-1, 0, 1, 9]], np.int32)
    assert relabel_map(answer, np.array([5, 7], np.int32)).tolist() == [[-1, 5, 7, -1]]
    assert relabel_map(answer, np.array([5, 7], np.int32), no_label=0).tolist() == [[0, 5, 7, 0]]


def test_known_names_that_compare_equal_are_refused():
    with pytest.raises(DataError, match="two labels are called 'traffic light'"):
        join_labels(["traffic light", "traffic-light"], ["sky"])


def test_names_are_in_one_line():
    names, places = join_labels(["sea\nlion", "cat"], ["Sea Lion", "polar\t bear"])
    assert (names, places.tolist()) == (("sea lion", "cat", "polar bear"), [0, 2])
