"""Files of SAN, CAT-Seg and CLIP: settings beside tensors, which file lacks what, and which does not fit."""

import argparse
import pickle

import pytest
import torch
from hostile_pickles import getattr_chain, write_archive
from tiny_fc_clip import TINY

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.networks.open_vocabulary import cat_seg_checkpoints, san_checkpoints
from hardlook.networks.open_vocabulary.checkpoints import read_state
from hardlook.networks.open_vocabulary.clip_text import CLIP, TEXT_SIZES
from hardlook.networks.open_vocabulary.clip_vit import VIT_SIZES, CLIPViT

LOADERS = {"san": san_checkpoints.load_san, "cat-seg": cat_seg_checkpoints.load_cat_seg}
BUILDERS = {"san": san_checkpoints.build_random_san, "cat-seg": cat_seg_checkpoints.build_random_cat_seg}
TITLES = {"san": "SAN", "cat-seg": "CAT-Seg"}
TRAINED = {
    "san": lambda key: (
        key.startswith(("side_adapter", "criterion")) or key.endswith(("extractor.positional_embedding", "bg_embed"))
    ),
    "cat-seg": lambda key: "clip_model" not in key or key.endswith(("q_proj_weight", "v_proj_weight")),
}


@pytest.fixture(params=LOADERS)
def name(request):
    return request.param


@pytest.fixture
def files(name, tmp_path):
    """A file of what the network's training changed, as its README lists it, and one of CLIP in half precision."""
    state = BUILDERS[name](TINY, seed=1).state_dict()
    trained = {key: value for key, value in state.items() if TRAINED[name](key)}
    assert 0 < len(trained) < len(state)
    torch.save({"model": trained, "iteration": 3}, tmp_path / "own.pth")
    torch.manual_seed(2)
    clip = CLIP(CLIPViT(VIT_SIZES[TINY]), TEXT_SIZES[TINY]).state_dict()
    clip = {key: value.half() for key, value in clip.items()}
    torch.save({**clip, "context_length": torch.tensor(77)}, tmp_path / "clip.bin")
    torch.save(state, tmp_path / "whole.pth")
    return tmp_path


def test_one_file_that_holds_all_is_enough(name, files):
    network = BUILDERS[name](TINY, seed=1)
    loaded = LOADERS[name](files / "whole.pth")
    assert list(loaded.state_dict()) == list(network.state_dict())
    for key, value in network.state_dict().items():
        assert torch.equal(loaded.state_dict()[key], value), key
    assert not loaded.training and not any(one.requires_grad for one in loaded.parameters())


@pytest.mark.parametrize("start", ["module.", "_orig_mod.", "module._orig_mod."])
def test_names_of_parallel_training_and_compiled_networks_are_read(name, files, start):
    state = torch.load(files / "whole.pth")
    torch.save({"model": {f"{start}{key}": value for key, value in state.items()}}, files / "wrapped.pth")
    for key, value in LOADERS[name](files / "wrapped.pth").state_dict().items():
        assert torch.equal(value, state[key]), key


def test_what_was_not_trained_may_come_from_clip(name, files):
    own = torch.load(files / "own.pth", weights_only=True)["model"]
    clip = torch.load(files / "clip.bin", weights_only=True)
    loaded = LOADERS[name](files / "own.pth", files / "clip.bin")
    state = loaded.state_dict()
    assert all(torch.equal(state[key], value) for key, value in own.items())
    tower = loaded.ov_classifier if name == "san" else loaded.clip
    assert torch.equal(tower.token_embedding.weight, clip["token_embedding.weight"].float())
    if name == "san":  # three of the four blocks extract features
        last = loaded.clip_rec_head.resblocks[0].mlp.c_fc.weight
        assert torch.equal(last, clip["visual.transformer.resblocks.3.mlp.c_fc.weight"].float())
        assert torch.equal(loaded.ov_classifier.attn_mask, torch.full((77, 77), -torch.inf).triu(1))
    else:
        block, whole = loaded.clip.visual.transformer.resblocks[0].attn, "visual.transformer.resblocks.0.attn."
        assert torch.equal(block.k_proj_weight, clip[f"{whole}in_proj_weight"].float()[64:128])
        assert not torch.equal(block.q_proj_weight, clip[f"{whole}in_proj_weight"].float()[:64])


def test_the_missing_file_and_what_it_must_hold_are_named(name, files):
    with pytest.raises(ModelError, match=r"the file (lacks .* of the .*|holds no) weights of CLIP") as caught:
        LOADERS[name](files / "own.pth")
    assert "own.pth" in str(caught.value) and "clip=FILE: the weights of OpenAI's tiny" in str(caught.value)
    with pytest.raises(ModelError, match=f"not one of {TITLES[name]}") as caught:
        LOADERS[name](files / "clip.bin", files / "clip.bin")
    assert f"the authors of {TITLES[name]} as weights" in caught.value.remedy
    with pytest.raises(DataError, match="does not exist"):
        LOADERS[name](files / "nowhere.pth")


