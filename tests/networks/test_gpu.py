"""Layers and calls for GPUs: the same results as the plain network's."""

import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import nn  # noqa: E402

from hardlook.networks.gpu import CudaGraphs, build_upscaling, replace_transposed_convolutions  # noqa: E402
from hardlook.networks.sam import build_mask_decoder  # noqa: E402

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 4), st.tuples(*[st.integers(1, 3)] * 2), st.booleans())
def test_upscaling_is_the_transposed_convolution(count, channels, filters, kernel, bias):
    torch.manual_seed(0)
    plain = nn.ConvTranspose2d(channels, filters, kernel, kernel, bias=bias).double()
    image = torch.randn(count, channels, 3, 4, dtype=torch.float64)
    with torch.no_grad():
        assert torch.allclose(build_upscaling(plain)(image), plain(image), rtol=0, atol=1e-12)


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
