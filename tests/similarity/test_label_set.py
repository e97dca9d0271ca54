import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import DataError, OptionError
from hardlook.similarity.graph_measures import HypernymGraph, path_matrix
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.label_synsets import assign_synsets, move_below_hypernyms
from hardlook.similarity.label_vectors import random_vector
from hardlook.similarity.labels import Label, LabelSet, is_void_label, label_text
from hardlook.similarity.wordnet.nouns import load_nouns

KITCHEN = LabelSet(
    "kitchen",
    "file",
    (
        Label(5, "screen", isthing=True),
        Label(7, "screen door", ("screen", "mesh"), isthing=True),
        Label(9, "blind", ("shade", "mesh"), isthing=False),
    ),
)


@pytest.mark.parametrize("written", ["dining table", "Dining-Table", "diningtable", "DINING_TABLE"])
def test_case_spaces_and_dashes_do_not_count(written):
    assert load_label_set("voc20").find(written).name == "diningtable"
    assert load_label_set("coco80").find(written).name == "dining table"


def test_a_name_goes_before_an_alias():
    assert KITCHEN.find("screen").id == 5
    assert KITCHEN.find("shade").id == 9


def test_an_alias_of_two_labels_is_refused():
    with pytest.raises(OptionError, match="several labels") as refusal:
        KITCHEN.find("mesh")
    assert "screen door, blind" in refusal.value.remedy


def test_a_label_as_ade20k_writes_it():
    assert load_label_set("ade150").find("building, edifice").id == 1


def test_an_unknown_name_lists_near_ones():
    with pytest.raises(OptionError, match="no label 'aeroplan'") as refusal:
        load_label_set("voc20").find("aeroplan")
    assert "aeroplane" in refusal.value.remedy


def test_arrays_by_row():
    assert KITCHEN.ids.tolist() == [5, 7, 9] == KITCHEN.category_ids.tolist()
    assert KITCHEN.things.tolist() == [True, True, False]
    assert KITCHEN.names == ("screen", "screen door", "blind")


def test_things_unsaid_is_an_error():
    with pytest.raises(DataError, match="do not say thing or stuff: aeroplane"):
        _ = load_label_set("pc59").things


@pytest.mark.parametrize(
    ("asked", "remedy"), [("coco8", "coco80"), ("ADE847", "class list"), ("lvis", "annotation json"), ("qqq", "voc20")]
)
def test_unknown_sets_say_what_there_is(asked, remedy):
    with pytest.raises(OptionError) as refusal:
        load_label_set(asked)
    assert remedy in refusal.value.remedy


SIGNS = LabelSet(
    "signs",
    "file",
    (
        Label(0, "street sign", synset="street_sign.n.01"),
        Label(1, "stop sign", hypernym="street_sign.n.01"),
        Label(2, "crane"),
        Label(3, "dog", synset="dog.n.01", proposed=True),
    ),
)

MAPPED = LabelSet("mapped", "file", tuple(label for label in SIGNS if label.name != "crane"))


@pytest.fixture(scope="module")
def nouns():
    return load_nouns()


def test_hypernym_takes_the_place(nouns):
    placement = assign_synsets(MAPPED, nouns)
    assert placement.nodes.tolist() == [
        nouns.index(name) for name in ("street_sign.n.01", "street_sign.n.01", "dog.n.01")
    ]
    assert placement.below.tolist() == [False, True, False]
    assert placement.counts == {"synset": 2, "hypernym": 1, "zero": 0, "proposed": 1}


def test_hypernym_never_guesses(nouns):
    with pytest.raises(DataError, match="1 of 4 labels") as refusal:
        assign_synsets(SIGNS, nouns, "hypernym")
    assert "crane.n.04" in str(refusal.value) and "stop sign" not in str(refusal.value)


def test_zero_is_zero_to_all_others(nouns):
    placement = assign_synsets(SIGNS, nouns, "zero")
    assert placement.nodes[[1, 2]].tolist() == [-1, -1]
    assert [treatment.how for treatment in placement.treated] == ["zero", "zero"]
    similarity = path_matrix(nouns.graph, placement.nodes)
    assert similarity[2].tolist() == [0, 0, 1, 0]


def test_error_lists_labels_with_candidates(nouns):
    with pytest.raises(DataError, match="2 of 4 labels") as refusal:
        assign_synsets(SIGNS, nouns, "error")
    assert "stop sign: not in WordNet" in str(refusal.value)
    assert "labels map" in refusal.value.remedy


def test_a_long_list_is_cut_and_says_so(nouns):
    with pytest.raises(DataError, match="and 33 more"):
        assign_synsets(load_label_set("pc459", "published"), nouns)


@pytest.mark.parametrize(("unknown", "said"), [("random", "embeddings"), ("nearest", "no such treatment")])
def test_treatments_that_wordnet_does_not_have(unknown, said, nouns):
    with pytest.raises(OptionError, match=said):
        assign_synsets(SIGNS, nouns, unknown)


@given(st.text(min_size=1), st.integers(2, 64), st.integers(0, 2**31))
def test_random_vectors_depend_on_the_word_and_the_seed_alone(name, dimensions, seed):
    vector = random_vector(name, dimensions, seed)
    assert np.linalg.norm(vector) == pytest.approx(1)
    assert vector.tolist() == random_vector(name, dimensions, seed).tolist()
    assert vector.tolist() != random_vector(name + "s", dimensions, seed).tolist()
    assert vector.tolist() != random_vector(name, dimensions, seed + 1).tolist()


@given(st.data())
def test_one_edge_below_equals_a_graph_with_the_labels_in_it(data):
    # Every label without a sense becomes a real leaf under its hypernym, and the path is measured there.
    size = data.draw(st.integers(2, 12))
    edges = [(node, data.draw(st.integers(0, node - 1))) for node in range(1, size)]
    nodes = data.draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=6))
    below = data.draw(st.lists(st.booleans(), min_size=len(nodes), max_size=len(nodes)))
    leaves, moved = [], []
    for node, leaf in zip(nodes, below, strict=True):
        moved.append(size + len(leaves) if leaf else node)
        leaves += [(size + len(leaves), node)] if leaf else []
    short = path_matrix(HypernymGraph.from_edges(size, edges), nodes)
    whole = path_matrix(HypernymGraph.from_edges(size + len(leaves), edges + leaves), moved)
    assert move_below_hypernyms(short, np.array(below)) == pytest.approx(whole)


@pytest.mark.parametrize(
    ("labels", "name", "read"),
    [
        ("voc20", "tvmonitor", "tv monitor"),
        ("voc20", "diningtable", "dining table"),
        ("voc20", "sofa", "sofa"),
        ("coco133", "sky-other-merged", "sky"),
        ("coco133", "floor-wood", "wood floor"),
        ("coco133", "playingfield", "playing field"),
        ("coco80", "traffic light", "traffic light"),
        ("pc459", "hot-air balloon", "hot-air balloon"),
    ],
)
def test_shipped_labels_are_read_as_people_would(labels, name, read):
    assert label_text(load_label_set(labels).find(name)) == read


def test_no_shipped_wording_keeps_the_files_own_marks():
    for name in ("voc20", "pc59", "pc459", "ade150", "coco80", "coco133", "coco171", "cityscapes19"):
        for label in load_label_set(name):
            assert not {"merged", "other", "stuff"} & set(label_text(label).replace("-", " ").split()), label.name


def test_only_a_label_without_a_sense_stands_for_none():
    assert is_void_label(Label(0, "Background"))
    assert not is_void_label(Label(0, "background", (), "background.n.02"))
    assert not is_void_label(Label(0, "sky"))
