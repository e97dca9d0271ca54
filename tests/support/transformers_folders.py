"""Small networks with random weights, written to folders in transformers' layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

WORDS = ["cat", "dog", "car", "bus", "a", "photo", "of", "red", "the", "barn", "beside", "road"]


def write_tokenizer(folder: Path, *, start: str = "", end: str = "") -> None:
    """A tokenizer of a dozen words; `start` and `end` are the marks put around a text."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    marks = ["[PAD]", "[UNK]", "[START]", "[END]"]
    words = {word: number for number, word in enumerate([*marks, *WORDS])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if start or end:
        used = [(mark, words[mark]) for mark in (start, end) if mark]
        around = " ".join(part for part in (start, "$A", end) if part)
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single=around, special_tokens=used)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "bos_token": "[START]", "eos_token": "[END]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)


def network(family: str) -> Any:
    """A network of two layers of the family, with the head that published weights come with."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 32}
    if family == "bert":
        config = transformers.BertConfig(vocab_size=16, max_position_embeddings=24, **layers)
        return transformers.BertForMaskedLM(config)
    if family == "gpt2":
        marks = {"bos_token_id": 2, "eos_token_id": 3}
        config = transformers.GPT2Config(vocab_size=16, n_positions=24, n_embd=16, n_layer=2, n_head=2, **marks)
        return transformers.GPT2LMHeadModel(config)
    if family == "t5":
        config = transformers.T5Config(vocab_size=16, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
        return transformers.T5ForConditionalGeneration(config)
    marks = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    text = {"vocab_size": 16, "max_position_embeddings": 24, **marks, **layers}
    sight = {"image_size": 32, "patch_size": 8, **layers}
    return transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=sight, projection_dim=12))


def write_folder(folder: Path, family: str) -> Path:
    """The network of a family and its tokenizer."""
    network(family).save_pretrained(folder)
    marks = {"bert": ("[START]", "[END]"), "clip": ("[START]", "[END]"), "t5": ("", "[END]"), "gpt2": ("", "")}
    start, end = marks[family]
    write_tokenizer(folder, start=start, end=end)
    return folder
