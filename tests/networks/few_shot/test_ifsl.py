"""IFSL as a wrapper: the adjustment by hand, laws of the average over strata, and stages."""

import math

import numpy as np
import pytest
import torch

from hardlook.errors import OptionError
from hardlook.models.few_shot.nearest_neighbours import KNearest
from hardlook.models.roles import Episode
from hardlook.networks.backbones import build_backbone
from hardlook.networks.few_shot.baseline import Baseline
from hardlook.networks.few_shot.ifsl import (
    IfslBaseline,
    IfslCosine,
    IfslMaml,
    IfslMtl,
    IfslNearest,
    IfslSib,
    NearestVotes,
    Strata,
)
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.sib import Sib
from hardlook.networks.few_shot.support_heads import HeadTraining

QUICK = {"head": HeadTraining(epochs=20, batch=6)}
METHODS = [
    (IfslBaseline, QUICK),
    (IfslCosine, {"head": HeadTraining("weight-norm", scale=2, epochs=20, batch=6, rate=1)}),
    (IfslNearest, {}),
    (IfslMaml, {}),
    (IfslMtl, {}),
    (IfslSib, {}),
]


def easy(tasks=2, ways=3, shots=2, queries=6, size=8, dtype=torch.float64):
    """Classes far apart."""
    rng = torch.Generator().manual_seed(0)
    centres = 4 * torch.randn(tasks, ways, size, generator=rng, dtype=dtype)
    labels = torch.arange(queries).expand(tasks, -1) % ways
    support = centres[:, :, None] + torch.randn(tasks, ways, shots, size, generator=rng, dtype=dtype) / 3
    query = centres.gather(1, labels[..., None].expand(-1, -1, size))
    query = query + torch.randn(query.shape, generator=rng, dtype=dtype) / 3
    return Episodes(support, query, labels, keys=("a", "b")[:tasks])


def make(kind, **options):
    torch.manual_seed(0)
    method = kind(channels=8, classes=4, ways=3, **{"splits": 2, **options}).double()
    method.utils.features.normal_()
    return method.eval()


def two_classes(**options):
    """Two training classes with mean features (4, 0) and (0, 8); the first is three times as likely for (0, 0)."""
    strata = Strata(2, 2, splits=2, **options)
    strata.features.copy_(torch.tensor([[4.0, 0.0], [0.0, 8.0]]))
    strata.linear.weight.data.copy_(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    strata.linear.bias.data.copy_(torch.tensor([math.log(3), 0.0]))
    return strata


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # Probabilities .75 and .25 give expected features (3, 2); the image has (5, 7).
        ({}, [[5, 3], [7, 2]]),
        ({"fusion": "+"}, [[8], [9]]),
        ({"fusion": "-"}, [[2], [5]]),
        ({"adjustment": "feature"}, [[5], [7]]),
        ({"adjustment": "class"}, [[5, 7, 3, 2]]),
        ({"adjustment": "class", "fusion": "+"}, [[8, 9]]),
        # The mean over classes is (2, 4), so the centred image is (3, 3).
        ({"adjustment": "feature", "before": "cl2n"}, [[1 / math.sqrt(2)], [1 / math.sqrt(2)]]),
        ({"adjustment": "feature", "after": "l2n"}, [[1], [1]]),
        ({"adjustment": "feature", "before": "cl2n", "after": "cl2n"}, [[-1], [-1]]),
    ],
)
def test_the_adjustment_by_hand(options, expected):
    adjusted = two_classes(**options).adjust(torch.tensor([5.0, 7.0]))
    torch.testing.assert_close(adjusted, torch.tensor(expected, dtype=torch.float32), atol=1e-4, rtol=0)
    assert two_classes(**options).width == adjusted.shape[-1]


@pytest.mark.parametrize("before", ["none", "l2n", "cl2n"])
def test_classes_are_those_of_the_features_as_they_are(before):
    """The classifier of the training classes has never seen centred features or such of length 1."""
    strata = two_classes(before=before)
    strata.linear.weight.data.copy_(torch.eye(2))
    strata.linear.bias.data.zero_()
    first = 1 / (1 + math.exp(2))
    expected = torch.tensor([[4 * first], [8 * (1 - first)]])
    torch.testing.assert_close(strata.adjust(torch.tensor([5.0, 7.0]))[:, 1:], expected)


def test_channels_that_do_not_split_are_refused():
    with pytest.raises(OptionError, match="10 channels have no 4 equal groups"):
        Strata(10, 2, splits=4)


def test_mean_features_follow_the_batches():
    strata = Strata(1, 3, splits=1, momentum=0.4)
    seen = []
    for values, labels in (([1.0, 3.0, 8.0], [0, 0, 2]), ([4.0], [0]), ([0.0], [0])):
        strata.observe(torch.tensor(values)[:, None], torch.tensor(labels))
        seen.append(strata.features[:, 0].tolist())
    # The mean of the batches' means 2 and 4, then four tenths of the way to 0.
    assert seen == [[2, 0, 8], [3, 0, 8], pytest.approx([1.8, 0, 8])]


def test_mean_features_are_those_of_training_and_are_stored():
    torch.manual_seed(0)
    method = IfslBaseline(torch.nn.Identity(), channels=2, classes=2, splits=1)
    method.class_loss(torch.tensor([[1.0, 2.0], [5.0, 6.0]]), torch.tensor([1, 1]))
    assert method.state_dict()["utils.features"].tolist() == [[0, 0], [3, 4]]
    method.eval().class_loss(torch.ones(1, 2), torch.tensor([0]))
    assert method.utils.features[0].tolist() == [0, 0]


