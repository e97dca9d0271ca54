"""Published checkpoints: settings, families, files that pickle more, damaged and hostile files."""

import collections
import importlib
import pickle
import sys
import types

import pytest
import torch
from hostile_pickles import Call, attacks, tensor_pickle, write_archive
from safetensors.torch import save_file

from hardlook.errors import DataError, ModelError
from hardlook.networks.interactive.checkpoints import (
    FAMILIES,
    Checkpoint,
    build_network,
    build_random,
    check_outline,
    read_checkpoint,
    read_outline,
)
from hardlook.networks.interactive.click_maps import pack_clicks
from hardlook.networks.interactive.ritm import RITM


def config(class_name="isegm.model.is_hrnet_model.HRNetModel", **arguments):
    """Settings as the released code saves them."""
    given = {name: {"type": "builtin", "value": value, "specified": True} for name, value in arguments.items()}
    given["norm_layer"] = {
        "type": "class", "value": "torch.nn.modules.batchnorm.BatchNorm2d", "specified": False,
    }  # fmt: skip
    return {"class": class_name, "params": given}


@pytest.fixture(scope="module")
def state():
    """Parameters of a small RITM without previous mask; nothing in them is zero."""
    torch.manual_seed(3)
    network = RITM(6, 4, small=True, with_prev_mask=False, norm_radius=3)
    return collections.OrderedDict(network.state_dict())


@pytest.fixture
def planted_classes():
    """The classes that SimpleClick's files name, importable while a file is written and afterwards no more."""

    def cross_entropy():
        raise AssertionError("called")

    class CrossEntropyLoss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cls_criterion, self.kinds = cross_entropy, {1, 2}

        def __setstate__(self, state):
            raise AssertionError("unpickled")

    class EasyDict(dict):
        pass

    module = types.ModuleType("isegm_planted")
    module.EasyDict = EasyDict
    for one in (cross_entropy, CrossEntropyLoss, EasyDict):
        one.__module__, one.__qualname__ = module.__name__, one.__name__
        setattr(module, one.__name__, one)
    sys.modules[module.__name__] = module
    yield module
    sys.modules.pop(module.__name__, None)


def test_a_plain_file_is_read_with_weights_only(tmp_path, state):
    path = tmp_path / "coco_lvis_h18s_baseline.pth"
    torch.save({"state_dict": state, "config": config(width=6, norm_radius=3, use_disks=True)}, path)
    found = read_checkpoint(path)
    assert (found.family, found.class_name, found.inert) == ("ritm", "isegm.model.is_hrnet_model.HRNetModel", ())
    assert found.arguments["norm_radius"] == 3
    network = build_network(found, "ritm")
    assert (network.with_prev_mask, network.click_maps.norm_radius, network.training) == (False, 3, False)
    for name, value in network.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert network(torch.rand(1, 3, 32, 32), pack_clicks([[]]))["instances"].shape == (1, 1, 32, 32)


def test_a_file_of_torch_before_1_6_is_read(tmp_path, state):
    path = tmp_path / "old.pth"
    content = {"state_dict": state, "config": config()}
    torch.save(content, path, _use_new_zipfile_serialization=False)
    assert torch.equal(read_checkpoint(path).state["maps_transform.0.weight"], state["maps_transform.0.weight"])
    # torch's own safe reader would take this much memory.
    torch.save({**content, "more": Call(bytearray, 1 << 36)}, path, _use_new_zipfile_serialization=False)
    with pytest.raises(DataError, match=r"names builtins\.bytearray"):
        read_checkpoint(path)


def test_a_file_with_a_pickled_module_is_read_and_nothing_is_unpickled(tmp_path, state, planted_classes):
    path = tmp_path / "cocolvis.pth"
    head = {"loss_decode": planted_classes.CrossEntropyLoss(), "align": False, "channels": 256}
    run = planted_classes.EasyDict(EXPS="here", nested=planted_classes.EasyDict(depth=12))
    torch.save({"state_dict": state, "config": config(head_params=head, run=run, device=torch.device("cuda:1"))}, path)
    sys.modules.pop(planted_classes.__name__)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(path, weights_only=True)
    found = read_checkpoint(path)
    assert {"isegm_planted.CrossEntropyLoss", "isegm_planted.cross_entropy", "torch.device"} <= set(found.inert)
    assert found.arguments["head_params"] == {"loss_decode": None, "align": False, "channels": 256}
    assert found.arguments["run"] == {"EXPS": "here", "nested": {"depth": 12}}
    assert found.arguments["device"] is None
    network = build_network(found)
    for name, value in network.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert planted_classes.__name__ not in sys.modules


