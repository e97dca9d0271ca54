"""Words, synonyms, background and prompts of open-vocabulary networks."""

import numpy as np
import pytest

from hardlook.errors import OptionError
from hardlook.models.open_vocabulary.free_words import VILD_TEMPLATES, read_free_words


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("feline, cat, kitten\n7: lamp_post\nDog\n")
    return path


@pytest.mark.parametrize(
    "synonyms, expected",
    [
        ("all", (("feline", "cat", "kitten"), ("lamp post",), ("Dog",))),
        ("first", (("feline",), ("lamp post",), ("Dog",))),
        ("joined", (("feline, cat, kitten",), ("lamp post",), ("Dog",))),
    ],
)
def test_synonyms_are_all_names_or_one(file, synonyms, expected):
    words = read_free_words((str(file),), default=VILD_TEMPLATES, synonyms=synonyms)
    assert words.labels == ("feline", "lamp_post", "Dog") and words.files == (file,)
    assert words.groups == expected and words.counts == tuple(map(len, expected))
    prompts = words.list_prompts()
    assert len(prompts) == 14 * len(words.names) and prompts[0] == f"a photo of a {expected[0][0]}."


def test_words_of_the_background_are_one_class_without_label(file):
    words = read_free_words(("cat", "dog"), ("{label}!",), ("sky", "wall"), default="{label}")
    assert words.labels == ("cat", "dog") and words.counts == (1, 1, 2)
    assert words.list_prompts() == ["cat!", "dog!", "sky!", "wall!"]
    assert words.drop_background(np.array([[1, 2, 0]])).tolist() == [[1, -1, 0]]
    assert "2 names of 2 labels, 2 words of the background" in words.describe()
    for synonyms in ("all", "first", "joined"):
        with pytest.raises(OptionError, match="'Cat' is a label and a word of the background"):
            read_free_words((str(file),), (), ("Cat",), default="{label}", synonyms=synonyms)


def test_a_file_of_labels_may_say_which_are_countable(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("name,isthing\ngnu,1\nsavannah,0\n")
    words = read_free_words((str(path),), default="{label}")
    assert words.find_things(()) == (True, False)
    assert words.find_things(("savannah",)) == (False, True)
    with pytest.raises(OptionError, match="countable"):
        read_free_words(("gnu", "savannah"), default="{label}").find_things(())
