"""Checkpoint folders as models: the network's own answers, each image encoded once, uneven shots, damage, encoders."""

import json
import shutil

import numpy as np
import pytest
import torch
from tiny_few_shot import make_data, make_recipe, train_tiny

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.models.conformance import check_named
from hardlook.models.few_shot.table_episodes import TableEpisodes
from hardlook.models.few_shot.trained import TrainedLearner, TrainedModel, read_flags, repeat_supports
from hardlook.models.listing import list_trainable
from hardlook.models.registry import build, find
from hardlook.models.roles import Episode
from hardlook.networks.few_shot.catalogue import find_method, list_methods
from hardlook.networks.few_shot.method import Episodes

pytestmark = pytest.mark.usefixtures("one_thread")


def trained(method, folder):
    stages = find_method(method).stages
    train_tiny(folder, make_recipe(method, stages, batch=6, epochs=1), make_data(), validations=1)
    return folder


@pytest.fixture(scope="module")
def protonet(tmp_path_factory):
    return trained("protonet", tmp_path_factory.mktemp("protonet"))


def images(count, seed=0):
    return [np.random.default_rng([seed, number]).integers(0, 256, (30, 50, 3), np.uint8) for number in range(count)]


def test_features_are_scored_as_the_network_scores_images(protonet):
    learner = build(str(protonet), "few-shot-learner")
    assert learner.accepts == "features" and learner.flags == ("LL",) and not learner.transductive
    pictures = images(8)
    vectors = build(str(protonet), "encoder").encode(pictures).vectors
    assert vectors.shape == (8, build(str(protonet), "encoder").dimension)
    [answer] = learner.classify([Episode(vectors[:3], np.array([0, 1, 2]), vectors[3:], 3, "a")])
    prepared = learner.prepare(pictures)
    with torch.no_grad():
        wanted = learner.network.classify(Episodes(prepared[None, :3, None], prepared[None, 3:]))[0]
    np.testing.assert_allclose(answer, wanted.numpy(), rtol=1e-5, atol=1e-5)


def test_a_class_with_fewer_supports_repeats_them(protonet):
    learner = TrainedLearner(str(protonet))
    rng = np.random.default_rng(0)
    support, query = rng.normal(size=(4, 32)).astype(np.float32), rng.normal(size=(5, 32)).astype(np.float32)
    labels = np.array([1, 0, 0, 0])
    [uneven] = learner.classify([Episode(support, labels, query, 2)])
    means = np.stack([support[1:].mean(0), support[0]])
    np.testing.assert_allclose(uneven, -((query[:, None] - means) ** 2).sum(-1), rtol=1e-4)
    assert repeat_supports(np.array([0, 0, 0, 1, 1]), 2).tolist() == [[0, 1, 2], [3, 4, 3]]


@pytest.mark.parametrize("method", ["protonet", "dn4", "maml", "rfs"])
def test_it_keeps_its_role(method, tmp_path, protonet):
    folder = protonet if method == "protonet" else trained(method, tmp_path)
    wanted = {"protonet": "features", "dn4": "maps", "maml": "images", "rfs": "features"}[method]
    assert build(str(folder), "few-shot-learner").accepts == wanted
    if method != "maml":  # its head has as many ways as it was trained on
        assert not [one for one in check_named(str(folder), "few-shot-learner", {}) if not one.passed]


def test_an_inner_loop_runs_on_images(tmp_path):
    learner = TrainedLearner(str(trained("maml", tmp_path)))
    pictures = images(9)
    episode = Episode(pictures[:3], np.array([0, 1, 2]), pictures[3:], 3, "a")
    one, two = learner.classify([episode, episode])
    assert one.shape == (6, 3) and np.isfinite(one).all()
    np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)
    assert learner.flags == ("LL", "TT")


def test_ways_that_a_method_was_not_trained_for_are_refused(tmp_path):
    """SIB's layers have a place for each class."""
    learner = TrainedLearner(str(trained("sib", tmp_path)))
    rows = np.ones((5, learner.dimension), np.float32)
    table = TableEpisodes(rows, np.array([[0, 1, 2, 3]]), np.arange(4), np.array([[4]]), 4, ("a",))
    for episodes in ([Episode(rows[:4], np.arange(4), rows[4:], 4)], table):
        with pytest.raises(ModelError, match="sib was trained on tasks of 3 ways and answers no others; asked for 4"):
            learner.classify(episodes)


def test_a_method_says_how_much_its_learner_is_penalised(tmp_path):
    """Published for DeepBDC's simple form: C is .1 for one shot and 2 for more."""
    learner = TrainedLearner(str(trained("deepbdc-stl", tmp_path)))
    rng = np.random.default_rng(0)
    for shots, c in ((1, 0.1), (3, 2.0)):
        rows = rng.normal(size=(2 * shots + 4, learner.dimension)).astype(np.float32)
        episode = Episode(rows[4:], np.repeat([0, 1], shots), rows[:4], 2)
        [found] = learner.classify([episode])
        [wanted] = build("logistic", "few-shot-learner", {"c": c}).classify([episode])
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
        [other] = build("logistic", "few-shot-learner", {"c": 1.0}).classify([episode])
        assert not np.allclose(other, wanted, rtol=1e-3)


