"""Projections learn words from cells; steps follow from seed and number; kills change nothing; scores by hand."""

import numpy as np
import pytest
from killed_trainings import train_through_kills

torch = pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

from hardlook.errors import ChangedRun, DataError  # noqa: E402
from hardlook.training.checkpoint import read_weights  # noqa: E402
from hardlook.training.devices import open_fabric  # noqa: E402
from hardlook.training.folder import read_trained  # noqa: E402
from hardlook.training.projection.recipes import change_projection_recipe, find_projection_recipe  # noqa: E402
from hardlook.training.projection.trainee import (  # noqa: E402
    ProjectionData,
    ProjectionTrainee,
    build_projection,
    measure_features,
    train_projection,
    weigh_classes,
)

WORDS = np.eye(4, dtype=np.float32)[:2]


def make_recipe(**changes):
    return change_projection_recipe(find_projection_recipe(), {"batch": 4, "epochs": 6, "cells": 5, **changes})


def make_data(count=12, held=4, noise=0.1):
    """Maps (n, 3, 3, 5) whose cells are background or one of two classes: each kind is a direction of its own."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 3, (count, 3, 3))
    directions = np.eye(5)[:3]
    maps = directions[kinds] + noise * rng.standard_normal((count, 3, 3, 5))
    shares = np.eye(3, dtype=np.float32)[kinds]
    shares[:, 0, 0] = 0  # a cell without a label
    rows = np.arange(count)
    return ProjectionData(
        torch.from_numpy(maps).half(), torch.from_numpy(shares), WORDS, ("cat", "car"), rows[held:], rows[:held],
        {"fingerprint": "x", "validation": {}}, tuple(f"image {row}" for row in rows),
    )  # fmt: skip


def train_small(folder, recipe=None, data=None, **options):
    train_projection(data or make_data(), recipe or make_recipe(), folder, open_fabric(), validations=3, **options)
    return read_trained(folder)


def make_trainee(recipe=None, data=None, seed=0):
    recipe, data = recipe or make_recipe(), data or make_data()
    return ProjectionTrainee(build_projection(recipe, 5, 4, seed=seed), recipe, data, seed=seed)


def test_it_learns(tmp_path):
    trained = train_small(tmp_path, make_recipe(lr=0.05, dropout=0, epochs=15))
    assert trained.card["selected"]["validation"]["held-back"] > 0.95
    assert trained.history[-1]["loss"] < trained.history[0]["loss"]
    assert trained.card["kind"] == "projection" and trained.card["finished"]


def test_batches_follow_from_seed_and_step():
    first = list(make_trainee().draw_batches(0, 4, 0, 1))
    again = list(make_trainee().draw_batches(2, 4, 0, 1))
    for one, other in zip(first[2:], again, strict=True):
        assert (one[0].rows == other[0].rows).all() and (one[0].cells == other[0].cells).all()
    others = list(make_trainee(seed=1).draw_batches(0, 4, 0, 1))
    assert any((one[0].rows != other[0].rows).any() for one, other in zip(first, others, strict=True))
    epoch = np.concatenate([one[0].rows for one in first[:2]])
    assert sorted(epoch) == sorted(make_data().rows)
    assert all(len(set(cells)) == 5 for step in first for cells in step[0].cells)


def test_processes_share_a_step():
    whole = next(make_trainee().draw_batches(0, 1, 0, 1))[0]
    parts = [next(make_trainee().draw_batches(0, 1, rank, 2))[0] for rank in range(2)]
    assert (np.concatenate([part.rows for part in parts]) == whole.rows).all()
    assert (np.concatenate([part.cells for part in parts]) == whole.cells).all()
    with pytest.raises(DataError, match="cannot be shared by 3 processes"):
        next(make_trainee().draw_batches(0, 1, 0, 3))


def test_no_cells_are_all_cells():
    assert next(make_trainee(make_recipe(cells=0)).draw_batches(0, 1, 0, 1))[0].cells is None
    assert next(make_trainee(make_recipe(cells=9)).draw_batches(0, 1, 0, 1))[0].cells is None


def test_unlabelled_cells_count_nothing():
    """The loss of cells of which the first has no label is that of the others alone, whatever is in the first."""
    data = make_data()
    other = ProjectionData(data.maps.clone(), data.shares, data.words, data.names, data.rows, data.held, data.facts)
    other.maps[:, 0, 0] = 100.0
    losses = []
    for one in (data, other):
        trainee = make_trainee(make_recipe(cells=0, dropout=0), one)
        batch = next(trainee.draw_batches(0, 1, 0, 1))[0]
        found = trainee.compute_loss(lambda name, *given, own=trainee: getattr(own.module, name)(*given), batch)
        losses.append((float(found.loss.detach()), {key: float(value) for key, value in found.sums.items()}))
    assert losses[0] == losses[1]


def test_the_loss_by_hand():
    """Two cells; weights 1; the loss is the mean of -log p over the shares of their pixels."""
    maps = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    shares = torch.tensor([[[[0.5, 0.25], [0.0, 1.0]]]])
    data = ProjectionData(maps, shares, np.float32([[1, 0]]), ("cat",), np.arange(1), np.arange(0), {})
    recipe = make_recipe(cells=0, balance=0, dropout=0, batch=1)
    trainee = ProjectionTrainee(build_projection(recipe, 2, 2, seed=0), recipe, data, seed=0)
    network = trainee.module
    with torch.no_grad():
        network.project[0].weight.copy_(torch.eye(2))
        network.project[0].bias.zero_()
        network.background.copy_(torch.tensor([0.0, 1.0]))
        network.log_scale.zero_()
    found = trainee.compute_loss(
        lambda name, *given: getattr(network, name)(*given), next(trainee.draw_batches(0, 1, 0, 1))[0]
    )
    e = np.e
    # Cosines are (background, cat) = (0, 1) in the first cell and (1, 0) in the second.
    expected = -(0.5 * np.log(1 / (1 + e)) + 0.25 * np.log(e / (1 + e)) + np.log(1 / (1 + e))) / 1.75
    assert float(found.loss.detach()) == pytest.approx(expected, rel=1e-5)
    assert float(found.sums["pixel_accuracy"]) == pytest.approx(0.25 / 1.75)


def test_validation_is_the_mean_iou_of_cells():
    trainee = make_trainee()

    class Oracle(torch.nn.Module):
        def score(self, maps, words, background):
            return 100 * maps[..., :3]

    assert trainee.validate(Oracle()) == {"held-back": pytest.approx(1.0)}

    class Always(torch.nn.Module):
        def score(self, maps, words, background):
            return torch.tensor([0.0, 1.0, 0.0]).expand(*maps.shape[:-1], 3)

    held = make_data().shares[:4].reshape(-1, 3)
    share = float(held[:, 1].sum() / held.sum())
    assert trainee.validate(Always()) == {"held-back": pytest.approx(share / 3)}


def test_weights_of_classes():
    shares = torch.tensor([[9.0, 1.0, 0.0]])
    assert weigh_classes(shares, 0.0).tolist() == [1.0, 1.0, 0.0]
    halfway = weigh_classes(shares, 0.5)
    assert float(halfway[1] / halfway[0]) == pytest.approx(3.0) and float((halfway * shares).sum()) == pytest.approx(10)


def test_statistics_are_of_the_training_images_alone():
    data = make_data()
    mean, deviation = measure_features(data.maps, data.rows)
    cells = data.maps[4:].double().reshape(-1, 5)
    assert torch.allclose(mean.double(), cells.mean(0), atol=1e-6)
    assert torch.allclose(deviation.double(), cells.std(0, correction=0), atol=1e-6)


def test_without_images_held_back_the_last_weights_are_kept(tmp_path):
    data = make_data(held=0)
    trained = train_small(tmp_path, data=data)
    assert trained.card["selected"] == {"by": "last", "step": trained.card["steps"], "validation": {}}


def test_a_folder_of_another_training_is_refused(tmp_path):
    train_small(tmp_path)
    train_small(tmp_path)
    with pytest.raises(ChangedRun, match=r"recipe\.\S+ was"):
        train_small(tmp_path, make_recipe(lr=0.5))
    other = make_data()
    other.words[0, 0] = 0.5
    with pytest.raises(ChangedRun, match="words was"):
        train_small(tmp_path, data=ProjectionData(**{**vars(other), "words": other.words.copy()}))
    other.words[0, 0] = 1


def test_killed_and_resumed_it_ends_with_the_same_weights(tmp_path):
    recipe, data = make_recipe(epochs=20, hidden=8), make_data()
    train_small(tmp_path / "whole", recipe, data)
    killed = tmp_path / "killed"
    assert train_through_kills(killed, lambda: train_small(killed, recipe, data, save_seconds=0.0)) == 3
    first, second = (read_weights(tmp_path / name) for name in ("whole", "killed"))
    assert first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)
