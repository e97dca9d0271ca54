"""Tiny RITM and SimpleClick networks in which every parameter and running statistic counts."""

import torch
from torch import nn

from hardlook.networks.interactive.click_maps import pack_clicks
from hardlook.networks.interactive.ritm import RITM
from hardlook.networks.interactive.simpleclick import SimpleClick


def draw(network):
    """All parameters random; running statistics of random pictures, so that no map vanishes or grows."""
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, nn.BatchNorm2d | nn.GroupNorm | nn.LayerNorm):
                layer.weight.uniform_(0.5, 1.5)
                layer.bias.normal_(0, 0.3)
            if isinstance(layer, nn.BatchNorm2d):
                layer.momentum = 1
    return network


def make_ritm(width=3, ocr_width=3, *, small=True, **options):
    """RITM in evaluation mode, whose logits depend on the clicks."""
    network = draw(RITM(width, ocr_width, small=small, **options))
    with torch.no_grad():
        network.maps_transform[3].scale.fill_(-2.0)
        inputs = torch.rand(4, 4 if network.with_prev_mask else 3, 48, 64)
        network.train()(inputs, pack_clicks([[(10, 12, True), (30, 40, False)]] * 4))
        network.feature_extractor.cls_head.weight *= 5
    return network.eval()


def make_simpleclick(*, patch=4, width=8, depth=8, grid=6, window=3, **options):
    """SimpleClick in evaluation mode, of windows of so many tokens."""
    network = SimpleClick(patch, width, depth, 2, (4, 6, 8, 10), 12, side=patch * grid, **options)
    network.backbone.window = window
    with torch.no_grad():
        network.head.conv_seg.weight *= 5
        network.backbone.pos_embed.normal_()
    return draw(network).eval()
