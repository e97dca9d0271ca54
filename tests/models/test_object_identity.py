"""Objects are known by their source and by everything they hold."""

import functools
import subprocess
import sys
import threading
from enum import Enum

import numpy as np
import pytest

from hardlook.errors import ModelError
from hardlook.models.object_identity import hash_object, identify_given, identify_object, name_object

FACTOR = 3


class Colour(Enum):
    RED = 1


class Holder:
    def __init__(self, **held):
        self.__dict__.update(held)


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def scale(image, by=2):
    return image * by * FACTOR


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Holder(a=1), Holder(a=2)),
        (Holder(a=1), Holder(b=1)),
        (Holder(a=1), Holder(a=1.0)),
        (Holder(a=True), Holder(a=1)),
        (Holder(a=[1, 2]), Holder(a=[2, 1])),
        (Holder(a=[1, 2]), Holder(a=(1, 2))),
        (Holder(a=[["x"], []]), Holder(a=[[], ["x"]])),
        (Holder(a={"k": 1}), Holder(a={"k": 2})),
        (Holder(a=np.zeros(3)), Holder(a=np.zeros(3, np.float32))),
        (Holder(a=np.zeros(4)), Holder(a=np.zeros((2, 2)))),
        (Holder(a=np.array(["a", None], object)), Holder(a=np.array(["b", None], object))),
        (Holder(a="ab", b="c"), Holder(a="a", b="bc")),
        (Slotted(1), Slotted(2)),
        (functools.partial(scale, by=2), functools.partial(scale, by=3)),
        (lambda x: x + 1, lambda x: x + 2),
        (Holder(a=Colour.RED), Holder(a=None)),
        (Holder(a=len), Holder(a=sum)),
        (Holder(a=Holder().__init__), Holder(a=Holder(x=1).__init__)),
    ],
)
def test_what_differs_has_another_hash(first, second):
    assert hash_object(first) != hash_object(second)


def test_equal_objects_have_equal_hashes():
    def make():
        held = Holder(a=np.arange(3), b={"y": [1.5], "x": {3, 1, 2}}, c=Colour.RED, d=Slotted("s"), e=threading.Lock())
        held.itself = held
        return held

    assert hash_object(make()) == hash_object(make())
    assert hash_object(Holder(a={"x": 1, "y": 2})) == hash_object(Holder(a={"y": 2, "x": 1}))


def test_a_function_is_hashed_with_what_it_uses(monkeypatch):
    before = hash_object(scale)
    monkeypatch.setitem(globals(), "FACTOR", 4)
    assert hash_object(scale) != before

    def make(inner):
        return lambda image: image * inner

    assert hash_object(make(1)) != hash_object(make(2))

    def make_default(value):
        def scaled(image, by=value):
            return image * by

        return scaled

    def make_keyword(value):
        def scaled(image, *, by=value):
            return image * by

        return scaled

    for one in (make_default, make_keyword):
        assert hash_object(one(1)) == hash_object(one(1)) != hash_object(one(2))


PROGRAM = """
import sys
{definition}
from hardlook.models.object_identity import hash_object
print(hash_object(Net(3)))
"""

NET = """
class Net:
    def __init__(self, n):
        self.n = n
    def segment(self, images):
        return {value}
"""


def test_a_class_without_a_file_is_known_by_its_code_in_every_process():
    def run(value):
        program = PROGRAM.format(definition=NET.format(value=value))
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert run(1) == run(1) != run(2)


def test_networks_are_known_by_their_parameters_and_their_mode():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).eval()
    before, found = hash_object(network), identify_object(network)
    assert found.parameters == 3 * 4 * 9 + 4 + 4 * 4 + 1 and "129 parameters" in found.describe()
    network(torch.rand(1, 3, 8, 8))
    assert hash_object(network) == before  # an answer changes nothing
    with torch.no_grad():
        network[0].weight[0, 0, 0, 0] += 1e-6
    assert hash_object(network) != before
    half = torch.nn.Linear(2, 2).to(torch.bfloat16)
    assert hash_object(half) != hash_object(half.to(torch.float32))
    scripted = torch.jit.script(torch.nn.Linear(2, 2))
    assert hash_object(scripted) != hash_object(torch.jit.script(torch.nn.Linear(2, 2)))


def test_what_cannot_be_hashed_asks_for_a_fingerprint():
    holder = Holder(a=(one for one in range(3)))
    with pytest.raises(ModelError, match="generator, whose changes cannot be detected"):
        hash_object(holder)
    holder.fingerprint = lambda: "mine"
    identity, _, words = identify_given(holder, name="holder", role="saliency")
    assert identity.source == "mine" and "own fingerprint" in words


def test_names():
    assert name_object(scale) == "scale" and name_object(functools.partial(scale)) == "scale"
    assert name_object(Holder()) == "Holder" and name_object(Holder(name="my net")) == "my net"
    assert name_object(Holder(name=3)) == "Holder"
