"""SAM's decoder for many prompts against transformers' own SamModel with random weights, in float64."""

import copy

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tiny_sam  # noqa: E402
import triton_loops  # noqa: E402, F401
from torch import nn  # noqa: E402
from triton_tests import DEVICE, NEEDS_TRITON  # noqa: E402

from hardlook.models.interactive.sam_decoder import SamMaskDecoder, is_released_structure  # noqa: E402
from hardlook.models.interactive.sam_session import decode_prompts  # noqa: E402
from hardlook.networks.kernels import fused_layers, split_products  # noqa: E402

CELLS = tiny_sam.SIDE // 16


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_prompts(count, points, box, previous, height=CELLS, width=CELLS):
    """Points, labels of all kinds, boxes and logits of earlier masks, as `EncodedImage.decode` takes them."""
    places = (draw(count, points, 2, seed=1).sigmoid() * tiny_sam.SIDE).float()
    labels = torch.tensor([1, 0, -1, -10])[torch.arange(count * points).view(count, points) % 4]
    boxes = (draw(count, 4, seed=2).sigmoid() * tiny_sam.SIDE).float() if box else None
    return places, labels, boxes, draw(count, 1, 4 * height, 4 * width, seed=3) * 5 if previous else None


def double(given):
    return [None if one is None else one.double() if one.is_floating_point() else one for one in given]


def predict_exactly(network, embeddings, points, labels, boxes, previous, several):
    """The whole SamModel in float64: every prompt with an image of its own."""
    count = len(points)
    with torch.inference_mode():
        answer = copy.deepcopy(network).double()(
            image_embeddings=embeddings.double().expand(count, -1, -1, -1),
            input_points=points[:, None].double() if points.shape[1] else None,
            input_labels=labels[:, None] if points.shape[1] else None,
            input_boxes=None if boxes is None else boxes[:, None].double(),
            input_masks=None if previous is None else previous.double(),
            multimask_output=several,
        )
    return answer.pred_masks[:, 0], answer.iou_scores[:, 0]


def build_decoder(network, *, split=False):
    with torch.inference_mode():
        return SamMaskDecoder(network, network.get_image_wide_positional_embeddings(), split_products=split)


def check(found, expected):
    """Both in float64: in float32 the answers of random weights have lost half of their digits."""
    for one, exact in zip(found, expected, strict=True):
        assert one.dtype == torch.float64 and one.shape == exact.shape
        assert (one - exact).abs().max() < 1e-9 * exact.abs().max()


def check_rounded(found, plain, expected, most):
    """The error is at most so many times the plain network's in the same type, and this is small."""
    for one, other, exact in zip(found, plain, expected, strict=True):
        assert one.shape == exact.shape
        assert (one - exact).norm() < most * (other - exact).norm() < 0.2 * exact.norm()


@pytest.fixture(scope="module")
def network():
    return tiny_sam.network("sam").double()


@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("previous", [True, False], ids=["previous", "no previous"])
@pytest.mark.parametrize(("count", "points", "box"), [(1, 1, False), (3, 4, False), (3, 0, True), (2, 3, True)])
def test_answers_are_those_of_the_whole_network(network, several, previous, count, points, box):
    decoder, embeddings = build_decoder(network), draw(1, tiny_sam.CHANNELS, CELLS, CELLS).double() * 2
    given = double(make_prompts(count, points, box, previous))
    with torch.inference_mode():
        found = decoder.decode(embeddings, *given, several)
    assert found[0].shape == (count, 3 if several else 1, 4 * CELLS, 4 * CELLS)
    check(found, predict_exactly(network, embeddings, *given, several))


def test_maps_need_not_be_square(network):
    """Rows and columns are not exchanged."""
    embeddings, positions = (draw(1, tiny_sam.CHANNELS, 3, 5, seed=seed).double() for seed in (8, 9))
    decoder, given = SamMaskDecoder(network, positions), double(make_prompts(2, 2, False, True, 3, 5))
    with torch.inference_mode():
        check(decoder.decode(embeddings, *given, True), decode_prompts(network, embeddings, positions, *given, True))


