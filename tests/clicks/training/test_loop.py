"""The loop: it learns, it goes on after a kill as if nothing had happened, and says what is wrong."""

import json
from dataclasses import replace

import pytest

from hardlook.clicks.training.history import read_history
from hardlook.clicks.training.loop import BEST, HISTORY, LAST, train
from hardlook.errors import ChangedRun, OptionError, RunError
from hardlook.models.click_models.clickability.checkpoint import load_network
from hardlook.models.click_models.clickability.click_model import Clickability
from hardlook.models.weights.loading import load_state_dict

torch = pytest.importorskip("torch")


class Killed(Exception):
    """Stands for a process that ends."""


class Dying:
    """A sample that ends the process when it is read for the nth time."""

    def __init__(self, sample, reads):
        self.sample, self.left = sample, reads

    def read(self):
        self.left -= 1
        if self.left < 0:
            raise Killed
        return self.sample.read()


def same(first, second):
    one, other = load_state_dict(first).state, load_state_dict(second).state
    return one.keys() == other.keys() and all(torch.equal(value, other[key]) for key, value in one.items())


def without_seconds(folder):
    return [
        (record.epoch, record.lr, record.train_loss, record.validation) for record in read_history(folder / HISTORY)
    ]


def test_a_killed_training_ends_with_the_same_weights(scenes, brief, tiny, tmp_path):
    whole = train(scenes[:8], scenes[8:], tmp_path / "whole", brief, architecture=tiny)

    def stop(record):
        raise Killed

    # Killed within the second epoch, after the third sample; then between epochs; then let be.
    broken = [*scenes[:3], Dying(scenes[3], 1), *scenes[4:8]]
    with pytest.raises(Killed):
        train(broken, scenes[8:], tmp_path / "cut", brief, architecture=tiny)
    assert [record.epoch for record in read_history(tmp_path / "cut" / HISTORY)] == [1]
    with pytest.raises(Killed):
        train(scenes[:8], scenes[8:], tmp_path / "cut", brief, architecture=tiny, workers=2, progress=stop)
    resumed = train(scenes[:8], scenes[8:], tmp_path / "cut", brief, architecture=tiny, keep=True)
    assert same(tmp_path / "whole" / LAST, tmp_path / "cut" / LAST)
    assert same(tmp_path / "whole" / BEST, tmp_path / "cut" / BEST)
    assert without_seconds(tmp_path / "whole") == without_seconds(tmp_path / "cut")
    assert resumed.best_epoch == whole.best_epoch
    assert [record.epoch for record in resumed.history] == [1, 2, 3]


def test_a_history_that_is_ahead_of_the_state_is_cut(scenes, brief, tiny, tmp_path):
    train(scenes[:4], scenes[8:], tmp_path, replace(brief, epochs=1), architecture=tiny)
    with (tmp_path / HISTORY).open("a") as stream:
        stream.write(json.dumps({"epoch": 2, "lr": 1, "train_loss": 9, "validation": {}, "seconds": 0}) + '\n{"epo')
    again = train(scenes[:4], scenes[8:], tmp_path, replace(brief, epochs=1), architecture=tiny)
    assert [record.epoch for record in again.history] == [1]
    assert (tmp_path / HISTORY).read_text().count("\n") == 1


def test_it_learns_what_people_look_at(scenes, tiny, brief, tmp_path):
    settings = replace(brief, epochs=12, lr=0.01)
    seen = []
    trained = train(scenes[:8], scenes[8:], tmp_path, settings, architecture=tiny, keep=True, progress=seen.append)
    first, last = trained.history[0], trained.history[-1]
    assert last.train_loss < 0.6 * first.train_loss
    assert list(trained.history) == seen
    best = max(trained.history, key=lambda record: record.validation["sim"])
    assert trained.best_epoch == best.epoch
    assert best.validation["sim"] > first.validation["sim"]
    # The checkpoint serves as a click model: the spot of a new picture stands out from the rest of the object.
    image, target, error, clicks = scenes[9].read()
    chances = Clickability(trained.checkpoint).click_map(image, target, error, True)
    assert chances[clicks[:, 1], clicks[:, 0]].mean() > 2 * chances[target].mean()
    loaded = load_network(tmp_path)
    assert (loaded.size, loaded.files) == (64, (trained.checkpoint,))


def test_another_training_in_the_same_folder_is_refused(scenes, brief, tiny, tmp_path):
    train(scenes[:4], scenes[8:], tmp_path, replace(brief, epochs=1), architecture=tiny)
    with pytest.raises(ChangedRun, match="settings differ"):
        train(scenes[:4], scenes[8:], tmp_path, replace(brief, lr=0.5), architecture=tiny)
    with pytest.raises(ChangedRun, match="training samples differ"):
        train(scenes[:5], scenes[8:], tmp_path, replace(brief, epochs=1), architecture=tiny)


def test_divergence_is_an_error_with_a_remedy(scenes, brief, tiny, tmp_path):
    with pytest.raises(RunError, match="lower lr"):
        train(scenes[:8], scenes[8:], tmp_path, replace(brief, lr=1e30, warm_up=0.0), architecture=tiny)


@pytest.mark.parametrize("change", [{"clip": 0.01}, {"backbone_rate": 0.1}, {"precision": "bfloat16"}, {"flip": False}])
def test_each_option_changes_the_weights(scenes, brief, tiny, tmp_path, change):
    once = replace(brief, epochs=1)
    train(scenes[:4], scenes[8:], tmp_path / "plain", once, architecture=tiny)
    train(scenes[:4], scenes[8:], tmp_path / "changed", replace(once, **change), architecture=tiny)
    assert not same(tmp_path / "plain" / LAST, tmp_path / "changed" / LAST)


def test_there_must_be_samples(scenes, tmp_path):
    with pytest.raises(OptionError, match="at least one"):
        train(scenes, [], tmp_path)
