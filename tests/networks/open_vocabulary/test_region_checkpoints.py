"""The regions of OVSeg and SimSeg from one file or two; what is missing is named."""

import pytest
import torch
from hostile_pickles import attacks
from tiny_clip import IMAGE, make_networks, make_ovseg_state, make_state

from hardlook.errors import HardlookError, ModelError, OptionError
from hardlook.networks.open_vocabulary.region_checkpoints import build_random_regions, load_regions


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("regions")
    ovseg = make_ovseg_state(seed=1)
    prompt = "clip_adapter.clip_model.visual.mask_embedding"
    written = {
        "clip": make_state(),
        "ovseg": ovseg,
        "prompt": {prompt: ovseg[prompt]},
        "image": {key: value for key, value in make_state().items() if key.startswith("visual.")},
        "text": {key: value for key, value in make_state().items() if not key.startswith("visual.")},
    }
    for name, state in written.items():
        torch.save(state, folder / f"{name}.pth")
    return {name: folder / f"{name}.pth" for name in written}


def embed(network, *, prompted):
    """A vector of one half of a region."""
    pixels = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    masks = torch.zeros(1, 1, 32, 32)
    masks[..., :16] = 1
    return network.clip_adapter.clip_model.visual(pixels, masks if prompted else None)


def test_one_file_or_two(files):
    expected, _ = make_networks(make_state(seed=1, prompts=2), prompts=2)
    whole, tower = load_regions(files["ovseg"], prompted=True)
    torch.testing.assert_close(embed(whole, prompted=True), embed(expected, prompted=True))
    assert whole.clip_adapter.non_object_embedding.eq(1).all() and whole.side == 32
    tokens = torch.tensor([[49406, 320, 49407]])
    _, own = make_networks(make_state(seed=1, prompts=2), prompts=2)
    torch.testing.assert_close(tower.encode_tokens(tokens), own.encode_tokens(tokens))
    # The prompt of one file and the CLIP of another; without a prompt the same CLIP as it is.
    two, _ = load_regions(files["prompt"], [files["clip"]], prompted=True)
    state = {**make_state(), "visual.mask_embedding": make_state(seed=1, prompts=2)["visual.mask_embedding"]}
    torch.testing.assert_close(embed(two, prompted=True), embed(make_networks(state, prompts=2)[0], prompted=True))
    plain, _ = load_regions(None, [files["clip"]], prompted=False)
    torch.testing.assert_close(embed(plain, prompted=False), embed(two, prompted=False))
    # What both files have is taken from the first, which may be trained further.
    both, _ = load_regions(files["ovseg"], [files["clip"]], prompted=True)
    torch.testing.assert_close(embed(both, prompted=True), embed(whole, prompted=True))
    unprompted, _ = load_regions(files["ovseg"], prompted=False)
    torch.testing.assert_close(embed(unprompted, prompted=False), embed(whole, prompted=False))
    parts, _ = load_regions(None, [files["image"], files["text"]], prompted=False)
    torch.testing.assert_close(embed(parts, prompted=False), embed(plain, prompted=False))


@pytest.mark.parametrize(
    "weights, clip, words, remedy",
    [
        (None, "clip", "no mask prompt", "weights=FILE of OVSeg"),
        ("prompt", None, "no image tower", "clip=FILE-OR-FOLDER"),
        ("prompt", "image", "no text tower", "whole CLIP"),
        ("prompt", "text", "no image tower", "whole CLIP"),
    ],
)
def test_what_is_missing_is_named(files, weights, clip, words, remedy):
    with pytest.raises(ModelError, match=words) as caught:
        load_regions(files[weights] if weights else None, [files[clip]] if clip else [], prompted=True)
    assert remedy in str(caught.value) and f"{clip or weights}.pth" in str(caught.value)


def test_no_file_at_all_is_an_error():
    with pytest.raises(OptionError, match="no weights"):
        load_regions(None, prompted=True)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"visual.mask_embedding": torch.zeros(16, 64)}, "no mask prompt"),
        ({"visual.mask_embedding": torch.zeros(2, 9, 64)}, "mask_embedding .network .2, 16, 64., file .2, 9, 64"),
        ({"visual.extra": torch.zeros(1)}, "visual.extra"),
        ({"visual.proj": torch.zeros(64, 32)}, "two CLIPs"),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path, change, words):
    torch.save({**make_state(prompts=2), **change}, tmp_path / "damaged.pth")
    with pytest.raises(ModelError, match=words) as caught:
        load_regions(None, [tmp_path / "damaged.pth"], prompted=True)
    assert "damaged.pth" in str(caught.value)


@pytest.mark.parametrize("key", ["visual.positional_embedding", "positional_embedding"])
@pytest.mark.parametrize(("dtype", "kind"), [(torch.int8, "whole"), (torch.complex64, "complex")])
def test_whole_and_complex_numbers_are_refused(tmp_path, key, dtype, kind):
    state = make_state(prompts=2)
    torch.save({**state, key: state[key].to(dtype)}, tmp_path / "damaged.pth")
    with pytest.raises(ModelError, match=f"weights are {kind} numbers: .*{key}") as caught:
        load_regions(None, [tmp_path / "damaged.pth"], prompted=True)
    assert "damaged.pth" in str(caught.value)


@pytest.mark.parametrize("key", ["visual.ln_pre.weight", "ln_final.weight"])
def test_a_tower_is_not_made_of_two_files(tmp_path, files, key):
    state = make_state(seed=1, prompts=2)
    torch.save({name: value for name, value in state.items() if name != key}, tmp_path / "part.pth")
    with pytest.raises(ModelError, match=f"lacks 1 weights of its .* tower of CLIP, such as {key}") as caught:
        load_regions(tmp_path / "part.pth", [files["clip"]], prompted=True)
    assert "part.pth" in str(caught.value)


@pytest.mark.parametrize("name", ["os.system", "eval", "map over a list"])
@pytest.mark.parametrize("place", ["weights", "clip"])
def test_a_file_that_would_run_code_is_refused(tmp_path, files, name, place):
    trace = tmp_path / "trace"
    torch.save({**make_state(prompts=2), "visual.proj": attacks(trace)[name]}, tmp_path / "bad.pth")
    with pytest.raises(HardlookError, match=r"bad\.pth"):
        if place == "weights":
            load_regions(tmp_path / "bad.pth", [files["clip"]], prompted=True)
        else:
            load_regions(files["ovseg"], [tmp_path / "bad.pth"], prompted=True)
    assert not trace.exists()


def test_random_parameters_follow_the_seed(monkeypatch):
    from hardlook.networks.open_vocabulary import region_checkpoints

    monkeypatch.setitem(region_checkpoints.VIT_SIZES, "small", IMAGE)
    monkeypatch.setitem(region_checkpoints.TEXT_SIZES, "small", region_checkpoints.TEXT_SIZES["RN50"])
    one, other = (build_random_regions("small", seed=3, prompted=True)[0] for _ in range(2))
    torch.testing.assert_close(embed(one, prompted=True), embed(other, prompted=True))
    another, _ = build_random_regions("small", seed=4, prompted=True)
    assert not torch.allclose(embed(one, prompted=True), embed(another, prompted=True), atol=1e-3)
    with pytest.raises(OptionError, match="no CLIP 'RN50'"):
        build_random_regions("RN50", seed=1, prompted=True)
