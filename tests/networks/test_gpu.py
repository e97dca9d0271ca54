"""Layers and calls for GPUs: the same results as the plain network's."""

import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import nn  # noqa: E402

from hardlook.networks.gpu import (  # noqa: E402
    CudaGraphs,
    build_channel_norm,
    build_upscaling,
    copy_without_weights,
    is_observed,
    replace_channel_norms,
    replace_transposed_convolutions,
)
from hardlook.networks.sam import build_mask_decoder  # noqa: E402
from hardlook.rclicks.cost import count_flops  # noqa: E402

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 4), st.tuples(*[st.integers(1, 3)] * 2), st.booleans())
def test_upscaling_is_the_transposed_convolution(count, channels, filters, kernel, bias):
    torch.manual_seed(0)
    plain = nn.ConvTranspose2d(channels, filters, kernel, kernel, bias=bias).double()
    image = torch.randn(count, channels, 3, 4, dtype=torch.float64)
    with torch.no_grad():
        upscaled = build_upscaling(plain)(image)
        assert torch.allclose(upscaled, plain(image), rtol=0, atol=1e-12)
    assert upscaled.permute(0, 2, 3, 1).is_contiguous()


def test_only_layers_that_allow_it_are_replaced():
    layers = [
        nn.ConvTranspose2d(4, 4, 2, 2),
        nn.ConvTranspose2d(4, 4, 4, 2, padding=1),
        nn.ConvTranspose2d(4, 4, 2, 2, groups=2),
        nn.ConvTranspose2d(4, 4, 2, 2, dilation=2),
        nn.ConvTranspose2d(4, 4, 3, 2),
        nn.ConvTranspose2d(4, 4, 2, 2, output_padding=1),
    ]
    network = nn.ModuleDict({"inner": nn.Sequential(*layers)})
    assert replace_transposed_convolutions(network) == 1
    assert [isinstance(one, nn.ConvTranspose2d) for one in network["inner"]] == [False, *[True] * 5]


def test_sam_s_decoder_gives_the_same_masks(one_thread):
    torch.manual_seed(1)
    decoder = build_mask_decoder().eval()
    tokens, cells, grid = torch.randn(2, 3, 256), torch.randn(2, 4096, 256), torch.randn(4096, 256)
    with torch.no_grad():
        logits, ious = decoder(tokens, cells, grid)
        assert replace_transposed_convolutions(decoder) == 2
        replaced, same = decoder(tokens, cells, grid)
    assert torch.equal(ious, same)
    assert (replaced - logits).abs().max() < 1e-5 * logits.abs().max()


class ChannelsFirst(nn.LayerNorm):
    """As transformers' SamLayerNorm."""

    def __init__(self, channels, **options):
        super().__init__(channels, **options)
        self.data_format = "channels_first"

    def forward(self, features):
        return super().forward(features.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def make_norm(channels):
    torch.manual_seed(3)
    norm = ChannelsFirst(channels, eps=1e-3)
    nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    return norm


@pytest.mark.parametrize("channels", [1, 4, 64])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_norm_over_channels_is_torch_s(channels, layout):
    norm = make_norm(channels)
    image = (5 + torch.randn(2, channels, 6, 7) * torch.rand(2, 1, 6, 7)).to(memory_format=layout)
    exact = make_norm(channels).double()(image.double())
    with torch.no_grad():
        expected, found = norm(image), build_channel_norm(norm)(image)
    assert found.is_contiguous(memory_format=layout)
    errors = [(one - exact).abs().max() for one in (found, expected)]
    assert errors[0] <= 2 * errors[1] + 1e-6


def test_a_norm_over_channels_of_another_type_is_the_plain_one():
    norm, image = make_norm(4), torch.randn(2, 4, 6, 7)
    other = build_channel_norm(norm)
    assert other.weight is norm.weight
    with torch.no_grad():
        norm.bfloat16()
        assert torch.equal(other(image.bfloat16()), norm(image.bfloat16()))
        norm.double()
        assert torch.equal(other(image.double()), norm(image.double()))


def test_only_norms_over_few_channels_are_replaced_and_only_once():
    network = nn.Sequential(ChannelsFirst(64), nn.Sequential(ChannelsFirst(256), ChannelsFirst(4)), nn.LayerNorm(64))
    names = list(network.state_dict())
    assert replace_channel_norms(network) == 2 and replace_channel_norms(network) == 0
    kinds = [type(one).__name__ for one in (network[0], *network[1], network[2])]
    assert kinds == ["ChannelNorm", "ChannelsFirst", "ChannelNorm", "LayerNorm"]
    assert list(network.state_dict()) == names


def test_a_copy_without_weights_follows_the_given_network():
    network = nn.Sequential(nn.Linear(2, 2), nn.ModuleDict({"a": nn.Dropout(), "b": nn.BatchNorm1d(2)}))
    other, seen = copy_without_weights(network), []
    assert other.eval().training is other[1]["a"].training is False
    assert network.training is network[1]["a"].training is True
    other[1]["a"] = nn.Identity()
    assert isinstance(network[1]["a"], nn.Dropout)
    network[0].register_forward_hook(lambda *_: seen.append(1))
    network[0].weight = nn.Parameter(torch.ones(2, 2))
    network.double()
    assert other[0](torch.ones(1, 2, dtype=torch.float64)).dtype == torch.float64
    assert other[0].weight is network[0].weight and seen == [1]
    assert other[1]["b"].running_mean is network[1]["b"].running_mean


def test_a_counter_of_flops_sees_what_a_graph_would_hide():
    layer, seen = nn.Linear(8, 4), []
    graphs = CudaGraphs(lambda key, x: (seen.append((key, is_observed())), layer(x))[1:], warm_ups=1)
    rows = torch.randn(3, 8)
    assert not is_observed()
    with torch.inference_mode():
        assert [count_flops(lambda: graphs("a", rows)) for _ in range(3)] == [2 * 3 * 8 * 4] * 3
        assert torch.equal(graphs("a", rows)[0], layer(rows))  # the first call that counts, not the one to record
    assert seen == [("a", True)] * 3 + [("a", False)]


@NEEDS_GPU
def test_graphs_give_the_same_bits_for_every_shape():
    torch.manual_seed(2)
    layer = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 4)).cuda().eval()
    graphs = CudaGraphs(lambda key, x, y: (layer(x) + (key if y is None else y),), warm_ups=1, most=2)
    with torch.inference_mode():
        for _ in range(3):
            for rows in (1, 5, 9):
                x, y = torch.randn(rows, 8, device="cuda"), torch.randn(rows, 4, device="cuda")
                assert torch.equal(graphs(1, x, y)[0], layer(x) + y)
                assert torch.equal(graphs(2, x, None)[0], layer(x) + 2)
