"""Networks prepared for a GPU: which have a form, when it is made anew, how long it lives, what a graph is kept for."""

import copy
import gc
import weakref
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from random_click_networks import make_ritm, make_simpleclick
from torch import nn
from triton_tests import DEVICE

from hardlook.networks.interactive.click_maps import pack_clicks
from hardlook.networks.interactive.gpu import inference as gpu_inference
from hardlook.networks.interactive.gpu import ritm as gpu_ritm
from hardlook.networks.interactive.gpu import simpleclick as gpu_simpleclick
from hardlook.networks.interactive.gpu.inference import GpuNetwork, GpuOptions, prepare
from hardlook.networks.interactive.ritm import RITM
from hardlook.networks.interactive.simpleclick import SimpleClick

COURSES = [[(5, 7, True), (20, 20, False)], [(9, 15, True)]]
NEEDS_GPU = pytest.mark.skipif(DEVICE.type != "cuda", reason="no GPU here")


@pytest.fixture(autouse=True)
def all_digits():
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


@pytest.fixture(params=[make_ritm, make_simpleclick], ids=["ritm", "simpleclick"])
def network(request):
    return request.param().to(DEVICE)


def answers(network, prepared, inputs, clicks=2, sizes=None):
    """Logits of both, of courses of so many clicks."""
    points = pack_clicks([course[:clicks] for course in COURSES[: len(inputs)]], device=inputs.device)
    given = {} if sizes is None else {"sizes": sizes}
    with torch.no_grad():
        return network(inputs, points, **given)["instances"], prepared(inputs, points, sizes)


def check(plain, found, tolerance=1e-4):
    assert found.shape == plain.shape
    assert (found - plain).abs().max() <= tolerance * plain.abs().max()


@pytest.mark.parametrize("options", [GpuOptions(), GpuOptions(kernels=False), GpuOptions(replay=False)])
def test_a_prepared_network_answers_as_the_network(network, options):
    """Also when a graph is recorded, at the third call with a shape, and replayed, with any number of clicks."""
    prepared = prepare(network, options)
    assert prepared.takes_sizes is isinstance(network, RITM)
    for count in (2, 1, 2, 2, 1, 2, 2):
        inputs = torch.rand(count, 4, 24, 24, device=DEVICE)
        for clicks in (1, 2):
            check(*answers(network, prepared, inputs, clicks))


def test_a_graph_sees_the_sizes_of_its_call():
    network = make_ritm().to(DEVICE)
    prepared = prepare(network)
    for rows in (24, 20, 17, 24, 9):
        inputs, sizes = torch.rand(2, 4, 24, 24, device=DEVICE), torch.tensor([[rows, 24], [24, rows]], device=DEVICE)
        plain, found = answers(network, prepared, inputs, sizes=sizes)
        check(plain[0, :, :rows], found[0, :, :rows])
        check(plain[1, :, :, :rows], found[1, :, :, :rows])


def test_a_form_is_kept_per_network_and_options(network):
    prepared = prepare(network)
    assert isinstance(prepared, GpuNetwork)
    assert prepare(network) is prepare(network, GpuOptions()) is prepared
    other = prepare(network, GpuOptions(kernels=False))
    assert other is not prepared
    assert prepare(network, GpuOptions(kernels=False)) is other
    assert prepare(network) is prepared
    assert prepare(copy.deepcopy(network)) is not prepared


def test_kernels_are_loaded_only_if_they_are_wanted(network, monkeypatch):
    asked = []
    for module in (gpu_ritm, gpu_simpleclick):
        monkeypatch.setattr(module, "load_kernels", asked.append)
    prepare(network, GpuOptions(kernels=False))
    assert not asked
    prepare(network)
    assert [where.type for where in asked] == [DEVICE.type]


def change_in_place(network):
    with torch.no_grad():
        next(network.parameters()).mul_(1.5)


def load_others(network):
    torch.manual_seed(1)
    network.load_state_dict((make_ritm() if isinstance(network, RITM) else make_simpleclick()).state_dict())


def assign_others(network):
    torch.manual_seed(1)
    other = (make_ritm() if isinstance(network, RITM) else make_simpleclick()).to(DEVICE)
    network.load_state_dict(other.state_dict(), assign=True)


