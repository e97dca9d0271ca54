"""BERT, GPT-2 and T5 from local folders: pooling against a literal loop, the role's contract, faults by name."""

from __future__ import annotations

import functools
import json
import shutil

import numpy as np
import pytest
from transformers_folders import network, write_folder

from hardlook.errors import DataError, ModelError
from hardlook.models.conformance import check_model
from hardlook.models.encoders.transformers_text import T5, Bert, Gpt2
from hardlook.models.identity import identify
from hardlook.models.registry import build

torch = pytest.importorskip("torch")

transformers = pytest.importorskip("transformers")

CLASSES = {"bert": Bert, "gpt2": Gpt2, "t5": T5}

NUMBERS = {"bert": [2, 11, 4, 3], "gpt2": [11, 4], "t5": [11, 4, 3]}

"""The tokens of "red cat" with each family's marks."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return functools.cache(lambda family: write_folder(tmp_path_factory.mktemp(family), family))


def hidden_states(family, numbers):
    """The last layer of the network as transformers runs it on one unpadded text."""
    whole = network(family).eval()
    inner = {"bert": "bert", "gpt2": "transformer", "t5": "encoder"}[family]
    with torch.inference_mode():
        return getattr(whole, inner)(input_ids=torch.tensor([numbers])).last_hidden_state[0].numpy()


@pytest.mark.parametrize("family", CLASSES)
def test_vectors_are_the_mean_of_the_tokens(folder, family):
    vector = CLASSES[family](folder(family)).encode_text(["a photo of the road", "red cat"])[1]
    assert vector == pytest.approx(hidden_states(family, NUMBERS[family]).mean(axis=0), abs=1e-5)


def test_bert_may_take_its_first_mark_alone(folder):
    vector = Bert(folder("bert"), pooling="cls").encode_text(["a photo of the road", "red cat"])[1]
    assert vector == pytest.approx(hidden_states("bert", NUMBERS["bert"])[0], abs=1e-5)


@pytest.mark.parametrize("family", CLASSES)
def test_the_roles_contract(folder, family):
    findings = check_model(functools.partial(CLASSES[family], folder(family)), "text-encoder")
    assert [finding.line() for finding in findings if not finding.passed] == []


@pytest.mark.parametrize("family", CLASSES)
def test_batches_change_nothing(folder, family):
    texts = ["cat", "a photo of a dog", "", "the barn beside the road", "car car car car car car"]
    encoder = CLASSES[family](folder(family), batch=2)
    alone = np.concatenate([encoder.encode_text([text]) for text in texts])
    assert np.allclose(encoder.encode_text(texts), alone, atol=1e-4)
    assert np.array_equal(encoder.encode_text(texts), CLASSES[family](folder(family), batch=2).encode_text(texts))


def test_long_texts_are_cut_where_positions_end(folder):
    for family in ("bert", "gpt2"):
        cut, longer = CLASSES[family](folder(family)).encode_text(["cat " * 24, "cat " * 60])
        assert np.allclose(cut, longer, atol=1e-5)


@pytest.mark.parametrize("family", CLASSES)
def test_built_by_name_and_identified(folder, family):
    args = {"path": str(folder(family))}
    model = build(family, "text-encoder", args)
    assert model.dimension == 16
    weights = identify(model, name=family, role="text-encoder", args=args).weights
    assert set(weights) == {"config.json", "model.safetensors", "tokenizer.json"}


def test_torch_weights_are_read_without_unpickling(folder, tmp_path):
    shutil.copytree(folder("bert"), tmp_path / "old")
    (tmp_path / "old" / "model.safetensors").unlink()
    torch.save(network("bert").state_dict(), tmp_path / "old" / "pytorch_model.bin")
    texts = ["cat", "the red bus"]
    assert np.array_equal(Bert(tmp_path / "old").encode_text(texts), Bert(folder("bert")).encode_text(texts))
    marker = tmp_path / "ran"
    torch.save({"weight": _Touches(marker)}, tmp_path / "old" / "pytorch_model.bin")
    with pytest.raises(ModelError, match="cannot load this folder"):
        Bert(tmp_path / "old")
    assert not marker.exists()


class _Touches:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (type(self.path).touch, (self.path,))


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("config.json", "no config.json"),
        ("model.safetensors", "no weights"),
        ("tokenizer.json", "no tokenizer"),
    ],
)
def test_a_missing_file_is_named_with_its_remedy(folder, tmp_path, file, expected):
    shutil.copytree(folder("bert"), tmp_path / "part")
    (tmp_path / "part" / file).unlink()
    with pytest.raises(DataError, match=expected) as caught:
        Bert(tmp_path / "part")
    assert caught.value.file == str(tmp_path / "part") and "path=FOLDER" in caught.value.remedy


def test_other_faults_of_a_folder(folder, tmp_path):
    with pytest.raises(DataError, match="folder does not exist"):
        Bert(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="holds a 'gpt2' model, expected 'bert'"):
        Bert(folder("gpt2"))
    shutil.copytree(folder("bert"), tmp_path / "deeper")
    config = json.loads((tmp_path / "deeper" / "config.json").read_text())
    (tmp_path / "deeper" / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(ModelError, match=r"the weights lack 16 tensors: .*encoder\.layer\.2.* and 10 more"):
        Bert(tmp_path / "deeper")
    (tmp_path / "deeper" / "config.json").write_text("[]")
    with pytest.raises(DataError, match="not a readable configuration"):
        Bert(tmp_path / "deeper")
    shutil.copytree(folder("bert"), tmp_path / "sharded")
    (tmp_path / "sharded" / "model.safetensors").unlink()
    index = {"weight_map": {"a": "model-1.safetensors"}}
    (tmp_path / "sharded" / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(DataError, match="a part of the weights is missing") as caught:
        Bert(tmp_path / "sharded")
    assert caught.value.file.endswith("model-1.safetensors")


def test_loading_leaves_the_environment_and_the_logging_as_they_were(folder, monkeypatch):
    import os

    from transformers.utils import logging

    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    T5(folder("t5"))
    assert os.environ["HF_HUB_OFFLINE"] == "0" and "TRANSFORMERS_OFFLINE" not in os.environ
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
