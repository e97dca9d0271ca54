"""The training loop: the loss against scipy, validation, learning, and resuming as if nothing had happened."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import entropy

from hardlook.errors import ChangedRun, OptionError, RunError
from hardlook.metrics.click_maps import map_divergence
from hardlook.networks.clickability import build_network, load_network
from hardlook.networks.loading import load_state_dict
from hardlook.randomness import generator
from hardlook.rclicks.click_models.clickability import Clickability
from hardlook.rclicks.training.loop import kl_divergence, train, validate
from hardlook.rclicks.training.samples import GridSamples, epoch_flips, epoch_order, stack_batch
from hardlook.rclicks.training.settings import compute_learning_rate
from hardlook.rclicks.training.state import BEST, HISTORY, LAST, read_history

torch = pytest.importorskip("torch")


def test_the_check_of_the_specification():
    p, q = torch.tensor([[[0.5, 0.5], [0.0, 0.0]]]), torch.full((1, 2, 2), 0.25)
    assert kl_divergence(p, q).item() == pytest.approx(0.693147, abs=1e-6)
    assert kl_divergence(3 * p, 8 * q).item() == pytest.approx(0.693147, abs=1e-6)


def test_it_is_relative_entropy_map_by_map():
    rng = np.random.default_rng(0)
    p, q = rng.random((2, 3, 6, 7)) + 0.01
    given = kl_divergence(torch.from_numpy(p), torch.from_numpy(q)).numpy()
    wanted = [entropy(one.ravel(), other.ravel()) for one, other in zip(p, q, strict=True)]
    np.testing.assert_allclose(given, wanted, rtol=1e-6)
    np.testing.assert_allclose(given, [map_divergence(one, other) for one, other in zip(p, q, strict=True)], rtol=1e-12)


def test_zeros_stay_finite_and_have_finite_gradients():
    p = torch.tensor([[[1.0, 0.0]]])
    q = torch.tensor([[[0.0, 1.0]]], requires_grad=True)
    loss = kl_divergence(p, q).sum()
    loss.backward()
    assert loss.item() == pytest.approx(9 * np.log(10), rel=1e-5)
    assert torch.isfinite(q.grad).all()


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


def train_plainly(training, settings, architecture):
    """The weights after training by a loop written out here: Adam, autocast, clipping, a seed per epoch."""
    network = build_network(architecture, settings.seed)
    parts = {part: [] for part in (True, False)}
    for name, value in network.named_parameters():
        parts[name.startswith("backbone.")].append(value)
    factors = (settings.backbone_rate, 1.0)
    groups = [{"params": parts[inside], "lr": settings.lr} for inside in (True, False)]
    optimizer = torch.optim.Adam(groups)
    samples, steps = GridSamples(training, settings), -(-len(training) // settings.batch)
    half = settings.precision == "bfloat16"
    for epoch in range(1, settings.epochs + 1):
        order = epoch_order(settings.seed, epoch, len(training))
        flips = epoch_flips(settings.seed, epoch, len(training)) & settings.flip
        network.train()
        torch.manual_seed(int(generator(settings.seed, "clickability", "dropped", epoch).integers(2**62)))
        for step in range(steps):
            places = order[step * settings.batch : (step + 1) * settings.batch]
            images, masks, targets = stack_batch([samples[place] for place in places], flips[places])
            rate = compute_learning_rate(settings, (epoch - 1) * steps + step, settings.epochs * steps)
            for group, factor in zip(optimizer.param_groups, factors, strict=True):
                group["lr"] = rate * factor
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                maps = network(images, masks)
            optimizer.zero_grad()
            kl_divergence(targets, maps).mean().backward()
            if settings.clip is not None:
                torch.nn.utils.clip_grad_norm_(network.parameters(), settings.clip)
            optimizer.step()
    return network.state_dict()


@pytest.mark.parametrize(
    "change", [{}, {"clip": 0.5, "backbone_rate": 0.3}, {"precision": "bfloat16"}, {"flip": False, "warm_up": 0.0}]
)
def test_the_shared_loop_gives_the_weights_of_a_plain_one(scenes, brief, tiny, tmp_path, change):
    settings = replace(brief, epochs=2, batch=3, **change)
    train(scenes[:8], scenes[8:], tmp_path, settings, architecture=tiny)
    found, wanted = load_state_dict(tmp_path / LAST).state, train_plainly(scenes[:8], settings, tiny)
    assert all(torch.equal(found[f"network.{key}"], value) for key, value in wanted.items())


def test_there_must_be_samples(scenes, tmp_path):
    with pytest.raises(OptionError, match="at least one"):
        train(scenes, [], tmp_path)


class Fixed(torch.nn.Module):
    """Answers with the maps it was given, in order."""

    def __init__(self, maps):
        super().__init__()
        self.maps, self.asked = maps, 0

    def forward(self, images, masks):
        first, self.asked = self.asked, self.asked + len(images)
        return torch.from_numpy(np.stack(self.maps[first : self.asked]))


def test_the_truth_scores_best_and_an_even_map_nothing(scenes, brief):
    samples = GridSamples(scenes, brief)
    truth = validate(Fixed([samples[i].target for i in range(10)]), samples, device="cpu", batch=4)
    even = validate(Fixed([np.zeros((64, 64), np.float32)] * 10), samples, device="cpu", batch=4)
    assert truth["sim"] == pytest.approx(1, abs=1e-6)
    assert truth["kl"] == pytest.approx(0, abs=1e-3)
    assert truth["nss"] > 3
    assert even["nss"] == 0
    # SIM with an even map is the mass below the even level and that level elsewhere; KL is log cells less entropy.
    shares = [samples[i].target.astype(float) / samples[i].target.sum() for i in range(10)]
    assert even["sim"] == pytest.approx(np.mean([np.minimum(one, 1 / 4096).sum() for one in shares]))
    entropies = [-(one[one > 0] * np.log(one[one > 0])).sum() for one in shares]
    assert even["kl"] == pytest.approx(np.log(4096) - np.mean(entropies), abs=1e-3)


def test_maps_that_are_not_finite_are_no_result(scenes, brief):
    samples = GridSamples(scenes, brief)
    with pytest.raises(RunError, match="diverged"):
        validate(Fixed([np.full((64, 64), np.nan, np.float32)] * 10), samples, device="cpu", batch=4)
