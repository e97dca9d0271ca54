"""RePRI: its gradients by autograd, laws, and the released code."""

import numpy as np
import pytest
import torch
from goldens import read_golden
from one_shot_goldens import (
    check_array,
    fill_network,
    find_backbone,
    list_cases,
    list_goldens,
    list_keys,
    read_inputs,
)
from torch.nn import functional

from hardlook.networks.one_shot.repri import (
    RePRI,
    adapt_classifiers,
    measure_proportions,
    score_positions,
    smoothed_cross_entropy,
)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return RePRI.build("resnet50-keras", classes=5).eval()


def make_pairs(batch=3, channels=6, asked=20, known=30, shots=2, dtype=torch.float64):
    """Features and labels of pairs, with some positions left out; no cosine is so extreme that 1e-10 counts."""
    rng = torch.Generator().manual_seed(0)
    query, support = (
        torch.randn(batch, channels, n, generator=rng, dtype=torch.float64).to(dtype) for n in (asked, known * shots)
    )
    labels = torch.randint(0, 2, (batch, known * shots), generator=rng)
    labels[:, :4] = 255
    valid = torch.rand(batch, asked, generator=rng) < 0.8
    return functional.normalize(query + 3, dim=1), valid, functional.normalize(support + 3, dim=1), labels


def adapt_by_autograd(query, valid, support, labels, *, shots, steps, update):
    """One pair after the other, with the losses as the paper writes them, by torch's own optimiser."""
    found = []
    for features, chosen, known, truth in zip(query, valid, support, labels, strict=True):

        def score(given, weight):
            return 20 * functional.cosine_similarity(given, weight[:, None], dim=0)

        weight = known[:, truth == 1].mean(1).clone().requires_grad_()
        bias = score(features[:, chosen], weight.detach()).mean().clone().requires_grad_()
        optimiser = torch.optim.SGD([weight, bias], lr=0.025)
        proportion = torch.sigmoid(score(features[:, chosen], weight) - bias).mean().detach()
        pull = 1 / shots
        for step in range(steps):
            scores = score(features[:, chosen], weight) - bias
            marginal = torch.sigmoid(scores).mean()
            if step == update:
                proportion, pull = marginal.detach(), pull + 1
            known_scores = score(known[:, truth != 255], weight) - bias
            loss = functional.binary_cross_entropy_with_logits(known_scores, truth[truth != 255].to(known))
            likely = torch.sigmoid(scores)
            entropy = -(torch.xlogy(likely, likely) + torch.xlogy(1 - likely, 1 - likely)).mean()
            mine, other = torch.distributions.Bernoulli(marginal), torch.distributions.Bernoulli(proportion)
            loss = loss + entropy / shots + pull * torch.distributions.kl_divergence(mine, other)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        found.append((weight.detach(), bias.detach()))
    return [torch.stack(column) for column in zip(*found, strict=True)]


@pytest.mark.parametrize("shots", [1, 3])
def test_written_gradients_are_those_of_autograd(shots):
    given = make_pairs(shots=shots)
    options = {"shots": shots, "steps": 12, "update": 5}
    adapted = adapt_classifiers(*given, **options)
    weight, bias = adapt_by_autograd(*given, **options)
    torch.testing.assert_close(adapted.weight, weight, atol=1e-8, rtol=0)
    torch.testing.assert_close(adapted.bias, bias, atol=1e-8, rtol=0)


def test_a_pair_is_fitted_as_if_it_were_alone_and_supports_have_no_order():
    query, valid, support, labels = make_pairs()
    together = adapt_classifiers(query, valid, support, labels, shots=2)
    alone = adapt_classifiers(*(one[1:2] for one in (query, valid, support, labels)), shots=2)
    order = torch.randperm(labels.shape[1])
    moved = adapt_classifiers(query, valid, support[:, :, order], labels[:, order], shots=2)
    torch.testing.assert_close(alone.weight, together.weight[1:2])
    torch.testing.assert_close(moved.weight, together.weight)
    assert together.history is None


