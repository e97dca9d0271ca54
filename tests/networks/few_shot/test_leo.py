"""LEO: the released code with noise of zeros and drawn noise; tasks that do not touch each other."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import read_golden
from torch.nn.functional import cross_entropy

from hardlook.networks.few_shot.leo import Leo
from hardlook.networks.few_shot.method import Episodes


def draw_zeros(shape, **options):
    return torch.zeros(shape, **options)


class Leo31337(Leo):
    """Each inner loop begins with the generator of the goldens."""

    def adapt(self, features, **options):
        rng = np.random.Generator(np.random.PCG64(31337))

        def noise(shape, **kind):
            return torch.from_numpy(rng.standard_normal(tuple(shape)).astype(np.float32)).to(**kind)

        self.noise = noise
        return super().adapt(features, **options)


@pytest.mark.parametrize("case", list_cases("leo"))
def test_equals_the_released_code(case):
    made = Leo31337 if "pcg" in case else Leo
    golden = read_golden("few_shot", "method_leo")
    latent, channels = golden.parameters(case)["encoder.encoder_func.weight"]
    options = {"channels": channels, "latent": latent, "noise": draw_zeros, "released": True}
    check_episode_case(golden, case, lambda: made(**options))


def test_released_adds_the_gradients_of_the_inner_losses_to_those_of_supports_alone():
    """No step's loss sees queries or, at a rate of 0 without latent steps, more than the decoded weights."""
    rng = torch.Generator().manual_seed(0)
    support = torch.randn(2, 3, 2, 6, generator=rng, dtype=torch.float64)
    query, labels = torch.randn(2, 3, 6, generator=rng, dtype=torch.float64), torch.tensor([[0, 1, 2], [2, 1, 0]])
    found = {}
    for released in (False, True):
        torch.manual_seed(0)
        options = {"latent": 4, "noise": draw_zeros, "latent_steps": 0, "steps": 3, "inner_rate": 0.0}
        method = Leo(channels=6, **options, released=released).double()
        given = [part.clone().requires_grad_() for part in (support, query)]
        loss, _ = method.loss(Episodes(*given, labels))
        loss.backward()
        found[released] = [loss.detach(), *(part.grad for part in given), method.encoder.encoder_func.weight.grad]
    for number in (0, 2, 3):
        torch.testing.assert_close(found[True][number], found[False][number])
    given = support.clone().requires_grad_()
    weights, _ = method.decoder(method.encoder(given)[0])
    scores = given.flatten(1, 2) @ weights.mT
    losses = [cross_entropy(scores[task], torch.arange(3).repeat_interleave(2)) for task in range(2)]
    (expected,) = torch.autograd.grad(3 * sum(losses), given)
    torch.testing.assert_close(found[True][1] - found[False][1], expected)


def test_the_third_term_draws_the_first_codes_to_the_last_ones():
    """Where the codes ended is a constant; else nothing could be learned, as their steps are constants, too."""
    rng = torch.Generator().manual_seed(0)
    episodes = Episodes(
        torch.randn(1, 3, 1, 6, generator=rng, dtype=torch.float64),
        torch.randn(1, 3, 6, generator=rng, dtype=torch.float64),
        torch.arange(3)[None],
    )
    found = {}
    for weight in (0.0, 1.0):
        torch.manual_seed(0)
        method = Leo(channels=6, latent=4, latent_rate=1.0, move_weight=weight, noise=draw_zeros).double()
        method.loss(episodes)[0].backward()
        found[weight] = method.encoder.encoder_func.bias.grad
    adapted, parameter = method.adapt(episodes), method.encoder.encoder_func.bias
    outward = 2 * (adapted.latents - adapted.moved).detach() / adapted.latents.numel()
    (expected,) = torch.autograd.grad((adapted.latents * outward).sum(), parameter)
    assert expected.abs().max() > 1e-6
    torch.testing.assert_close(found[1.0] - found[0.0], expected)


def test_a_task_does_not_see_the_others_and_the_backbone_freezes():
    rng = torch.Generator().manual_seed(0)
    episodes = Episodes(torch.randn(3, 4, 2, 6, generator=rng), torch.randn(3, 5, 6, generator=rng))
    torch.manual_seed(0)
    method = Leo(torch.nn.Linear(6, 6), channels=6, latent=4, noise=draw_zeros, classes=7).eval()
    scores = method.classify(episodes)
    one = replace(episodes, support=episodes.support[1:2], query=episodes.query[1:2])
    torch.testing.assert_close(method.classify(one)[0], scores[1])
    method.start_stage("episodes")
    assert not any(value.requires_grad for value in method.emb_func.parameters())
