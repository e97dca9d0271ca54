"""Weights files are read without unpickling, and what does not fit is spelled out."""

from __future__ import annotations

import hashlib
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest

from hardlook.errors import DataError, ModelError
from hardlook.networks.loading import check_keys, load_into, load_state_dict

torch = pytest.importorskip("torch")

safetensors = pytest.importorskip("safetensors.torch")


class Bomb:
    """Touches a file when unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return Path.touch, (self.target,)


@pytest.fixture
def state():
    return {"weight": torch.arange(6.0).reshape(2, 3), "bias": torch.tensor([1.0, -1.0])}


def test_safetensors_round_trip_with_hash(tmp_path, state) -> None:
    path = tmp_path / "toy.safetensors"
    safetensors.save_file(state, path)
    loaded = load_state_dict(path)
    assert loaded.path == path
    assert loaded.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert all(torch.equal(loaded.state[key], value) for key, value in state.items())


@pytest.mark.parametrize("wrapper", [None, "state_dict", "model"])
def test_torch_files_plain_or_wrapped_as_checkpoints(tmp_path, state, wrapper) -> None:
    path = tmp_path / "toy.pth"
    torch.save({wrapper: state, "epoch": 3} if wrapper else state, path)
    assert set(load_state_dict(path).state) == {"weight", "bias"}


@pytest.mark.parametrize("how", ["torch", "pickle"])
def test_a_malicious_pickle_is_refused_and_does_not_run(tmp_path, state, how) -> None:
    path, touched = tmp_path / "evil.pt", tmp_path / "touched"
    if how == "torch":
        torch.save({**state, "extra": Bomb(touched)}, path)
    else:
        path.write_bytes(pickle.dumps(Bomb(touched), protocol=2))
    with pytest.raises(DataError, match="never unpickles") as caught:
        load_state_dict(path)
    assert not touched.exists()
    assert caught.value.file == str(path)
    assert "safetensors" in caught.value.remedy


@pytest.mark.parametrize("name", ["cut.pt", "cut.safetensors"])
def test_rubbish_and_cut_files_are_named(tmp_path, name) -> None:
    (tmp_path / name).write_bytes(b"PK\x03\x04 nothing of use")
    with pytest.raises(DataError, match=name):
        load_state_dict(tmp_path / name)


def test_a_torch_file_that_is_cut_or_none_says_so(tmp_path, state) -> None:
    torch.save(state, tmp_path / "toy.pt")
    whole = (tmp_path / "toy.pt").read_bytes()
    for content, message in (
        (whole[:-40], "its end is missing"),
        (b"\x1f\x8b" + bytes(100), "does not begin as a torch"),
    ):
        (tmp_path / "cut.pt").write_bytes(content)
        with pytest.raises(DataError, match=message):
            load_state_dict(tmp_path / "cut.pt")


def test_absent_file(tmp_path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        load_state_dict(tmp_path / "none.pt")


def test_something_other_than_tensors(tmp_path) -> None:
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(DataError, match="holds no state dict"):
        load_state_dict(tmp_path / "list.pt")


def test_differences_are_listed(tmp_path, state) -> None:
    path = tmp_path / "toy.safetensors"
    safetensors.save_file({"weight": torch.zeros(2, 4), "scale": torch.ones(1)}, path)
    loaded, module = load_state_dict(path), torch.nn.Linear(3, 2)
    differences = check_keys(module, loaded.state)
    assert differences.missing == ("bias",)
    assert differences.unexpected == ("scale",)
    assert differences.misshapen == ("weight (network (2, 3), file (2, 4))",)
    with pytest.raises(ModelError, match=r"do not fit Linear: 1 missing: bias; 1 unexpected: scale; 1 of another"):
        load_into(module, loaded)
    assert not check_keys(module, state)


def test_what_fits_is_copied_and_unused_keys_may_be_named(tmp_path, state) -> None:
    path = tmp_path / "toy.safetensors"
    safetensors.save_file({**state, "pooler.weight": torch.ones(1)}, path)
    module = torch.nn.Linear(3, 2)
    load_into(module, load_state_dict(path), ignore=("pooler.",))
    assert torch.equal(module.weight, state["weight"])


def test_weights_that_are_nan_are_refused_and_infinite_masks_are_not(tmp_path, state) -> None:
    path = tmp_path / "toy.safetensors"
    safetensors.save_file({**state, "bias": torch.tensor([1.0, float("nan")])}, path)
    with pytest.raises(ModelError, match="1 tensors hold NaN: bias") as caught:
        load_state_dict(path)
    assert caught.value.file == str(path)
    safetensors.save_file({**state, "mask": torch.tensor([float("-inf"), 0.0])}, path)
    assert set(load_state_dict(path).state) == {"weight", "bias", "mask"}


def test_whole_numbers_in_place_of_weights_are_refused(tmp_path, state) -> None:
    path = tmp_path / "toy.safetensors"
    safetensors.save_file({**state, "weight": state["weight"].to(torch.int8)}, path)
    with pytest.raises(ModelError, match=r"1 weights are whole numbers: weight \(torch.int8\)"):
        load_into(torch.nn.Linear(3, 2), load_state_dict(path))
    halves = {key: value.half() for key, value in state.items()}
    safetensors.save_file(halves, path)
    module = torch.nn.Linear(3, 2)
    load_into(module, load_state_dict(path))
    assert torch.equal(module.weight, state["weight"])


@pytest.mark.parametrize("new", [True, False])
def test_a_name_that_torch_would_take_minutes_to_complain_about(tmp_path, new) -> None:
    path = tmp_path / "a.pt"
    torch.save({"weight": torch.zeros(2), "n" * 300_000: torch.zeros(1)}, path, _use_new_zipfile_serialization=new)
    with pytest.raises(DataError, match="a name of 300000 characters") as caught:
        load_state_dict(path)
    assert caught.value.file == str(path)
    torch.save({"weight": torch.zeros(2), "n" * 4000: torch.zeros(1)}, path, _use_new_zipfile_serialization=new)
    assert len(load_state_dict(path).state) == 2


class Balloon:
    """An array of any size in a few bytes of a file."""

    def __reduce__(self):
        return bytearray, (1 << 34,)


@pytest.mark.parametrize("protocol", [2, 4])
def test_an_array_of_any_size_is_refused_before_it_takes_memory(tmp_path, protocol) -> None:
    path = tmp_path / "large.pth"
    torch.save({"weight": torch.ones(2), "more": Balloon()}, path, pickle_protocol=protocol)
    with pytest.raises(DataError, match="it would make a bytearray"):
        load_state_dict(path)


def test_an_array_in_a_part_that_torch_finds_by_other_capitals_is_refused(tmp_path) -> None:
    torch.save({"weight": torch.ones(2)}, tmp_path / "toy.pth")
    with zipfile.ZipFile(tmp_path / "toy.pth") as archive:
        parts = {member: archive.read(member) for member in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "large.pth", "w") as archive:
        archive.writestr("toy/DATA.PKL", pickle.dumps({"weight": Balloon()}, 2))
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(DataError, match="it would make a bytearray"):
        load_state_dict(tmp_path / "large.pth")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.zeros(1).expand(1 << 40), "larger than its storage of 1"),
        (torch.zeros(1).to(torch.float8_e4m3fn).expand(1 << 40), "1 tensors are larger than what .*: weight"),
        (torch.eye(3).to_sparse(), "1 tensors are no plain arrays .*: weight"),
        (torch.ones(3, device="meta"), "1 tensors are no plain arrays .*: weight"),
    ],
)
def test_a_few_bytes_of_a_file_are_no_tensor_of_any_size(tmp_path, value, message) -> None:
    """An expanded tensor of 2^40 elements takes 4 bytes of a file, and any test of its values terabytes."""
    torch.save({"state_dict": {"weight": value}}, tmp_path / "toy.pth")
    with pytest.raises(DataError, match=message):
        load_state_dict(tmp_path / "toy.pth")


def test_names_of_tensors_are_texts(tmp_path, state) -> None:
    torch.save({7: state["weight"]}, tmp_path / "toy.pth")
    with pytest.raises(DataError, match="no state dict"):
        load_state_dict(tmp_path / "toy.pth")


def test_compressed_and_overlapping_parts_are_refused(tmp_path, state) -> None:
    """Torch would unpack them: 66 kB to 64 MB, or any part as often as it is named."""
    torch.save(state, tmp_path / "toy.pth")
    with zipfile.ZipFile(tmp_path / "toy.pth") as archive:
        parts = {member: archive.read(member) for member in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "small.pth", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert torch.equal(torch.load(tmp_path / "small.pth")["weight"], state["weight"]), "torch unpacks them"
    with pytest.raises(DataError, match="parts of it are compressed"):
        load_state_dict(tmp_path / "small.pth")


@pytest.mark.parametrize("new", [True, False])
def test_a_container_that_would_be_copied_a_thousand_times_is_refused(tmp_path, new) -> None:
    class Copy:
        def __init__(self, shared: dict[str, int]) -> None:
            self.shared = shared

        def __reduce__(self):
            return OrderedDict, (self.shared,)

    shared = {str(number): number for number in range(2000)}
    content = {"weight": torch.ones(2), "more": [Copy(shared) for _ in range(1000)]}
    torch.save(content, tmp_path / "toy.pth", _use_new_zipfile_serialization=new)
    with pytest.raises(DataError, match="its calls are given more than 1048576 elements"):
        load_state_dict(tmp_path / "toy.pth")


def test_changed_bits_are_found_by_the_checksums_of_an_archive(tmp_path, state) -> None:
    path = tmp_path / "toy.pt"
    torch.save(state, path)
    whole = path.read_bytes()
    assert torch.equal(load_state_dict(path).state["weight"], state["weight"])
    place = whole.index(state["weight"].numpy().tobytes())
    changed = bytearray(whole)
    changed[place + 7] ^= 1
    path.write_bytes(changed)
    assert not torch.equal(torch.load(path)["weight"], state["weight"]), "torch does not look at them"
    with pytest.raises(DataError, match=r"the file is damaged: toy/data/\d does not have its checksum") as damaged:
        load_state_dict(path)
    assert damaged.value.file == str(path) and damaged.value.remedy == "download or copy it again"


def test_files_of_early_versions_have_no_checksums_and_are_read(tmp_path, state) -> None:
    torch.save(state, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert torch.equal(load_state_dict(tmp_path / "old.pt").state["weight"], state["weight"])
