"""Folders of checkpoints: what each file is, damaged, foreign and hostile files, and names that are the same."""

import collections
import importlib
from pathlib import Path

import pytest
import torch
from hostile_pickles import Call
from safetensors.torch import save_file

from hardlook.errors import ModelError, OptionError
from hardlook.models.interactive.checkpoint_folder import (
    find_checkpoints,
    identify_checkpoint,
    identify_outline,
)
from hardlook.models.interactive.mobile_sam import build_network
from hardlook.models.interactive.sam2 import SIZES as SAM2_SIZES
from hardlook.networks.interactive.checkpoints import FAMILIES, Checkpoint, read_outline
from hardlook.networks.interactive.ritm import RITM

KINDS = [
    ("ritm", "hrnet18s"), ("ritm", "hrnet18"), ("ritm", "hrnet32"), ("simpleclick", "vit_xtiny"),
    ("simpleclick", "vit_base"), ("simpleclick", "vit_large"), ("simpleclick", "vit_huge"), ("cdnet", "resnet34"),
    ("gpcis", "resnet50"), ("adaptiveclick", "vit_base"), ("adaptiveclick", "vit_huge"), ("focalclick", "hrnet18s"),
    ("focalclick", "hrnet32"), ("focalclick", "segformerb0"), ("focalclick", "segformerb3"),
]  # fmt: skip


def outline(state, name="file.pth", **arguments):
    return Checkpoint(Path("folder") / name, "", state, "", arguments)


def make_empty(family, size):
    """The state of a network without values."""
    module, _, name = FAMILIES[family][0].partition(":")
    with torch.device("meta"):
        return getattr(importlib.import_module(module), name).build(size).state_dict()


def shapes(**given):
    return {name.replace("__", "."): torch.empty(size, device="meta") for name, size in given.items()}


@pytest.fixture(scope="module")
def state():
    """Parameters of the smallest RITM."""
    torch.manual_seed(3)
    return collections.OrderedDict(RITM.build("hrnet18s").state_dict())


@pytest.mark.parametrize(("family", "size"), KINDS)
def test_family_and_size_are_told_by_the_tensors(family, size):
    state = make_empty(family, size)
    found = identify_outline(outline(state))
    assert (found.model, found.size, found.arguments) == (family, size, {"weights": "folder/file.pth"})
    # One tensor more than the network has, and the run would stop at this file.
    with pytest.raises(ModelError, match="1 unexpected: more"):
        identify_outline(outline({**state, "more": torch.empty(1, device="meta")}))


def test_networks_that_share_their_tensors_are_told_apart_by_the_file_or_its_settings():
    state = make_empty("simpleclick", "vit_xtiny")
    for name, family in (
        ("cocolvis_icl_vit_huge.pth", "cfr-icl"),
        ("CFR.pth", "cfr-icl"),
        ("icluster.pth", "simpleclick"),
    ):
        found = identify_outline(outline(state, name))
        assert found.model == family and found.note == f"SimpleClick's network; {family} by the file's name"
    halved = identify_outline(outline(make_empty("focalclick", "hrnet18s"), pipeline_version="s1"))
    assert halved.size == "hrnet18s-s1"
    with torch.device("meta"):
        baseline = RITM(18, 64, with_prev_mask=False).state_dict()
    assert identify_outline(outline(baseline)).size == "hrnet18 baseline"


def test_files_of_sam_and_its_kin():
    pytest.importorskip("transformers")
    sam = shapes(image_encoder__pos_embed=(1, 64, 64, 1024))
    found = identify_outline(outline(sam, "sam_vit_l.pth"))
    assert (found.model, found.size, found.arguments) == ("sam", "vit_l", {"path": "folder/sam_vit_l.pth"})
    high = identify_outline(outline(sam | shapes(mask_decoder__hf_token__weight=(1, 256))))
    assert (high.model, high.size) == ("sam-hq", "vit_l")
    (width, blocks), size = next(iter(SAM2_SIZES.items()))
    trunk = shapes(image_encoder__trunk__pos_embed_window=(1, width, 8, 8))
    trunk |= {f"image_encoder.trunk.blocks.{n}.attn.proj.weight": torch.empty(width, 1) for n in range(blocks)}
    assert str(identify_outline(outline(trunk))) == f"file.pth: sam2 2 {size.name}"
    assert identify_outline(outline(trunk | shapes(no_obj_embed_spatial=(1, 64)))).size == f"2.1 {size.name}"
    with torch.device("meta"):
        mobile = build_network().state_dict()
    assert identify_outline(outline(mobile)).model == "mobile-sam"
    mobile.popitem()
    with pytest.raises(ModelError, match="do not fit MobileSAM: 1 missing"):
        identify_outline(outline(mobile))


