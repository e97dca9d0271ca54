"""PMM and RPMM: worked mixtures, laws, and the released code."""

import numpy as np
import polars as pl
import pytest
import torch
from goldens import goldens_folder, read_golden
from one_shot_goldens import (
    check_array,
    fill_network,
    find_backbone,
    find_classes,
    list_cases,
    list_goldens,
    list_keys,
    read_inputs,
)
from torch import nn

from hardlook.errors import OptionError
from hardlook.networks.one_shot.backbones import build_backbone
from hardlook.networks.one_shot.rpmm import PMM, RPMM, iterate_means
from hardlook.toss.pixel_sums import mean_iou, sum_pixels


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return RPMM.build("resnet50-keras").eval()


@pytest.fixture(scope="module")
def pairs():
    """Queries, supports and masks of three pairs with two supports each."""
    rng = torch.Generator().manual_seed(1)
    query, supports = torch.randn(3, 3, 33, 33, generator=rng), torch.randn(3, 2, 3, 33, 33, generator=rng)
    masks = torch.zeros(3, 2, 33, 33, dtype=torch.uint8)
    for pair in range(3):
        masks[pair, :, 4 * pair : 4 * pair + 12, 8:24] = 1
    return query, supports, masks


def test_one_vector_is_the_direction_of_the_sum_and_two_find_two_directions():
    points = torch.tensor([[[3.0, 1.0, 0.0], [0.0, 2.0, 0.0]]], dtype=torch.float64)
    (alone,) = iterate_means(points, torch.ones(1, 2, 1, dtype=torch.float64))[-1]
    np.testing.assert_allclose(alone[:, 0], np.array([4, 2]) / np.sqrt(20), rtol=1e-5)
    apart = iterate_means(points, torch.eye(2, dtype=torch.float64)[None])[-1][0].T
    np.testing.assert_allclose(apart, [[1, 0], np.array([1, 2]) / np.sqrt(5)], rtol=1e-5, atol=1e-5)


def test_a_vector_to_which_no_point_belongs_ends_as_0():
    points = torch.tensor([[[5.0, 5.0], [0.0, 0.0]]])
    means = iterate_means(points, torch.tensor([[[1.0, -1.0], [0.0, 0.0]]]))[-1]
    assert means[0, :, 1].abs().max() < 1e-20
    np.testing.assert_allclose(means[0, :, 0], [1, 0], atol=1e-5)


def test_a_mixture_takes_ten_iterations_and_each_stage_sees_the_mask_before_it(network, pairs, monkeypatch):
    query, supports, masks = (one[:1] for one in pairs)
    histories = []

    def segment(x, history):
        histories.append(history)
        return RPMM.segment(network, x, history)

    monkeypatch.setattr(network, "segment", segment)
    with torch.no_grad():
        described = network.describe(network.encode(supports[0]), masks[0])
        shown = tuple(one[None] for one in described)
        assert len(network.iterate(shown, 3)) == 10
        stages = network.list_logits(network.encode(query), shown)
    assert histories[0].abs().max() == 0
    for history, logits in zip(histories[1:], stages[:2], strict=True):
        torch.testing.assert_close(history, logits.softmax(1))


def test_the_first_branch_sees_the_mean_of_the_map(network):
    maps = torch.randn(1, 256, 3, 4)
    with torch.no_grad():
        found = network.layer6(maps)[:, :256]
        expected = network.layer6.layer6_0(maps.mean((2, 3), keepdim=True))
    torch.testing.assert_close(found, expected.expand(-1, -1, 3, 4))


def test_shares_are_high_where_the_query_is_like_the_class(network):
    """An identical support and query: the mixture finds the mask again."""
    maps, mask = torch.zeros(1, 256, 5, 5), torch.zeros(1, 5, 5, dtype=torch.uint8)
    mask[:, 1:4, 2:4] = 1
    maps[:, 0], maps[:, 1] = 6 * mask, 6 * (1 - mask)
    described = tuple(one[:, None] for one in network.describe((maps,), mask))
    for count in network.mixtures:
        background, shown = network.fit(described, count)
        shares = network.locate(maps, background, shown)
        assert ((shares[:, 1] > 0.5) == (mask == 1)).all()
        torch.testing.assert_close(shares.sum(1), torch.ones(1, 5, 5))