def test_what_is_left_out_of_the_query_has_no_part_unless_released():
    query, valid, support, labels = make_pairs()
    other = torch.where(valid[:, None], query, functional.normalize(-torch.ones_like(query), dim=1))
    for centre_on_all in (False, True):
        first, second = (
            adapt_classifiers(one, valid, support, labels, shots=2, centre_on_all=centre_on_all)
            for one in (query, other)
        )
        assert torch.allclose(first.bias, second.bias) != centre_on_all


def test_the_expected_share_is_renewed_once():
    history = adapt_classifiers(*make_pairs(), shots=2, steps=8, update=3, record=True).history
    assert history["weight"].shape == (8, 3, 6)
    torch.testing.assert_close(history["proportions"][:3], history["marginal"][:1].expand(3, -1, -1))
    torch.testing.assert_close(history["proportions"][3:], history["marginal"][3:4].expand(5, -1, -1))
    assert history["divergence"][0].abs().max() < 1e-9 and history["divergence"][3].abs().max() < 1e-9
    assert history["cross_entropy"][-1].sum() < history["cross_entropy"][0].sum()


def test_the_share_is_renewed_as_often_as_asked_and_weighs_more_each_time():
    given = make_pairs()
    options = {"shots": 2, "steps": 8, "record": True}
    several = adapt_classifiers(*given, **options, update=(3, 5))
    once = adapt_classifiers(*given, **options, update=3)
    shares, marginal = several.history["proportions"], several.history["marginal"]
    torch.testing.assert_close(shares[3:5], marginal[3:4].expand(2, -1, -1))
    torch.testing.assert_close(shares[5:], marginal[5:6].expand(3, -1, -1))
    torch.testing.assert_close(several.history["weight"][:5], once.history["weight"][:5])
    again = adapt_classifiers(*given, **options, update=[3, 6, 99])
    torch.testing.assert_close(again.history["weight"][:6], once.history["weight"][:6])
    with torch.device("meta"):
        assert RePRI.build(update="10 30").update == (10, 30)


def test_a_known_share_is_never_measured():
    """The share of a label, with and without noise; `update` does nothing to it."""
    labels = torch.tensor([[[1, 1, 255], [0, 0, 0]], [[255, 255, 1], [1, 1, 1]]])
    known = measure_proportions(labels, (2, 3), noise=0.5)
    torch.testing.assert_close(known, torch.tensor([[0.4, 0.6], [0.0, 1.0]]))
    query, valid, support, truth = (one[:2] for one in make_pairs())
    found = adapt_classifiers(query, valid, support, truth, shots=2, steps=6, update=3, proportions=known, record=True)
    torch.testing.assert_close(found.history["proportions"], known.double().expand(6, -1, -1))
    marginal = found.history["marginal"]
    expected = torch.xlogy(marginal, marginal / (known + 1e-10)).sum(2)
    torch.testing.assert_close(found.history["divergence"], expected)


def test_steps_as_published_and_as_released():
    with torch.device("meta"):
        published, released = RePRI.build(), RePRI.build(released=True)
        shorter = RePRI.build(steps=5, update=2)
    assert (published.steps, published.update) == (50, 10)
    assert (released.steps, released.update) == (49, 9)
    assert (shorter.steps, shorter.update) == (5, 2)


@pytest.mark.parametrize("released", [False, True])
def test_the_network_fits_with_its_own_steps_shots_and_padding(released):
    with torch.device("meta"):
        built = RePRI.build(released=released)
    rng = torch.Generator().manual_seed(0)
    maps, shown = torch.randn(2, 512, 4, 4, generator=rng), torch.randn(2, 3, 512, 4, 4, generator=rng)
    labels, padding = torch.randint(0, 2, (2, 3, 4, 4), generator=rng), torch.zeros(2, 8, 8, dtype=torch.uint8)
    padding[:, :, 6:] = 255
    valid = torch.ones(2, 4, 4, dtype=torch.bool)
    valid[:, :, 3] = False
    found = built.adapt((maps,), (shown, labels), padding, record=True)
    options = {"steps": 49, "update": 9, "centre_on_all": True} if released else {"steps": 50, "update": 10}
    given = (maps.flatten(2), valid.flatten(1), shown.movedim(1, 2).flatten(2), labels.flatten(1))
    expected = adapt_classifiers(*given, shots=3, **options)
    assert len(found.history["bias"]) == options["steps"]
    torch.testing.assert_close(found.weight, expected.weight)
    torch.testing.assert_close(found.bias, expected.bias)