def test_other_learners_take_its_encoder(protonet):
    assert find(str(protonet)).card.roles == ("few-shot-learner", "encoder")
    model = TrainedModel(str(protonet))
    small = model.resize(images(1)[0])
    assert small.shape == (36, 36, 3) and model.resize(small) is small
    np.testing.assert_array_equal(model.encode([small]).vectors, model.encode(images(1)).vectors)


def test_an_unfinished_or_damaged_folder_says_so(protonet, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(protonet, folder)
    card = json.loads((folder / "checkpoint.json").read_text())
    (folder / "checkpoint.json").write_text(json.dumps({**card, "finished": False}))
    with pytest.raises(ModelError, match="not finished"):
        build(str(folder), "few-shot-learner")
    assert build(str(folder), "few-shot-learner", {"unfinished": "true"}).own_encoder_args.endswith("unfinished=true")
    for lost in ("kind", "identity", "image_size", "stored_size"):
        (folder / "checkpoint.json").write_text(json.dumps({key: card[key] for key in card if key != lost}))
        with pytest.raises(ModelError, match="describes no network"):
            build(str(folder), "few-shot-learner")
    (folder / "checkpoint.json").write_text("{")
    with pytest.raises(DataError, match="not the description"):
        find(str(folder))
    (folder / "checkpoint.json").write_text(json.dumps(card))
    shard = next(folder.glob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-8])
    with pytest.raises(DataError, match="damaged"):
        build(str(folder), "few-shot-learner")


def test_imported_weights_are_an_encoder_and_no_learner(tmp_path):
    from hardlook.networks.backbones import build_backbone
    from hardlook.training.imported_weights import import_weights

    torch.save({"state_dict": build_backbone("conv64f").state_dict()}, tmp_path / "conv64f.pth")
    import_weights(tmp_path / "conv64f.pth", "conv64f", tmp_path / "weights")
    assert build(str(tmp_path / "weights"), "encoder").dimension == 1600
    with pytest.raises(ModelError, match="does not have the role few-shot-learner"):
        build(str(tmp_path / "weights"), "few-shot-learner")
    with pytest.raises(ModelError, match="no rule to classify by"):
        TrainedLearner(str(tmp_path / "weights"))


def test_methods_to_train_are_listed_with_their_marks():
    cards = {card.name: card for card in list_trainable() if "few-shot-learner" in card.roles}
    assert set(cards) == {entry.name for entry in list_methods()} and len(cards) > 10
    assert cards["protonet"].marks == ("LL", "trained", "checked") and cards["protonet"].origin == "hardlook train"
    assert cards["maml"].marks == ("LL", "TT", "transductive", "trained", "checked")
    assert cards["rfs"].marks == ("GL", "TT", "trained", "checked")
    with pytest.raises(ModelError, match="has to be trained first") as caught:
        find("protonet", "few-shot-learner")
    assert "--data root=DIR" in caught.value.remedy
    with pytest.raises(ModelError, match="has to be trained first") as caught:
        find("semantic-projection", "semantic-segmenter")
    assert "--data voc=DIR" in caught.value.remedy
    for entry in list_methods():
        kind = entry.load()
        assert (entry.stages, entry.transductive, entry.learner) == (kind.stages, kind.transductive, kind.learner)
        marks = tuple(mark for mark in cards[entry.name].marks if mark in ("GL", "LL", "TT"))
        assert read_flags(entry.name, None) == marks


def test_the_benchmark_runs_it_by_its_folder(tmp_path, monkeypatch):
    from tiny_images import write_images

    import hardlook as hl

    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    root = write_images(tmp_path / "images", {"train": 4, "val": 2, "test": 3})
    settings = {"image_size": 16, "validations": 1, "validation_tasks": 1, "progress": False, "budget": "60images"}
    given = {"ways": 2, "queries": 2, "backbone.channels": 8}
    for method in ("protonet", "maml"):
        folder = tmp_path / method
        hl.train(method, data=root, out=folder, recipe=given, **settings)
        options = {"ways": "2", "shots": "1", "queries": 2, "tasks": 3, "repeats": 1, "resamples": 0}
        run = hl.run("metacoco", model=str(folder), data=root, progress=False, report=False, **options)
        assert 0 <= run.scores["iid"].value <= 1
    with pytest.raises(OptionError, match="an encoder of its own"):
        hl.run("metacoco", model=str(tmp_path / "protonet"), data=root, encoder="planted-encoder", **options)