@pytest.mark.parametrize("kind", [PMM, RPMM])
def test_a_tiled_vector_is_convolved_as_if_it_were_tiled(kind):
    torch.manual_seed(0)
    network = kind.build("resnet50-keras").eval()
    maps, vectors = torch.randn(2, 256, 4, 5), torch.randn(2, 256, 3)
    with torch.no_grad():
        found = network.compare(network.convolve(maps), vectors)
        tiled = [
            network.layer55(torch.cat([maps, vectors[:, :, k, None, None].expand(-1, -1, 4, 5)], 1)) for k in range(3)
        ]
    torch.testing.assert_close(found, sum(tiled), atol=1e-4, rtol=1e-4)


def test_pairs_do_not_mix_and_supports_have_no_order(network, pairs):
    """Encoded once, matched in another order and one by one: the same logits; so with permuted supports."""
    query, supports, masks = pairs
    with torch.no_grad():
        together = network(query, supports, masks)
        order = torch.tensor([2, 0, 1])
        torch.testing.assert_close(network(query[order], supports[order], masks[order]), together[order])
        torch.testing.assert_close(network(query, supports.flip(1), masks.flip(1)), together, atol=1e-4, rtol=1e-4)
        features, described = network.encode(query), network.describe(network.encode(supports[1]), masks[1])
        alone = network.match((features[0][1:2],), tuple(one[None] for one in described), (33, 33))
    torch.testing.assert_close(alone, together[1:2], atol=1e-5, rtol=1e-4)


def test_a_support_shown_twice_changes_nothing_unless_released(network, pairs):
    query, supports, masks = (one[:1] for one in pairs)
    with torch.no_grad():
        once = network(query, supports[:, :1], masks[:, :1])
        twice = network(query, supports[:, [0, 0]], masks[:, [0, 0]])
        torch.testing.assert_close(once, twice, atol=1e-4, rtol=1e-4)
        network.released = True
        try:
            summed = network(query, supports[:, [0, 0]], masks[:, [0, 0]])
        finally:
            network.released = False
    torch.testing.assert_close(summed.sum(1), torch.full((1, 33, 33), 0.6))


def test_equal_inputs_give_equal_answers_unless_the_start_is_drawn_anew(network, pairs):
    _, supports, masks = (one[:1] for one in pairs)
    features = network.describe(network.encode(supports[:, 0]), masks[:, 0])
    described = tuple(one[:, None] for one in features)
    released = RPMM.__new__(RPMM)
    nn.Module.__init__(released)
    with torch.no_grad():
        assert torch.equal(network.fit(described, 6)[1], network.fit(described, 6)[1])
        released.released, released.width, released.starts, released.steps = True, 256, {}, 10
        assert not torch.equal(released.fit(described, 6)[1], released.fit(described, 6)[1])
        released.starts = {6: torch.randn(1, 256, 6)}
        assert torch.equal(released.fit(described, 6)[1], released.fit(described, 6)[1])


def test_pmm_as_released_draws_its_start_once():
    torch.manual_seed(0)
    assert PMM.build("resnet50-keras", released=True).starts[3].shape == (1, 256, 3)
    assert PMM.build("resnet50-keras").starts == {}


def test_ignored_pixels_are_in_neither_mixture_unless_released(network):
    maps = torch.ones(1, 256, 3, 3)
    mask = torch.tensor([[[0, 1, 255]] * 3], dtype=torch.uint8)
    assert network.describe((maps,), mask)[1][0, :, 0].tolist() == [[1, 0, 0], [0, 1, 0]]
    network.released = True
    try:
        assert network.describe((maps,), mask)[1][0, :, 0].tolist() == [[1, 0, 1], [0, 1, 0]]
    finally:
        network.released = False


@pytest.mark.parametrize("released", [False, True])
def test_training_moves_the_head_and_the_statistics_of_the_backbone_only_if_released(pairs, released):
    torch.manual_seed(0)
    network = PMM.build("resnet50-keras", released=released).train()
    query, supports, masks = (one[:2] for one in pairs)
    labels = masks[:, 0].clone()
    labels[:, :2] = 255
    means = network.model_res.bn1.running_mean.clone()
    loss, logits = network.loss(query, labels, supports[:, :1], masks[:, :1])
    loss.backward()
    assert logits.shape == (2, 2, 33, 33)
    assert torch.equal(network.model_res.bn1.running_mean, means) != released
    truth = (labels == 1).long() if released else labels.long()
    torch.testing.assert_close(loss, nn.functional.cross_entropy(logits, truth, ignore_index=255))
    for name, parameter in network.named_parameters():
        frozen = ".bn" in name or ".downsample.1" in name
        assert (parameter.grad is None) == frozen, name
    assert network.layer55[0].weight.grad[:, 256:].norm() > 0, "the vectors' half"
    groups = network.list_groups()
    assert [factor for _, factor in groups] == [1, 2, 10, 20]
    trained = {id(one) for one in network.parameters() if one.requires_grad}
    assert sorted(id(one) for group, _ in groups for one in group) == sorted(trained)
    assert any(one is network.layer9.bias for one in groups[3][0])


