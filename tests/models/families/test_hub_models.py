"""Opened folders: files that are named, tensors that are there, batches and tokenizers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hardlook.errors import DataError, OptionError
from hardlook.models.families.hub_models import GPU_BATCH, HubFolder
from hardlook.models.registry import build

transformers = pytest.importorskip("transformers")


def test_tensors_are_found_by_name_in_one_file_and_in_several(hub_folder, tmp_path, pictures):
    whole = HubFolder(hub_folder("vit"), "vit", "ViTModel")
    assert whole.has_tensor("layernorm") and not whole.has_tensor("pooler")
    transformers.ViTForImageClassification.from_pretrained(hub_folder("vit")).save_pretrained(
        tmp_path, max_shard_size="8KB"
    )
    (tmp_path / "preprocessor_config.json").write_bytes((hub_folder("vit") / "preprocessor_config.json").read_bytes())
    parts = HubFolder(tmp_path, "vit", "ViTModel")
    assert len(json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]) > 1
    assert parts.has_tensor("layernorm") and not parts.has_tensor("pooler")
    one, other = (build(f"hf:{folder}", "encoder") for folder in (hub_folder("vit"), tmp_path))
    assert np.array_equal(one.encode(pictures).vectors, other.encode(pictures).vectors)
    assert sum(path.suffix == ".safetensors" for path in other.weights_files) > 1


def test_damaged_weights_are_named(hub_folder, tmp_path):
    for path in hub_folder("vit").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    content = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(content[:100])
    with pytest.raises(DataError) as caught:
        build(f"hf:{tmp_path}", "encoder")
    assert "model.safetensors" in str(caught.value.file)


def test_images_of_a_pass(tmp_path):
    assert HubFolder(tmp_path, "vit", "ViTModel").batch_size == 1
    assert HubFolder(tmp_path, "vit", "ViTModel", "cuda:0").batch_size == GPU_BATCH
    assert HubFolder(tmp_path, "vit", "ViTModel", "cpu", 5).batch_size == 5
    with pytest.raises(OptionError, match="batch is 0"):
        HubFolder(tmp_path, "vit", "ViTModel", batch=0)


def test_a_folder_without_tokenizer_is_named(hub_folder):
    with pytest.raises(DataError, match="no tokenizer"):
        HubFolder(hub_folder("vit"), "vit", "ViTModel").load_tokenizer()
