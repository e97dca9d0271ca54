"""Files of word vectors: every format against gensim, which reads and writes them too, and errors by name."""

import json
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import DataError, OptionError
from hardlook.models.weights.install import get_weights_status, locate_weights
from hardlook.similarity.word_vectors import detect_format, read_word_vectors

WORDS = ["cat", "dog", "Traffic_Light", "naïve", "熊", "bus", "3", "nan"]

ROWS = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)


def write_text(path, words=WORDS, rows=ROWS, header=False):
    lines = [f"{word} {' '.join(repr(float(x)) for x in row)}" for word, row in zip(words, rows, strict=True)]
    first = [f"{len(words)} {rows.shape[1]}"] if header else []
    path.write_text("\n".join([*first, *lines]) + "\n", encoding="utf-8")
    return path


def keyed_vectors():
    gensim = pytest.importorskip("gensim.models")
    vectors = gensim.KeyedVectors(ROWS.shape[1])
    vectors.add_vectors(WORDS, ROWS)
    return vectors


def written(path, format):
    if format == "glove":
        return write_text(path)
    if format in ("word2vec", "word2vec-text"):
        keyed_vectors().save_word2vec_format(str(path), binary=format == "word2vec", write_header=True)
    elif format == "npy":
        np.save(path.with_suffix(".npy"), ROWS)
        pl.DataFrame({"index": WORDS}).write_parquet(path.parent / "some_index.parquet")
        return path.with_suffix(".npy")
    elif format == "safetensors":
        safetensors = pytest.importorskip("safetensors.numpy")
        safetensors.save_file({"embeddings": ROWS}, path, metadata={"words": json.dumps(WORDS)})
    return path


@pytest.mark.parametrize("format", ["glove", "word2vec", "word2vec-text", "npy", "safetensors"])
@pytest.mark.parametrize("given", [True, False], ids=["given", "detected"])
def test_every_format_gives_the_rows_written(tmp_path, format, given):
    path = written(tmp_path / "vectors", format)
    read = read_word_vectors(path, {*WORDS[:5], "absent"}, format=format if given else None)
    assert (read.format, read.dimension, read.composed) == (format, 5, {})
    assert set(read.vectors) == set(WORDS[:5])
    for word, row in zip(WORDS[:5], ROWS, strict=False):
        assert read.vectors[word].dtype == np.float32
        assert read.vectors[word] == pytest.approx(row, abs=1e-6)
    assert path in read.files


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1), min_size=1, unique=True),
    st.integers(1, 9),
)
def test_binary_and_text_agree_on_any_words(tmp_path_factory, words, dimension):
    folder = tmp_path_factory.mktemp("any")
    rows = np.random.default_rng(dimension).normal(size=(len(words), dimension)).astype(np.float32)
    records = (word.encode() + b" " + row.astype("<f4").tobytes() for word, row in zip(words, rows, strict=True))
    (folder / "a.bin").write_bytes(f"{len(words)} {dimension}\n".encode() + b"".join(records))
    text = read_word_vectors(write_text(folder / "a.vec", words, rows, header=True), set(words), format="word2vec-text")
    binary = read_word_vectors(folder / "a.bin", set(words), format="word2vec")
    for word, row in zip(words, rows, strict=True):
        assert np.array_equal(text.vectors[word], row)
        assert np.array_equal(binary.vectors[word], row)


def test_the_first_of_two_equal_words_counts(tmp_path):
    path = tmp_path / "twice.txt"
    path.write_text("a 1 2\nb 3 4\na 5 6\n")
    assert read_word_vectors(path, {"a", "z"}).vectors["a"].tolist() == [1, 2]


def test_glove_words_with_spaces_are_no_fault(tmp_path):
    path = tmp_path / "spaces.txt"
    path.write_text("the 1 2\n. . . 3 4\nat name@domain.com 5 6\n. 7 8\n")
    assert read_word_vectors(path, {".", "at", "the"}).vectors["."].tolist() == [7, 8]


def test_one_tensor_per_word(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    safetensors.save_file(dict(zip(WORDS, ROWS.astype(np.float16), strict=True)), tmp_path / "words.safetensors")
    read = read_word_vectors(tmp_path / "words.safetensors", {"dog", "gnu"})
    assert list(read.vectors) == ["dog"]
    assert np.array_equal(read.vectors["dog"], ROWS[1].astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("suffix", [".txt", ".json", ".parquet"])
def test_a_folder_with_an_array_and_its_words(tmp_path, suffix):
    np.save(tmp_path / "a.npy", ROWS)
    index = tmp_path / f"a{suffix}"
    if suffix == ".parquet":
        pl.DataFrame({"word": WORDS, "count": range(len(WORDS))}).write_parquet(index)
    else:
        index.write_text("\n".join(WORDS) + "\n" if suffix == ".txt" else json.dumps(WORDS), encoding="utf-8")
    read = read_word_vectors(tmp_path, {"bus"})
    assert np.array_equal(read.vectors["bus"], ROWS[5])
    assert read.files == (tmp_path / "a.npy", index)


def fault(path, format=None, words=frozenset({"absent"})):
    with pytest.raises(DataError) as caught:
        read_word_vectors(path, set(words), format=format)
    assert caught.value.file == str(path) or Path(caught.value.file).parent == path.parent
    assert caught.value.remedy
    return f"{caught.value.what} @ {caught.value.unit}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a 1 2 3\nb 1 2\n", "expected a word and 3 numbers, got 2 numbers @ line 2"),
        ("a 1 2 3\nb 1 2 3 4\n", "expected a word and 3 numbers, got 4 numbers @ line 2"),
        ("3 2\na 1 2\nb 1 2\n", "the header says 3 words, there are 2 @ None"),
        ("2 2\na 1 2\n\nb 1\n", "expected a word and 2 numbers, got 1 numbers @ line 4"),
        ("a 1 2 3\nabsent 1 inf 2\n", "a number is not finite @ line 2"),
        ("a 1 2\nabsent 1 x\n", "not a number: could not convert string to float: b'x' @ line 2"),
        ("one two three\n", "unknown format of word vectors @ None"),
    ],
)
def test_faults_of_text_name_the_line(tmp_path, text, expected):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    assert fault(path) == expected