def replace_parameter(network):
    network.logit_layer.bias = nn.Parameter(network.logit_layer.bias.detach() + 1)


CHANGES = [change_in_place, load_others, assign_others, replace_parameter, nn.Module.double]


@pytest.mark.parametrize("change", CHANGES)
def test_a_form_is_made_anew_once_a_parameter_has_changed(network, change):
    prepared, inputs = prepare(network), torch.rand(1, 4, 24, 24, device=DEVICE)
    before, _ = answers(network, prepared, inputs)
    change(network)
    inputs = inputs.to(network.logit_layer.weight.dtype)
    again = prepare(network)
    assert again is not prepared
    assert prepare(network) is again
    plain, found = answers(network, again, inputs)
    assert found.dtype == inputs.dtype
    check(plain, found)
    if inputs.dtype == torch.float32:
        assert (found - before).abs().max() > 1e-3 * before.abs().max()


def test_other_parameters_never_lie_where_those_of_a_form_were():
    """Their version is 0, too, and they would pass for the same."""
    network = make_ritm()
    layer = network.feature_extractor.layer1[0].conv3
    memory = np.random.default_rng(0).normal(size=(256, 64, 1, 1)).astype(np.float32)
    living = weakref.ref(memory)
    layer.weight = nn.Parameter(torch.from_numpy(memory))
    del memory
    prepared = prepare(network)
    layer.weight = nn.Parameter(torch.randn(256, 64, 1, 1))
    assert living() is not None, "not free for others"
    assert prepare(network) is not prepared
    del prepared
    assert living() is None
    check(*answers(network, prepare(network), torch.rand(1, 4, 24, 24)))


def test_a_form_keeps_what_its_graphs_read(network):
    prepared, read = prepare(network), {one.data_ptr() for one in (*network.parameters(), *network.buffers())}
    assign_others(network)
    kept = {one.data_ptr() for one in prepared._kept}
    assert kept == read
    assert not any(one.data_ptr() in kept for one in network.parameters())


def test_there_is_no_form_of_parameters_without_a_version(network):
    """Those of inference mode may be changed in it without a trace."""
    with torch.inference_mode():
        other = (make_ritm() if isinstance(network, RITM) else make_simpleclick()).to(DEVICE)
        assert all(one.is_inference() for one in other.parameters())
        assert prepare(other) is None
        assert prepare(network) is not None
    network.logit_layer.bias = other.logit_layer.bias
    assert prepare(network) is None


def test_running_statistics_are_looked_at_too():
    network = make_ritm()
    prepared, inputs = prepare(network), torch.rand(1, 4, 24, 24)
    network.feature_extractor.bn1.running_mean.add_(1)
    assert prepare(network) is not prepared
    check(*answers(network, prepare(network), inputs))


def test_there_is_no_form_in_training_with_hooks_or_without_layers(network):
    assert prepare(network, GpuOptions(enabled=False)) is None
    assert prepare(network.train()) is None
    assert prepare(network.eval()) is not None
    layer = list(network.modules())[-1]
    layer.train()
    assert prepare(network) is None, "one layer in training"
    layer.eval()
    for register in (layer.register_forward_hook, layer.register_forward_pre_hook):
        handle = register(lambda *_: None)
        assert prepare(network) is None
        handle.remove()
        assert prepare(network) is not None
    register_everywhere = torch.nn.modules.module.register_module_forward_hook
    handle = register_everywhere(lambda *_: None)
    try:
        assert prepare(network) is None, "a hook of all layers"
    finally:
        handle.remove()
    layer.forward = lambda x: x
    assert prepare(network) is None, "a layer that was given another function"
    del layer.forward
    for dtype in (torch.bfloat16, torch.float16):
        assert prepare(network.to(dtype)) is None


def test_there_is_no_form_of_other_classes():
    class Changed(SimpleClick):
        pass

    class OwnConvolution(nn.Conv2d):
        def forward(self, x):
            return 2 * super().forward(x)

    changed = Changed(4, 8, 8, 2, (4, 6, 8, 10), 12, side=24).eval()
    assert prepare(changed) is None
    assert prepare(nn.Conv2d(4, 1, 1).eval()) is None
    assert prepare(lambda inputs, points: inputs) is None
    network = make_ritm()
    extractor = network.feature_extractor
    extractor.conv1 = OwnConvolution(3, 64, 3, 2, 1, bias=False).eval()
    assert prepare(network) is None, "a layer of somebody else's class"


