"""Real networks keep their contract where their weights are installed, and core models everywhere."""

import pytest

from hardlook.errors import HardlookError
from hardlook.models.conformance import check_named
from hardlook.models.registry import build

REAL = (
    ("deeplabv3-voc", "semantic-segmenter", {}),
    ("saliency", "one-shot-segmenter", {}),
    ("prototype", "one-shot-segmenter", {"encoder_args": "size=64"}),
    ("prototype", "one-shot-segmenter", {"encoder_args": "size=64,layer=head", "background": "none"}),
    ("nearest", "one-shot-segmenter", {"encoder_args": "size=64"}),
)

CORE = (
    ("empty", {}),
    ("whole-image", {}),
    ("center-box", {"share": "0.3"}),
    ("saliency", {"model": "planted-saliency"}),
    ("prototype", {"encoder": "planted-encoder"}),
    ("prototype", {"encoder": "planted-encoder", "background": "none", "threshold": "0.7"}),
    ("nearest", {"encoder": "planted-encoder"}),
    ("nearest", {"encoder": "planted-encoder", "k": "3", "memory": "10000"}),
)


def failures(name, role, args):
    return [finding.line() for finding in check_named(name, role, args) if not finding.passed]


@pytest.mark.real
@pytest.mark.parametrize(("name", "role", "args"), REAL, ids=str)
def test_real_models_keep_their_contract(name, role, args):
    try:
        build(name, role, args)
    except HardlookError as error:
        pytest.skip(str(error))
    assert failures(name, role, args) == []


@pytest.mark.parametrize(("name", "args"), CORE, ids=str)
def test_models_without_training_keep_their_contract(name, args):
    assert failures(name, "one-shot-segmenter", args) == []
