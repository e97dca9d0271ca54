"""Files of phrases, and `hardlook labels map --free`."""

import csv
import json

import pytest

from hardlook.errors import DataError, OptionError
from hardlook.similarity.free_words.phrase_files import describe_phrases, read_numbered_phrases, read_phrases


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_images_of_a_text_file_are_separated_by_empty_lines(tmp_path):
    file = write(tmp_path / "phrases.txt", "\n\na crane\nheron\n\n \n\ncrane\n")
    assert read_phrases(file) == {"1": ("a crane", "heron"), "2": ("crane",)}


def test_json_by_image(tmp_path):
    file = write(tmp_path / "phrases.json", json.dumps({"a": ["sky", "car"], "b": {"7": "sky", "0": ""}}))
    assert read_phrases(file) == {"a": ("sky", "car"), "b": ("sky", "")}
    assert read_numbered_phrases(file) == {"a": {0: "sky", 1: "car"}, "b": {7: "sky", 0: ""}}


@pytest.mark.parametrize(
    "content",
    ['{"a": "sky"}', '{"a": [1]}', "[1, 2]", '{"a": 3}', '{"a": {"x": "sky"}}', "{", "", '{"a": [null]}', '{"a": []}'],
)
def test_damaged_json(tmp_path, content):
    with pytest.raises(DataError) as error:
        read_phrases(write(tmp_path / "phrases.json", content))
    assert error.value.file and error.value.remedy


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_phrases(tmp_path / "none.txt")
    with pytest.raises(DataError, match="there are no phrases"):
        read_phrases(write(tmp_path / "empty.txt", "\n \n"))


def test_rows_say_what_a_phrase_is_taken_for():
    rows = describe_phrases({"x": ["stop signs", "giraff", "zebra", "zebra"]}, ["stop sign"])
    assert [(row["phrase"], row["label"], row["synset"], row["rule"]) for row in rows] == [
        ("stop signs", "stop sign", None, "label"),
        ("giraff", None, None, "unknown"),
        ("zebra", None, "zebra.n.01", "only"),
    ]
    assert rows[1]["gloss"] == "did you mean 'giraffe'?" and "striped" in rows[2]["gloss"]
    with pytest.raises(OptionError, match="--senses vector"):
        describe_phrases({}, senses="vector")


def test_the_command(hardlook, tmp_path):
    file = write(tmp_path / "phrases.txt", "a red crane\nherons\ngiraff\nstop sign\n")
    answer = hardlook("labels", "map", file, "--free", "--labels", "coco80")
    assert answer.code == 0 and "4 phrases, 1 without a sense" in answer.out
    assert "crane.n.05" in answer.out and "large long-necked wading bird" in " ".join(answer.out.split())
    found = json.loads(hardlook("labels", "map", file, "--free", "--senses", "first", "--json").out)
    assert found["phrases"][0]["synset"] == "crane.n.04" and found["unknown"] == 1
    out = tmp_path / "table.csv"
    hardlook("labels", "map", file, "--free", "--out", out)
    assert [row["rule"] for row in csv.DictReader(out.open())] == ["context", "only", "unknown", "usual"]


def test_labels_belong_to_free(hardlook, tmp_path):
    file = write(tmp_path / "names.txt", "crane\n")
    answer = hardlook("labels", "map", file, "--labels", "coco80")
    assert answer.code != 0 and "add --free" in answer.err
