"""Checkpoints: shards below the limit with an index, tensors in pieces, damage that is named."""

import json

import pytest
import torch

from hardlook.errors import DataError, ModelError
from hardlook.training.checkpoint import (
    CARD,
    INDEX,
    SHARD_BYTES,
    is_checkpoint,
    list_weights_files,
    load_weights,
    read_weights,
    write_card,
    write_checkpoint,
)


def card(step=3):
    return {"selected": {"step": step}}


@pytest.fixture
def folder(tmp_path):
    state = {f"layer{number}.weight": torch.randn(30, 10) for number in range(5)}
    state |= {"counter": torch.tensor(7), "large.weight": torch.randn(100, 40), "half": torch.ones(3).bfloat16()}
    write_checkpoint(tmp_path, state, card(), limit=4000)
    return tmp_path, state


def test_shards_stay_below_the_limit_and_hold_everything(folder):
    path, state = folder
    shards = list(path.glob("*.safetensors"))
    assert len(shards) > 5 and all(one.stat().st_size < 4000 for one in shards)
    index = json.loads((path / INDEX).read_text())
    assert (
        set(index["weight_map"].values()) == {one.name for one in shards} and len(index["pieces"]["large.weight"]) > 3
    )
    found = read_weights(path)
    assert found.keys() == state.keys() and all(torch.equal(found[key], state[key]) for key in state)
    assert list_weights_files(path)[0].name == INDEX and len(list_weights_files(path)) == len(shards) + 1


def test_real_shards_are_below_15_megabytes(tmp_path):
    state = {"a": torch.zeros(640, 640, 3, 3), "b": torch.zeros(2000, 2000), "c": torch.zeros(3)}
    write_checkpoint(tmp_path, state, card())
    sizes = [one.stat().st_size for one in tmp_path.glob("*.safetensors")]
    assert len(sizes) == 3 and max(sizes) < 15_000_000 and SHARD_BYTES < 15_000_000


def test_new_weights_replace_the_old_ones(folder):
    path, _ = folder
    write_checkpoint(path, {"one": torch.ones(2)}, card(9))
    assert [one.name for one in path.glob("*.safetensors")] == ["model-0000009-1-of-1.safetensors"]
    assert read_weights(path)["one"].tolist() == [1, 1]


def test_shared_tensors_are_stored_under_both_names(tmp_path):
    shared = torch.ones(2)
    write_checkpoint(tmp_path, {"a": shared, "b": shared, "c": torch.ones(4)[:2]}, card())
    assert set(read_weights(tmp_path)) == {"a", "b", "c"}


def test_half_precision_halves_matrices_only(tmp_path):
    write_checkpoint(tmp_path, {"a": torch.full((4, 4), 0.1), "b": torch.full((4,), 1e6)}, card(), half=True)
    found = read_weights(tmp_path)
    assert found["a"].dtype == torch.float16 and found["b"].dtype == torch.float32


def test_damage_is_named(folder):
    path, _ = folder
    shard = sorted(path.glob("*.safetensors"))[1]
    content = shard.read_bytes()
    shard.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DataError, match="damaged") as found:
        read_weights(path)
    assert found.value.file == str(shard)
    shard.unlink()
    with pytest.raises(DataError, match="missing"):
        list_weights_files(path)
    with pytest.raises(DataError, match="does not exist"):
        read_weights(path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"weight_map": {}}', '{"schema": "other"}', '{"schema": 3}'])
def test_damaged_descriptions_are_named(folder, text):
    path, _ = folder
    for name in (INDEX, CARD):
        before = (path / name).read_text()
        (path / name).write_text(text)
        with pytest.raises(DataError) as found:
            read_weights(path)
        assert found.value.file == str(path / name)
        (path / name).write_text(before)


def test_an_index_cannot_lead_out_of_the_folder(folder):
    path, _ = folder
    index = json.loads((path / INDEX).read_text())
    index["weight_map"], index["sha256"] = {"a": "../a.safetensors"}, {"../a.safetensors": "0"}
    (path / INDEX).write_text(json.dumps(index))
    with pytest.raises(DataError):
        read_weights(path)


def test_a_card_of_other_weights_is_refused(folder):
    path, _ = folder
    write_card(path, card(4))
    with pytest.raises(DataError, match="of step 4 and the weights are of step 3"):
        read_weights(path)


def test_weights_that_do_not_fit_are_listed(tmp_path):
    with pytest.raises(ModelError, match=r"1 missing: bias; 1 unexpected: more"):
        load_weights(torch.nn.Linear(2, 2), {"weight": torch.ones(2, 2), "more": torch.ones(1)}, file=tmp_path)
    assert not is_checkpoint(tmp_path) and not is_checkpoint("no\0name")