def test_a_safetensors_file_tells_the_architecture_by_its_shapes(tmp_path, state):
    path = tmp_path / "converted.safetensors"
    save_file({f"module.{name}": value for name, value in state.items()}, path)
    network = build_network(read_checkpoint(path))
    assert network.feature_extractor.width == 6
    assert network.feature_extractor.small
    assert network.click_maps.norm_radius == 5


@pytest.mark.parametrize(
    ("entry", "class_name", "family"),
    [
        ("refiner.x", "isegm.model.is_hrnet_model.HRNetModel", "focalclick"),
        ("x", "isegm.model.is_plainvit_model.PlainVitModel", "simpleclick"),
        ("patch_embed_coords.proj.weight", "", "simpleclick"),
        ("x", "isegm.model.is_gp_resnet50.GpModel", "gpcis"),
        ("x", "isegm.model.is_adaptiveclick_model.AdaptiveClickModel", "adaptiveclick"),
        ("feature_extractor.FDM.t.weight", "isegm.model.is_deeplab_model.DeeplabModel", "cdnet"),
    ],
)
def test_families_are_told_by_entries_and_class(tmp_path, entry, class_name, family):
    path = tmp_path / "x.pth"
    torch.save({"state_dict": {entry: torch.zeros(1)}, "config": config(class_name)}, path)
    assert read_checkpoint(path).family == family
    assert family in FAMILIES


def test_a_checkpoint_of_another_family_is_refused(tmp_path, state):
    path = tmp_path / "x.pth"
    torch.save({"state_dict": state, "config": config()}, path)
    with pytest.raises(ModelError, match="of the family ritm, not simpleclick"):
        build_network(read_checkpoint(path), "simpleclick")
    torch.save({"state_dict": {"a": torch.zeros(1)}, "config": config("os.system")}, path)
    with pytest.raises(ModelError, match=r"of no network known here \(os.system\)"):
        build_network(read_checkpoint(path))


def test_missing_and_misshapen_entries_are_named(tmp_path, state):
    path = tmp_path / "x.pth"
    short = {name: value for name, value in state.items() if not name.endswith("aux_head.3.bias")}
    torch.save({"state_dict": short}, path)
    with pytest.raises(ModelError, match=r"1 missing: feature_extractor.aux_head.3.bias"):
        build_network(read_checkpoint(path))
    torch.save({"state_dict": {"feature_extractor.ocr_distri_head.x": torch.zeros(1)}}, path)
    with pytest.raises(ModelError, match="not a checkpoint of ritm"):
        build_network(read_checkpoint(path))


@pytest.mark.parametrize("attack", ["os.system", "eval", "nested reduce", "torch._utils function", "setattr"])
@pytest.mark.parametrize("place", ["config", "state_dict", "state entry"])
def test_hostile_checkpoints_never_run(tmp_path, attack, place):
    trace, path = tmp_path / "trace", tmp_path / "x.pth"
    evil = attacks(trace)[attack]
    content = {"state_dict": {"a": 1}, "config": config()}
    if place == "config":
        content["config"]["params"]["x"] = {"value": evil}
    elif place == "state_dict":
        content["state_dict"] = evil
    else:
        content["state_dict"]["a"] = evil
    write_archive(path, pickle.dumps(content, 2))
    with pytest.raises(DataError, match=r"x\.pth"):
        read_checkpoint(path)
    assert not trace.exists()
    # The same without an archive, as torch wrote before 1.6.
    path.write_bytes(pickle.dumps(content, 2))
    with pytest.raises(DataError):
        read_checkpoint(path)
    assert not trace.exists()


def test_content_that_is_no_checkpoint_is_refused(tmp_path):
    path = tmp_path / "x.pth"
    for content, message in (
        ([{"state_dict": {}}], "several stages"),
        ({"state_dict": {}}, "no state dict"),
        (7, "no state dict"),
        ({"state_dict": {"a": 3}}, "the entry a of the state dict is no tensor"),
        ({"state_dict": {3: torch.zeros(1)}}, "no tensor"),
    ):
        torch.save(content, path)
        with pytest.raises(DataError, match=message):
            read_checkpoint(path)
    for damaged in (b"", b"PK", b"nothing", path.read_bytes()[:-40]):
        path.write_bytes(damaged)
        with pytest.raises(DataError):
            read_checkpoint(path)
    with pytest.raises(DataError, match="does not exist"):
        read_checkpoint(tmp_path / "none.pth")


def test_settings_without_end_are_refused(tmp_path, state):
    endless = []
    endless.append(endless)
    laughs = ["ha"]
    for _ in range(40):
        laughs = [laughs, laughs]
    for value in (endless, laughs):
        path = tmp_path / "x.pth"
        pickled = tensor_pickle(
            {"a": (4, 0, (4,), (1,))}, more={"config": config(x=value), "more": attacks(path)["torch load"]}
        )
        write_archive(path, pickled, {"0": bytes(16)})
        with pytest.raises(DataError, match="too large or too deep"):
            read_checkpoint(path)


