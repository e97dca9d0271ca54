"""Words as tokens, spelt as transformers does without merges; as means over prompts; what is found on disk again."""

import numpy as np
import pytest
from tiny_fc_clip import write_tokenizer

torch = pytest.importorskip("torch")

from hardlook.errors import ModelError, OptionError  # noqa: E402
from hardlook.models.open_vocabulary.free_words import read_free_words  # noqa: E402
from hardlook.models.open_vocabulary.text_features import (  # noqa: E402
    END,
    START,
    ClipTokenizer,
    encode_words,
    make_encoder,
    open_tokenizer,
    spell,
)
from hardlook.networks.open_vocabulary.clip_text import CLIP, TextSize  # noqa: E402


class Counting:
    """Vectors of the first two letters, and how many texts were asked for."""

    def __init__(self):
        self.asked = 0

    def __call__(self, texts):
        self.asked += len(texts)
        return np.array([[ord(text[0]), ord(text[-1]), 1.0] for text in texts], np.float32)


@pytest.fixture
def encode():
    return Counting()


def test_spelling_is_what_a_tokenizer_without_merges_does(tmp_path):
    pytest.importorskip("transformers")
    tokenizer = ClipTokenizer(write_tokenizer(tmp_path / "clip"))
    texts = ["a photo of a dog.", "There is a SMALL zebra  in 2 scenes!", "Bär, lamp-post", "x" * 200]
    assert tokenizer(texts) == [spell(text) for text in texts]
    assert tokenizer(["a cat"]) == [[START, 320, 512, 339, END]]  # c and a are one token by the file's merge


def test_a_folder_without_clips_tokenizer_is_refused(tmp_path):
    pytest.importorskip("transformers")
    with pytest.raises(ModelError, match=r"no tokenizer of CLIP"):
        ClipTokenizer(tmp_path)
    with pytest.raises(ModelError, match=f"the token {START - 1}, with CLIP it is {END}"):
        ClipTokenizer(write_tokenizer(tmp_path / "other", end=START - 1))


def test_a_name_has_the_mean_of_its_prompts_unit_vectors(encode, tmp_path):
    words = read_free_words(("cat", "dog"), ("{label}", "a {label}"), default="")
    rows = encode_words(words, encode, tower=["planted"], folder=tmp_path)
    unit = encode(words.list_prompts())
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    mean = unit.reshape(2, 2, 3).mean(1)
    np.testing.assert_allclose(rows.numpy(), mean / np.linalg.norm(mean, axis=1, keepdims=True), rtol=1e-6)


def test_the_same_words_prompts_and_tower_are_encoded_once(encode, tmp_path):
    weights = tmp_path / "tower.bin"
    weights.write_bytes(b"one")

    def look(labels=("cat", "dog"), templates=("a {label}",), more=(), **options):
        words = read_free_words(labels, templates, default="")
        before = encode.asked
        rows = encode_words(words, encode, tower=[weights, *more], folder=tmp_path / "cache", **options)
        return rows, encode.asked - before

    first, asked = look()
    assert asked == 2
    again, asked = look()
    assert asked == 0 and torch.equal(first, again)
    assert look(labels=("dog", "cat"))[1] == 2
    assert look(templates=("the {label}",))[1] == 2
    assert look(more=[7])[1] == 2
    assert look(precision="tf32")[1] == 2
    weights.write_bytes(b"two")
    assert look()[1] == 2
    weights.write_bytes(b"one")
    assert look()[1] == 0


def test_a_damaged_file_or_a_folder_that_cannot_be_written_costs_time_only(encode, tmp_path):
    words = read_free_words(("cat", "dog"), default="{label}")
    first = encode_words(words, encode, tower=[1], folder=tmp_path / "cache")
    [stored] = (tmp_path / "cache").rglob("*.npz")
    stored.write_bytes(stored.read_bytes()[:50])
    assert torch.equal(encode_words(words, encode, tower=[1], folder=tmp_path / "cache"), first)
    np.savez(stored, vectors=np.zeros((1, 3)))
    assert torch.equal(encode_words(words, encode, tower=[1], folder=tmp_path / "cache"), first)
    (tmp_path / "file").write_text("")
    assert torch.equal(encode_words(words, encode, tower=[1], folder=tmp_path / "file"), first)
    assert encode.asked == 8


def test_a_tower_of_clip_reads_texts_in_batches(monkeypatch):
    tokenize, files = open_tokenizer(None, random=True)
    assert files == ()
    torch.manual_seed(0)
    tower = CLIP(None, TextSize(64, 1, 8)).eval()
    texts = ["a cat", "a very long text", "x"]
    together = make_encoder(tower, tokenize)(texts)
    monkeypatch.setattr("hardlook.models.open_vocabulary.text_features.TEXT_BATCH", 1)
    torch.testing.assert_close(make_encoder(tower, tokenize)(texts), together)
    with pytest.raises(OptionError, match="without the tokenizer of CLIP"):
        open_tokenizer(None, random=False)
