"""Checkpoints with their authors' names give the network that transformers' own folder gives."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_sam import configuration, network, picture, prompts

from hardlook.errors import DataError, ModelError
from hardlook.models.interactive.transformers_sam import Sam, SamHQ
from hardlook.models.interactive.transformers_sam_checkpoint import renamed, sizes
from hardlook.models.weights.install import status, where
from hardlook.models.weights.loading import load_state_dict

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
FAMILIES = {"sam": Sam, "sam_hq": SamHQ}
BOTH = ("weight", "bias")


def pairs(hq):
    """Published name, transformers' name, of every part of a network with three layers: written out, not computed."""
    eye, asked, drawn = "image_encoder", "prompt_encoder", "mask_decoder"
    found = [(f"{eye}.pos_embed", "vision_encoder.pos_embed")]
    parts = [(f"{eye}.patch_embed.proj", "vision_encoder.patch_embed.projection")]
    for n in range(3):
        theirs, ours = f"{eye}.blocks.{n}", f"vision_encoder.layers.{n}"
        parts += [(f"{theirs}.norm{k}", f"{ours}.layer_norm{k}") for k in (1, 2)]
        parts += [(f"{theirs}.{x}", f"{ours}.{x}") for x in ("attn.qkv", "attn.proj", "mlp.lin1", "mlp.lin2")]
        found += [(f"{theirs}.attn.rel_pos_{x}", f"{ours}.attn.rel_pos_{x}") for x in "hw"]
    found += [(f"{eye}.neck.{k}.weight", f"vision_encoder.neck.conv{k // 2 + 1}.weight") for k in (0, 2)]
    parts += [(f"{eye}.neck.{k}", f"vision_encoder.neck.layer_norm{k // 2 + 1}") for k in (1, 3)]
    positions = f"{asked}.pe_layer.positional_encoding_gaussian_matrix"
    found += [(positions, f"{asked}.shared_embedding.positional_embedding")]
    found += [(f"{asked}.point_embeddings.{k}.weight", f"{asked}.point_embed.{k}.weight") for k in range(4)]
    found += [(f"{asked}.{x}.weight", f"{asked}.{x}.weight") for x in ("not_a_point_embed", "no_mask_embed")]
    steps = {0: "conv1", 1: "layer_norm1", 3: "conv2", 4: "layer_norm2", 6: "conv3"}
    parts += [(f"{asked}.mask_downscaling.{k}", f"{asked}.mask_embed.{x}") for k, x in steps.items()]
    found += [(f"{drawn}.{x}.weight", f"{drawn}.{x}.weight") for x in ("iou_token", "mask_tokens")]
    attention = ("self_attn", "cross_attn_token_to_image", "cross_attn_image_to_token")
    for n in range(2):
        layer = f"{drawn}.transformer.layers.{n}"
        parts += [(f"{layer}.{x}.{y}_proj",) * 2 for x in attention for y in ("q", "k", "v", "out")]
        parts += [(f"{layer}.mlp.lin{k}",) * 2 for k in (1, 2)]
        parts += [(f"{layer}.norm{k}", f"{layer}.layer_norm{k}") for k in (1, 2, 3, 4)]
    end = f"{drawn}.transformer"
    parts += [(f"{end}.final_attn_token_to_image.{y}_proj",) * 2 for y in ("q", "k", "v", "out")]
    parts += [(f"{end}.norm_final_attn", f"{end}.layer_norm_final_attn")]
    steps = {0: "upscale_conv1", 1: "upscale_layer_norm", 3: "upscale_conv2"}
    parts += [(f"{drawn}.output_upscaling.{k}", f"{drawn}.{x}") for k, x in steps.items()]
    heads = [*((f"output_hypernetworks_mlps.{k}",) * 2 for k in range(4)), ("iou_prediction_head",) * 2]
    if hq:
        heads += [("hf_mlp", "hq_mask_mlp")]
        found += [(f"{drawn}.hf_token.weight", f"{drawn}.hq_token.weight")]
        names = (
            ("compress_vit_feat", "compress_vit"),
            ("embedding_encoder", "encoder"),
            ("embedding_maskfeature", "mask"),
        )
        for theirs, ours in names:
            steps = {0: "conv1", 1: "norm", 3: "conv2"}
            parts += [(f"{drawn}.{theirs}.{k}", f"{drawn}.{ours}_{x}") for k, x in steps.items()]
    for theirs, ours in heads:
        places = {0: "proj_in", 1: "layers.0", 2: "proj_out"}
        parts += [(f"{drawn}.{theirs}.layers.{k}", f"{drawn}.{ours}.{x}") for k, x in places.items()]
    return found + [(f"{a}.{kind}", f"{b}.{kind}") for a, b in parts for kind in BOTH]


