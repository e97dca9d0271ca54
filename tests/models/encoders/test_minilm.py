"""MiniLM: its layers against transformers' BERT, and what its real weights know of words."""

from __future__ import annotations

import numpy as np
import pytest

from hardlook.errors import DataError
from hardlook.models.encoders.minilm import MiniLM, build_network, forward
from hardlook.models.weights.install import get_weights_status

torch = pytest.importorskip("torch")

tokenizers = pytest.importorskip("tokenizers")

safetensors = pytest.importorskip("safetensors.torch")


@pytest.fixture(scope="module")
def model() -> MiniLM:
    if get_weights_status("all-minilm-l6-v2") != "installed":
        pytest.skip("all-minilm-l6-v2 is not installed; hardlook weights install all-minilm-l6-v2")
    return MiniLM()


@pytest.fixture(scope="module")
def own_files(tmp_path_factory):
    """Random weights and a tokenizer of four words beside them."""
    folder = tmp_path_factory.mktemp("minilm")
    torch.manual_seed(0)
    safetensors.save_file(build_network().state_dict(), folder / "model.safetensors")
    words = tokenizers.models.WordLevel({"[UNK]": 0, "a": 1, "red": 2, "cat": 3}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_layers_are_those_of_bert() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    network = build_network().eval()
    config = transformers.BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, layer_norm_eps=1e-12
    )
    bert = transformers.BertModel(config, add_pooling_layer=False).eval()
    bert.load_state_dict(network.state_dict(), strict=True)
    tokens = torch.randint(1, 30522, (3, 9))
    mask = torch.arange(9)[None] < torch.tensor([9, 5, 1])[:, None]
    with torch.inference_mode():
        expected = bert(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
        found = forward(network, tokens, mask)
    assert torch.allclose(found[mask], expected[mask], atol=1e-5)


def test_own_files_give_unit_vectors_whatever_the_batch(own_files) -> None:
    texts = ["a red cat", "cat", "a a a a a a a a red"]
    together = MiniLM(weights=own_files / "model.safetensors", batch=2).encode_text(texts)
    assert together.shape == (3, 384) and together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    single = MiniLM(weights=own_files / "model.safetensors")
    for text, vector in zip(texts, together, strict=True):
        assert np.allclose(single.encode_text([text])[0], vector, atol=1e-4)
    assert single.encode_text([]).shape == (0, 384)
    assert [path.name for path in single.weights_files] == ["model.safetensors", "tokenizer.json"]


def test_long_texts_are_cut(own_files) -> None:
    encoder = MiniLM(weights=own_files / "model.safetensors")
    cut, longer = encoder.encode_text(["cat " * 256, "cat " * 300])
    assert np.allclose(cut, longer, atol=1e-5)


def test_missing_tokenizer_is_named(own_files, tmp_path) -> None:
    with pytest.raises(DataError, match=r"tokenizer\.json"):
        MiniLM(weights=own_files / "model.safetensors", tokenizer=tmp_path / "tokenizer.json")


@pytest.mark.real
@pytest.mark.parametrize(
    ("word", "near", "far"),
    [
        ("cat", "dog", "car"),
        ("bus", "train", "sheep"),
        ("sofa", "chair", "aeroplane"),
        ("a man rides a horse", "a person on horseback", "a bottle on a table"),
    ],
)
def test_near_meanings_are_near(model, word, near, far) -> None:
    first, second, third = model.encode_text([word, near, far])
    assert first @ second > first @ third + 0.1


@pytest.mark.real
def test_known_similarities(model) -> None:
    vectors = model.encode_text(["cat", "dog", "car"])
    assert np.allclose((vectors @ vectors.T)[np.triu_indices(3, 1)], [0.661, 0.463, 0.476], atol=2e-3)
