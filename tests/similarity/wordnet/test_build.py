"""tools/build_wordnet.py makes the embedded files again from WordNet's own."""

from __future__ import annotations

import importlib.util
import lzma
import sys
from pathlib import Path

import numpy as np
import pytest

import hardlook.similarity.wordnet
from hardlook.similarity.wordnet import nouns

TOOL = Path(__file__).resolve().parents[3] / "tools" / "build_wordnet.py"

EMBEDDED = Path(hardlook.similarity.wordnet.__file__).parent / "data"


def read_text(path):
    return lzma.decompress(path.read_bytes()).decode("ascii")


@pytest.fixture(scope="module")
def tool():
    if not TOOL.is_file():
        pytest.skip("tools/build_wordnet.py is not part of this installation")
    spec = importlib.util.spec_from_file_location("build_wordnet", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["build_wordnet"] = module
    spec.loader.exec_module(module)
    return module


SMALL = {
    "data.noun": (
        "  1 A licence.\n"
        "00000007 03 n 01 entity 0 001 ~ 00000042 n 0000 | that which is\n"
        "00000042 05 n 02 Big_dog 0 dog 1 001 @ 00000007 n 0000 | a large dog\n"
    ),
    "index.noun": (
        "  1 A licence.\nbig_dog n 1 1 @ 1 0 00000042\ndog n 2 1 @ 2 1 00000007 00000042\nentity n 1 1 ~ 1 0 00000007\n"
    ),
    "cntlist.rev": "dog%1:05:01:: 2 300\nnoise%1:00:00:: 1 5\n",
    "noun.exc": "oxen ox\nmice mouse\n",
}


def test_a_small_dictionary_by_hand_and_the_same_bytes_each_time(tool, tmp_path):
    for name, content in SMALL.items():
        (tmp_path / name).write_text(content, encoding="ascii")
    for out in ("one", "two"):
        tool.build(tmp_path, tmp_path / "noun.exc", tmp_path / out)
    for path in EMBEDDED.iterdir():
        assert (tmp_path / "one" / path.name).read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    with np.load(tmp_path / "one" / "nouns.npz") as numbers:
        assert {name: numbers[name].tolist() for name in numbers.files} == {
            "offset": [7, 42],
            "hypernym_count": [0, 1],
            "hypernym": [0],
            "lemma_count": [1, 2],
            "sense_number": [1, 1, 2],
            "tag_count": [0, 0, 300],
        }
    assert read_text(tmp_path / "one" / "lemmas.txt.xz") == "entity\nBig_dog dog\n"
    assert read_text(tmp_path / "one" / "exceptions.txt.xz") == "mice mouse\noxen ox\n"
    assert (tmp_path / "one" / "LICENSE-WORDNET.txt").read_text() == "WordNet Release 3.0\n\nA licence.\n"


def test_wordnet_s_own_files_give_the_embedded_content(tool, dict_folder, tmp_path, monkeypatch):
    # What is compressed is compared; to compress it as well as possible takes most of the time.
    monkeypatch.setattr(tool, "XZ_PRESET", 0)
    # The assembled folder's cntlist.rev is empty; without it the counts come from index.sense.
    source = tmp_path / "dict"
    source.mkdir()
    for name in ("data.noun", "index.noun", "index.sense", "noun.exc"):
        (source / name).symlink_to(dict_folder / name)
    tool.build(source, source / "noun.exc", tmp_path / "out")
    assert {path.name for path in EMBEDDED.iterdir()} == {path.name for path in (tmp_path / "out").iterdir()}
    embedded = nouns.read_numbers()
    with np.load(tmp_path / "out" / "nouns.npz") as rebuilt:
        assert set(rebuilt.files) == set(embedded)
        for name in embedded:
            assert np.array_equal(rebuilt[name], embedded[name]) and rebuilt[name].dtype == embedded[name].dtype
    for text in ("lemmas", "glosses", "exceptions"):
        assert read_text(tmp_path / "out" / f"{text}.txt.xz").splitlines() == nouns.read_lines(text)
    assert (tmp_path / "out" / "LICENSE-WORDNET.txt").read_text() == (EMBEDDED / "LICENSE-WORDNET.txt").read_text()


def test_a_line_is_read_as_wordnet_lays_it_out(tool):
    line = (
        "00000042 05 n 02 Big_dog 0 hound 1 003 @ 00000007 n 0000 @i 00000008 n 0000 ~ 00000043 n 0000 "
        '| a large dog | with a bar; "that dog"  '
    )
    noun = tool.parse_line(line)
    assert noun.offset == 42 and noun.lemmas == ("Big_dog", "hound") and noun.hypernyms == (7, 8)
    assert noun.sense_keys == ("big_dog%1:05:00::", "hound%1:05:01::")
    assert noun.gloss == 'a large dog | with a bar; "that dog"'


def test_a_folder_without_the_files_is_refused(tool, tmp_path):
    with pytest.raises(SystemExit, match=r"has no data\.noun"):
        tool.build(tmp_path, tmp_path / "noun.exc", tmp_path / "out")
