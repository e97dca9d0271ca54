"""PFENet: laws, training, and the released code."""

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

from hardlook.errors import ModelError
from hardlook.networks.one_shot import pfenet
from hardlook.networks.one_shot.backbones import build_backbone
from hardlook.networks.one_shot.pfenet import BINS, STAGES, PFENet, compare, compute_prior

SMALL = (6, 4, 3, 2)  # sides of the scales in tests of laws, for speed


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return PFENet.build("resnet50-keras", bins=SMALL).eval()


@pytest.fixture(scope="module")
def pairs():
    """Queries, supports and masks of three pairs with two supports each; 255 around the class."""
    rng = torch.Generator().manual_seed(1)
    query, supports = torch.randn(3, 3, 41, 33, generator=rng), torch.randn(3, 2, 3, 41, 33, generator=rng)
    masks = torch.zeros(3, 2, 41, 33, dtype=torch.uint8)
    for pair in range(3):
        masks[pair, :, 4 * pair + 1 : 4 * pair + 17, 8:24] = 255
        masks[pair, :, 4 * pair + 2 : 4 * pair + 16, 9:23] = 1
    return query, supports, masks


def test_the_prior_is_1_where_the_query_has_what_the_support_has_and_0_where_it_is_most_unlike():
    support = torch.zeros(1, 3, 1, 3)
    support[0, 0, 0, 1] = 2.0  # the class is direction 0; the masked positions are zero
    query = torch.tensor([[5.0, 0.0, 0.0], [0.0, 1.0, 0.0], [3.0, 4.0, 0.0], [-1.0, 0.0, 0.0]]).T.reshape(1, 3, 2, 2)
    np.testing.assert_allclose(compare(query, support)[0, 0], [[1, 0], [0.6, 0]], atol=1e-6)
    nothing = torch.zeros_like(support)
    assert compare(query, nothing).eq(0).all(), "an empty mask gives no prior"
    both = compute_prior(query, torch.stack((support, nothing), 1))
    np.testing.assert_allclose(both[0, 0], [[0.5, 0], [0.3, 0]], atol=1e-6)


def test_a_query_that_is_the_support_has_its_prior_inside_the_mask(network, pairs):
    query, _, masks = pairs
    masks = torch.zeros_like(masks[:, 0])
    masks[:, :, :17] = 1
    with torch.no_grad():
        features = network.encode(query)
        # The deep features of the query within the mask, rather than of the masked third stage.
        soft = functional.interpolate(masks[:, None].float(), features[2].shape[2:], mode="bilinear")
        prior = compute_prior(features[2], (features[2] * soft)[:, None])[:, 0]
    inside = soft[:, 0] == 1
    assert prior[inside].min() > 0.999 > prior[~inside].mean()


