"""FGFL: laws, and the released code."""

import math

import numpy as np
import pytest
import torch
from few_shot_goldens import list_cases
from goldens import fill, read_golden

from hardlook.networks.backbones import build_backbone
from hardlook.networks.few_shot.fgfl import FGFL, frozen_normalisation, score_frequencies
from hardlook.networks.few_shot.method import Episodes

DRY = {"attention_dropout": 0, "dropout": 0}


def test_permuted_classes_permute_the_scores_and_tasks_do_not_mix():
    torch.manual_seed(0)
    support, query = torch.randn(2, 3, 2, 8), torch.randn(2, 4, 8)
    method = FGFL(channels=8).eval()
    scores, order = method.score(Episodes(support, query)), torch.tensor([2, 0, 1])
    torch.testing.assert_close(method.score(Episodes(support[:, order], query)), scores[:, :, order])
    torch.testing.assert_close(method.score(Episodes(support[1:], query[1:])), scores[1:])


def test_centres_are_weighted_means_of_supports_and_pool():
    method = FGFL(channels=1, temperature=1)
    centres = method.centres(torch.tensor([[[[0.0]], [[100.0]]]]), torch.tensor([[[2.0], [98.0], [50.0]]]))
    # 2 is of the first class, 98 of the second, 50 half of each: (0 + 2 + 25) / 2.5 and (100 + 98 + 25) / 2.5.
    torch.testing.assert_close(centres, torch.tensor([[[10.8], [89.2]]]))


def test_a_frozen_normalisation_neither_moves_nor_learns_and_trains_again_afterwards():
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.BatchNorm2d(4)).train()
    before = network[1].running_mean.clone()
    with frozen_normalisation(network):
        network(torch.randn(5, 3, 2, 2)).square().sum().backward()
    assert torch.equal(network[1].running_mean, before) and network[1].weight.grad is None
    assert network[0].weight.grad is not None and network[1].training and network[1].weight.requires_grad


def test_the_mask_is_of_each_task_alone():
    torch.manual_seed(0)
    method = FGFL(build_backbone("conv64f", output="maps"), channels=64, **DRY)
    maps = torch.rand(4, 6, 2, 2, requires_grad=True)
    scores = (maps.mean((2, 3)) @ torch.randn(6, 2)).reshape(2, 2, 2)
    labels = torch.tensor([[0, 1], [1, 0]])
    mask = method.find_mask(maps, scores, labels, torch.Size((4, 4)))
    scaled = (maps * torch.tensor([1.0, 1, 50, 50])[:, None, None, None]).detach().requires_grad_()
    again = method.find_mask(scaled, (scaled.mean((2, 3)) @ torch.ones(6, 2)).reshape(2, 2, 2), labels, mask.shape[2:])
    assert mask.shape == (4, 1, 4, 4) and mask.min() >= 0 and mask.max() <= 1
    assert (again.reshape(2, -1).amax(1) > 0.99).all(), "a task of small values has its own maximum"


def test_the_loss_trains_both_backbones():
    torch.manual_seed(0)
    method = FGFL(build_backbone("conv64f", output="maps"), channels=64)
    assert method.emb_func is method.encoder and not any("emb_func" in name for name in method.state_dict())
    episodes = Episodes(torch.randn(2, 2, 1, 3, 32, 32), torch.randn(2, 4, 3, 32, 32), torch.tensor([[0, 1, 1, 0]] * 2))
    loss, scores = method.loss(episodes)
    loss.backward()
    assert scores.shape == (2, 4, 2) and loss.isfinite()
    assert all(value.grad is not None and value.grad.isfinite().all() for value in method.parameters())


def shot_major(rows):
    """Class-major rows in the order of the released code."""
    return rows.unflatten(0, (5, -1)).transpose(0, 1).flatten(0, 1)


@pytest.mark.parametrize("case", list_cases("fgfl", choose=lambda case: case.startswith("head")))
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_heads_equal_the_released_code(case, dtype):
    golden = read_golden("few_shot", "method_fgfl")
    given = golden.facts["cases"][case]["input"]
    labels = torch.arange(5).repeat_interleave(given["query"])[None]

    def draw(weight):
        rng = np.random.Generator(np.random.PCG64(given["seed"]))
        centres = rng.standard_normal((5, 640))
        noise = rng.standard_normal((5, given["shot"] + given["query"], 640))
        drawn = torch.from_numpy((weight * centres[:, None] + noise).astype(np.float32)).to(dtype)[None]
        return Episodes(drawn[:, :, : given["shot"]], drawn[:, :, given["shot"] :].flatten(1, 2), labels)

    plain, other = draw(max(0.15, 4 / math.sqrt(640))), draw(0.3)
    np.testing.assert_allclose(plain.support.flatten()[:8], given["first8"], rtol=1e-6)
    method = fill(FGFL(**DRY)).to(dtype).eval()
    supports, queries = 5 * given["shot"], 5 * given["query"]
    everyone = torch.cat([plain.support_labels()[None], labels], 1)

    def check(name, rows, first):
        rows = torch.cat([shot_major(part) for part in (rows[0, :first], rows[0, first:]) if len(part)])
        tolerance, spread = (1e-8, None) if dtype == torch.float64 else (1e-4, 0.02)
        golden.check(f"{case}/{name}", rows, tolerance=tolerance, spread=spread)

    with torch.no_grad():
        check("logits", method.score(plain), queries)
        check("logits_enhanced", method.score_enhanced(plain, other), queries)
        for name, rows in zip(("proto", "query"), method.score_bad(plain, other), strict=True):
            check(f"logits_bad_{name}", rows, queries)
        check("logits_freq", score_frequencies(plain, plain), supports)
        check("logits_freq_bad_proto", score_frequencies(plain, other), supports)
        check("logits_freq_bad_query", score_frequencies(other, plain), supports)
        check("train_logits", method.train().score(plain), queries)
        check("train_logits_reg", method.regulariser(plain, everyone), supports)


def test_images_equal_the_released_code():
    """In float32: five passes of two networks and their gradients take half a minute in float64."""
    golden, case = read_golden("few_shot", "method_fgfl"), "images84/1shot_1query"
    method = FGFL(build_backbone("resnet12", output="maps", drop_rate=0.0), **DRY)
    golden.check_names(method, "head_d640/1shot")
    fill(method)
    images = golden.images(golden.facts["cases"][case]["input"]["seed"], (10, 3, 84, 84), torch.float32)
    episodes = Episodes(images[None, :5, None], images[None, 5:], torch.arange(5)[None])
    with torch.no_grad():
        golden.check(f"{case}/logits", method.eval().classify(episodes)[0], tolerance=1e-4, spread=0.02)
    loss, scores = method.train().loss(episodes)
    golden.check(f"{case}/train_logits", scores[0], tolerance=1e-4, spread=0.02)
    golden.check_value(case, "loss", loss.detach(), tolerance=1e-6)
    loss.backward()
    # The mask is steep: the released gradients of float32 and float64 differ by 1e-4 of their length.
    golden.check_gradients(case, method, tolerance=1e-3)