@pytest.mark.parametrize(("kind", "options"), METHODS)
def test_easy_tasks_are_solved_and_scores_are_log_probabilities(kind, options):
    episodes = easy()
    with torch.no_grad():
        scores = make(kind, **options).classify(episodes)
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(2, 6, dtype=torch.float64))
    if kind not in (IfslMaml, IfslMtl):  # these learn where to start
        assert (scores.argmax(-1) == episodes.labels).all()


@pytest.mark.parametrize(("kind", "options"), METHODS)
def test_tasks_are_independent(kind, options):
    episodes, method = easy(), make(kind, **options)
    alone = method.classify(Episodes(episodes.support[1:], episodes.query[1:], keys=("b",)))
    torch.testing.assert_close(alone, method.classify(episodes)[1:], rtol=1e-9, atol=1e-10)


def test_one_group_without_classes_is_the_wrapped_method():
    episodes = easy()
    whole = make(IfslSib, splits=1, adjustment="feature")
    torch.manual_seed(0)
    plain = Sib(channels=8, ways=3).double()
    plain.load_state_dict(whole.heads[0].state_dict())
    torch.testing.assert_close(whole.classify(episodes), plain.eval().classify(episodes).log_softmax(-1))
    start = lambda name, shape: torch.zeros(shape)  # noqa: E731
    training = HeadTraining(epochs=5, batch=6, start=start)
    wrapped = make(IfslBaseline, splits=1, adjustment="feature", head=training).classify(episodes)
    scores = Baseline(channels=8, head=training).classify(
        Episodes(episodes.support, episodes.query, keys=("a 0", "b 0"))
    )
    torch.testing.assert_close(wrapped, scores.log_softmax(-1))


@pytest.mark.parametrize("kind", [IfslMaml, IfslMtl])
def test_inner_loops_take_longer_steps_in_groups(kind):
    assert [head.inner_rate for head in make(kind).heads] == [0.02, 0.02]
    assert [head.inner_rate for head in make(kind, splits=4, inner_rate=0.1).heads] == [0.4] * 4


def test_a_step_in_a_group_moves_scores_as_one_in_all_channels():
    """Two equal groups of four channels beside one group of eight, from scores of zero on."""
    half = torch.randn(1, 3, 2, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    support = torch.cat([half, half], -1)
    scores = []
    for splits in (1, 2):
        method = make(IfslMaml, splits=splits, adjustment="feature", inner_rate=0.1)
        for head in method.heads:
            head.classifier.linear.weight.data.zero_()
            # A bias would move as many times further, too.
            head.classifier.linear.bias.data.zero_()
            head.classifier.linear.bias.requires_grad_(False)
        scores.append(method.classify(Episodes(support, support.flatten(1, 2))))
    torch.testing.assert_close(*scores)


def test_each_group_of_a_task_draws_for_itself():
    keys = set()

    def order(key, epoch, count):
        keys.add(key)
        return np.arange(count)

    make(IfslBaseline, head=HeadTraining(epochs=1, order=order)).classify(easy())
    assert keys == {"a 0", "a 1", "b 0", "b 1"}


def test_the_average_is_over_groups():
    """Two groups of one channel: the query is at class 0 in the first and at class 1 in the second."""
    support = torch.tensor([[[[0.0, 0.0]], [[4.0, 4.0]]]], dtype=torch.float64)
    method = IfslNearest(channels=2, classes=2, ways=2, splits=2, adjustment="feature").double()
    scores = method.classify(Episodes(support, torch.tensor([[[0.5, 3.5], [0.5, 0.5]]], dtype=torch.float64)))
    # In a group the nearest class has one vote and half a vote for nearness, the other a quarter of a vote.
    near, far = 1.5 / 1.75, 0.25 / 1.75
    torch.testing.assert_close(scores.exp()[0], torch.tensor([[0.5, 0.5], [near, far]], dtype=torch.float64))


@pytest.mark.parametrize("k", [1, 3, 20])
def test_votes_are_those_of_the_registered_learner(k):
    episodes = easy(queries=9)
    found = NearestVotes(k=k).classify(episodes)
    learner = KNearest(k=k)
    given = [
        Episode(support.flatten(0, 1).float().numpy(), episodes.support_labels().numpy(), query.float().numpy(), ways=3)
        for support, query in zip(episodes.support, episodes.query, strict=True)
    ]
    np.testing.assert_allclose(found.exp() / min(k, 6), np.stack(learner.classify(given)), rtol=1e-6)


@pytest.mark.parametrize(("kind", "options"), METHODS)
def test_stages_on_images(kind, options):
    torch.manual_seed(0)
    backbone = build_backbone("conv64f", channels=8)
    method = kind.build(backbone, channels=8, classes=4, ways=3, side=1, splits=2, **options)
    assert not [name for name in method.state_dict() if "pre_fc" in name or ".classifier.weight" in name]
    trained = {}
    for stage in method.stages:
        method.start_stage(stage)
        method.zero_grad()
        if stage == "classes":
            loss, scores = method.class_loss(torch.randn(4, 3, 16, 16), torch.arange(4))
            assert scores.shape == (4, 4)
        else:
            loss, _ = method.loss(
                Episodes(torch.randn(2, 3, 1, 3, 16, 16), torch.randn(2, 3, 3, 16, 16), torch.arange(3).expand(2, 3))
            )
        loss.backward()
        trained[stage] = {name.split(".")[0] for name, value in method.named_parameters() if value.grad is not None}
        assert all(torch.isfinite(value.grad).all() for value in method.parameters() if value.grad is not None)
    assert trained.pop("classes") == {"emb_func", "utils"}
    if "episodes" in trained:
        assert trained["episodes"] == ({"heads"} if kind is IfslSib else {"emb_func", "heads"})
