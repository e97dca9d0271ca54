"""What all trainings share around their loop: device, threads, processes, the finished folder."""

import pytest
import torch
from tiny_few_shot import make_data, make_recipe

from hardlook.errors import OptionError
from hardlook.training.few_shot import train_few_shot
from hardlook.training.launch import find_folder, launch_training, open_training


def test_threads_are_limited_while_a_training_is_open():
    torch.set_num_threads(3)
    try:
        with pytest.raises(KeyboardInterrupt), open_training("cpu", threads=2) as fabric:
            assert torch.get_num_threads() == 2 and fabric.device.type == "cpu"
            raise KeyboardInterrupt
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(1)


def test_a_training_gives_its_folder_and_rank(tmp_path):
    data, recipe = make_data(), make_recipe(epochs=1)
    with open_training("cpu", threads=1) as fabric:
        trained, rank = launch_training(
            fabric, tmp_path, lambda opened: train_few_shot(data, recipe, tmp_path, opened, size=32)
        )
    assert rank == 0 and trained.folder == tmp_path and trained.card["finished"]
    assert trained.card["identity"]["threads"] == 1 and trained.history


def test_a_wrong_precision_is_named():
    with pytest.raises(OptionError, match="no precision 'float8'"), open_training("cpu", precision="float8", threads=1):
        pass


def test_a_file_in_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "weights").touch()
    for out in (tmp_path / "weights", tmp_path / "weights" / "fold0"):
        with pytest.raises(OptionError, match="a file, not a folder") as caught:
            find_folder(out)
        assert caught.value.file == str(tmp_path / "weights")
    assert find_folder(tmp_path / "new" / "one") == tmp_path / "new" / "one" and not (tmp_path / "new").exists()
