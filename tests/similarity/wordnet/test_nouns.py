"""The nouns against nltk over WordNet's own files, and against what anyone can look up."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest

from hardlook.errors import OptionError
from hardlook.similarity.wordnet.nouns import list_singulars, list_spellings, load_nouns


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("churches", "church"),
        ("buses", "bus"),
        ("shelves", "shelf"),
        ("boxes", "box"),
        ("quizzes", "quizz"),
        ("dishes", "dish"),
        ("firemen", "fireman"),
        ("berries", "berry"),
        ("dogs", "dog"),
    ],
)
def test_each_ending_has_its_rule(word, expected):
    assert expected in list_singulars(word, {})


def test_an_exception_stands_alone():
    assert list_singulars("lens", {"lens": ("lens",)}) == ("lens",)


def test_spellings_are_tried_as_written_first():
    assert list_spellings("Fire  hydrant") == ("fire_hydrant", "fire-hydrant", "firehydrant")
    assert list_spellings("x-ray tube") == ("x-ray_tube", "x_ray_tube", "x-ray-tube", "xraytube")
    assert list_spellings("  ") == ()


NOUNS = load_nouns()


def test_size_root_and_one_entry():
    assert len(NOUNS) == len(NOUNS.graph) == len(NOUNS.counts) == 82_115
    assert np.flatnonzero(np.diff(NOUNS.graph.indptr) == 0).tolist() == [NOUNS.index("entity.n.01")]
    dog = NOUNS.sense(NOUNS.index("dog.n.01"))
    assert (dog.name, dog.offset) == ("dog.n.01", "n02084071")
    assert dog.lemmas == ("dog", "domestic_dog", "Canis_familiaris")
    assert dog.gloss.startswith("a member of the genus Canis")
    assert [NOUNS.name(i) for i in NOUNS.graph.hypernyms(dog.index)] == ["canine.n.02", "domestic_animal.n.01"]


def test_synsets_equal_nltk(reader):
    for index in np.random.default_rng(1).integers(0, len(NOUNS), 6000):
        synset = reader.synset_from_pos_and_offset("n", int(NOUNS.offset(index)[1:]))
        assert NOUNS.index(synset.name()) == index
        assert NOUNS.name(index) == synset.name()
        assert NOUNS.lemmas(index) == tuple(synset.lemma_names())
        above = synset.hypernyms() + synset.instance_hypernyms()
        # nltk sorts them by name, we keep the file's order.
        ours = sorted(NOUNS.offset(i) for i in NOUNS.graph.hypernyms(index))
        assert ours == sorted(f"n{s.offset():08d}" for s in above)


def test_every_gloss_is_the_file_s(dict_folder):
    lines = (dict_folder / "data.noun").read_text(encoding="ascii").splitlines()
    glosses = {f"n{line[:8]}": line.partition("|")[2].strip() for line in lines if not line.startswith(" ")}
    assert {NOUNS.offset(i): NOUNS.gloss(i) for i in range(len(NOUNS))} == glosses


def test_depths_and_hypernym_paths_equal_nltk(reader):
    rng = np.random.default_rng(0)
    for index in rng.integers(0, len(NOUNS), 2000):
        synset = reader.synset_from_pos_and_offset("n", int(NOUNS.offset(index)[1:]))
        assert NOUNS.graph.min_depth[index] == synset.min_depth()
        assert NOUNS.graph.max_depth[index] == synset.max_depth()
        paths = [[s.name() for s in path] for path in synset.hypernym_paths()]
        ours = [NOUNS.name(i) for i in NOUNS.hypernym_path(index)]
        assert ours in paths and len(ours) == min(map(len, paths))


def test_senses_equal_nltk_for_words_and_their_plurals(reader):
    words = sorted(reader.all_lemma_names("n"))
    rng = np.random.default_rng(0)
    chosen = [words[i] for i in rng.integers(0, len(words), 3000)]
    for word in [*chosen, *(f"{word}s" for word in chosen), *(f"{word}es" for word in chosen)]:
        expected = list(dict.fromkeys(synset.name() for synset in reader.synsets(word, "n")))
        if expected:
            assert [sense.name for sense in NOUNS.senses(word)] == expected


def test_any_lemma_names_its_synset_as_in_nltk(reader):
    for name in ("domestic_dog.n.01", "Canis_familiaris.n.01", "frank.n.02", "dog.n.7", "automobile.n.01"):
        assert NOUNS.offset(NOUNS.index(name)) == f"n{reader.synset(name).offset():08d}"


def test_counts_are_those_of_the_sense_index(dict_folder):
    expected: dict[str, int] = {}
    for line in (dict_folder / "index.sense").read_text(encoding="ascii").splitlines():
        key, offset, _, count = line.split()
        if "%1:" in key:
            expected[f"n{offset}"] = expected.get(f"n{offset}", 0) + int(count)
    assert {NOUNS.offset(i): int(count) for i, count in enumerate(NOUNS.counts)} == expected


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("dog", "dog.n.01"),
        ("Traffic Light", "traffic_light.n.01"),
        ("traffic-light", "traffic_light.n.01"),
        ("t shirt", "jersey.n.03"),
        ("baseballbat", None),
        ("ice-cream", "ice_cream.n.01"),
        ("week end", "weekend.n.01"),
        ("geese", "goose.n.01"),
        ("wolves", "wolf.n.01"),
        ("women", "woman.n.01"),
        ("knives", "knife.n.01"),
        ("sea lions", "sea_lion.n.01"),
        ("", None),
        ("qqqq", None),
    ],
)
def test_words_are_found_as_people_write_them(word, first):
    senses = NOUNS.senses(word)
    assert (senses[0].name if senses else None) == first


def test_senses_come_in_order_of_use():
    assert [sense.name for sense in NOUNS.senses("crane")][:2] == ["crane.n.01", "crane.n.02"]
    assert next(sense.name for sense in NOUNS.senses("mouse")) == "mouse.n.01"
    assert "mouse.n.04" in {sense.name for sense in NOUNS.senses("mice")}


@pytest.mark.parametrize(
    ("asked", "remedy"),
    [("dog.n.99", "dog.n.01"), ("elefant.n.01", "elephant.n.01"), ("dogs", "dog.n.01"), ("n00000001", "n02084071")],
)
def test_an_unknown_name_is_an_error_with_near_names(asked, remedy):
    with pytest.raises(OptionError) as error:
        NOUNS.index(asked)
    assert error.value.unit == asked and remedy in (error.value.remedy or "")


@pytest.mark.parametrize("ask", [NOUNS.name, NOUNS.offset, NOUNS.gloss, NOUNS.sense, NOUNS.hypernym_path])
@pytest.mark.parametrize("index", [-1, 82_115])
def test_the_number_of_an_unknown_label_is_no_synset(ask, index):
    with pytest.raises(IndexError, match="got"):
        ask(index)


def test_the_licence_goes_with_the_data():
    licence = resources.files("hardlook.similarity.wordnet").joinpath("data", "LICENSE-WORDNET.txt").read_text()
    assert "Princeton University" in licence and "Copyright 2006" in licence
