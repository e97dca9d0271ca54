"""How weights are judged while they are trained: by the rule of a test where that is quick."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_few_shot import make_data, make_recipe, train_tiny

from hardlook.models.few_shot.trained import TrainedLearner
from hardlook.models.roles import Episode
from hardlook.networks.backbones import resnet12
from hardlook.networks.few_shot.catalogue import find_method, list_methods
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.protonet import ProtoNet
from hardlook.networks.few_shot.support_heads import HeadTraining
from hardlook.training import few_shot, few_shot_trainee
from hardlook.training.recipes import change_recipe, find_recipe, plan_stages

RULES = {
    "rfs": "the learner logistic", "deepbdc-stl": "the learner logistic", "k-nn": "the learner k-nn",
    "baseline": "its own", "protonet": "its own", "maml": "its own", "ifsl-knn": "its own",
    "lp-ft-fb": "its own, without fine-tuning", "tsa": "cosine to class means, without fine-tuning",
    "tsa-deta": "cosine to class means, without fine-tuning",
}  # fmt: skip


def build(name, data):
    entry = find_method(name)
    recipe = make_recipe(name, entry.stages)
    method = few_shot.build_method(recipe, classes=6, size=32, seed=0)
    plans = plan_stages(recipe, len(data.labels))
    return method, few_shot.FewShotTrainee(method, recipe, plans, data, seed=0, size=32)


@pytest.mark.parametrize("name", RULES)
def test_the_card_names_the_rule(name):
    method, trainee = build(name, make_data())
    assert few_shot_trainee.describe_validation(method) == RULES[name]
    called = []
    own = type(method).classify
    type(method).classify = lambda self, episodes: called.append(0) or own(self, episodes)
    try:
        scores = trainee.validate(method)
    finally:
        type(method).classify = own
    assert all(0 <= value <= 1 for value in scores.values()) and set(scores) == {"blind", "iid", "ood"}
    if "without" in RULES[name]:  # nothing is tuned
        assert not called


@pytest.mark.parametrize("name", ["rfs", "k-nn", "baseline", "protonet"])
def test_validation_answers_as_the_folder_does(name, tmp_path):
    """The accuracy at the last mark is that of the finished model on the same tasks."""
    data = make_data(shots=2, queries=3)
    recipe = make_recipe(name, find_method(name).stages, epochs=1, batch=12, shots=2, queries=3)
    card = train_tiny(tmp_path, recipe, data, validations=1).card
    learner = TrainedLearner(str(tmp_path))
    vectors = learner.encode(list(data.validation_images)).vectors
    tasks = data.validation["blind"]
    labels = np.repeat(np.arange(3), 3)
    right = []
    for place in range(len(tasks)):
        query = vectors[tasks.query[place].ravel()]
        shown = Episode(
            vectors[tasks.support[place].ravel()], np.repeat(np.arange(3), 2), query, 3, f"validation-{place}"
        )
        right.append(learner.classify([shown])[0].argmax(1) == labels)
    assert np.mean(right) == pytest.approx(card["selections"]["blind"]["accuracy"])


def test_every_learner_of_a_method_has_its_rule():
    for entry in list_methods():
        assert entry.learner is None or entry.learner in few_shot_trainee.RULES, entry.name


@pytest.mark.parametrize("backbone", ["conv32f", "conv64f", "resnet10"])
@pytest.mark.parametrize("size", [32, 84])
def test_relation_networks_take_the_maps_of_any_backbone(backbone, size):
    """With the recipe as it is: some backbones are told to pool less, small maps are padded."""
    for name in ("relationnet", "ft-relationnet"):
        method = few_shot.build_method(find_recipe(name, backbone, ("episodes",)), classes=6, size=size, seed=0)
        images = torch.rand(1, 6, 3, size, size)
        loss, scores = method.loss(Episodes(images[:, :3, None], images[:, 3:], torch.tensor([[0, 1, 2]])))
        assert scores.shape == (1, 3, 3) and loss.isfinite()


def test_heads_are_as_they_were_after_a_validation():
    method, trainee = build("baseline++", make_data())
    head = method.head
    trainee.validate(method)
    assert method.head is head and not head.in_span and isinstance(head, HeadTraining)
    assert not torch.is_inference_mode_enabled()


def test_drop_blocks_drop_more_with_every_step():
    recipe = change_recipe(find_recipe("protonet", "resnet12", ("episodes",)), {"ways": 3, "queries": 2})
    data = make_data()
    method = few_shot.build_method(recipe, classes=6, size=32, seed=0)
    trainee = few_shot.FewShotTrainee(method, recipe, plan_stages(recipe, len(data.labels)), data, seed=0, size=32)
    blocks = [one for one in method.train().modules() if isinstance(one, resnet12.DropBlock)]
    shares = []
    for step in (0, resnet12.DROP_STEPS // 2, resnet12.DROP_STEPS, 2 * resnet12.DROP_STEPS):
        torch.manual_seed(trainee.start_step(step, 0))
        shares.append(float((blocks[-1](torch.ones(64, 32, 20, 20)) == 0).float().mean()))
    assert len(blocks) == 2 and {block.step for block in blocks} == {2 * resnet12.DROP_STEPS}
    assert shares == pytest.approx([0, 0.05, 0.1, 0.1], abs=0.01)


def draw(name, data, steps, **changes):
    """The batches of the first steps, one per step."""
    entry = find_method(name)
    recipe = make_recipe(name, entry.stages, **changes)
    method = few_shot.build_method(recipe, classes=6, size=32, seed=0)
    recipe = replace(recipe, views=method.views)
    trainee = few_shot.FewShotTrainee(method, recipe, plan_stages(recipe, len(data.labels)), data, seed=0, size=32)
    return trainee, [batch for [batch] in trainee.draw_batches(0, steps, 0, 1)]


def test_every_epoch_has_each_image_once_in_an_order_of_its_own():
    data = make_data()
    _, batches = draw("baseline", data, 9, batch=16, epochs=3)
    epochs = torch.cat([batch.rows for batch in batches]).reshape(3, 48)
    assert torch.equal(epochs.sort(1).values, torch.arange(48).expand(3, -1))
    assert len({tuple(order.tolist()) for order in epochs}) == 3
    assert all(torch.equal(batch.labels, torch.from_numpy(data.labels)[batch.rows]) for batch in batches)


@pytest.mark.parametrize("name", ["protonet", "baseline"])
def test_steps_and_images_have_augmentations_of_their_own(name):
    _, batches = draw(name, make_data(), 3, batch=16)
    factors = torch.cat([batch.draws.factors for batch in batches])
    assert len(factors) == sum(len(batch.rows) for batch in batches) == len(factors.unique(dim=0))
    _, plain = draw(name, make_data(), 3, batch=16, augment=False)
    assert all(batch.draws is None for batch in plain)
    assert all(torch.equal(one.rows, other.rows) for one, other in zip(batches, plain, strict=True))


def test_a_labelled_batch_goes_in_view_after_view():
    trainee, [batch] = draw("simclr", make_data(), 1, batch=5, augment=False)
    seen = []

    def call(name, images, labels):
        seen.append((name, images, labels))
        return torch.zeros(()), torch.zeros(10, 2)

    trainee.compute_loss(call, batch)
    [(name, images, labels)] = seen
    assert name == "class_loss" and torch.equal(images[:5], images[5:]) and torch.equal(labels, batch.labels)
    assert torch.equal(images[:5], trainee.store.crop_centre(batch.rows[::2]))


class OrderGuesser(ProtoNet):
    """Takes queries to come class by class."""

    def score(self, features):
        queries = features.query.shape[1]
        guessed = torch.arange(queries) * features.ways // queries
        return torch.nn.functional.one_hot(guessed, features.ways).float().expand(len(features), -1, -1)


def test_the_order_of_validation_queries_tells_nothing():
    data = make_data(queries=7)
    recipe = make_recipe("protonet", queries=7)
    method = OrderGuesser(torch.nn.Flatten())
    trainee = few_shot.FewShotTrainee(method, recipe, plan_stages(recipe, 48), data, seed=0, size=32)
    found = trainee.validate(method)
    assert all(score < 0.6 for score in found.values()), "class by class it would be 1"


def test_a_validation_leaves_running_statistics_as_they_are():
    method, trainee = build("protonet", make_data())
    before = {key: value.clone() for key, value in method.state_dict().items()}
    found = trainee.validate(method.train())
    assert all(torch.equal(value, before[key]) for key, value in method.state_dict().items())
    assert trainee.validate(method.eval()) == found