def test_pairs_do_not_mix_supports_have_no_order_and_encoding_once_is_enough(network, pairs):
    query, supports, masks = pairs
    with torch.no_grad():
        together = network(query, supports, masks)
        assert together.shape == (3, 2, 41, 33)
        order = torch.tensor([2, 0, 1])
        moved = network(query[order], supports[order].flip(1), masks[order].flip(1))
        features, shown = network.encode(query), [network.encode(supports[:, shot]) for shot in range(2)]
        described = [network.describe(one, masks[:, shot]) for shot, one in enumerate(shown)]
        stacked = tuple(torch.stack(parts, 1) for parts in zip(*described, strict=True))
        alone = network.match(*(tuple(one[1:2] for one in given) for given in (features, stacked)), (41, 33))
    torch.testing.assert_close(moved, together[order], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(alone, together[1:2], atol=1e-4, rtol=1e-4)


def test_ignored_pixels_and_what_lies_outside_of_the_mask_are_not_the_class(network, pairs):
    _, supports, masks = (one[:1] for one in pairs)
    with torch.no_grad():
        features = network.encode(supports[:, 0])
        given, without = (network.describe(features, one) for one in (masks[:, 0], (masks[:, 0] == 1).byte()))
        mean, deep = network.describe(features, torch.zeros_like(masks[:, 0]))
    for left, right in zip(given, without, strict=True):
        torch.testing.assert_close(left, right)
    assert mean.eq(0).all() and deep.eq(0).all(), "an empty mask"


def test_training_leaves_the_backbone_alone_unless_released(pairs):
    torch.manual_seed(0)
    query, supports, masks = (one[:2] for one in pairs)
    labels = masks[:, 0]
    for released in (False, True):
        network = PFENet.build("resnet50-keras", bins=SMALL, released=released).train()
        before = {name: value.clone() for name, value in network.state_dict().items()}
        loss, logits = network.loss(query, labels, supports[:, :1], masks[:, :1])
        loss.backward()
        assert loss.isfinite() and logits.shape == (2, 2, 41, 33)
        ((trained, factor),) = network.list_groups()
        assert factor == 1 and all(one.grad is not None for one in trained)
        assert {id(one) for one in trained} == {
            id(one) for name, one in network.named_parameters() if not name.startswith("layer")
        }
        changed = [name for name, value in network.state_dict().items() if not torch.equal(value, before[name])]
        assert bool(changed) == released and all("running" in name or "batches" in name for name in changed)


def test_the_loss_is_that_of_the_logits_and_the_mean_one_of_the_scales(network, pairs):
    query, supports, masks = (one[:1] for one in pairs)
    labels = masks[:, 0].long()
    with torch.no_grad():
        loss, logits = network.loss(query, labels, supports, masks)
        main, scales = network.enrich(network.encode(query), network.describe_shots(supports, masks))
    assert [tuple(one.shape[2:]) for one in scales] == [(side, side) for side in SMALL]
    losses = [
        functional.cross_entropy(
            functional.interpolate(one, (41, 33), mode="bilinear", align_corners=True), labels, ignore_index=255
        )
        for one in (main, *scales)
    ]
    torch.testing.assert_close(loss, losses[0] + sum(losses[1:]) / 4)
    torch.testing.assert_close(functional.cross_entropy(logits, labels, ignore_index=255), losses[0])


def test_weights_of_the_backbone_go_to_the_stages():
    torch.manual_seed(0)
    backbone = build_backbone("resnet50-keras", classes=10).eval()
    network = PFENet.build("resnet50-keras").eval()
    network.load_backbone(backbone.state_dict())
    images = torch.randn(1, 3, 33, 33)
    with torch.no_grad():
        torch.testing.assert_close(
            network.get_submodule("layer1")(network.get_submodule("layer0")(images)), backbone(images)[1]
        )
    state = backbone.state_dict()
    del state["layer2.0.conv1.weight"]
    with pytest.raises(ModelError, match="another backbone"):
        network.load_backbone(state)


@pytest.mark.parametrize("backbone", ["vgg16-bn", "resnet101"])
def test_other_backbones_fit(backbone, pairs):
    query, supports, masks = (one[:1] for one in pairs)
    network = PFENet.build(backbone, bins=SMALL).eval()
    with torch.no_grad():
        assert network(query, supports, masks).shape == (1, 2, 41, 33)
    if backbone == "vgg16-bn":  # the second and third stage of VGG16
        assert network.down_query[0].weight.shape == (256, 768, 1, 1)
        assert {"layer2.0.weight", "layer4.7.running_var", "layer3.6.bias"} <= network.state_dict().keys()


def test_vgg16_rounds_pooled_sizes_up_as_in_the_released_code():
    """41 pixels become 21, 11, 6 and 3; the second stage is brought to the third's size."""
    with torch.device("meta"):
        network = PFENet.build("vgg16-bn", bins=SMALL).eval()
        second, third, deep = network.encode(torch.zeros(1, 3, 41, 33))
    assert [tuple(one.shape[2:]) for one in (second, third, deep)] == [(6, 5), (3, 3), (3, 3)]


def test_scales_up_to_1_are_shares_of_the_height(network, pairs):
    query, supports, masks = (one[:1] for one in pairs)
    shares = PFENet.build("resnet50-keras", bins="1.0 0.5 0.25 0.125").eval()
    sides = PFENet.build("resnet50-keras", bins=(6, 3, 1.5, 1)).eval()
    sides.bins = (6, 3, 1.01, 1.01)
    for one in (shares, sides):
        one.load_state_dict(network.state_dict())
    with torch.no_grad():
        scales = shares.enrich(shares.encode(query), shares.describe_shots(supports, masks))[1]
        assert [tuple(one.shape[2:]) for one in scales] == [(6, 6), (3, 3), (1, 1), (1, 1)]
        torch.testing.assert_close(shares(query, supports, masks), sides(query, supports, masks))


def test_bfloat16_by_autocast(network, pairs):
    query, supports, masks = (one[:1] for one in pairs)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert network(query, supports, masks).isfinite().all()


def run(network, golden, case, dtype):
    """Outputs of the parts by the names of the arrays."""
    query, supports, masks, labels = read_inputs(golden, case, dtype)
    parts = {name: network.get_submodule(name) for name in ("res2", "cls", "down_query", "down_supp", *STAGES)}
    for number in range(len(BINS)):
        parts |= {f"merge{number}": network.init_merge[number], f"inner{number}": network.inner_cls[number]}
    seen, priors = {}, []
    hooks = [
        part.register_forward_hook(lambda _, __, output, name=name: seen.setdefault(name, []).append(output))
        for name, part in parts.items()
    ]
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(pfenet, "compare", lambda *given: priors.append(compare(*given)) or priors[-1])
        loss, logits = network.loss(query, labels, supports, masks)
    for hook in hooks:
        hook.remove()
    main = functional.cross_entropy(logits, labels.long(), ignore_index=255)
    found = {"logits": logits, "loss_main_aux": torch.stack([main, loss - main])}
    found |= {"prior_per_shot": torch.cat(priors, 1), "prior": torch.stack(priors).mean(0)}
    for name, outputs in seen.items():
        if name in STAGES:
            found[f"query.{name}"] = outputs[0]
        elif name.startswith("merge"):
            found[name] = outputs[0][..., ::7, ::7]
        else:
            found[name] = outputs[0]
        if name in (*STAGES, "down_supp"):
            for shot, one in enumerate(outputs[-1].view(*masks.shape[:2], *outputs[-1].shape[1:]).unbind(1)):
                found[f"down_supp{shot}" if name == "down_supp" else f"support{shot}.{name}"] = one
    return found


@pytest.mark.parametrize("name", list_goldens("pfenet"))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_the_released_code(name, dtype):
    golden = read_golden("one_shot", name)
    network = fill_network(PFENet(find_backbone(golden)), golden).eval().to(dtype)
    for case in list_cases(golden):
        found = run(network, golden, case, dtype)
        for key in list_keys(golden, case):
            name = key.removeprefix(f"{case}.")
            if name == "logits" and dtype == torch.float64:  # stored at every fourth row and column
                expected = golden.arrays[f"{key}.f64"]
                np.testing.assert_allclose(found[name][..., ::4, ::4], expected, atol=1e-9 * np.abs(expected).max())
            else:
                check_array(golden, key, found[name], tolerance=1e-3 if "prior" in name else 1e-4, exact=1e-9)