def published(family):
    """The tiny network's weights under their published names."""
    state = network(family).state_dict()
    return {theirs: state[ours].clone() for theirs, ours in pairs(hq=family == "sam_hq")}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tensor_has_a_published_name(family):
    assert {ours for _, ours in pairs(family == "sam_hq")} == {
        name for name in network(family).state_dict() if name != "shared_image_embedding.positional_embedding"
    }
    assert all(renamed(theirs) == ours for theirs, ours in pairs(family == "sam_hq"))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_checkpoint_answers_as_the_folder_does(family, tmp_path):
    torch.save(published(family), tmp_path / "weights.pth")
    made = network(family)
    # The two uses of the random places are one tensor in the published files.
    made.shared_image_embedding.positional_embedding.data = made.prompt_encoder.shared_embedding.positional_embedding
    made.save_pretrained(tmp_path / "folder")
    image, asked = picture(40, 57), prompts(40, 57, clicks=2, count=3)
    expected = FAMILIES[family](tmp_path / "folder").open(image).predict(asked)
    model = FAMILIES[family](tmp_path / "weights.pth")
    for one, other in zip(model.open(image).predict(asked), expected, strict=True):
        assert np.allclose(one.state, other.state, atol=1e-5)
        assert np.array_equal(one.mask, other.mask)
    assert model.weights_files == (tmp_path / "weights.pth",)


@pytest.mark.parametrize("family", FAMILIES)
def test_sizes_are_read_off_the_shapes(family):
    expected = configuration(family)
    for part, found in sizes(published(family), hq=family == "sam_hq").items():
        assert found == expected[part]


def test_files_that_will_not_do(tmp_path):
    torch.save({"image_encoder.layers.0.weight": torch.zeros(1)}, tmp_path / "other.pth")
    with pytest.raises(ModelError, match="no SAM with a ViT encoder"):
        Sam(tmp_path / "other.pth")
    state = published("sam")
    del state["mask_decoder.iou_token.weight"]
    torch.save(state, tmp_path / "cut.pth")
    with pytest.raises(ModelError, match=r"1 missing: mask_decoder\.iou_token\.weight"):
        Sam(tmp_path / "cut.pth")
    torch.save(published("sam_hq"), tmp_path / "hq.pth")
    with pytest.raises(ModelError, match=r"unexpected: .*hq_token"):
        Sam(tmp_path / "hq.pth")
    with pytest.raises(DataError, match="folder does not exist"):
        Sam(tmp_path / "nothing.pth")


@pytest.mark.real
def test_names_of_a_published_file():
    if status("mobile-sam") != "installed":
        pytest.skip("mobile-sam is not installed; hardlook weights install mobile-sam")
    state = load_state_dict(where("mobile-sam")["mobile_sam.pt"]).state
    config = transformers.SamConfig(vision_config={"num_hidden_layers": 1, "hidden_size": 12})
    wanted = {
        name: tuple(tensor.shape)
        for name, tensor in transformers.SamModel(config).state_dict().items()
        if name.startswith(("prompt_encoder.", "mask_decoder."))
    }
    parts = {
        renamed(name): tuple(tensor.shape)
        for name, tensor in state.items()
        if name.startswith(("prompt_encoder.", "mask_decoder."))
    }
    assert parts == wanted
