"""The history of a training on disk."""

import pytest

from hardlook.errors import DataError
from hardlook.rclicks.training.state import EpochRecord, append_epoch, cut_history, read_history


def test_only_known_epochs_stay_and_nothing_lies_beside(tmp_path):
    path = tmp_path / "history.jsonl"
    epochs = [EpochRecord(number, 0.01, 2.0 / number, {"sim": 0.1 * number}, 1.0) for number in (1, 2, 3)]
    for epoch in epochs:
        append_epoch(path, epoch)
    with path.open("a") as stream:
        stream.write('{"epoch": 4, "lr"')
    assert read_history(path) == tuple(epochs)
    assert cut_history(path, 2) == tuple(epochs[:2])
    assert read_history(path) == tuple(epochs[:2])
    assert [one.name for one in tmp_path.iterdir()] == ["history.jsonl"]


@pytest.mark.parametrize("kept", [(), (2,), (1, 1)])
def test_a_history_that_lacks_epochs_of_the_state_is_damaged(tmp_path, kept):
    path = tmp_path / "history.jsonl"
    for number in kept:
        append_epoch(path, EpochRecord(number, 0.01, 2.0, {"sim": 0.1}, 1.0))
    before = path.read_bytes() if kept else None
    with pytest.raises(DataError, match="and the saved state has done 2"):
        cut_history(path, 2)
    assert not kept or path.read_bytes() == before
