"""Files of FC-CLIP and of CLIP: which belongs where, what is missing, and malicious ones."""

import pickle

import pytest
import torch
from tiny_fc_clip import TINY

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.networks.open_vocabulary.fc_clip_checkpoints import CLIP_PREFIX, build_random, list_sizes, load_fc_clip


@pytest.fixture
def network():
    return build_random(TINY, seed=1)


@pytest.fixture
def files(network, tmp_path):
    """The file as FC-CLIP's authors publish it, within a detectron2 checkpoint, and one of open_clip."""
    state = network.state_dict()
    head = {key: value for key, value in state.items() if not key.startswith(CLIP_PREFIX)}
    clip = {key.removeprefix(CLIP_PREFIX): value.half() for key, value in state.items() if key.startswith(CLIP_PREFIX)}
    torch.save({"model": head, "iteration": 7}, tmp_path / "fcclip.pth")
    torch.save(clip | {"context_length": torch.tensor(77)}, tmp_path / "clip.bin")
    return tmp_path / "fcclip.pth", tmp_path / "clip.bin"


def test_both_files_together_are_the_network(network, files):
    loaded = load_fc_clip(*files)
    assert loaded.state_dict().keys() == network.state_dict().keys()
    for key, value in network.state_dict().items():
        expected = value.half().float() if key.startswith(CLIP_PREFIX) and value.is_floating_point() else value
        assert torch.equal(loaded.state_dict()[key].to(value.dtype), expected), key
    assert {value.dtype for value in loaded.parameters()} == {torch.float32}
    assert not loaded.training and not any(one.requires_grad for one in loaded.parameters())


def test_one_file_that_holds_all_is_enough_and_what_inference_never_reads_may_be_missing(network, files):
    state = {
        key: value
        for key, value in network.state_dict().items()
        if key != "criterion.empty_weight" and not key.endswith("num_batches_tracked")
    }
    torch.save(state, files[0])
    loaded = load_fc_clip(files[0])
    assert torch.equal(loaded.void_embedding.weight, network.void_embedding.weight)


def test_the_missing_file_is_named(files):
    head, clip = files
    with pytest.raises(ModelError, match="holds no weights of CLIP") as caught:
        load_fc_clip(head)
    assert f"open_clip's {TINY}" in str(caught.value) and "clip=FILE" in str(caught.value)
    with pytest.raises(ModelError, match="not one of FC-CLIP"):
        load_fc_clip(clip, clip)


@pytest.mark.parametrize("part", [0, 1])
def test_the_file_that_does_not_fit_is_named(files, part):
    content = torch.load(files[part], weights_only=True)
    state = content["model"] if part == 0 else content
    state.pop("sem_seg_head.predictor.level_embed.weight" if part == 0 else "visual.conv2.weight")
    state["odd"] = torch.zeros(3)
    torch.save(content, files[part])
    with pytest.raises(ModelError, match=r"1 missing: .*(level_embed|conv2).*; 1 unexpected: .*odd") as caught:
        load_fc_clip(*files)
    assert files[part].name in str(caught.value) and files[1 - part].name not in str(caught.value)


@pytest.mark.parametrize("part", [0, 1])
def test_a_malicious_file_is_refused(files, part, tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "written"), "w"))

    torch.save({"model": Evil()}, files[part], pickle_module=pickle)
    with pytest.raises(DataError, match=r"it would call .*open"):
        load_fc_clip(*files)
    assert not (tmp_path / "written").exists()


def test_a_seed_gives_the_same_parameters_and_leaves_others_random_numbers_alone(network):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    again = build_random(TINY, seed=1)
    assert torch.equal(torch.rand(1), expected)
    assert torch.equal(again.void_embedding.weight, network.void_embedding.weight)
    with pytest.raises(OptionError, match="no 'RN18' for FC-CLIP"):
        build_random("RN18", seed=1)


def test_no_two_sizes_are_alike():
    assert len(set(list_sizes().values())) == len(list_sizes())