def test_without_clicks_and_boxes_the_network_s_own_tokens_remain(network):
    embeddings, nothing = draw(1, tiny_sam.CHANNELS, CELLS, CELLS).double(), make_prompts(1, 0, False, False)
    with torch.inference_mode():
        positions = network.get_image_wide_positional_embeddings()
        check(
            build_decoder(network).decode(embeddings, *nothing, True),
            decode_prompts(network, embeddings, positions, *nothing, True),
        )


def test_positions_count(network):
    embeddings, given = draw(1, tiny_sam.CHANNELS, CELLS, CELLS).double(), double(make_prompts(2, 2, False, False))
    others = draw(1, tiny_sam.CHANNELS, CELLS, CELLS, seed=4).double()
    with torch.inference_mode():
        found = build_decoder(network).decode(embeddings, *given, True)[0]
        other = SamMaskDecoder(network, others).decode(embeddings, *given, True)
        assert not torch.allclose(other[0], found, atol=1e-2)
        check(other, decode_prompts(network, embeddings, others, *given, True))


@pytest.mark.parametrize("previous", [True, False], ids=["previous", "no previous"])
def test_float32_rounds_as_the_network_does(network, previous):
    made = copy.deepcopy(network).float()
    embeddings, given = draw(1, tiny_sam.CHANNELS, CELLS, CELLS), make_prompts(2, 1, False, previous)
    with torch.inference_mode():
        found = build_decoder(made).decode(embeddings, *given, True)
        plain = decode_prompts(made, embeddings, made.get_image_wide_positional_embeddings(), *given, True)
    check_rounded(found, plain, predict_exactly(network, embeddings, *given, True), 4)


def test_autocast_rounds_as_the_network_does(network):
    """Positions are prepared in float32, whatever their type."""
    network = copy.deepcopy(network).float()
    embeddings, given = draw(1, tiny_sam.CHANNELS, CELLS, CELLS), make_prompts(2, 2, False, True)
    exact = predict_exactly(network, embeddings, *given, True)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        positions = network.get_image_wide_positional_embeddings()
        assert positions.dtype == torch.bfloat16
        decoder = SamMaskDecoder(network, positions)
        assert all(one.joint.table.dtype == torch.float32 for one in decoder._layers)
        found = decoder.decode(embeddings, *given, True)
        plain = decode_prompts(network, embeddings, positions, *given, True)
    check_rounded(found, plain, exact, 2)


