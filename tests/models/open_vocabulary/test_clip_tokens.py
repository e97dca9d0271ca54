"""CLIP's tokens: spelt as transformers does without merges, and by a folder's tokenizer."""

import pytest
from tiny_fc_clip import write_tokenizer

from hardlook.errors import ModelError
from hardlook.models.open_vocabulary.clip_tokens import END, START, ClipTokenizer, spell


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
