"""Steps of a mask decoder: torch's ways and the kernels against torch in float64."""

import math

import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

import triton_loops  # noqa: E402, F401
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from triton_tests import DEVICE, NEEDS_TRITON  # noqa: E402

from hardlook.networks.kernels import fused_layers  # noqa: E402
from hardlook.networks.kernels.fused_layers import Kernels, attend, draw_masks, find_kernels, normalize  # noqa: E402

NEEDS_GPU = pytest.mark.skipif(DEVICE.type != "cuda", reason="no GPU here")
INFINITY, NAN = math.inf, math.nan
WAYS = [
    pytest.param(lambda: fused_layers, id="torch"),
    pytest.param(Kernels, id="kernels", marks=NEEDS_TRITON),
]


def draw(*shape):
    return torch.randn(*shape).to(DEVICE)


def attend_exactly(queries, keys, values, heads):
    """Head by head, as the definition says."""
    queries, keys, values = (one.double().chunk(heads, -1) for one in (queries, keys, values))
    parts = zip(queries, keys, values, strict=True)
    return torch.cat([((q @ k.transpose(1, 2)) / q.shape[-1] ** 0.5).softmax(-1) @ v for q, k, v in parts], -1)


def is_near(found, exact, size=1.0):
    assert found.dtype == torch.float32 and found.shape == exact.shape and found.is_contiguous()
    assert torch.equal(found.isnan(), exact.isnan())
    return bool(((found.double() - exact).nan_to_num().abs() <= 2e-6 * size).all())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("prompts", "asking", "asked", "heads", "channels"),
    [
        (2, 70, 7, 2, 16),
        (1, 64, 16, 1, 16),
        (3, 65, 33, 2, 32),
        (2, 1, 1, 1, 16),
        (2, 7, 70, 2, 16),
        (1, 16, 600, 1, 16),  # a second chunk of keys
        (2, 33, 1100, 1, 32),  # a third with a block that is not full, and blocks without keys
        (1, 3, 513, 3, 16),
    ],
)
def test_attention_is_torch_s(way, prompts, asking, asked, heads, channels):
    queries, keys, values = (draw(prompts, count, heads * channels) * 2 for count in (asking, asked, asked))
    found = way().attend(queries, keys, values, heads)
    assert is_near(found, attend_exactly(queries, keys, values, heads), 4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shared", [True, False], ids=["one map for all", "a map for each"])
def test_attention_to_parts_of_a_joint_product(way, shared):
    """Keys, values and queries side by side in memory, and tokens whose channels are not."""
    joint = draw(1, 70, 3 * 32).expand(3, -1, -1) if shared else draw(3, 70, 3 * 32)
    map_keys, map_values, map_queries = joint.chunk(3, -1)
    tokens, other = draw(3, 9, 32), draw(3, 32, 9).transpose(1, 2)
    found = way().attend(map_queries, tokens, other, 2)
    assert is_near(found, attend_exactly(map_queries, tokens, other, 2), 4)
    found = way().attend(other, map_keys, map_values, 2)
    assert is_near(found, attend_exactly(other, map_keys, map_values, 2), 4)


@NEEDS_TRITON
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of NaN
@pytest.mark.parametrize(("asking", "asked"), [(70, 9), (9, 600)])
def test_attention_with_nan_stays_in_its_row(asking, asked):
    queries, keys, values = draw(2, asking, 32), draw(2, asked, 32), draw(2, asked, 32)
    queries[0, 3, 1] = NAN
    keys[1, 5, 17] = NAN  # of the second head
    values[0, asked - 1, 2] = NAN
    found = Kernels().attend(queries, keys, values, 2)
    exact = attend_exactly(queries, keys, values, 2)
    assert is_near(found, exact, 4)
    assert exact[0, 3, :16].isnan().all() and not exact[0, 3, 16:].isnan().any()


@NEEDS_TRITON
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of infinity less infinity
@pytest.mark.parametrize("hidden", [slice(3, 4), slice(0, 64), slice(0, 512), slice(512, 600), slice(0, 599)])
def test_keys_of_scores_of_minus_infinity_have_no_share(hidden):
    """Whole blocks and chunks of them, too."""
    queries, keys, values = draw(1, 5, 16).abs(), draw(1, 600, 16), draw(1, 600, 16)
    keys[:, hidden, 0] = -INFINITY
    found = Kernels().attend(queries, keys, values, 1)
    assert is_near(found, attend_exactly(queries, keys, values, 1), 4) and not found.isnan().any()
    asking, few = draw(1, 70, 16).abs(), [0, 3, 599]
    found = Kernels().attend(asking, keys[:, few], values[:, few], 1)
    assert is_near(found, attend_exactly(asking, keys[:, few], values[:, few], 1), 4) and not found.isnan().any()


@NEEDS_TRITON
def test_large_scores_do_not_overflow():
    queries, keys, values = draw(1, 3, 16) * 40, draw(1, 600, 16) * 40, draw(1, 600, 16)
    exact = attend_exactly(queries, keys, values, 1)
    assert ((Kernels().attend(queries, keys, values, 1) - exact).abs() < 3e-3).all()
    exact = attend_exactly(keys, queries, values[:, :3], 1)
    assert ((Kernels().attend(keys, queries, values[:, :3], 1) - exact).abs() < 3e-3).all()


def make_norm(width, eps=1e-3):
    norm = nn.LayerNorm(width, eps=eps, device=DEVICE).requires_grad_(False)
    nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    return norm


def normalize_exactly(rows, norm, plus, gelu):
    rows = rows.double() if plus is None else rows.double() + plus.double()
    rows = functional.layer_norm(rows, rows.shape[-1:], norm.weight.double(), norm.bias.double(), norm.eps)
    return functional.gelu(rows) if gelu else rows


def norm_by(way, rows, norm, plus=None, gelu=False):
    if isinstance(way, Kernels):
        return way.normalize(rows, norm, plus, gelu)
    return way.normalize(rows, norm, plus=plus, gelu=gelu)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gelu", [False, True])
@pytest.mark.parametrize("given", ["nothing", "a map for each", "one map for all", "a turned map"])
@pytest.mark.parametrize(("prompts", "places", "width"), [(1, 1, 1), (3, 37, 20), (2, 5, 256), (1, 3, 1000)])
def test_norms_are_torch_s(way, gelu, given, prompts, places, width):
    rows = 3 + draw(prompts, places, width) * draw(prompts, places, 1)
    plus = {
        "nothing": None,
        "a map for each": draw(prompts, places, width),
        "one map for all": draw(places, width).expand(prompts, -1, -1),
        "a turned map": draw(places, prompts, width).transpose(0, 1),
    }[given]
    norm, before = make_norm(width), rows.clone()
    found = norm_by(way(), rows, norm, plus, gelu)
    assert is_near(found, normalize_exactly(rows, norm, plus, gelu), 10)
    assert torch.equal(rows, before)
    turned = rows.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(norm_by(way(), turned, norm, plus, gelu), found)


@NEEDS_TRITON
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of infinity less infinity
def test_norms_of_rows_with_nan_and_infinity():
    rows, plus, norm = draw(2, 9, 20), draw(9, 20).expand(2, -1, -1), make_norm(20)
    rows[0, 3, 5], rows[1, 0, 19], rows[1, 8] = NAN, INFINITY, 1.0
    for given in (None, plus):
        found = Kernels().normalize(rows, norm, given, True)
        assert is_near(found, normalize_exactly(rows, norm, given, True), 10)
        assert found.isnan().all(-1).sum() == found.isnan().any(-1).sum() == 2


def draw_exactly(blocks, filters, height, width):
    """Pixel by pixel: which number of which cell a pixel is."""
    count, masks, channels = filters.shape
    pixels = functional.gelu(blocks.double()).view(count, height, width, 2, 2, 2, 2, channels)
    logits = torch.empty(count, masks, 4 * height, 4 * width, dtype=torch.float64, device=blocks.device)
    for y in range(4 * height):
        for x in range(4 * width):
            (row, down), (column, across) = divmod(y, 4), divmod(x, 4)
            here = pixels[:, row, column, down // 2, across // 2, down % 2, across % 2]
            logits[:, :, y, x] = torch.einsum("pc,pkc->pk", here, filters.double())
    return logits


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("prompts", "masks", "channels", "height", "width"), [(1, 1, 16, 1, 1), (2, 3, 32, 3, 5), (3, 1, 16, 4, 2)]
)
def test_masks_are_drawn_where_two_upscalings_put_them(way, prompts, masks, channels, height, width):
    blocks, filters = draw(prompts, height * width, 16 * channels), draw(prompts, masks, channels)
    made = way()
    find = made.draw if isinstance(made, Kernels) else made.draw_masks
    exact = draw_exactly(blocks, filters, height, width)
    assert is_near(find(blocks, filters, height, width), exact, 10)
    turned = [one.transpose(1, 2).contiguous().transpose(1, 2) for one in (blocks, filters)]
    assert is_near(find(*turned, height, width), exact, 10)


def test_masks_of_two_transposed_convolutions():
    first, second = nn.ConvTranspose2d(6, 5, 2, 2).double(), nn.ConvTranspose2d(5, 4, 2, 2).double()
    cells, filters = torch.randn(2, 6, 3, 5).double(), torch.randn(2, 3, 4).double()
    upscaled = functional.gelu(second(first(cells)))
    expected = torch.einsum("pchw,pkc->pkhw", upscaled, filters)
    blocks = torch.einsum("pchw,cfab->phwabf", cells, first.weight) + first.bias
    blocks = torch.einsum("phwabf,fgcd->phwabcdg", blocks, second.weight) + second.bias
    assert torch.allclose(draw_masks(blocks.reshape(2, 15, 64), filters, 3, 5), expected)


class Recorder:
    """In place of the kernels: names of those that are called."""

    def __init__(self):
        self.called = []

    def __getattr__(self, name):
        return lambda *_: self.called.append(name)


def test_where_steps_are_left_to_torch(monkeypatch):
    from hardlook.rclicks.cost import count_flops

    kernels = Recorder()
    monkeypatch.setattr(fused_layers, "find_kernels", lambda where: kernels)
    norm = nn.LayerNorm(32)
    many, few, filters, blocks = (
        torch.rand(1, 1024, 32),
        torch.rand(1, 64, 32),
        torch.rand(1, 3, 16),
        torch.rand(1, 1, 256),
    )

    def is_left(function, *given, **more):
        before = len(kernels.called)
        function(*given, **more)
        return len(kernels.called) == before

    def call(kind):
        keys, tokens, shape, pixels = (one.to(kind) for one in (many, few, filters, blocks))
        layer = nn.LayerNorm(32, dtype=kind)
        left = [is_left(attend, tokens, keys, keys, 2), is_left(attend, keys, tokens, tokens, 1)]
        left += [is_left(normalize, tokens, layer), is_left(normalize, tokens, layer, plus=tokens, gelu=True)]
        return [*left, is_left(draw_masks, pixels, shape, 1, 1)]

    assert all(call(torch.float32))  # gradients
    with torch.inference_mode():
        assert not any(call(torch.float32))
        assert kernels.called == ["attend", "attend", "normalize", "normalize", "draw"]
        assert all(call(torch.float64)) and all(call(torch.bfloat16))
        count_flops(lambda: kernels.called.append(all(call(torch.float32))))
        assert kernels.called.pop() is True
        # Too many tokens, too few places, heads that are too small or large, an empty batch.
        assert is_left(attend, torch.rand(1, 65, 32), many, many, 2)
        assert is_left(attend, few, many[:, 1:], many[:, 1:], 2) and is_left(attend, few, many, many, 4)
        assert is_left(attend, torch.rand(1, 9, 64), *[torch.rand(1, 1024, 64)] * 2, 1)
        assert is_left(attend, few[:0], many[:0], many[:0], 2)
        # Maps of another shape, norms without weights, and wide ones.
        assert is_left(normalize, few, norm, plus=few[:, :, :1]) and is_left(normalize, few, norm, plus=few[0])
        assert is_left(normalize, few, norm, plus=torch.rand(1, 1, 32))
        assert is_left(normalize, few, nn.LayerNorm(32, elementwise_affine=False))
        assert is_left(normalize, few, nn.LayerNorm(32, bias=False))
        assert is_left(normalize, torch.rand(1, 2, 1025), nn.LayerNorm(1025)) and is_left(normalize, few[:0], norm)
        assert is_left(draw_masks, torch.rand(1, 1, 128), torch.rand(1, 3, 8), 1, 1)
        assert is_left(draw_masks, blocks[:0], filters[:0], 1, 1)
    assert find_kernels(torch.device("cpu")) is None


@NEEDS_GPU
def test_a_gpu_has_the_kernels():
    assert find_kernels(torch.empty(0, device=DEVICE).device) is not None


def test_the_widest_norm_is_a_kernel_s(monkeypatch):
    kernels = Recorder()
    monkeypatch.setattr(fused_layers, "find_kernels", lambda where: kernels)
    with torch.inference_mode():
        normalize(torch.rand(1, 2, fused_layers.WIDEST), nn.LayerNorm(fused_layers.WIDEST))
    assert kernels.called == ["normalize"]
