"""One-shot networks learn from pairs; pairs follow from seed and number; kills change nothing; labels as told."""

import numpy as np
import pytest
from killed_trainings import train_through_kills

torch = pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

from tiny_one_shot import TinyClassifier, make_data, make_recipe, train_tiny, use_tiny  # noqa: E402

from hardlook.errors import ChangedRun, DataError  # noqa: E402
from hardlook.training.checkpoint import read_weights  # noqa: E402
from hardlook.training.one_shot import OneShotTrainee, PairSampler, build_one_shot, count_areas  # noqa: E402


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    use_tiny(monkeypatch)


def make_sampler(drawn_by="images", shots=1, seed=0, data=None, **options):
    data = data or make_data()
    areas = count_areas(data.images)
    return PairSampler(
        data.rows, areas, data.images.sizes, data.training, drawn_by=drawn_by, shots=shots, seed=seed, **options
    ), areas


@pytest.mark.parametrize("drawn_by", ["images", "classes", "lines"])
def test_pairs_show_one_class_in_different_training_images(drawn_by):
    sampler, areas = make_sampler(drawn_by, shots=2)
    pairs = sampler.draw(np.arange(60))
    data = make_data()
    for query, number, supports in zip(pairs.query, pairs.classes, pairs.supports, strict=True):
        assert number in data.training and query in data.rows and query not in supports
        assert len(set(supports)) == 2 and set(supports) <= set(data.rows)
        assert (areas[[query, *supports], number] > 0).all()


@pytest.mark.parametrize("drawn_by", ["images", "classes", "lines"])
def test_pairs_follow_from_seed_and_number(drawn_by):
    sampler, _ = make_sampler(drawn_by)
    whole = sampler.draw(np.arange(30))
    part = make_sampler(drawn_by)[0].draw(np.array([29, 3]))
    assert part.query.tolist() == whole.query[[29, 3]].tolist()
    assert part.supports.tolist() == whole.supports[[29, 3]].tolist()
    assert make_sampler(drawn_by, seed=1)[0].draw(np.arange(30)).query.tolist() != whole.query.tolist()


def test_an_epoch_shows_every_image_or_line_once():
    sampler, _ = make_sampler("images")
    assert sorted(sampler.draw(np.arange(sampler.per_epoch)).query) == sorted(sampler.queries)
    lines, areas = make_sampler("lines")
    drawn = lines.draw(np.arange(lines.per_epoch))
    shown = {(row, number) for row in lines.queries for number in (1, 2, 3) if areas[row, number]}
    assert set(zip(drawn.query.tolist(), drawn.classes.tolist(), strict=True)) == shown


def test_small_objects_are_no_queries():
    """14 x 14 of a longer side of 48 are 21,267 pixels for a side of 500."""
    assert len(make_sampler(least_area=21_200)[0].queries) > 0
    with pytest.raises(DataError, match="no image has a training class of 21400 pixels"):
        make_sampler(least_area=21_400)


def test_classes_in_too_few_images_are_left_out_and_named():
    data = make_data(count=9, held=0)
    assert make_sampler(shots=2, data=data)[0].without == ()
    with pytest.raises(DataError, match="no training class is in 4 images"):
        make_sampler(shots=3, data=data)
    only = make_data(count=8, held=0)  # blue is in two images
    assert make_sampler(shots=2, data=only)[0].without == (3,)


def make_trainee(recipe, data=None):
    data = data or make_data()
    network = build_one_shot(recipe, classes=3, seed=0)
    return OneShotTrainee(network, recipe, data, seed=0, validation_pairs=4), data


@pytest.mark.parametrize(("novel", "void"), [("background", "ignored"), ("ignored", "background")])
def test_test_classes_and_void_pixels_are_what_the_recipe_says(novel, void):
    trainee, data = make_trainee(make_recipe(novel=novel, void=void, augment="none"))
    maps = data.images.classes[:1, :40, :48]
    clean = trainee._clean(maps)
    assert (clean[maps == 4] == (255 if novel == "ignored" else 0)).all() and (maps == 4).any()
    assert clean[0, 0, 0] == (255 if void == "ignored" else 0)
    assert (clean[(maps > 0) & (maps < 4)] == maps[(maps > 0) & (maps < 4)]).all()