def test_an_outline_has_the_shapes_of_every_kind_of_file(tmp_path, state):
    torch.save({"state_dict": state, "config": {"class": "", "params": {}}}, tmp_path / "new.pth")
    torch.save(state, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    torch.save({"model": {f"module.{name}": value for name, value in state.items()}}, tmp_path / "wrapped.pth.tar")
    save_file(state, tmp_path / "plain.safetensors")
    for path in tmp_path.iterdir():
        found = read_outline(path)
        assert {name: value.shape for name, value in found.state.items()} == {
            name: value.shape for name, value in state.items()
        }
        assert {value.device.type for value in found.state.values()} == {"meta"}
        assert identify_checkpoint(path).size == "hrnet18s"


def test_what_is_no_checkpoint_is_named_and_counted(tmp_path, state):
    torch.save({"state_dict": state}, tmp_path / "coco_lvis_h18s_itermask.pth")
    whole = (tmp_path / "coco_lvis_h18s_itermask.pth").read_bytes()
    (tmp_path / "damaged.pth").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.pt").touch()
    (tmp_path / "gone.pth").symlink_to(tmp_path / "nowhere.pth")
    (tmp_path / "broken.safetensors").write_bytes(b"\xff" * 50)
    torch.save({"conv.weight": torch.zeros(3)}, tmp_path / "foreign.pth.tar")
    torch.save(
        {"state_dict": state, "more": Call(eval, f"open({str(tmp_path / 'ran')!r}, 'w')")}, tmp_path / "attack.pth"
    )
    (tmp_path / "README.md").write_text("weights")
    found = find_checkpoints(tmp_path)
    assert [(one.name, one.model, one.size) for one in found.found] == [("coco_lvis_h18s_itermask", "ritm", "hrnet18s")]
    names = ["attack.pth", "broken.safetensors", "damaged.pth", "empty.pt", "foreign.pth.tar", "gone.pth"]
    assert sorted(found.refused) == names and found.others == 1
    assert "it would call builtins.eval" in found.refused["attack.pth"] and not (tmp_path / "ran").exists()
    assert "its end is missing" in found.refused["damaged.pth"]
    assert "of no network known here" in found.refused["foreign.pth.tar"]
    first, *rest = found.describe()
    assert first.startswith(f"{tmp_path}: 1 checkpoints; 6 files that are not recognised; 1 other files")
    assert sum(line.startswith("  not recognised: ") for line in rest) == 6


def test_a_folder_without_checkpoints_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(OptionError, match="no folder"):
        find_checkpoints(tmp_path / "nowhere")
    with pytest.raises(OptionError, match=r"no file that ends in \.pth") as empty:
        find_checkpoints(tmp_path)
    assert "put the published files there" in empty.value.remedy
    (tmp_path / "notes.txt").touch()
    with pytest.raises(OptionError, match="among its 1 files"):
        find_checkpoints(tmp_path)
    (tmp_path / "zero.pth").touch()
    with pytest.raises(OptionError, match=r"known here: zero\.pth: ") as foreign:
        find_checkpoints(tmp_path)
    assert "published files" in foreign.value.remedy


def test_files_of_the_same_name_get_the_names_of_their_folders(tmp_path, state):
    for place in ("cdnet/last.pth", "ritm/LAST.pth", "ritm/other.pth"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        torch.save(state, tmp_path / place)
    assert [one.name for one in find_checkpoints(tmp_path).found] == ["cdnet-last.pth", "ritm-LAST.pth", "other"]