def test_the_loss_adds_the_three_stages(network, pairs):
    query, supports, masks = pairs
    with torch.no_grad():
        loss, logits = network.loss(query, masks[:, 0], supports, masks)
        described = network.describe(network.encode(supports.flatten(0, 1)), masks.flatten(0, 1))
        stages = network.list_logits(network.encode(query), tuple(one.unflatten(0, (3, 2)) for one in described))
        larger = [nn.functional.interpolate(one, (33, 33), mode="bilinear") for one in stages]
        expected = sum(nn.functional.cross_entropy(one, masks[:, 0].long()) for one in larger)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(logits, larger[2])


def test_an_empty_mask_and_half_precision_give_finite_logits(network, pairs):
    query, supports, masks = (one[:1] for one in pairs)
    with torch.inference_mode():
        assert network(query, supports, torch.zeros_like(masks)).isfinite().all()
        with torch.autocast("cpu", torch.bfloat16):
            half = network(query, supports, masks)
    assert half.isfinite().all()


@pytest.mark.parametrize("kind", [PMM, RPMM])
def test_vgg16_is_that_of_the_released_code(kind):
    """Names and the order of the released module; an eighth of the size, without dilation, and no ReLU at its end."""
    network = kind.build("vgg16").eval()
    names = [name for name in network.state_dict() if name.startswith("model_")]
    assert names[:2] == ["model_backbone.features_1.0.weight", "model_backbone.features_1.0.bias"]
    assert names[-4:] == [
        "model_backbone.features_5.4.weight",
        "model_backbone.features_5.4.bias",
        "model_backbone.cls.0.weight",
        "model_backbone.cls.0.bias",
    ]
    assert network.layer5[0].weight.shape == (256, 512, 3, 3) and len(names) == 28
    x = torch.randn(1, 3, 33, 41)
    with torch.no_grad():
        (found,) = network.model_backbone(x)
        for stage, convolutions in enumerate((2, 2, 3, 3, 3), start=1):
            layers = network.get_submodule(f"model_backbone.features_{stage}")
            for number in range(convolutions):
                x = nn.functional.conv2d(x, layers[2 * number].weight, layers[2 * number].bias, padding=1).relu()
            x = nn.functional.max_pool2d(x, 3, 2 if stage < 4 else 1, 1)
        last = network.model_backbone.cls[0]
        torch.testing.assert_close(found, nn.functional.conv2d(x, last.weight, last.bias, padding=1))
        assert found.shape == (1, 512, 5, 6) and found.min() < 0
    groups = network.list_groups()
    assert any(one is network.model_backbone.cls[0].weight for one in groups[0][0])


def test_weights_of_vgg16_go_to_all_but_its_last_convolution():
    network, backbone = PMM.build("vgg16"), build_backbone("vgg16", classes=10)
    before = network.model_backbone.cls[0].weight.clone()
    network.load_backbone(backbone.state_dict())
    assert torch.equal(network.model_backbone.features_5[4].weight, backbone.features[28].weight)
    assert torch.equal(network.model_backbone.cls[0].weight, before)


def test_numbers_of_vectors_and_of_iterations_can_be_chosen(pairs):
    query, supports, masks = (one[:1] for one in pairs)
    torch.manual_seed(0)
    network = RPMM.build("resnet50-keras", mixtures="2 4", steps=3).eval()
    with torch.no_grad():
        described = tuple(one[None] for one in network.describe(network.encode(supports[0]), masks[0]))
        assert len(network.iterate(described, 4)) == 3
        assert len(network.list_logits(network.encode(query), described)) == 2
    with torch.device("meta"):
        assert PMM.build("resnet50-keras", mixtures=5).mixtures == (5,) and RPMM.mixtures == (1, 3, 6)
        with pytest.raises(OptionError, match="one stage"):
            PMM.build("resnet50-keras", mixtures=(3, 5))


class Once:
    """A method whose answers are kept, so that a golden needs one forward pass for all of its arrays."""

    def __init__(self, method):
        self.method, self.known = method, {}

    def __call__(self, given, *more):
        first = given[0] if isinstance(given, tuple) else given
        key = (first.data_ptr(), len(first))
        if key not in self.known:
            self.known[key] = self.method(given, *more)
        return self.known[key]


