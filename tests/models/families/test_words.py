"""Words of models with an open vocabulary: lists, files and label sets; prompts; countable labels."""

from __future__ import annotations

import json

import pytest

from hardlook.errors import DataError, HardlookError, OptionError
from hardlook.models.families.words import choose_things, read_templates, read_words
from hardlook.similarity.label_sets import list_label_sets, load_label_set
from hardlook.similarity.labels import label_text


@pytest.mark.parametrize("name", [one.name for one in list_label_sets()])
def test_label_sets_have_the_words_that_measures_on_words_use(name):
    words, labels = read_words((name,)), load_label_set(name)
    assert words.labels == labels.names
    assert list(words.texts) == [label_text(label) for label in labels]
    assert [word.is_thing for word in words.words] == [label.isthing for label in labels]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("words.txt", "person, man\nkitten; cat\n"),
        ("words.txt", "3: person, man\n7\tkitten\n9, sky\n"),
        ("words.txt", "person,\nkitten , \n"),
        ("words.txt", "bag\nbag, handbag\nbag; purse\ncat\n"),
        ("words.csv", "name,aliases,isthing\nperson,man|woman,thing\nsky,,stuff\nsea,,\n"),
        ("words.tsv", "name\taliases\tisthing\nperson\tman\tyes\nsky\tair\tno\n"),
        ("words.json", json.dumps(["building, edifice", "sky"])),
        ("words.json", json.dumps([{"name": "person", "aliases": ["man"], "isthing": True}, {"name": "sea, ocean"}])),
        ("words.json", json.dumps({"0": "person, man", "1": "kitten"})),
    ],
)
def test_a_file_is_one_vocabulary_for_models_and_scores(file, content, tmp_path):
    """`--model-arg labels=FILE --pred-labels FILE`: the same labels, synonyms and countable ones in both."""
    path = tmp_path / file
    path.write_text(content)
    words, labels = read_words((str(path),)), load_label_set(path)
    assert words.labels == labels.names
    assert [word.synonyms for word in words.words] == [label.aliases for label in labels]
    assert [word.is_thing for word in words.words] == [label.isthing for label in labels]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("words.txt", "# my words\n0: sofa, couch\n\ntraffic_light\n"),
        ("words.csv", "name,aliases\nsofa,couch\ntraffic_light,\n"),
        ("words.tsv", "id\tname\n0\tsofa\n1\ttraffic_light\n"),
        ("words.json", json.dumps(["sofa", "traffic_light"])),
        ("words.json", json.dumps({"categories": [{"name": "sofa"}, {"name": "traffic_light"}]})),
        ("words.json", json.dumps({"0": "sofa", "1": "traffic_light"})),
    ],
)
def test_files(file, content, tmp_path):
    path = tmp_path / file
    path.write_text(content)
    words = read_words((str(path),))
    assert words.labels == ("sofa", "traffic_light")
    assert words.texts == ("sofa", "traffic light")
    assert words.source_files == (path,)


def test_lists_are_any_strings():
    words = read_words(("glorp", "the red barn", "sofa"))
    assert words.labels == words.texts == ("glorp", "the red barn", "sofa")
    assert read_words("glorp, the red barn,sofa") == words


@pytest.mark.parametrize(
    ("given", "expected", "kind"),
    [
        ((), "needs the words", OptionError),
        (("cat", "Cat"), "two labels are called 'Cat'", OptionError),
        (("traffic light", "traffic_light"), "two labels", OptionError),
        (("nowhere.txt",), "no such file of labels", DataError),
        (("cat", " "), "empty", OptionError),
    ],
)
def test_errors(given, expected, kind):
    with pytest.raises(kind, match=expected):
        read_words(given)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"{", b"[1, {}]", b"name\n"])
@pytest.mark.parametrize("suffix", ["txt", "csv", "json"])
def test_damaged_files_are_errors_with_a_name(content, suffix, tmp_path):
    path = tmp_path / f"words.{suffix}"
    path.write_bytes(content)
    try:
        assert all(isinstance(label, str) and label for label in read_words((str(path),)).labels)
    except HardlookError as error:
        assert error.remedy


def test_templates(tmp_path):
    path = tmp_path / "templates.txt"
    path.write_text("a photo of a {label}, outdoors\n\n{label}\n")
    assert read_templates((str(path),)) == (("a photo of a {label}, outdoors", "{label}"), (path,))
    with pytest.raises(OptionError, match="no prompt templates"):
        read_templates(())


def test_countable_labels():
    assert choose_things(["person", "sky-other-merged"], ()) == (True, False)
    assert choose_things(["wall", "bed, double"], ()) == (False, True)  # ADE20K, with synonyms behind a comma
    assert choose_things(["glorp", "sky"], ("glorp",)) == (True, False)
    assert choose_things(["person", "sky-other-merged", "toothbrush"], ("person", "toothbrush")) == (
        True,
        False,
        True,
    )
    with pytest.raises(OptionError, match="not known"):
        choose_things(["glorp"], ())
    with pytest.raises(OptionError, match="not a label of the model"):
        choose_things(["glorp"], ("ape",))


def test_a_label_has_the_names_that_its_line_gives_and_the_text_of_its_prompts_first(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("sofa, couch,settee,couch\nlamp post\n")
    assert [word.names for word in read_words((str(path),)).words] == [("sofa", "couch", "settee"), ("lamp post",)]
    assert read_words(("coco133",)).words[119].names == ("sky",)
