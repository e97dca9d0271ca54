"""Where a library's network gets its weights from: said once, never unpickled, random only on demand."""

import pickle

import pytest

from hardlook.errors import DataError, HardlookError, ModelError, OptionError
from hardlook.models.families.network_weights import (
    choose_weights,
    fit_state,
    name_model,
    read_checkpoint,
    read_class_names,
    seeded_torch,
    suggest_name,
)

torch = pytest.importorskip("torch")


def make_network():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.BatchNorm2d(4))


def test_random_weights_are_asked_for_by_their_seed(tmp_path):
    def choose(**given):
        return choose_weights("timm:x", **{"weights": None, "random": None, "pretrained": True, **given})

    assert [choose(), choose(weights=tmp_path), choose(random=0), choose(random=0, pretrained=False)] == [
        "pretrained", "file", "random", "random"
    ]  # fmt: skip
    for wrong in ({"pretrained": False}, {"weights": tmp_path, "random": 1}, {"random": -1}):
        with pytest.raises(OptionError, match="timm:x"):
            choose(**wrong)
    assert name_model("timm:x", "random", 3) == "timm:x (random weights, seed 3)"
    assert name_model("timm:x", "file") == "timm:x"


def test_a_seed_gives_the_same_numbers_and_disturbs_nothing():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    with seeded_torch(5):
        assert torch.equal(torch.rand(3), expected)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("prefix", ["", "module.", "model.", "module._orig_mod."])
def test_prefixes_of_training_scripts_are_removed(tmp_path, prefix):
    state = make_network().state_dict()
    path = tmp_path / "net.pth"
    torch.save({"state_dict": {prefix + key: value for key, value in state.items()}, "epoch": 3}, path)
    read = read_checkpoint(path).state
    assert list(read) == list(state) and all(torch.equal(read[key], state[key]) for key in state)


def test_counters_of_training_do_not_count(tmp_path):
    source, target = make_network(), make_network()
    torch.nn.init.normal_(source[1].running_mean)
    state = {key: value for key, value in source.state_dict().items() if "num_batches" not in key}
    fit_state(target, state, tmp_path)
    assert torch.equal(target[1].running_mean, source[1].running_mean)


def test_weights_that_do_not_fit_name_the_tensors(tmp_path):
    network = make_network()
    state = dict(network.state_dict())
    state["0.weight"] = torch.zeros(5, 3, 1, 1)
    state["extra"] = state.pop("0.bias")
    with pytest.raises(ModelError, match=r"1 missing: 0\.bias; 1 unexpected: extra; 1 of another shape: 0\.weight"):
        fit_state(network, state, tmp_path)
    fit_state(network, {**network.state_dict(), "aux.weight": torch.zeros(1)}, tmp_path, ignore=("aux.",))


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


@pytest.mark.parametrize("write", [
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(b"PK\x03\x04 no archive"),
    lambda path: path.write_bytes(pickle.dumps({"a": Bomb()})),
    lambda path: torch.save({"a": Bomb()}, path),
    lambda path: torch.save([1, 2], path),
    lambda path: None,
])  # fmt: skip
def test_damaged_and_hostile_files_are_errors_that_name_them(tmp_path, write):
    path = tmp_path / "net.pth"
    write(path)
    with pytest.raises(HardlookError) as caught:
        read_checkpoint(path)
    assert caught.value.file == str(path) and caught.value.remedy


def test_names_of_classes_with_commas_or_from_a_file(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("\ufeffbackground\n\n road \n", encoding="utf-8")
    assert read_class_names([str(path)]) == ("background", "road")
    assert read_class_names(("a", "b")) == ("a", "b") and read_class_names(("road",)) == ("road",)
    assert read_class_names(None) is None
    path.write_text("\n")
    for wrong in (path, tmp_path / "absent.txt", tmp_path):
        if wrong == tmp_path:
            path.write_bytes(b"\xff\xfe\xff")
            wrong = path
        with pytest.raises(DataError) as caught:
            read_class_names([str(wrong)])
        assert caught.value.file == str(wrong)


def test_an_unknown_name_comes_with_the_nearest():
    error = suggest_name("timm", "resnet5O", ["resnet50", "vit_tiny"])
    assert "did you mean timm:resnet50?" in error.remedy and "--family timm" in error.remedy