def compute_arrays(network, golden, case, dtype):
    """What the golden stores of a case, but for its inputs, in one pass over the images."""
    query, supports, masks, labels = read_inputs(golden, case, dtype)
    passed = {}
    parts = {name: network.get_submodule(name) for name in (network.part, "layer56", "layer7")}
    hooks = [
        part.register_forward_hook(lambda _m, _i, out, name=name: passed.setdefault(name, []).append(out))
        for name, part in parts.items()
    ]
    network.encode, network.list_logits = Once(network.encode), Once(network.list_logits)
    try:
        features = network.encode(query)
        described = network.describe(network.encode(supports.flatten(0, 1)), masks.flatten(0, 1))
        described = tuple(one.unflatten(0, masks.shape[:2]) for one in described)
        stages = network.list_logits(features, described)
        found = {
            "output": network.match(features, described, tuple(stages[0].shape[2:])),
            "loss": network.loss(query, labels, supports, masks)[0],
            "query.layer5": features[0],
            "support0.layer5": described[0][:, 0],
        }
        if f"{case}.pred_hw" in golden.arrays:
            size = tuple(golden.arrays[f"{case}.pred_hw"].tolist())
            at_size = network.match(features, described, size)
            found["softmax_fg_at_hw.stride4"] = at_size.softmax(1)[:, 1, ::4, ::4]
            # Where float32 and float64 may decide otherwise, the stored answer is right.
            likely, stored = at_size.softmax(1)[:, 1], torch.from_numpy(golden.arrays[f"{case}.pred_at_hw"])
            found["pred_at_hw"] = torch.where((likely - 0.5).abs() < 1e-5, stored, at_size.argmax(1))
        for number, stage in enumerate(passed[network.part][0]):
            found[f"query.layer{number}"] = stage
        for place, count in enumerate(network.mixtures):
            iterations = torch.stack(network.iterate(described, count))
            for half, name in zip(iterations.chunk(2, 1), ("bg", "fg"), strict=True):
                found[f"mu_{name}_k{count}"] = half[-1]
                found[f"mu_{name}_k{count}_per_iteration"] = half
            found[f"prob_map_k{count}"] = network.locate(features[0], *network.fit(described, count))
            found[f"layer56_k{count}"], found[f"layer7_k{count}"] = passed["layer56"][place], passed["layer7"][place]
            found[f"logits_stage{place}"] = stages[place]
    finally:
        del network.encode, network.list_logits
        for hook in hooks:
            hook.remove()
    return found


@pytest.fixture(scope="module", params=[*list_goldens("rpmm"), *list_goldens("pmm")])
def filled(request):
    golden = read_golden("one_shot", request.param)
    kind = RPMM if golden.name.startswith("rpmm") else PMM
    given = {int(name.partition("_k")[2]): name for name in golden.arrays if name.startswith("mu_init_raw_k")}
    starts = {count: torch.from_numpy(golden.arrays[name]).double() for count, name in sorted(given.items())}
    options = {"starts": starts, "mixtures": tuple(starts)}
    return golden, fill_network(kind.build(find_backbone(golden), released=True, **options), golden).eval()


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
            if name != "pred_hw":
                check_array(golden, key, found[name], axis=2 if "iteration" in name else 1)


def test_miou_equals_that_of_the_released_evaluation():
    """Pixels marked 255 count as background: the reading `void=background` of TOSS."""
    arrays = np.load(goldens_folder("one_shot") / "metrics.npz")
    predicted, label = arrays["pred"] == 1, arrays["label"]
    rows = [
        {
            "query": str(place),
            "fold": 0,
            "class": str(index),
            "intersection": int((mask & (truth == 1)).sum()),
            "predicted": int(mask.sum()),
            "truth": int((truth == 1).sum()),
            "predicted_void": int((mask & (truth == 255)).sum()),
            "void": int((truth == 255).sum()),
            "pixels": mask.size,
        }
        for place, (mask, truth, index) in enumerate(zip(predicted, label, find_classes(arrays), strict=True))
    ]
    sums = sum_pixels(pl.DataFrame(rows), ("fold", "class"), void_ignored=False)
    totals = sums.sums.sum(0).reshape(1, len(sums), -1)
    miou = mean_iou(sums, totals, np.ones(len(sums), bool))
    assert abs(float(miou[0]) - float(arrays["pmm_miou"])) < 1e-12