def test_masks_are_of_the_class_alone():
    trainee, _ = make_trainee(make_recipe(augment="none", size=48))
    pairs = trainee.sampler.draw(np.arange(6))
    (batch,) = next(trainee.draw_batches(0, 1, 0, 1))
    images, masks = trainee.take_pairs(batch.pairs, batch.transforms)
    assert images.shape == (2, 2, 3, 48, 48) and masks.shape == (2, 2, 48, 48)
    assert set(np.unique(masks)) <= {0, 1, 255}
    # 14 x 14 pixels of 40 x 48, squashed.
    share = (masks == 1).float().mean((2, 3))
    assert share.max() <= 14 * 14 / (40 * 48) * 1.1 and share.min() > 0.03
    assert pairs.query.tolist()[:2] == batch.pairs.query.tolist()


def test_processes_share_a_step_and_augment_as_one_would():
    trainee, _ = make_trainee(make_recipe(batch=4, augment="resized-crop"))
    (whole,) = next(trainee.draw_batches(3, 4, 0, 1))
    halves = [next(trainee.draw_batches(3, 4, rank, 2))[0] for rank in (0, 1)]
    assert np.concatenate([one.pairs.query for one in halves]).tolist() == whole.pairs.query.tolist()
    assert np.array_equal(np.concatenate([one.transforms.matrices for one in halves]), whole.transforms.matrices)


@pytest.mark.parametrize("augment", ["none", "crop", "resized-crop"])
def test_it_learns(tmp_path, augment):
    recipe = make_recipe(augment=augment, batch=4, epochs=12)
    trained = train_tiny(tmp_path / "a", recipe, validation_pairs=16)
    assert trained.history[-1]["validation_held-back"] > 0.6
    assert trained.history[-1]["loss"] < 0.8 * trained.history[0]["loss"]
    assert trained.card["finished"] and trained.card["kind"] == "one-shot"


def test_networks_that_train_on_labelled_images_learn(tmp_path, monkeypatch):
    use_tiny(monkeypatch, TinyClassifier)
    recipe = make_recipe("repri", batch=4, epochs=12, size=33, augment="flips")
    trained = train_tiny(tmp_path / "a", recipe, validation_pairs=16)
    assert trained.history[-1]["pixel_accuracy"] > 0.85
    assert trained.history[-1]["validation_held-back"] > 0.5


def test_without_images_held_back_the_last_weights_are_kept(tmp_path):
    trained = train_tiny(tmp_path / "a", data=make_data(held=0))
    assert trained.card["selected"] == {"by": "last", "step": trained.card["steps"], "validation": {}}


def test_a_budget_of_images_counts_supports(tmp_path):
    trained = train_tiny(tmp_path / "a", make_recipe(shots=2, batch=2), budget=make_budget(images=36))
    assert trained.card["steps"] == 6 and trained.card["stages"][0]["images"] == 36


def make_budget(**values):
    from hardlook.training.recipes import Budget

    return Budget(**values)


def test_a_folder_of_another_training_is_refused(tmp_path):
    train_tiny(tmp_path / "a")
    train_tiny(tmp_path / "a")
    with pytest.raises(ChangedRun, match=r"recipe\.\S+ was"):
        train_tiny(tmp_path / "a", make_recipe(lr=0.5))


def test_killed_and_resumed_it_ends_with_the_same_weights(tmp_path):
    recipe, data = make_recipe(epochs=3, augment="crop"), make_data()
    train_tiny(tmp_path / "whole", recipe, data, validations=6)
    killed = tmp_path / "killed"
    assert train_through_kills(killed, lambda: train_tiny(killed, recipe, data, validations=6, save_seconds=0.0)) == 3
    first, second = (read_weights(tmp_path / name) for name in ("whole", "killed"))
    assert all(torch.equal(first[key], second[key]) for key in first)
