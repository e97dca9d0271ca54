"""The authors' files of SAM 2 and 2.1: their tensors by other names, and nothing of the part for videos."""

import re

import pytest
from tiny_sam import SIDE, network, picture, prompts

from hardlook.errors import ModelError
from hardlook.models.interactive import sam2
from hardlook.models.interactive.sam2 import SIZES, HieraSize, Sam2, find_size, read_config

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

# Transformers' names and the authors'.
RENAMED = {
    r"^no_memory_embedding$": "no_mem_embed",
    r"^vision_encoder\.backbone\.": "image_encoder.trunk.",
    r"patch_embed\.projection": "patch_embed.proj",
    r"^vision_encoder\.neck\.convs\.(\d)": r"image_encoder.neck.convs.\1.conv",
    r"\.mlp\.proj_in": ".mlp.layers.0",
    r"\.mlp\.proj_out": ".mlp.layers.1",
    r"^prompt_encoder\.": "sam_prompt_encoder.",
    r"^mask_decoder\.": "sam_mask_decoder.",
    r"shared_embedding\.positional_embedding": "pe_layer.positional_encoding_gaussian_matrix",
    r"mask_embed\.conv1": "mask_downscaling.0",
    r"mask_embed\.layer_norm1": "mask_downscaling.1",
    r"mask_embed\.conv2": "mask_downscaling.3",
    r"mask_embed\.layer_norm2": "mask_downscaling.4",
    r"mask_embed\.conv3": "mask_downscaling.6",
    r"upscale_conv1": "output_upscaling.0",
    r"upscale_layer_norm": "output_upscaling.1",
    r"upscale_conv2": "output_upscaling.3",
    r"layer_norm_final_attn": "norm_final_attn",
    r"\.layer_norm(\d)": r".norm\1",
    r"\.o_proj": ".out_proj",
    r"(mlps\.\d|_head)\.layers\.0": r"\1.layers.1",
    r"(mlps\.\d|_head)\.proj_in": r"\1.layers.0",
    r"(mlps\.\d|_head)\.proj_out": r"\1.layers.2",
}


def authors_state(made):
    """The tensors of a Sam2Model as the authors' files have them."""
    found = {}
    for name, value in made.state_dict().items():
        if name == "prompt_encoder.point_embed.weight":
            found |= {f"sam_prompt_encoder.point_embeddings.{n}.weight": value[n : n + 1] for n in range(4)}
        elif name != "shared_image_embedding.positional_embedding":
            for pattern, replacement in RENAMED.items():
                name = re.sub(pattern, replacement, name)
            found[name] = value.clone()
    found |= {"memory_encoder.out_proj.weight": torch.zeros(2, 2), "maskmem_tpos_enc": torch.zeros(7, 1, 1, 2)}
    return found | {"obj_ptr_proj.layers.0.weight": torch.zeros(2, 2), "no_obj_ptr": torch.zeros(1, 2)}


@pytest.fixture
def made(monkeypatch):
    """A small network whose size counts as published, and whose two position tables are one."""
    size = HieraSize("minute", (1, 1, 2, 2), (4, 4, 4, 2), (3,), SIDE)
    monkeypatch.setitem(sam2.SIZES, (8, 5), size)
    made = network("sam2")
    made.shared_image_embedding.positional_embedding.copy_(made.prompt_encoder.shared_embedding.positional_embedding)
    return made


@pytest.mark.parametrize(
    ("version", "more"),
    [("2", {}), ("2.1", {"obj_ptr_tpos_proj.weight": torch.zeros(2, 2), "no_obj_embed_spatial": torch.zeros(1, 2)})],
)
def test_a_file_answers_as_the_folder_does(tmp_path, made, version, more):
    made.save_pretrained(tmp_path / "folder")
    torch.save({"model": {**authors_state(made), **more}}, tmp_path / "sam2.pt")
    models = Sam2(tmp_path / "folder"), Sam2(tmp_path / "sam2.pt")
    assert models[1].conduct == f"SAM {version} minute: {models[0].conduct}"
    assert models[1].weights_files == (tmp_path / "sam2.pt",)
    asked = prompts(40, 57, clicks=2, count=3)
    answers = [model.open(picture(40, 57)).predict(asked) for model in models]
    for one, other in zip(*answers, strict=True):
        assert torch.equal(torch.as_tensor(one.state), torch.as_tensor(other.state))
        assert (one.mask == other.mask).all()


def test_a_tensor_too_few_or_too_many_is_an_error(tmp_path, made):
    state = authors_state(made)
    for wrong in ({**state, "sam_mask_decoder.more": torch.zeros(1)}, {**state}):
        if "sam_mask_decoder.more" not in wrong:
            del wrong["sam_prompt_encoder.point_embeddings.3.weight"]
        torch.save({"model": wrong}, tmp_path / "sam2.pt")
        with pytest.raises(ModelError, match="do not fit Sam2Model"):
            Sam2(tmp_path / "sam2.pt")


def test_files_of_others_are_refused(tmp_path):
    torch.save({"image_encoder.pos_embed": torch.zeros(1)}, tmp_path / "sam.pth")
    with pytest.raises(ModelError, match="holds no SAM 2"):
        Sam2(tmp_path / "sam.pth")
    unknown = {"image_encoder.trunk.pos_embed_window": torch.zeros(1, 8, 4, 4)}
    with pytest.raises(ModelError, match="8 channels and 0 blocks") as caught:
        find_size(unknown, tmp_path / "sam.pth")
    assert "tiny, small, base-plus, large" in caught.value.remedy


def test_the_tiny_size_is_transformers_default():
    config = transformers.Sam2Config()
    with torch.device("meta"):
        state = authors_state(transformers.Sam2Model(config))
    size = find_size(state, "x")
    assert size.name == "tiny"
    own = transformers.Sam2Config(**read_config(state, size)).to_dict()
    usual = config.to_dict()
    for part in ("vision_config", "prompt_encoder_config", "mask_decoder_config"):
        assert own[part] == usual[part]


@pytest.mark.parametrize("key", SIZES)
def test_every_published_size_has_four_stages_of_its_blocks(key):
    size = SIZES[key]
    assert len(size.heads) == len(size.windows) == 4
    assert all(key[0] * 2**stage % heads == 0 for stage, heads in enumerate(size.heads))
    assert max(size.global_blocks) < key[1]
