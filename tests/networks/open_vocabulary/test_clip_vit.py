"""CLIP's vision transformer: laws; its numbers are checked with the networks that contain it."""

import numpy as np
import pytest
import torch
from torch import nn

from hardlook.networks.open_vocabulary.clip_vit import (
    Attention,
    Block,
    CLIPViT,
    ViTSize,
    normalise,
    pad_to_multiple,
    resize_positions,
    split_projections,
)

SIZE = ViTSize(8, 128, 3, 4, 32)


@pytest.fixture(scope="module")
def tower():
    torch.manual_seed(0)
    return CLIPViT(SIZE).eval()


@pytest.mark.parametrize("apart", [False, True])
def test_attention_is_that_of_torch(apart):
    torch.manual_seed(0)
    own, reference = Attention(128, apart=apart), nn.MultiheadAttention(128, 2, batch_first=True)
    nn.init.normal_(reference.in_proj_bias)
    state = reference.state_dict()
    own.load_state_dict(split_projections(state) if apart else state)
    x, added = torch.randn(2, 5, 128), torch.randn(2, 2, 5, 5)
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
    for mine, theirs in ((None, None), (hidden, hidden), (added, added.flatten(0, 1))):
        torch.testing.assert_close(own(x, mine), reference(x, x, x, attn_mask=theirs, need_weights=False)[0])


def test_a_value_is_what_a_token_that_sees_only_itself_gets():
    torch.manual_seed(0)
    attention, x = Attention(128), torch.randn(2, 5, 128)
    alone = ~torch.eye(5, dtype=torch.bool)
    torch.testing.assert_close(attention.project_values(x), attention(x, alone))


def test_the_dense_block_is_the_block_for_a_class_token_that_sees_only_itself():
    torch.manual_seed(0)
    block, x = Block(128), torch.randn(2, 5, 128)
    alone = ~torch.eye(5, dtype=torch.bool)
    dense = block.forward_dense(x)
    torch.testing.assert_close(dense[:, 0], block(x, alone)[:, 0])
    moved = x.clone()
    moved[:, 3] += torch.randn(128)
    changed = (block.forward_dense(moved) - dense).abs().amax((0, 2)) > 1e-6
    assert changed.tolist() == [False, False, False, True, False], "a patch depends on itself and the class token"
    moved = x.clone()
    moved[:, 0] += torch.randn(128)
    assert ((block.forward_dense(moved) - dense).abs().amax((0, 2)) > 1e-3).all()


def test_the_tower_takes_images_of_any_size_and_dense_vectors_have_a_place(tower):
    images = torch.randn(2, 3, 40, 24)
    with torch.no_grad():
        assert tower(images).shape == (2, 32)
        torch.testing.assert_close(tower(images[1:]), tower(images)[1:])
        dense, outputs, grid = tower.forward_dense(images)
        x, _ = tower.embed(images)
        torch.testing.assert_close(outputs[0], tower.transformer.resblocks[0](x))
    assert dense.shape == (2, 16, 32) and grid == (5, 3) and len(outputs) == 2


def test_patches_can_be_changed_before_positions_are_added(tower):
    images, seen = torch.randn(1, 3, 32, 32), []

    def change(patches):
        seen.append(patches)
        return torch.zeros_like(patches)

    x, _ = tower.embed(images, change)
    torch.testing.assert_close(seen[0], tower.conv1(images).flatten(2).transpose(1, 2))
    torch.testing.assert_close(x[0, 1:], tower.ln_pre(tower.positional_embedding[1:]))
    torch.testing.assert_close(x[0, 0], tower.ln_pre(tower.class_embedding + tower.positional_embedding[0]))


def test_positions_keep_their_place_when_resized():
    rows = torch.arange(16.0).div(4, rounding_mode="floor")
    columns = torch.arange(16.0) % 4
    table = torch.stack((rows, columns), 1)
    assert resize_positions(table, (4, 4)) is table
    resized = resize_positions(table, (3, 8)).reshape(3, 8, 2)
    assert (resized[1:, :, 0] > resized[:-1, :, 0]).all() and (resized[:, 1:, 1] > resized[:, :-1, 1]).all()
    np.testing.assert_allclose(resized[..., 0].mean(), 1.5, atol=1e-6)


def test_order_of_parameters_is_that_of_either_library():
    def first(**options):
        names = Block(64, **options).state_dict()
        return list(dict.fromkeys(name.partition(".")[0] for name in names))

    assert first() == ["ln_1", "attn", "ln_2", "mlp"] and first(openai=True) == ["attn", "ln_1", "mlp", "ln_2"]


def test_images_are_normalised_then_padded_with_zeros():
    images = (
        torch.tensor([122.7709383, 116.7460125, 104.09373615])[None, :, None, None].expand(1, 3, 33, 64) + 68.5005327
    )
    padded = pad_to_multiple(normalise(images))
    assert padded.shape == (1, 3, 64, 64) and padded[..., 33:, :].eq(0).all()
    np.testing.assert_allclose(padded[0, 0, :33], 1, rtol=1e-6)