def test_random_networks_depend_on_the_seed_alone():
    before = torch.random.get_rng_state()
    one, same, other = (build_random("ritm", "hrnet18s", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    name = "feature_extractor.conv1.weight"
    assert torch.equal(one.state_dict()[name], same.state_dict()[name])
    assert not torch.equal(one.state_dict()[name], other.state_dict()[name])
    assert not one.training


def wrap(state, how):
    """The content of a file, as training scripts have come to save it."""
    return {
        "alone": state,
        "below model": {"model": state, "epoch": 3},
        "two levels": {"state_dict": {"state_dict": state}, "config": config(norm_radius=3)},
        "flattened": {f"state_dict.{name}": value for name, value in state.items()},
        "parallel": {"state_dict": {f"module.{name}": value for name, value in state.items()}},
        "both": {f"state_dict.module.{name}": value for name, value in state.items()},
        "half": {"state_dict": {name: v.half() if v.is_floating_point() else v for name, v in state.items()}},
        "double": {"state_dict": {name: v.double() if v.is_floating_point() else v for name, v in state.items()}},
    }[how]


WAYS = ["alone", "below model", "two levels", "flattened", "parallel", "both", "half", "double"]


@pytest.mark.parametrize("how", WAYS)
def test_the_same_network_wrapped_in_other_ways(tmp_path, state, how):
    torch.save(wrap(state, how), tmp_path / "file.pth")
    # What is recognised in a folder can also be loaded, and the other way round.
    assert set(read_outline(tmp_path / "file.pth").state) == set(state)
    found = build_network(read_checkpoint(tmp_path / "file.pth"), "ritm").state_dict()
    for name, value in state.items():
        expected = value.half().float() if how == "half" and value.is_floating_point() else value
        assert torch.equal(found[name], expected) and found[name].dtype == value.dtype


FAMILIES_AND_SIZES = [
    ("ritm", "hrnet18s"), ("simpleclick", "vit_xtiny"), ("cdnet", "resnet34"), ("gpcis", "resnet50"),
    ("focalclick", "hrnet18s"), ("focalclick", "segformerb0"), ("adaptiveclick", "vit_base"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "size"), FAMILIES_AND_SIZES)
def test_every_family_names_what_its_tensors_lack(family, size, tmp_path):
    module, _, name = FAMILIES[family][0].partition(":")
    with torch.device("meta"):
        state = getattr(importlib.import_module(module), name).build(size).state_dict()
    *kept, last = state
    few = {name: state[name] for place, name in enumerate(state) if place % 5}
    for given, told in (({name: state[name] for name in kept}, f"1 missing: {last}"), (few, "missing")):
        with pytest.raises(ModelError, match=told) as lacking:
            check_outline(Checkpoint(tmp_path / "file.pth", "", given))
        assert lacking.value.file == str(tmp_path / "file.pth")


def test_values_that_are_no_numbers_are_refused(tmp_path, state):
    for wrong in (float("nan"), float("inf")):
        changed = {**state, "feature_extractor.cls_head.bias": torch.tensor([wrong])}
        torch.save({"state_dict": changed}, tmp_path / "file.pth")
        with pytest.raises(ModelError, match=r"1 tensors hold values that are not finite: feature_extractor\.cls_head"):
            build_network(read_checkpoint(tmp_path / "file.pth"))


def test_a_small_file_does_not_make_a_large_network(tmp_path, state, monkeypatch):
    """The width of one tensor is that of others, which a file need not have."""
    made = []
    build = RITM.from_checkpoint.__func__
    monkeypatch.setattr(RITM, "from_checkpoint", classmethod(lambda *given: made.append(build(*given)) or made[-1]))
    wide = {**state, "feature_extractor.cls_head.weight": torch.zeros(1, 2048, 1, 1)}
    torch.save({"state_dict": wide}, tmp_path / "file.pth")
    with pytest.raises(ModelError, match="of another shape"):
        build_network(read_checkpoint(tmp_path / "file.pth"))
    assert all(value.is_meta for network in made for value in network.parameters())


def test_changed_bits_of_a_tensor_are_found_in_every_kind_of_file(tmp_path, state, planted_classes):
    more = config(loss_decode=planted_classes.CrossEntropyLoss())
    for name, content in (("plain.pth", {"state_dict": state}), ("pickled.pth", {"state_dict": state, "config": more})):
        torch.save(content, tmp_path / name)
        whole = bytearray((tmp_path / name).read_bytes())
        place = whole.index(state["feature_extractor.conv1.weight"].numpy().tobytes())
        whole[place + 99] ^= 4
        (tmp_path / name).write_bytes(whole)
        with pytest.raises(DataError, match=r"does not have its checksum|Bad CRC-32"):
            read_checkpoint(tmp_path / name)
