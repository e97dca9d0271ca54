"""What a folder of a training refuses."""

import json

import pytest

from hardlook.errors import ChangedRun, DataError, ModelError, OptionError
from hardlook.rclicks.training.folder import check_device, check_same_settings
from hardlook.rclicks.training.state import EpochRecord, append_epoch

BEFORE = {"lr": 0.01, "threads": 2, "training_samples": 9}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "settings.json").write_text(json.dumps(BEFORE))
    append_epoch(tmp_path / "history.jsonl", EpochRecord(1, 0.01, 2.5, {"sim": 0.4}, 3.0))
    return tmp_path


def test_each_setting_that_changed_is_named(folder):
    with pytest.raises(ChangedRun, match=r": lr was 0\.01, is 0\.1; threads was 2, is 4\n") as caught:
        check_same_settings(folder, {**BEFORE, "lr": 0.1, "threads": 4})
    assert caught.value.file == str(folder)


def test_what_is_not_known_yet_and_threads_of_a_gpu_are_not_compared(folder):
    check_same_settings(folder, {**BEFORE, "training_samples": 8}, unknown=("training_samples",))
    check_same_settings(folder, {**BEFORE, "threads": None})
    check_same_settings(folder / "new", {"lr": 3})
    with pytest.raises(ChangedRun, match="training_samples was 9, is 8"):
        check_same_settings(folder, {**BEFORE, "training_samples": 8})


def test_a_training_without_an_epoch_binds_nobody_and_a_state_alone_does(folder):
    (folder / "history.jsonl").write_text("")
    check_same_settings(folder, {**BEFORE, "lr": 0.1})
    (folder / "last.safetensors").write_bytes(b"")
    with pytest.raises(ChangedRun, match=r"lr was 0\.01, is 0\.1"):
        check_same_settings(folder, {**BEFORE, "lr": 0.1})


@pytest.mark.parametrize("damage", [b"", b"[1", b"[]", b"\xff\xfe"])
def test_damaged_settings_are_named(folder, damage):
    (folder / "settings.json").write_bytes(damage)
    with pytest.raises(DataError) as caught:
        check_same_settings(folder, BEFORE)
    assert caught.value.file == str(folder / "settings.json")


@pytest.mark.parametrize("device", ["foo", "cuda:", "cuda:x", "cpu:0", "cudax", ""])
def test_a_device_that_is_none_is_refused(device):
    pytest.importorskip("torch")
    with pytest.raises(OptionError, match="there is no such choice") as caught:
        check_device(device)
    assert caught.value.remedy


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelError, match="finds no GPU") as caught:
        check_device("cuda")
    assert "--device cpu" in caught.value.remedy
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    check_device("cuda:1")
    with pytest.raises(ModelError, match=r"2 GPU\(s\)"):
        check_device("cuda:2")
