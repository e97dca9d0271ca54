"""SegFormer: where clicks enter, and attention written out. Equality with the released code: FocalClick."""

import torch

from hardlook.networks.interactive.segformer import MixTransformer, ReducedAttention, SegFormer


def test_coordinates_enter_after_the_first_stage():
    torch.manual_seed(0)
    network = MixTransformer((8, 16, 20, 32), (1, 1, 1, 1)).eval()
    picture = torch.rand(1, 3, 37, 50)
    with torch.no_grad():
        without, with_clicks = (
            network(picture, maps) for maps in (torch.zeros(1, 3, 37, 50), torch.rand(1, 3, 37, 50))
        )
    assert [tuple(stage.shape[1:]) for stage in without] == [(8, 10, 13), (16, 5, 7), (20, 3, 4), (32, 2, 2)]
    assert torch.equal(without[0], with_clicks[0])
    assert all(not torch.allclose(one, other) for one, other in zip(without[1:], with_clicks[1:], strict=True))


def test_attention_is_as_written_out():
    torch.manual_seed(0)
    layer, x = ReducedAttention(6, 2, 2).double().eval(), torch.randn(1, 12, 6).double()
    with torch.no_grad():
        found = layer(x, (2, 6))[0]
        # Columns 0-1, 2-3 and 4-5 of a grid of 2 rows and 6 columns.
        seen = torch.stack(
            [
                sum(
                    layer.sr.weight[:, :, row, column] @ x[0, 6 * row + 2 * cell + column]
                    for row in (0, 1)
                    for column in (0, 1)
                )
                + layer.sr.bias
                for cell in range(3)
            ]
        )
        key, value = layer.kv(layer.norm(seen)).chunk(2, 1)
        query, heads = layer.q(x[0]), []
        for head in (slice(0, 3), slice(3, 6)):
            weights = (query[:, head] @ key[:, head].T / 3**0.5).softmax(1)
            heads.append(weights @ value[:, head])
        expected = layer.proj(torch.cat(heads, 1))
    torch.testing.assert_close(found, expected)


def test_features_are_at_a_quarter():
    network = SegFormer((8, 16, 20, 32), (1, 1, 1, 1), 12).eval()
    with torch.no_grad():
        found = network.features(torch.rand(2, 3, 64, 32), torch.rand(2, 3, 64, 32))
    assert found["feature"].shape == (2, 12, 16, 8)
    assert found["logits_quarter"].shape == (2, 1, 16, 8)
