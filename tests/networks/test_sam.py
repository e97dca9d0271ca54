"""SAM's prompt encoder and mask decoder against the ones of transformers with the same weights."""

from __future__ import annotations

import re

import pytest

from hardlook.models.weights.install import get_weights_status, locate_weights
from hardlook.networks.loading import load_state_dict
from hardlook.networks.sam import build_mask_decoder, build_prompt_encoder

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")

# Published name to the name in transformers, tried in this order.
NAMES = (
    (r"prompt_encoder\.pe_layer\.positional_encoding_gaussian_matrix", "shared_image_embedding.positional_embedding"),
    (r"prompt_encoder\.point_embeddings\.", "prompt_encoder.point_embed."),
    (r"mask_downscaling\.0\.", "mask_embed.conv1."),
    (r"mask_downscaling\.1\.", "mask_embed.layer_norm1."),
    (r"mask_downscaling\.3\.", "mask_embed.conv2."),
    (r"mask_downscaling\.4\.", "mask_embed.layer_norm2."),
    (r"mask_downscaling\.6\.", "mask_embed.conv3."),
    (r"\.norm(\d)\.", r".layer_norm\1."),
    (r"\.norm_final_attn\.", ".layer_norm_final_attn."),
    (r"output_upscaling\.0\.", "upscale_conv1."),
    (r"output_upscaling\.1\.", "upscale_layer_norm."),
    (r"output_upscaling\.3\.", "upscale_conv2."),
    (r"(mlps\.\d|iou_prediction_head)\.layers\.0\.", r"\1.proj_in."),
    (r"(mlps\.\d|iou_prediction_head)\.layers\.1\.", r"\1.layers.0."),
    (r"(mlps\.\d|iou_prediction_head)\.layers\.2\.", r"\1.proj_out."),
)


def renamed(key: str) -> str:
    for pattern, name in NAMES:
        key = re.sub(pattern, name, key)
    return key


def parts():
    return torch.nn.ModuleDict({"prompt_encoder": build_prompt_encoder(), "mask_decoder": build_mask_decoder()}).eval()


def random_state() -> dict:
    generator = torch.Generator().manual_seed(3)
    return {
        key: value.detach() + 0.05 * torch.randn(value.shape, generator=generator)
        for key, value in parts().state_dict().items()
    }


def real_state() -> dict:
    if get_weights_status("mobile-sam") != "installed":
        pytest.skip("mobile-sam is not installed; hardlook weights install mobile-sam")
    state = load_state_dict(locate_weights("mobile-sam")["mobile_sam.pt"]).state
    return {key: value for key, value in state.items() if not key.startswith("image_encoder.")}


@pytest.fixture(scope="module", params=["random", pytest.param("real", marks=pytest.mark.real)])
def pair(request):
    """Ours and theirs with the same weights."""
    torch.set_num_threads(1)
    state = random_state() if request.param == "random" else real_state()
    ours = parts()
    ours.load_state_dict(state)
    vision = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "mlp_dim": 8}
    # The published transformer keeps torch's epsilon of 1e-5; transformers writes 1e-6 for it.
    config = transformers.SamConfig(vision_config=vision, mask_decoder_config={"layer_norm_eps": 1e-5})
    theirs = transformers.SamModel(config).eval()
    missing, unexpected = theirs.load_state_dict({renamed(key): value for key, value in state.items()}, strict=False)
    assert not unexpected
    assert {key.split(".")[0] for key in missing} <= {"vision_encoder", "prompt_encoder"}
    theirs.prompt_encoder.shared_embedding = theirs.shared_image_embedding
    assert [key for key in missing if key.startswith("prompt_encoder")] in (
        [],
        ["prompt_encoder.shared_embedding.positional_embedding"],
    )
    return ours, theirs


@pytest.mark.parametrize(
    ("clicks", "with_masks", "with_boxes"),
    [(1, False, False), (3, False, False), (1, True, False), (3, True, False), (0, False, True), (2, True, True)],
)
def test_logits_and_ious_are_those_of_transformers(pair, clicks, with_masks, with_boxes) -> None:
    ours, theirs = pair
    generator = torch.Generator().manual_seed(clicks)
    prompts = 2
    image = torch.randn(1, 256, 64, 64, generator=generator) * 0.3
    points = torch.rand(prompts, clicks, 2, generator=generator) * 1023
    positive = torch.rand(prompts, clicks, generator=generator) < 0.6
    masks = torch.randn(prompts, 256, 256, generator=generator) * 8 if with_masks else None
    with torch.inference_mode():
        encoder = ours["prompt_encoder"]
        cells = image.flatten(2).mT + encoder.mask(masks)
        boxes = torch.tensor([[100.0, 50.0, 700.0, 400.0], [3.0, 9.0, 30.0, 1000.0]]) if with_boxes else None
        logits, ious = ours["mask_decoder"](encoder.tokens(points, positive, boxes), cells, encoder.grid())
        for prompt in range(prompts):
            for several, chosen in ((False, slice(0, 1)), (True, slice(1, 4))):
                wanted = theirs(
                    image_embeddings=image,
                    input_points=points[None, None, prompt] if clicks else None,
                    input_labels=positive[None, None, prompt].int() if clicks else None,
                    input_boxes=None if boxes is None else boxes[None, prompt : prompt + 1],
                    input_masks=None if masks is None else masks[None, prompt : prompt + 1],
                    multimask_output=several,
                )
                assert wanted.pred_masks.std() > 0.1
                assert (
                    logits[prompt, chosen] - wanted.pred_masks[0, 0]
                ).abs().max() < 1e-5 * wanted.pred_masks.abs().max()
                assert (ious[prompt, chosen] - wanted.iou_scores[0, 0]).abs().max() < 1e-4


def test_positions_are_those_of_pixel_centres(pair) -> None:
    ours, _ = pair
    encoder = ours["prompt_encoder"]
    # The centre of the first cell of 16 x 16 pixels lies between pixels 7 and 8.
    with torch.inference_mode():
        [tokens] = encoder.tokens(torch.tensor([[[7.5, 7.5], [23.5, 7.5]]]), torch.tensor([[True, False]]))
        grid = encoder.grid()
        assert torch.allclose(tokens[0] - encoder.point_embeddings[1].weight[0], grid[0], atol=1e-5)
        assert torch.allclose(tokens[1] - encoder.point_embeddings[0].weight[0], grid[1], atol=1e-5)
    assert torch.equal(tokens[2], encoder.not_a_point_embed.weight[0])