@pytest.mark.parametrize("part", ["own.pth", "clip.bin"])
def test_the_file_that_does_not_fit_is_named(name, files, part):
    content = torch.load(files / part, weights_only=True)
    state = content.get("model", content)
    if part == "clip.bin":
        state["visual.ln_pre.bias"] = torch.zeros(3)
        missing = "token_embedding.weight"
    else:
        missing = next(key for key in reversed(state) if "layer" in key)
    del state[missing]
    state["visual.odd" if part == "clip.bin" else "odd"] = torch.zeros(3)
    torch.save(content, files / part)
    with pytest.raises(ModelError, match=rf"1 missing: .*{missing}; 1 unexpected: .*odd") as caught:
        LOADERS[name](files / "own.pth", files / "clip.bin")
    assert part in str(caught.value)
    assert ("ln_pre.bias (network (64,), file (3,))" in str(caught.value)) == (part == "clip.bin")


def test_what_was_trained_is_never_taken_from_clip(name, files):
    content = torch.load(files / "own.pth", weights_only=True)
    for ending in ("positional_embedding",) if name == "san" else ("q_proj_weight", "v_proj_weight"):
        trained = next(key for key in content["model"] if key.endswith(ending))
        rest = {key: value for key, value in content["model"].items() if key != trained}
        torch.save({"model": rest}, files / "less.pth")
        with pytest.raises(ModelError, match=f"none of {TITLES[name]}: 1 missing: {trained}") as caught:
            LOADERS[name](files / "less.pth", files / "clip.bin")
        assert "less.pth" in str(caught.value)


@pytest.mark.parametrize("part", ["own.pth", "clip.bin"])
@pytest.mark.parametrize(("dtype", "kind"), [(torch.int8, "whole"), (torch.complex64, "complex")])
def test_whole_and_complex_numbers_are_refused(name, files, part, dtype, kind):
    content = torch.load(files / part, weights_only=True)
    state = content.get("model", content)
    changed = next(key for key, value in state.items() if value.ndim == 2)
    state[changed] = state[changed].to(dtype)
    torch.save(content, files / part)
    with pytest.raises(ModelError, match=f"weights are {kind} numbers") as caught:
        LOADERS[name](files / "own.pth", files / "clip.bin")
    assert part in str(caught.value)


def test_settings_beside_the_tensors_are_not_looked_at(name, files):
    content = torch.load(files / "whole.pth", weights_only=True)
    settings = argparse.Namespace(lr=0.1)
    torch.save({"model": content, "config": settings}, files / "more.pth", pickle_module=pickle)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(files / "more.pth", weights_only=True)
    loaded = LOADERS[name](files / "more.pth")
    assert all(torch.equal(loaded.state_dict()[key], value) for key, value in content.items())
    broken = next(key for key, value in content.items() if value.ndim == 2)
    content[broken][0, 0] = torch.nan
    torch.save({"model": content, "config": settings}, files / "more.pth", pickle_module=pickle)
    with pytest.raises(ModelError, match=f"1 tensors hold NaN: {broken}"):
        LOADERS[name](files / "more.pth")


def test_files_that_are_no_tensors_by_name_are_refused(tmp_path):
    torch.save({"model": {"a": torch.ones(1), "b": argparse.Namespace()}}, tmp_path / "a.pth")
    with pytest.raises(DataError, match="its entry b is no tensor"):
        read_state(tmp_path / "a.pth")
    torch.save([argparse.Namespace()], tmp_path / "b.pth")
    with pytest.raises(DataError, match="holds no tensors by name"):
        read_state(tmp_path / "b.pth")
    with pytest.raises(DataError, match=r"it would call builtins\."):
        read_state(write_archive(tmp_path / "c.pth", getattr_chain(tmp_path / "trace")))
    assert not (tmp_path / "trace").exists()
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "e.pt")
    with pytest.raises(DataError, match="a script of torch") as caught:
        read_state(tmp_path / "e.pt")
    assert "save its state dict" in caught.value.remedy
    (tmp_path / "d.pth").write_bytes((tmp_path / "a.pth").read_bytes()[:200])
    with pytest.raises(DataError, match=r"d\.pth"):
        read_state(tmp_path / "d.pth")


def test_a_seed_gives_the_same_parameters(name):
    one, other, third = (BUILDERS[name](TINY, seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[key], other[key]) for key in one)
    assert any(not torch.equal(one[key], third[key]) for key in one)
    with pytest.raises(OptionError, match=f"no 'ViT-9' for {TITLES[name]}"):
        BUILDERS[name]("ViT-9", seed=1)


def test_no_two_sizes_are_alike():
    for sizes in (san_checkpoints.list_sizes(), cat_seg_checkpoints.list_sizes()):
        assert len(set(sizes.values())) == len(sizes) == 3