@pytest.fixture(scope="module")
def released_size():
    """The released decoder's numbers of channels, whose steps the kernels compute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny_sam, "CHANNELS", 256)
        return tiny_sam.network("sam").to(DEVICE)


class Counted:
    """Kernels, and how often each is called."""

    def __init__(self, kernels):
        self.kernels, self.calls = kernels, {}

    def __getattr__(self, name):
        self.calls[name] = self.calls.get(name, 0) + 1
        return getattr(self.kernels, name)


@NEEDS_TRITON
@pytest.mark.parametrize("previous", [True, False], ids=["previous", "no previous"])
def test_the_kernels_give_the_same_answers(released_size, monkeypatch, previous):
    """All of them, on a small map."""
    steps, products = Counted(fused_layers.Kernels()), Counted(split_products.TritonKernels())
    monkeypatch.setattr(fused_layers, "find_kernels", lambda where: steps)
    monkeypatch.setattr(split_products, "find_kernels", lambda where: products)
    monkeypatch.setattr(fused_layers, "MANY", CELLS**2)
    monkeypatch.setattr(fused_layers, "CHUNK", 64)  # the interpreter is slow
    monkeypatch.setattr(split_products, "LEAST_ROWS", CELLS**2)
    embeddings, given = draw(1, 256, CELLS, CELLS).to(DEVICE), make_prompts(2, 2, False, previous)
    given = [None if one is None else one.to(DEVICE) for one in given]
    decoder = build_decoder(released_size, split=True)
    with torch.inference_mode():
        found = decoder.decode(embeddings, *given, True)
        positions = released_size.get_image_wide_positional_embeddings()
        plain = decode_prompts(released_size, embeddings, positions, *given, True)
    check_rounded(found, plain, predict_exactly(released_size, embeddings, *given, True), 4)
    # Two layers with two attentions to and from the map, and the last; two norms and that of the upscaling.
    assert steps.calls == {"attend": 5, "normalize": 3, "draw": 1}
    assert products.calls == {"split": 7, "multiply": 7}


def test_a_released_structure_is_known(network, monkeypatch):
    assert is_released_structure(network)
    eager = tiny_sam.network("sam")
    eager.config.mask_decoder_config._attn_implementation = "eager"
    eager.mask_decoder.training = not eager.mask_decoder.training
    with monkeypatch.context() as patch:
        patch.setattr(type(network), "__init__", lambda *_: pytest.fail("the encoder is not needed"))
        assert is_released_structure(eager)
    assert not is_released_structure(tiny_sam.network("sam_hq"))


def replace_projection(made):
    made.mask_decoder.transformer.layers[0].cross_attn_image_to_token.out_proj = nn.Sequential(nn.Linear(16, 32))


def replace_upscaling(made):
    made.mask_decoder.upscale_conv1 = nn.Sequential(made.mask_decoder.upscale_conv1)


def subclass_norm(made):
    made.prompt_encoder.mask_embed.layer_norm1.__class__ = type(
        "Other", (type(made.prompt_encoder.mask_embed.layer_norm1),), {}
    )


def widen_projection(made):
    made.mask_decoder.transformer.layers[1].cross_attn_token_to_image.k_proj = nn.Linear(32, 16, bias=False)


def hook_before(made):
    made.mask_decoder.transformer.layers[0].register_forward_pre_hook(lambda *_: None)


def hook_after(made):
    made.mask_decoder.transformer.layers[1].cross_attn_token_to_image.k_proj.register_forward_hook(lambda *_: None)


def put_forward(made):
    made.mask_decoder.transformer.forward = made.mask_decoder.transformer.forward


def scale_scores(made):
    made.mask_decoder.transformer.layers[1].cross_attn_token_to_image.scaling = 0.1


def exchange_heads(made):
    made.mask_decoder.transformer.final_attn_token_to_image.num_attention_heads = 2


def approximate_gelu(made):
    made.mask_decoder.activation = nn.GELU("tanh")


def change_stride(made):
    made.mask_decoder.upscale_conv2.stride = (1, 1)


def pad_embedding(made):
    made.prompt_encoder.mask_embed.conv3.padding = (1, 1)


def attend_otherwise(made):
    made.config.mask_decoder_config._attn_implementation = "of others"


def attend_otherwise_once(made):
    attention = made.mask_decoder.transformer.final_attn_token_to_image
    attention.config = copy.deepcopy(attention.config)
    attention.config._attn_implementation = "of others"


def subclass_whole(made):
    made.__class__ = type("SamModel", (type(made),), {})


def add_layer(made):
    made.mask_decoder.transformer.layers.append(made.mask_decoder.transformer.layers[0])


@pytest.mark.parametrize(
    "change",
    [
        replace_projection, replace_upscaling, subclass_norm, widen_projection, hook_before, hook_after, put_forward,
        scale_scores, exchange_heads, approximate_gelu, change_stride, pad_embedding, attend_otherwise,
        attend_otherwise_once, subclass_whole, add_layer,
    ],
)  # fmt: skip
def test_another_structure_is_noticed(change):
    made = tiny_sam.network("sam")
    change(made)
    assert not is_released_structure(made)


@pytest.mark.parametrize("split", [False, True])
def test_maps_have_as_many_cells_as_there_are_positions(network, monkeypatch, split):
    monkeypatch.setattr(split_products, "LEAST_ROWS", 1)
    monkeypatch.setattr(split_products, "find_kernels", lambda where: pytest.fail("the positions are of other cells"))
    decoder = build_decoder(copy.deepcopy(network).float(), split=split)
    given = make_prompts(1, 1, False, False)
    for height, width in ((2 * CELLS, CELLS), (CELLS + 1, CELLS)):
        with torch.inference_mode(), pytest.raises(RuntimeError, match="must match the size"):
            decoder.decode(draw(1, tiny_sam.CHANNELS, height, width), *given, True)


def test_changes_of_the_encoder_do_not_matter():
    made = tiny_sam.network("sam")
    made.vision_encoder.register_forward_hook(lambda *_: None)
    made.vision_encoder.neck = nn.Identity()
    assert is_released_structure(made)
