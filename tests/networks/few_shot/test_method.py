"""What methods share: how they are built, and the classifier of the training classes."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from hardlook.networks.backbones import build_backbone
from hardlook.networks.few_shot.catalogue import list_methods
from hardlook.networks.few_shot.leo import Leo
from hardlook.networks.few_shot.method import ClassClassifier, Episodes, FewShotMethod
from hardlook.networks.few_shot.versa import Versa
from hardlook.training.few_shot_trainee import probe_backbone

FACTS = {"channels": 4, "classes": 7, "ways": 3, "side": 2}


class Named(FewShotMethod):
    def __init__(self, backbone=None, *, channels=1, side=9, rate=0.5):
        super().__init__(backbone)
        self.given = (channels, side, rate)


class PassesOptionsOn(Named):
    def __init__(self, backbone=None, *, ways=0, **options):
        super().__init__(backbone, **options)
        self.ways = ways


def test_a_constructor_gets_the_facts_that_it_names():
    backbone = nn.Identity()
    assert Named.build(backbone, **FACTS).given == (4, 2, 0.5)
    assert FewShotMethod.build(backbone, **FACTS).emb_func is backbone
    made = PassesOptionsOn.build(backbone, **FACTS, rate=0.1)
    assert made.given == (4, 2, 0.1) and made.ways == 3
    with pytest.raises(TypeError, match="wrong"):
        Named.build(backbone, **FACTS, wrong=1)


class Renamed(ClassClassifier):
    class_layer = "head"

    def __init__(self, backbone=None, *, channels=2, classes=None):
        super().__init__(backbone)
        if classes is not None:
            self.head = nn.Linear(channels, classes)


def test_a_classifier_of_the_training_classes():
    """The cross-entropy of the layer that `class_layer` names, by hand; an error where there is none."""
    method = Renamed(classes=3)
    features = torch.tensor([[1.0, 2.0], [0.0, -1.0]])
    loss, scores = method.class_loss(features, torch.tensor([2, 0]))
    wanted = features @ method.head.weight.T + method.head.bias
    assert torch.allclose(scores, wanted)
    chances = wanted.exp() / wanted.exp().sum(1, keepdim=True)
    assert torch.allclose(loss, -(chances[0, 2].log() + chances[1, 0].log()) / 2)
    with pytest.raises(ValueError, match="Renamed was built without training classes"):
        Renamed().class_loss(features, torch.tensor([2, 0]))


def test_the_catalogue_reads_what_the_classes_say():
    """Read from the text, in Python's order of inheritance, and not from the classes themselves."""
    for entry in list_methods():
        kind = entry.load()
        found = (entry.stages, entry.transductive, entry.learner, entry.facts.get("inputs", "vectors"))
        assert found == (kind.stages, kind.transductive, kind.learner, kind.inputs), entry.name


@pytest.mark.parametrize("kind", [Versa, Leo])
def test_noise_of_a_test_follows_from_the_tasks_keys(kind):
    """The same whatever was drawn before, and whichever tasks are answered together; other keys have other noise."""
    episodes = Episodes(torch.randn(2, 3, 2, 8), torch.randn(2, 4, 8), keys=("a", "b"))
    method = kind(channels=8).eval()
    torch.manual_seed(1)
    scores = method.classify(episodes)
    assert torch.equal(method.classify(episodes), scores)
    one = Episodes(episodes.support[1:], episodes.query[1:], keys=("b",))
    torch.testing.assert_close(method.classify(one), scores[1:])
    assert not torch.allclose(method.classify(replace(episodes, keys=("a", "c")))[1], scores[1])
    unnamed = replace(episodes, keys=())
    assert not torch.equal(method.classify(unnamed), method.classify(unnamed))


def build_small(entry, **options):
    """The method on a narrow Conv64F for images of 32 pixels, in float64 and evaluation mode."""
    kind = entry.load()
    torch.manual_seed(0)
    output = "vectors" if kind.inputs == "vectors" else "maps"
    backbone = build_backbone("conv64f", output=output, channels=8)
    channels, side = probe_backbone(backbone, output, 32)
    return kind.build(backbone, channels=channels, classes=7, ways=3, side=side, **options).double().eval()


WITHOUT_NOISE = {"noise": lambda shape, **options: torch.zeros(shape, **options)}


@pytest.mark.parametrize("entry", [one for one in list_methods() if one.learner is None], ids=lambda one: one.name)
def test_only_transductive_methods_look_at_other_queries(entry):
    """Those that normalise queries by the statistics of their batch are transductive, too."""
    method = build_small(entry, **(WITHOUT_NOISE if entry.name in ("leo", "versa") else {}))
    images = torch.randn(1, 3, 2, 3, 32, 32).double(), torch.randn(1, 5, 3, 32, 32).double()
    episodes = Episodes(*images, keys=("a",))
    with torch.no_grad():
        whole, part = method.classify(episodes), method.classify(replace(episodes, query=episodes.query[:, :3]))
    differs = float((whole[:, :3] - part).abs().max() / whole.abs().max()) > 1e-6
    assert differs is method.transductive


RULED = [one for one in list_methods() if one.learner is None]


@pytest.mark.parametrize("entry", RULED, ids=lambda one: one.name)
def test_tasks_of_other_ways_are_answered_unless_layers_are_made_for_some(entry):
    method = build_small(entry)
    episodes = Episodes(torch.randn(1, 4, 1, 3, 32, 32).double(), torch.randn(1, 2, 3, 32, 32).double())
    try:
        with torch.no_grad():
            answered = method.classify(episodes).shape == (1, 2, 4)
    except (RuntimeError, ValueError):
        answered = False
    assert answered is not method.fixed_ways


def test_boil_by_class_means_answers_any_ways():
    entry = next(one for one in list_methods() if one.name == "boil")
    method = build_small(entry, test="nil")
    assert not method.fixed_ways
    assert method.classify(
        Episodes(torch.randn(1, 4, 1, 3, 32, 32).double(), torch.randn(1, 2, 3, 32, 32).double())
    ).shape == (1, 2, 4)


def test_released_ifsl_is_transductive():
    entry = next(one for one in list_methods() if one.name == "ifsl-matchingnet")
    assert build_small(entry, released=True).transductive and not build_small(entry).transductive