def test_a_missing_header_is_named(tmp_path):
    path = write_text(tmp_path / "plain.txt")
    assert "has no header" in fault(path, "word2vec-text")
    assert "has no header" in fault(path, "word2vec")


@pytest.mark.parametrize("cut", [1, 13, 40])
def test_a_binary_file_cut_off_anywhere_is_named(tmp_path, cut):
    whole = written(tmp_path / "w.bin", "word2vec").read_bytes()
    path = tmp_path / "cut.bin"
    path.write_bytes(whole[:-cut])
    assert "the file ends in or before this one" in fault(path)
    path.write_bytes(whole + b"more")
    assert "more data than 8 words of 5 numbers" in fault(path)


def test_archives_empty_files_and_folders_are_named(tmp_path):
    for name, content, expected in [
        ("a.zip", b"PK\x03\x04rest", "a zip archive"),
        ("a.gz", b"\x1f\x8b\x08rest", "a gzip archive"),
        ("a.txt", b"", "is empty"),
    ]:
        (tmp_path / name).write_bytes(content)
        assert expected in fault(tmp_path / name)
    assert "does not exist" in fault(tmp_path / "nowhere.bin")
    assert "0 .npy or .safetensors files" in fault(tmp_path)
    with pytest.raises(OptionError, match="no vector format 'glow'"):
        read_word_vectors(tmp_path / "a.zip", set(), format="glow")


def test_faults_of_arrays(tmp_path):
    np.save(tmp_path / "a.npy", ROWS)
    assert "no unambiguous list of words" in fault(tmp_path / "a.npy")
    (tmp_path / "words.txt").write_text("cat\n")
    assert "1 words for 8 vectors" in fault(tmp_path / "a.npy")
    head = json.dumps({"t": {"dtype": "F32", "shape": [9, 9], "data_offsets": [0, 324]}}).encode()
    (tmp_path / "b.safetensors").write_bytes(struct.pack("<q", len(head)) + head + b"short")
    assert "ends before its tensors do" in fault(tmp_path / "b.safetensors")
    for shape in (["a" * 5000, 8], [1 << 62, 1 << 62], [-1, 8], [8, 8.0], [3, 3]):
        head = json.dumps({"t": {"dtype": "F32", "shape": shape, "data_offsets": [0, 32]}}).encode()
        (tmp_path / "c.safetensors").write_bytes(struct.pack("<q", len(head)) + head + bytes(32))
        assert "does not fit its 32 bytes" in fault(tmp_path / "c.safetensors")


@pytest.mark.parametrize("format", ["word2vec-text", "word2vec"])
def test_memory_does_not_grow_with_the_file(tmp_path, format):
    words = [f"w{i}" for i in range(40_000)]
    path = tmp_path / "large"
    with path.open("wb") as stream:
        stream.write(f"{len(words)} 100\n".encode())
        row = b" ".join([b"0.125"] * 100) + b"\n" if format == "word2vec-text" else np.full(100, 0.125, "<f4").tobytes()
        stream.writelines(word.encode() + b" " + row for word in words)
    assert detect_format(path) == format
    tracemalloc.start()
    read = read_word_vectors(path, {"w39999", "absent"})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read.vectors["w39999"].tolist() == [0.125] * 100
    assert path.stat().st_size > 15e6 and peak < 14e6


@pytest.mark.real
def test_glove_of_the_package_knows_animals_from_cars():
    if get_weights_status("glove-6b-50d") != "installed":
        pytest.skip("glove-6b-50d is not installed; hardlook weights install glove-6b-50d")
    files = locate_weights("glove-6b-50d")
    read = read_word_vectors(files["glove_6B_50d_emb.npy"], {"dog", "cat", "car", "the", "zzzzzzz"})
    assert set(read.vectors) == {"dog", "cat", "car", "the"} and read.dimension == 50
    # The first numbers of "the" in Stanford's own glove.6B.50d.txt.
    assert read.vectors["the"][:4] == pytest.approx([0.418, 0.24968, -0.41242, 0.1217])
    unit = {word: row / np.linalg.norm(row) for word, row in read.vectors.items()}
    assert unit["dog"] @ unit["cat"] > unit["dog"] @ unit["car"] + 0.2
    assert {path.name for path in read.files} == set(files)
