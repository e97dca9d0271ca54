"""Models named inside models: their arguments, their device, and what a run knows of them."""

import pytest

from hardlook.errors import ModelError, OptionError
from hardlook.models.arguments import parse_arguments
from hardlook.models.identity import identify
from hardlook.models.named_model import build_inner
from hardlook.models.registry import build

ROLE = "one-shot-segmenter"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("layer=stride16,size=448", {"layer": "stride16", "size": "448"}),
        (" layer = stride16+head , size=448,", {"layer": "stride16+head", "size": "448"}),
        ("size=4,6,layer=head", {"size": "4,6", "layer": "head"}),
        ("path=a=b", {"path": "a=b"}),
    ],
)
def test_arguments_as_text(text, expected):
    assert parse_arguments(text) == expected


@pytest.mark.parametrize(("text", "words"), [("head", "'head' names no"), ("=3", "no argument"), ("a=1,a=2", "twice")])
def test_text_that_is_none(text, words):
    with pytest.raises(OptionError, match=words):
        parse_arguments(text)


def test_arguments_override_defaults():
    inner = build_inner("planted-encoder", "encoder", "turn=0.5", defaults={"turn": "1", "context": "0.25"})
    assert (inner.model.turn, inner.model.context) == (0.5, 0.25)


def test_errors_are_those_of_the_inner_model():
    with pytest.raises(ModelError, match="'planted-encoder' has no argument 'layer'"):
        build_inner("planted-encoder", "encoder", "layer=head")
    with pytest.raises(ModelError, match="does not have the role encoder; it is a saliency"):
        build_inner("planted-saliency", "encoder")


def test_a_device_for_a_model_that_has_none():
    assert build_inner("planted-encoder", "encoder", device="cpu").device == ""
    with pytest.raises(ModelError, match="takes no device, got 'cuda'"):
        build_inner("planted-encoder", "encoder", device="cuda")


def test_a_device_said_twice():
    with pytest.raises(OptionError, match="given twice"):
        build_inner("efficientnet-lite0", "encoder", "device=cpu", device="cuda")


def identity(name, **args):
    return identify(build(name, ROLE, args), name=name, role=ROLE, args=args)


def test_a_run_knows_the_inner_model_and_its_arguments():
    plain = identity("prototype", encoder="planted-encoder")
    assert plain.fingerprint() == identity("prototype", encoder="planted-encoder", encoder_args="").fingerprint()
    turned = identity("prototype", encoder="planted-encoder", encoder_args="turn=0.5")
    assert turned.source != plain.source
    assert turned.fingerprint() != plain.fingerprint()
    assert identity("nearest", encoder="planted-encoder").source != plain.source


def test_defaults_of_the_inner_model_said_or_not_are_the_same_code():
    first = build_inner("planted-saliency", "saliency", "")
    assert first.fingerprint() == build_inner("planted-saliency", "saliency", "centre=0").fingerprint()


def test_weights_of_the_inner_model_count_by_content(tmp_path):
    torch = pytest.importorskip("torch")
    from hardlook.models.encoders.efficientnet_lite0 import build_network

    known = []
    for seed, name in ((0, "a"), (0, "b"), (1, "c")):
        torch.manual_seed(seed)
        path = tmp_path / name / "random.pth"
        path.parent.mkdir()
        torch.save(build_network().state_dict(), path)
        known.append(identity("prototype", encoder_args=f"weights={path}"))
    assert known[0].source == known[1].source == known[2].source
    assert list(known[0].weights) == ["random.pth"]
    assert known[0].weights == known[1].weights != known[2].weights
    assert known[0].device == "cpu"
