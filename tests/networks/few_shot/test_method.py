"""What methods share: how they are built, and the classifier of the training classes."""

import pytest
import torch
from torch import nn

from hardlook.networks.few_shot.catalogue import list_methods
from hardlook.networks.few_shot.method import ClassClassifier, FewShotMethod

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