def swap(path, make):
    """A change of a network: what `make` makes of the layer at `path` in its place."""

    def change(network):
        parent, _, name = path.rpartition(".")
        setattr(network.get_submodule(parent), name, make(network.get_submodule(path)).eval())

    return change


def reflect(layer):
    other = nn.Conv2d(64, 64, 3, 2, 1, bias=False, padding_mode="reflect")
    other.weight = layer.weight
    return other


def space_out(layer):
    other = nn.Conv2d(64, 64, 3, 2, 2, bias=False, dilation=2)
    other.weight = layer.weight
    return other


def join_norm(network):
    extractor = network.feature_extractor
    extractor.conv1 = torch.nn.utils.fuse_conv_bn_eval(extractor.conv1, extractor.bn1)
    extractor.bn1 = nn.Identity().eval()


def convert_norms(network):
    nn.SyncBatchNorm.convert_sync_batchnorm(network)


def share_layer(network):
    network.feature_extractor.layer1[1] = network.feature_extractor.layer1[0]


def round_layer(network):
    network.feature_extractor.bn1.double()


def forget_statistics(network):
    norm = network.feature_extractor.bn1
    norm.track_running_stats, norm.running_mean, norm.running_var = False, None, None


OTHERS = {
    "GELU of the clicks": (make_ritm, swap("maps_transform.1", lambda _: nn.GELU())),
    "PReLU of the clicks": (make_ritm, swap("maps_transform.1", lambda _: nn.PReLU())),
    "reflected pixels": (make_ritm, swap("feature_extractor.conv2", reflect)),
    "dilation": (make_ritm, swap("feature_extractor.conv2", space_out)),
    "no norm": (make_ritm, join_norm),
    "a group norm": (make_ritm, swap("feature_extractor.bn1", lambda _: nn.GroupNorm(8, 64))),
    "norms of several processes": (make_ritm, convert_norms),
    "no running statistics": (make_ritm, forget_statistics),
    "a layer that stands twice": (make_ritm, share_layer),
    "a layer of float64": (make_ritm, round_layer),
    "SiLU": (make_simpleclick, swap("neck.down_16.2", lambda _: nn.SiLU())),
    "another GELU": (make_simpleclick, swap("neck.down_16.2", lambda _: nn.GELU("tanh"))),
    "Dropout": (make_simpleclick, swap("neck.down_16.2", lambda gelu: nn.Sequential(gelu, nn.Dropout()))),
    "no layer norm": (make_simpleclick, swap("backbone.blocks.0.norm1", lambda _: nn.Identity())),
    "a layer norm without weights": (
        make_simpleclick,
        swap("backbone.blocks.0.norm1", lambda _: nn.LayerNorm(8, elementwise_affine=False)),
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_there_is_no_form_with_other_layers(name):
    make, change = OTHERS[name]
    network = make()
    assert prepare(network) is not None
    change(network)
    assert prepare(network) is None


def test_that_there_is_no_form_is_found_out_once(monkeypatch):
    network, asked, find = make_ritm(), [], gpu_inference._is_as_built
    monkeypatch.setattr(gpu_inference, "_is_as_built", lambda network: asked.append(1) or find(network))
    network.maps_transform[1] = nn.GELU().eval()
    assert prepare(network) is prepare(network) is None
    assert len(asked) == 1
    network.maps_transform[1] = nn.ReLU().eval()
    assert prepare(network) is not None


def test_attributes_that_a_form_reads_may_be_others(network):
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d | nn.GroupNorm | nn.LayerNorm):
            layer.eps = 0.05
        elif isinstance(layer, nn.LeakyReLU):
            layer.negative_slope = 0.4
        elif isinstance(layer, nn.Dropout2d):
            layer.p = 0.9
    check(*answers(network, prepare(network), torch.rand(2, 4, 24, 24, device=DEVICE)))


def test_random_numbers_are_left_alone(network):
    before = torch.get_rng_state()
    assert prepare(network) is not None
    assert torch.equal(torch.get_rng_state(), before)


@contextmanager
def nobody_looking_for_cycles():
    gc.collect()
    looking = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looking:
            gc.enable()


@pytest.mark.parametrize("make", [make_ritm, make_simpleclick])
def test_a_form_is_gone_with_its_network_at_once(make):
    """Python looks for cycles seldom, and the form's graphs hold much of a GPU's memory."""
    with nobody_looking_for_cycles():
        before, network = len(gpu_inference._PREPARED), make().to(DEVICE)
        prepared = prepare(network)
        for _ in range(4):
            answers(network, prepared, torch.rand(1, 4, 24, 24, device=DEVICE))
        assert len(gpu_inference._PREPARED) == before + 1
        living = [weakref.ref(one) for one in (network, prepared, prepared._run)]
        del network, prepared
        assert [one() for one in living] == [None, None, None]
        assert len(gpu_inference._PREPARED) == before


def test_an_earlier_form_is_gone_when_the_next_is_made(network, monkeypatch):
    with nobody_looking_for_cycles():
        earlier = weakref.ref(prepare(network))
        change_in_place(network)
        made = GpuNetwork.__init__

        def make(self, *arguments):
            assert earlier() is None
            made(self, *arguments)

        monkeypatch.setattr(GpuNetwork, "__init__", make)
        assert prepare(network) is not None
        assert earlier() is None


@NEEDS_GPU
@pytest.mark.parametrize("make", [make_ritm, make_simpleclick])
def test_the_memory_of_graphs_is_given_back(make):
    def use():
        network = make().to(DEVICE)
        for _ in range(4):
            answers(network, prepare(network), torch.rand(2, 4, 24, 24, device=DEVICE))
        during = torch.cuda.memory_allocated()
        del network
        torch.cuda.synchronize()
        return during, torch.cuda.memory_allocated()

    _, before = use()  # with what libraries keep
    during, after = use()
    assert during > after == before


class Recorder:
    """Takes the place of the graphs."""

    def __init__(self, run):
        self.run, self.keys = run, []

    def __call__(self, key, *inputs):
        self.keys.append(key)
        return self.run(key, *inputs)


def test_graphs_are_kept_by_what_a_precision_changes():
    """A graph is of one precision: what is recorded with one is not replayed with another."""
    network = make_simpleclick()
    prepared = GpuNetwork(network, GpuOptions(replay=False))
    prepared._graphs = Recorder(prepared._run)
    inputs = torch.rand(1, 4, 24, 24)

    def key():
        answers(network, prepared, inputs)
        return prepared._graphs.keys[-1]

    plain = key()
    keys = [plain]
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=True):
        keys.append(key())
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False, deterministic=True):
        keys.append(key())
    with torch.inference_mode():
        keys.append(key())
    before = torch.backends.cuda.matmul.allow_tf32, torch.get_autocast_dtype("cuda")
    try:
        torch.backends.cuda.matmul.allow_tf32 = not before[0]
        keys.append(key())
        torch.set_autocast_enabled("cuda", True)
        for dtype in (torch.bfloat16, torch.float16):
            torch.set_autocast_dtype("cuda", dtype)
            keys.append(key())
    finally:
        torch.set_autocast_enabled("cuda", False)
        torch.set_autocast_dtype("cuda", before[1])
        torch.backends.cuda.matmul.allow_tf32 = before[0]
    assert len(set(keys)) == len(keys) == 7
    assert key() == plain
    assert hash(key()) == hash(plain)


def test_weights_that_autocast_keeps_are_not_used():
    """They would be gone, when a graph that was recorded with them is replayed."""
    network = make_simpleclick()
    prepared, inputs = prepare(network), torch.rand(1, 4, 24, 24)
    weight = network.backbone.blocks[0].mlp.fc1.weight
    with torch.autocast("cpu", torch.bfloat16):
        _, before = answers(network, prepared, inputs)
        weight.data.mul_(-3)
        _, found = answers(network, prepared, inputs)
        assert torch.is_autocast_cache_enabled()
    assert (found.float() - before.float()).abs().max() > 0.01 * before.float().abs().max()


def test_no_gradients_are_recorded(network):
    points = pack_clicks(COURSES[:1], device=DEVICE)
    found = prepare(network)(torch.rand(1, 4, 24, 24, device=DEVICE), points)
    assert not found.requires_grad
