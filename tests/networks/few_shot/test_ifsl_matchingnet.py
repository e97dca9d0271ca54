"""MatchingNet with IFSL: the released code, and laws of the adjustment."""

import numpy as np
import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import read_golden, rule_value

from hardlook.networks.backbones import build_backbone
from hardlook.networks.few_shot.ifsl_matchingnet import AttentionLstm, IfslMatchingNet
from hardlook.networks.few_shot.method import Episodes


def make_released(options, channels):
    """The method of a golden's options, its mean features by the rule."""
    counterfactual = None if not options["use_counterfactual"] else "zero" if options["x_zero"] else "mean"
    method = IfslMatchingNet(
        channels=channels,
        classes=options["class_num"],
        splits=options["n_splits"],
        scale=options["temp"],
        fusion=options["fusion"],
        score_fusion=options["logit_fusion"],
        before=options["preprocess_before_split"],
        after=options["preprocess_after_split"],
        single=options["single"],
        features_only=options["use_x_only"],
        counterfactual=counterfactual,
        released=True,
    )
    features = torch.from_numpy(rule_value("utils.features", (options["class_num"], channels)).astype(np.float32))
    # The released weights lack them.
    for name, value in (("features", features), ("count", torch.ones(len(features)))):
        method.utils.register_buffer(name, value, persistent=False)
    return method


@pytest.mark.parametrize("case", list_cases("matchingnet_ifsl"))
def test_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_matchingnet_ifsl")
    facts = golden.facts["cases"][case]
    channels = facts["input"]["shape_of_one"][0]
    check_episode_case(golden, case, lambda: make_released(facts["options"], channels))


def make(**options):
    torch.manual_seed(0)
    method = IfslMatchingNet(channels=8, classes=4, splits=2, **options).double()
    method.utils.features.normal_()
    return method


def draw_episodes(shape=(8,), tasks=2, ways=3, shots=2, queries=5):
    rng = torch.Generator().manual_seed(1)
    return Episodes(
        torch.randn(tasks, ways, shots, *shape, generator=rng, dtype=torch.float64),
        torch.randn(tasks, queries, *shape, generator=rng, dtype=torch.float64),
        torch.arange(queries).expand(tasks, -1) % ways,
    )


@pytest.mark.parametrize("options", [{}, {"single": False, "counterfactual": "mean"}, {"features_only": True}])
def test_released_differs_in_gradients_but_not_in_scores_of_features(options):
    episodes, released, sound = draw_episodes(), make(released=True, **options), make(**options)
    assert "utils.features" in sound.state_dict() and type(sound) is IfslMatchingNet
    torch.testing.assert_close(released.classify(episodes), sound.classify(episodes))
    episodes.query.requires_grad_()
    gradients = [torch.autograd.grad(one.loss(episodes)[0], episodes.query)[0] for one in (released, sound)]
    assert not torch.allclose(*gradients)


def test_tasks_are_scored_as_if_alone_and_probabilities_sum_to_one():
    episodes, method = draw_episodes(), make()
    scores = method.classify(episodes)
    torch.testing.assert_close(method.classify(Episodes(episodes.support[1:], episodes.query[1:])), scores[1:])
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(2, 5, dtype=torch.float64), atol=1e-5, rtol=0)


def test_without_context_supports_vote_by_their_cosine():
    """LSTMs whose outputs are 0 leave supports and queries as they are."""
    method, episodes = make(features_only=True), draw_episodes(shots=1)
    for value in method.x_blocks.parameters():
        value.data.zero_()
    support, query = episodes.support.unflatten(-1, (2, 4)), episodes.query.unflatten(-1, (2, 4))
    cosine = torch.cosine_similarity(query[:, :, None], support[:, None, :, 0], dim=-1).clamp(min=0)
    expected = (5 * cosine).softmax(-2).mean(-1)
    torch.testing.assert_close(method.classify(episodes).exp(), expected, atol=1e-4, rtol=0)


def test_attention_reads_once_per_support():
    cell = AttentionLstm(4).double()
    calls = []
    cell.lstmcell.register_forward_hook(lambda *_: calls.append(1))
    cell(torch.randn(2, 5, 4, dtype=torch.float64), torch.randn(2, 3, 4, dtype=torch.float64))
    assert len(calls) == 3


def test_released_forgets_its_classifier_and_the_stored_statistics():
    torch.manual_seed(0)
    episodes = draw_episodes((3, 16, 16))
    scores = {}
    for released in (False, True):
        backbone = build_backbone("conv64f", channels=8)
        method = IfslMatchingNet(backbone, channels=8, classes=4, splits=2, released=released).double().eval()
        before = method.utils.linear.weight.clone()
        method.start_stage("episodes")
        assert torch.equal(before, method.utils.linear.weight) is not released
        first = method.classify(episodes)
        for module in backbone.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean += 3
        scores[released] = torch.allclose(first, method.classify(episodes))
    assert scores == {False: False, True: True}