def test_the_object_of_an_identical_support_is_found(network):
    mask = torch.zeros(2, 5, 5, dtype=torch.uint8)
    mask[0, 1:3, 1:4], mask[1, 4] = 1, 1
    maps = torch.zeros(2, 512, 5, 5)
    maps[:, 0], maps[:, 1], maps[:, 2] = mask, 1 - mask, 0.5
    maps = functional.normalize(maps, dim=1)
    described = tuple(one[:, None] for one in network.describe((maps,), mask))
    logits = network.match((maps,), described, (5, 5))
    assert torch.equal(logits.argmax(1), mask.long())


def test_encoded_once_equals_encoded_per_pair(network):
    rng = torch.Generator().manual_seed(0)
    query, supports = torch.randn(2, 3, 33, 41, generator=rng), torch.randn(2, 2, 3, 33, 33, generator=rng)
    masks = torch.zeros(2, 2, 33, 33, dtype=torch.uint8)
    masks[:, :, 8:20] = 1
    padding = torch.zeros(2, 33, 41, dtype=torch.uint8)
    padding[:, :, 30:] = 255
    with torch.inference_mode():
        together = network(query, supports, masks, padding)
        features, described = network.encode(query), network.describe(network.encode(supports[1]), masks[1])
        shown = tuple(one[None] for one in described)
        alone = network.match((features[0][1:2],), shown, (33, 41), padding[1:2])
        with torch.autocast("cpu", torch.bfloat16):
            half = network(query, supports, masks, padding)
    assert together.shape == (2, 2, 33, 41) and together.dtype == torch.float32
    torch.testing.assert_close(alone, together[1:2], atol=1e-4, rtol=1e-4)
    assert half.isfinite().all()


@pytest.mark.parametrize("value", [0, 255])
def test_masks_without_the_class_give_finite_classifiers(value):
    query, valid, support, labels = make_pairs(dtype=torch.float32)
    adapted = adapt_classifiers(query, valid & False, support, torch.full_like(labels, value), shots=2)
    assert adapted.weight.isfinite().all() and adapted.bias.isfinite().all()
    adapted = adapt_classifiers(query, valid, support, torch.full_like(labels, value), shots=2)
    assert score_positions(query, adapted.weight).isfinite().all() and adapted.bias.isfinite().all()


def test_smoothing_shares_among_the_other_classes():
    """torch shares among all classes, so that 0.1 among 4 others is its 0.125 among 5."""
    logits, labels = torch.randn(2, 5, 3, 3), torch.randint(0, 5, (2, 3, 3))
    labels[0, 0] = 255
    expected = functional.cross_entropy(logits, labels, ignore_index=255, label_smoothing=0.125)
    torch.testing.assert_close(smoothed_cross_entropy(logits, labels), expected)
    torch.testing.assert_close(smoothed_cross_entropy(logits, labels.to(torch.uint8)), expected)
    assert smoothed_cross_entropy(logits, torch.full_like(labels, 255)) == 0


def test_training_on_classes_reaches_every_parameter(network):
    assert RePRI.stages == ("classes",)
    labels = torch.randint(0, 5, (2, 33, 33))
    loss, logits = network.class_loss(torch.randn(2, 3, 33, 33), labels)
    loss.backward()
    assert logits.shape == (2, 5, 33, 33)
    assert all(one.grad is not None for one in network.parameters())
    network.zero_grad()


def count_pixels(predicted, labels):
    """Intersections and unions (B, 1, 2) of background and class; pixels marked 255 are left out."""
    valid = labels != 255
    both = [[(predicted == label) & valid, (labels == label) & valid] for label in (0, 1)]
    measured = [[(one & two).sum((1, 2)) for one, two in both], [(one | two).sum((1, 2)) for one, two in both]]
    return [torch.stack(column, 1)[:, None] for column in measured]


