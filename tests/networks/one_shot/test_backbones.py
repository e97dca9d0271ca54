"""Backbones of one-shot networks: names of published checkpoints, sizes, variants."""

import pytest
import torch
from goldens import read_golden
from torch import nn

from hardlook.errors import OptionError
from hardlook.networks.one_shot.backbones import Bottleneck, KerasInput, build_backbone

DILATED = {"dilations": (1, 1, 2, 4)}


@pytest.mark.parametrize(
    ("golden", "prefix", "variant", "options"),
    [
        ("pfenet_r50", "module.", "deep-stem", DILATED),
        ("repri_r50", "module.", "deep-stem", DILATED),
        ("hsnet_r50", "module.backbone.", "plain", {"classes": 1000}),
        ("rpmm_r50", "model_res.", "caffe", {**DILATED, "stages": 3}),
        ("pmm_r50", "model_res.", "caffe", {**DILATED, "stages": 3}),
    ],
)
def test_names_and_order_are_those_of_the_checkpoints(golden, prefix, variant, options):
    with torch.device("meta"):
        own = [
            (name, tuple(value.shape))
            for name, value in build_backbone("resnet50", variant, **options).state_dict().items()
        ]
    listed = read_golden("one_shot", golden).parameters()
    found = [(name.removeprefix(prefix), shape) for name, shape in listed.items() if name.startswith(prefix)]
    assert found[: len(own)] == own


@pytest.mark.parametrize("variant", ["deep-stem", "plain", "caffe", "keras"])
def test_dilation_keeps_an_eighth_of_the_size_and_sums_end_in_the_stages(variant):
    torch.manual_seed(0)
    backbone = build_backbone("resnet50", variant, **DILATED).eval()
    images = torch.randn(1, 3, 41, 33)
    with torch.no_grad():
        stages, sums = backbone(images), backbone.list_sums(images)
    assert [tuple(stage.shape[2:]) for stage in stages[2:]] == [(6, 5)] * 3
    assert [len(stage) for stage in sums] == [3, 4, 6, 3]
    for stage, last in zip(stages[1:], sums, strict=True):
        torch.testing.assert_close(last[-1].relu(), stage)


def test_only_caffe_rounds_the_pooled_size_up():
    sizes = {}
    for variant in ("plain", "caffe", "keras"):
        stem = build_backbone("resnet50", variant, stages=1).list_stages()[0]
        sizes[variant] = stem(torch.zeros(1, 3, 96, 96)).shape[-1]
    assert sizes == {"plain": 24, "caffe": 25, "keras": 24}


@pytest.mark.parametrize(("early", "seen"), [(True, 0), (False, 1)])
def test_the_stride_is_on_the_first_or_on_the_middle_convolution(early, seen):
    """An early stride never sees odd positions; the 3 x 3 convolution with a stride does."""
    block = Bottleneck(4, 2, 2, early=early).eval()
    for part in block.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.ones_(part.weight)
    x = torch.zeros(1, 4, 8, 8)
    x[..., 1::2, 1::2] = 1
    assert int(block(x).detach().max() > 0) == seen


def test_keras_takes_the_images_that_the_others_take():
    """White and black in RGB, normalised, become BGR from 0 to 255 less Caffe's means."""
    mean, std = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1), torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    red = torch.tensor([1.0, 0.0, 0.0]).view(3, 1, 1)
    found = KerasInput()(((red - mean) / std)[None])[0, :, 0, 0]
    torch.testing.assert_close(found, torch.tensor([-103.939, -116.779, 255 - 123.68]), atol=1e-4, rtol=0)
    assert not KerasInput().state_dict()


def test_resnet101_has_23_blocks_in_its_third_stage():
    with torch.device("meta"):
        backbone = build_backbone("resnet101", classes=1000)
    assert backbone.blocks == (3, 4, 23, 3)
    assert sum(one.numel() for one in backbone.parameters()) == 44_549_160  # torchvision's


def test_vgg16_has_the_names_and_the_size_of_torchvision():
    with torch.device("meta"):
        plain, normalised = build_backbone("vgg16", classes=1000), build_backbone("vgg16-bn", classes=1000)
    assert sum(one.numel() for one in plain.parameters()) == 138_357_544
    assert sum(one.numel() for one in normalised.parameters()) == 138_365_992
    assert {"features.28.weight", "classifier.6.bias"} <= plain.state_dict().keys()
    assert {"features.41.running_var", "features.40.bias"} <= normalised.state_dict().keys()


def test_vgg16_stages_are_parts_of_its_features():
    torch.manual_seed(0)
    backbone = build_backbone("vgg16-bn").eval()
    images = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        stages, convolutions = backbone(images), backbone.list_convolutions(images)
        whole = backbone.features(images)
    assert [tuple(stage.shape[1:]) for stage in stages] == [
        (64, 16, 16),
        (128, 8, 8),
        (256, 4, 4),
        (512, 2, 2),
        (512, 2, 2),
    ]
    assert [len(stage) for stage in convolutions] == [2, 2, 3, 3, 3, 1]
    torch.testing.assert_close(convolutions[-1][0], whole)
    torch.testing.assert_close(nn.functional.max_pool2d(stages[-1], 2), whole)


def test_vgg16_rounds_up_where_resnets_have_the_deep_stem():
    with torch.device("meta"):
        sizes = {
            variant: [stage.shape[-1] for stage in build_backbone("vgg16-bn", variant)(torch.zeros(1, 3, 73, 73))]
            for variant in ("plain", "deep-stem")
        }
    assert sizes == {"plain": [36, 18, 9, 4, 4], "deep-stem": [37, 19, 10, 5, 5]}


def test_an_unknown_name_is_answered_with_those_known():
    with pytest.raises(OptionError, match="resnet50-keras"):
        build_backbone("resnet34")
