"""Networks of every kind, called with arrays; against the same network called by hand."""

import functools
import pickle

import cloudpickle
import numpy as np
import pytest
from tiny_networks import Logits, picture, to_input, write_onnx

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.models.object_identity import hash_object
from hardlook.models.wrapping.network_calls import NetworkCalls, evaluation_mode

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

IMAGES = to_input(picture(10, 14), picture(10, 14, seed=1))


KEPT = {}


def answer_by_hand(network, images=IMAGES):
    with torch.no_grad():
        return network.eval()(images).numpy()


def assert_same(raw, expected):
    assert np.allclose(np.asarray(raw), expected, atol=1e-6)


def test_a_module_answers_in_evaluation_mode_and_is_then_as_it_was():
    network = Logits().train()
    network.norm.eval()  # frozen, as in many recipes
    before = hash_object(network)
    raw = NetworkCalls(network)(IMAGES.numpy())
    assert not raw.requires_grad
    assert (network.training, network.norm.training, network.drop.training) == (True, False, True)
    assert hash_object(network) == before
    assert_same(raw, answer_by_hand(network))


def test_the_mode_comes_back_after_an_error():
    network = Logits().train()
    with pytest.raises(ValueError, match="inside"), evaluation_mode([network]):
        assert not network.drop.training
        raise ValueError("inside")
    assert network.drop.training


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same network as TorchScript and as an exported program with a free number and size of images."""
    folder = tmp_path_factory.mktemp("networks")
    network = Logits().eval()
    torch.jit.save(torch.jit.script(network), folder / "net.pt")
    free = {axis: torch.export.Dim.AUTO for axis in (0, 2, 3)}
    torch.export.save(torch.export.export(network, (IMAGES,), dynamic_shapes=(free,)), folder / "net.pt2")
    torch.export.save(torch.export.export(network, (IMAGES,)), folder / "fixed.pt2")
    return folder


@pytest.mark.parametrize("name", ["net.pt", "net.pt2"])
def test_a_file_answers_as_its_network(files, name):
    calls = NetworkCalls(str(files / name))
    assert_same(calls(IMAGES.numpy()), answer_by_hand(Logits()))
    assert calls.weights_files == (files / name,)
    assert (calls.network, calls.device, calls.libraries) == (files / name, "cpu", ("torch",))
    again = pickle.loads(pickle.dumps(calls))
    assert_same(again(IMAGES.numpy()), answer_by_hand(Logits()))


def test_what_a_file_fixes(files):
    assert NetworkCalls(files / "net.pt2").input_shape == (None, 3, None, None)
    assert NetworkCalls(files / "fixed.pt2").input_shape == (2, 3, 10, 14)
    assert NetworkCalls(files / "net.pt").input_shape == ()


@pytest.mark.parametrize("name", ["net.pt", "net.pt2"])
def test_a_file_in_memory_answers_and_pickles(files, name):
    path = files / name
    network = torch.jit.load(path) if path.suffix == ".pt" else torch.export.load(path)
    calls = NetworkCalls(network)
    assert calls.weights_files == ()
    assert_same(calls(IMAGES.numpy()), answer_by_hand(Logits()))
    assert_same(pickle.loads(pickle.dumps(calls))(IMAGES.numpy()), answer_by_hand(Logits()))


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "net.pt"
    for seed in (0, 1):
        torch.jit.save(torch.jit.script(Logits(classes=3 + seed, seed=seed).eval()), path)
        assert_same(NetworkCalls(path)(IMAGES.numpy()), answer_by_hand(Logits(classes=3 + seed, seed=seed)))


def test_an_onnx_file(tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    expected = np.einsum("kc,nchw->nkhw", weight, IMAGES.numpy())
    calls = NetworkCalls(write_onnx(tmp_path / "net.onnx", weight))
    assert (calls.arrays, calls.libraries, calls.input_shape) == ("numpy", ("onnxruntime",), (None, 3, None, None))
    assert_same(calls(IMAGES.numpy().astype(np.float64))["logits"], expected)
    assert_same(pickle.loads(pickle.dumps(calls))(IMAGES.numpy())["logits"], expected)
    several = NetworkCalls(write_onnx(tmp_path / "two.onnx", weight, (2, 3, 10, 14), ("1959", "1960")))
    assert several.input_shape == (2, 3, 10, 14)
    first, second = several(IMAGES.numpy())
    assert_same(first, expected)
    assert_same(second, -expected)
    assert isinstance(hash_object(calls), str)
    with pytest.raises(ModelError, match="runs on the CPU, not on 'cuda'"):
        NetworkCalls(tmp_path / "net.onnx", device="cuda")


@pytest.mark.parametrize(
    ("name", "words"), [("a.onnx", "onnxruntime"), ("a.pt2", "torch.export"), ("a.pt", "TorchScript")]
)
def test_a_damaged_file_is_named_at_once(tmp_path, name, words):
    (tmp_path / name).write_bytes(b"no network")
    with pytest.raises(ModelError, match=words) as caught:
        NetworkCalls(tmp_path / name)
    assert name in str(caught.value)


def test_a_pickled_network_is_not_unpickled(tmp_path):
    torch.save(Logits(), tmp_path / "whole.pt")
    with pytest.raises(ModelError, match="not a TorchScript file"):
        NetworkCalls(tmp_path / "whole.pt")


def test_what_is_no_network():
    with pytest.raises(DataError, match="does not exist"):
        NetworkCalls("nowhere.onnx")
    with pytest.raises(OptionError, match=r"builtins\.int cannot be called"):
        NetworkCalls(3)


def doubled(images):
    return images.astype(np.float32) * 2


class Holder:
    def __init__(self, network):
        self.network = network

    def __call__(self, images):
        return self.network(images)


def test_functions_are_given_what_they_are_written_for():
    network = Logits().train()
    held = Holder(network)
    for function in (lambda images: network(images), functools.partial(network), held, held.__call__, network.forward):
        calls = NetworkCalls(function)
        assert (calls.arrays, calls.libraries) == ("torch", ("torch",)), function
        assert_same(calls(IMAGES.numpy()), answer_by_hand(Logits()))
        assert network.drop.training, "the modules behind a function are in evaluation mode for the call alone"
    assert NetworkCalls(lambda images: torch.relu(images)).arrays == "torch"
    calls = NetworkCalls(doubled)
    assert (calls.arrays, calls.libraries) == ("numpy", ())
    assert_same(calls(IMAGES.numpy()), 2 * IMAGES.numpy())


def test_modules_behind_a_function_are_in_evaluation_mode():
    network = Logits().train()
    expected = answer_by_hand(Logits())
    KEPT["network"] = network
    held, listed, named = Holder(network), [network], {"segmenter": Holder(network)}

    def call(images):
        return network(images)

    def call_with_arrays(images):
        return held(torch.from_numpy(images)).detach().numpy()

    functions = {
        "object": lambda images: held.network(images),
        "list": lambda images: listed[0](images),
        "dictionary": lambda images: named["segmenter"].network(images),
        "function": lambda images: call(images),
        "partial": functools.partial(lambda function, images: function(images), call),
        "object in an object": Holder(Holder(network)),
        "global": lambda images: (lambda: KEPT["network"](images))(),
        "each image": lambda images: torch.cat([call(image[None]) for image in images]),
    }
    before = hash_object(network)
    for name, function in functions.items():
        assert_same(NetworkCalls(function, arrays="torch")(IMAGES.numpy()), expected)
        assert hash_object(network) == before, f"{name}: no statistics of the batch are kept"
    assert_same(NetworkCalls(call_with_arrays, arrays="numpy")(IMAGES.numpy()), expected)
    assert network.training and hash_object(network) == before


def test_arrays_can_be_chosen():
    assert isinstance(NetworkCalls(lambda images: images, arrays="torch")(IMAGES.numpy()), torch.Tensor)
    with pytest.raises(AttributeError) as caught:
        NetworkCalls(lambda images: images.unsqueeze(0))(IMAGES.numpy())
    assert "arrays='torch'" in caught.value.__notes__[0]
    with pytest.raises(OptionError, match="is for functions"):
        NetworkCalls(Logits(), arrays="numpy")
    with pytest.raises(OptionError, match="arrays is 'jax'"):
        NetworkCalls(doubled, arrays="jax")


def test_inputs_have_the_type_and_device_of_the_weights():
    network = Logits().to(torch.bfloat16)
    assert NetworkCalls(network)(IMAGES.numpy()).dtype == torch.bfloat16
    with pytest.raises(ModelError, match="no-such-device"):
        NetworkCalls(Logits(), device="no-such-device")
    with pytest.raises(OptionError, match="is for a GPU"):
        NetworkCalls(Logits(), precision="tf32")
    with pytest.raises(OptionError, match="precision is 'half'"):
        NetworkCalls(Logits(), precision="half")
    moved = Logits()
    assert NetworkCalls(moved, device="meta").device == "meta"
    assert moved.layer.weight.device.type == "meta", "a module is moved, not copied"
    assert NetworkCalls(moved).device == "meta", "without a device it is asked where it is"


def test_an_input_that_is_read_only_is_not_written_to():
    frozen = IMAGES.numpy().copy()
    frozen.setflags(write=False)
    NetworkCalls(lambda images: torch.Tensor.add_(images, 1))(frozen)
    assert np.array_equal(frozen, IMAGES.numpy())


def test_names_that_the_network_does_not_take_are_left_out():
    class Named(torch.nn.Module):
        def forward(self, pixel_values, pixel_mask=None):
            return pixel_values.sum() + (0 if pixel_mask is None else 100)

    images, mask = np.ones((1, 3, 2, 2), np.float32), np.ones((1, 2, 2), np.int64)
    assert NetworkCalls(Named())(named={"pixel_values": images, "original_sizes": mask}) == 12
    assert NetworkCalls(Named())(named={"pixel_values": images, "pixel_mask": mask}) == 112
    assert NetworkCalls(torch.nn.Identity())(named={"pixel_values": images}).shape == (1, 3, 2, 2)


def test_a_network_of_a_notebook_travels_by_cloudpickle():
    class Here(torch.nn.Module):
        def forward(self, images):
            return images.mean((2, 3))

    calls = pickle.loads(cloudpickle.dumps(NetworkCalls(Here())))
    assert_same(calls(IMAGES.numpy()), IMAGES.mean((2, 3)))