def compute_arrays(network, golden, case, dtype):
    """What the golden stores of a case, but for its inputs."""
    query, supports, masks, labels = read_inputs(golden, case, dtype)
    passed = {}
    watched = [*network.parts, "ppm", "bottleneck"]
    hooks = [
        network.get_submodule(name).register_forward_hook(lambda _m, _i, out, name=name: passed.setdefault(name, out))
        for name in watched
    ]
    maps = network.extract(query)
    for hook in hooks:
        hook.remove()
    found = {f"query0.{name}": passed[name][:1] for name in watched}
    size = (query.shape[-2], query.shape[-1])
    # The rest goes through the network's own methods, but with the backbone's pass over the queries made above.
    inner, network.extract = network.extract, lambda images: maps if images is query else inner(images)
    try:
        features, shown = network.encode(query), network.encode(supports.flatten(0, 1))
        described = network.describe(shown, masks.flatten(0, 1))
        described = tuple(one.unflatten(0, masks.shape[:2]) for one in described)
        adapted = network.adapt(features, described, labels, record=True)
        logits = network.match(features, described, size, labels)
        loss, classes = network.class_loss(query, torch.where(labels == 1, 3, labels))
    finally:
        del network.extract
    history = adapted.history
    small = functional.interpolate(labels[:, None].float(), maps.shape[2:])[:, 0]
    share = (small == 1).sum((1, 2)) / (small != 255).sum((1, 2))
    renewed = history["proportions"][-1, :, 1]
    likely = logits.softmax(1)[:, 1]
    intersection, union = count_pixels(logits.argmax(1), labels)
    # Float32 and float64 may decide otherwise there.
    open_pixels = int(((likely - 0.5).abs() < 1e-5).sum())
    for name, counts in (("intersection", intersection), ("union", union)):
        if f"{case}.{name}" not in golden.arrays:
            continue
        assert np.abs(counts.numpy() - golden.arrays[f"{case}.{name}"]).max() <= open_pixels
    return found | {
        "features_query_normalised": features[0],
        "features_support_normalised": described[0],
        "prototype_initial": history["first_weight"],
        "bias_initial": history["first_bias"],
        "pi_initial": history["proportions"][0],
        "delta_initial": history["proportions"][0, :, 1] / share - 1,
        "delta_after_update": renewed / share - 1,
        "loss_ce": history["cross_entropy"],
        "loss_kl": history["divergence"],
        "loss_entropy": history["entropy"],
        "marginal": history["marginal"],
        "pi": history["proportions"],
        "bias": history["bias"],
        "prototype_first10": history["weight"][:10],
        "prototype_final": adapted.weight,
        "logits_query": score_positions(features[0].flatten(2), adapted.weight),
        "proba_fg": likely,
        "classifier_logits.stride4": classes[:, :, ::4, ::4],
        "segmentation_loss_smoothing": loss,
    }


@pytest.fixture(scope="module", params=list_goldens("repri"))
def filled(request):
    golden = read_golden("one_shot", request.param)
    options = {
        "classes": golden.parameters()["module.classifier.bias"][0],
        "steps": len(golden.arrays[f"{list_cases(golden)[0]}.bias"]),
    }
    return golden, fill_network(RePRI.build(find_backbone(golden), released=True, **options), golden).eval()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_equals_the_released_code(filled, dtype):
    """All cases in float64, which is compared with the float32 arrays, too; in float32 the first."""
    golden, network = filled
    network.to(dtype)
    for case in list_cases(golden)[: None if dtype == torch.float64 else 1]:
        with torch.no_grad():
            found = compute_arrays(network, golden, case, dtype)
        for key in list_keys(golden, case):
            name = key.removeprefix(f"{case}.")
            if name in ("intersection", "union"):
                continue  # compared where they are counted
            axis, tolerance = (
                2 if name == "features_support_normalised" else 1,
                2e-5 if name == "logits_query" else 1e-4,
            )
            check_array(golden, key, found[name], axis=axis, tolerance=tolerance)
        assert np.abs(found["bias"].numpy() - golden.arrays[f"{case}.bias"]).max() < 1e-4
