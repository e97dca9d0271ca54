"""Inner loops with tasks as an axis, beside the same loops by torch.func, whose derivatives torch finds."""

import weakref
from dataclasses import replace

import pytest
import torch
import triton_loops  # noqa: F401 (before Triton is imported)
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from triton_tests import DEVICE, NEEDS_TRITON

from hardlook.networks.backbones import build_backbone
from hardlook.networks.few_shot import task_axis
from hardlook.networks.few_shot.boil import Boil
from hardlook.networks.few_shot.maml import Maml
from hardlook.networks.few_shot.metal import Metal
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.kernels.task_convolutions import TorchOperations

WAYS = 3


def build(method, *, channels=4, slope=0.0, pixels=2, **options):
    torch.manual_seed(0)
    backbone = build_backbone("conv64f", channels=channels, slope=slope)
    network = method(backbone, channels=channels * pixels, ways=WAYS, **options).double()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight)
            nn.init.normal_(module.bias)
    return network


def make_episodes(tasks=2, shots=2, queries=4, sides=(19, 37)):
    rng = torch.Generator().manual_seed(1)
    support = torch.randn(tasks, WAYS, shots, 3, *sides, generator=rng, dtype=torch.float64)
    query = torch.randn(tasks, queries, 3, *sides, generator=rng, dtype=torch.float64)
    return Episodes(support, query, torch.arange(queries).expand(tasks, -1) % WAYS)


def learn(network, episodes):
    """Scores and gradients of a training step."""
    network.zero_grad()
    loss, scores = network.train().loss(episodes)
    loss.backward()
    return scores.detach(), {name: one.grad.clone() for name, one in network.named_parameters() if one.grad is not None}


@pytest.fixture
def chosen(monkeypatch):
    """The operations in torch, in place of those that no processor has; a list of what they were asked for."""
    calls = []

    def choose(network, backbone, *images):
        calls.append(len(images))
        return TorchOperations() if task_axis._is_plain(network, backbone) else None

    monkeypatch.setattr(task_axis, "choose_operations", choose)
    return calls


def check(found, expected, rtol=1e-10):
    assert found.keys() == expected.keys()
    largest = max(one.abs().max() for one in expected.values())
    for name, one in expected.items():
        torch.testing.assert_close(found[name], one, rtol=rtol, atol=rtol * float(largest), msg=name)


CASES = {
    "maml": (Maml, {"steps": 3, "inner_rate": 0.2}),
    "first order": (Maml, {"steps": 3, "inner_rate": 0.2, "first_order": True}),
    "leaky": (Maml, {"steps": 2, "inner_rate": 0.2, "slope": 0.1}),
    "no step": (Maml, {"steps": 0}),
    "boil": (Boil, {"steps": 2}),
    "released boil": (Boil, {"steps": 1, "released": True}),
    "metal": (Metal, {"steps": 2, "inner_rate": 0.3}),
}


@pytest.mark.parametrize("case", CASES)
def test_scores_and_gradients_are_those_of_torch(case, request):
    method, options = CASES[case]
    network, episodes = build(method, **options), make_episodes()
    expected_scores, expected = learn(network, episodes)
    calls = request.getfixturevalue("chosen")
    scores, found = learn(network, episodes)
    assert calls
    torch.testing.assert_close(scores, expected_scores, rtol=1e-10, atol=1e-11)
    check(found, expected)
    biases = [f"emb_func.layer{number}.0.bias" for number in (1, 2, 3, 4)]
    assert all(not found[name].any() for name in biases)


@pytest.mark.parametrize(
    ("method", "options"),
    [(Maml, {"test_steps": 2, "inner_rate": 0.2}), (Boil, {}), (Boil, {"test": "nil"}), (Metal, {})],
)
def test_answers_at_test_are_those_of_torch(method, options, request):
    network, episodes = build(method, **options).eval(), make_episodes(tasks=1)
    with torch.no_grad():
        expected = network.classify(episodes)
        calls = request.getfixturevalue("chosen")
        found = network.classify(episodes)
    assert calls and not found.requires_grad
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-11)


def test_parameters_that_are_fixed_stay_and_have_no_gradient(chosen):
    episodes, found = make_episodes(), []
    for plain in (True, False):
        network = build(Maml, steps=2, inner_rate=0.2)
        network.emb_func.layer2[0].weight.requires_grad_(False)
        network.emb_func.layer3[1].bias.requires_grad_(False)
        if plain:
            network.extra = nn.Identity()
        found.append(learn(network, episodes))
    assert len(chosen) == 1
    torch.testing.assert_close(found[1][0], found[0][0], rtol=1e-10, atol=1e-11)
    check(found[1][1], found[0][1])


def test_a_graph_that_is_kept_gives_the_same_gradients_again(chosen):
    network = build(Maml, steps=2, inner_rate=0.2)
    loss, _ = network.train().loss(make_episodes())
    loss.backward(retain_graph=True)
    once = {name: one.grad.clone() for name, one in network.named_parameters()}
    loss.backward()
    check({name: one.grad for name, one in network.named_parameters()}, {name: 2 * one for name, one in once.items()})


@pytest.fixture
def maps(monkeypatch):
    """The maps of all blocks that ran."""
    made, run = [], TorchOperations.run

    def watch(self, *given):
        block = run(self, *given)
        made.append(weakref.ref(block.y))
        return block

    monkeypatch.setattr(TorchOperations, "run", watch)
    return made


def count_kept(maps):
    return sum(one() is not None for one in maps)


def test_nothing_is_kept_of_steps_where_no_gradient_is_wanted(chosen, maps):
    network, kept = build(Maml, steps=2).train(), []
    for first_order in (False, True):
        network.first_order = first_order
        maps.clear()
        scores = network.classify(make_episodes())
        assert len(maps) == 12
        kept.append(count_kept(maps))
        del scores
    assert kept == [12, 4]
    maps.clear()
    scores = network.requires_grad_(False).classify(make_episodes())
    assert len(maps) == 12 and count_kept(maps) == 0 and not scores.requires_grad


def test_maps_are_freed_by_the_backward_pass(chosen, maps):
    """As those of torch are, though the loss is still there."""
    loss, _ = build(Maml, steps=2).train().loss(make_episodes())
    assert count_kept(maps) == 12
    loss.backward()
    assert count_kept(maps) == 0 and loss.isfinite()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_a_step_is_forgotten_before_the_next_but_one_where_no_gradients_are_recorded(chosen, monkeypatch):
    differentiate, passes, alive = task_axis.TaskRows.differentiate, [], []

    def watch(*given):
        alive.append([one() is not None for one in passes])
        passed, gradients = differentiate(*given)
        passes.append(weakref.ref(passed))
        return passed, gradients

    monkeypatch.setattr(task_axis.TaskRows, "differentiate", watch)
    with torch.no_grad():
        build(Maml, steps=3).train().classify(make_episodes())
    assert alive == [[], [True], [False, True]]


class OnGpu(torch.Tensor):
    """Images that say they are on a GPU."""

    is_cuda = True


def make_images(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype).as_subclass(OnGpu)


def test_operations_are_those_of_images_and_network(monkeypatch):
    asked = []
    monkeypatch.setattr(task_axis, "find_operations", lambda *given: asked.append(given) or "operations")
    network = build(Maml, channels=16).float()
    choose = lambda *images: task_axis.choose_operations(network, network.emb_func, *images)  # noqa: E731
    images = make_images(2, 3, 3, 16, 20)
    assert choose(images, images) == "operations"
    assert asked[-1][1:] == (torch.float32, 16, torch.backends.cudnn.allow_tf32)
    assert choose(make_images(2, 3, 3, 16, 16, dtype=torch.bfloat16)) == "operations"
    assert asked[-1][1] == torch.bfloat16
    others = [
        torch.zeros(2, 3, 3, 16, 16),
        images.clone().requires_grad_(),
        make_images(2, 3, 3, 15, 16),
        make_images(2, 0, 3, 16, 16),
        make_images(2, 3, 1, 16, 16),
        make_images(2, 3, 4, 16, 16),
        make_images(1, 1, 3, 1, 1).expand(1, 1025, 3, 256, 256),  # patches have more numbers than 16 channels
        make_images(2, 3, 3, 16, 16, dtype=torch.float16),
        make_images(1, 1, 3, 1, 1).expand(1, 2048, 3, 256, 256),
    ]
    for other in others:
        assert choose(images, other) is None and choose(other, images) is None
    with FlopCounterMode(display=False):
        assert choose(images) is None
    assert torch.func.vmap(lambda one: one + (choose(images) is not None))(torch.zeros(1)).item() == 0
    network.classifier.double()
    assert choose(images) is None
    network = build(Maml, channels=8).float()
    assert choose(images) is None


CHANGES = {
    "a hook": lambda network: network.classifier.register_forward_hook(lambda *given: None),
    "a hook before": lambda network: network.classifier.register_forward_pre_hook(lambda *given: None),
    "a hook before gradients": lambda network: network.classifier.register_full_backward_pre_hook(lambda *given: None),
    "a dilation": lambda network: setattr(network.emb_func.layer2[0], "dilation", (2, 2)),
    "a hook on gradients": lambda network: network.emb_func.layer1[0].register_full_backward_hook(lambda *given: None),
    "a forward of its own": lambda network: setattr(network.emb_func.layer1[1], "forward", lambda x: x),
    "maps": lambda network: setattr(network.emb_func, "output", "maps"),
    "no third pooling": lambda network: delattr(network.emb_func, "layer3_maxpool"),
    "another pooling": lambda network: setattr(network.emb_func, "layer3_maxpool", nn.MaxPool2d(2, ceil_mode=True)),
    "mean pooling": lambda network: setattr(network.emb_func, "layer4_maxpool", nn.AvgPool2d(2)),
    "another padding": lambda network: setattr(network.emb_func.layer2[0], "padding_mode", "reflect"),
    "a stride": lambda network: setattr(network.emb_func.layer2[0], "stride", (2, 2)),
    "grey images": lambda network: setattr(network.emb_func.layer1[0], "in_channels", 1),
    "a norm without scale": lambda network: network.emb_func.layer2.__setitem__(1, nn.BatchNorm2d(4, affine=False)),
    "another norm": lambda network: network.emb_func.layer2.__setitem__(1, nn.InstanceNorm2d(4, affine=True)),
    "another activation": lambda network: network.emb_func.layer2.__setitem__(2, nn.GELU()),
    "a falling activation": lambda network: network.emb_func.layer2.__setitem__(2, nn.LeakyReLU(-0.1)),
    "a layer more": lambda network: network.emb_func.layer4.append(nn.Dropout(0.5)),
    "dilated pooling": lambda network: setattr(network.emb_func, "layer3_maxpool", nn.MaxPool2d(2, 2, dilation=2)),
    "pooling with places": lambda network: setattr(network.emb_func.layer1[3], "return_indices", True),
    "another child": lambda network: network.emb_func.add_module("last", nn.Tanh()),
    "tied weights": lambda network: setattr(network.emb_func.layer3[0], "weight", network.emb_func.layer2[0].weight),
    "spectral norm": lambda network: nn.utils.parametrizations.spectral_norm(network.emb_func.layer3[0]),
}


def test_a_changed_network_goes_the_usual_way():
    network = build(Maml)
    assert task_axis._is_plain(network, network.emb_func)
    for backbone in ("resnet12", "r2d2-embedding"):
        network.emb_func = build_backbone(backbone)
        assert not task_axis._is_plain(network, network.emb_func)
    for name, change in CHANGES.items():
        network = build(Maml)
        change(network)
        assert not task_axis._is_plain(network, network.emb_func), name


class Doubled(Maml):
    def forward(self, images):
        return 2 * super().forward(images)


CLASSIFIERS = {
    "another layer": lambda network: network.classifier.layers.append(nn.Softmax(-1)),
    "no bias": lambda network: setattr(network.classifier.layers[0], "bias", None),
    "spectral norm": lambda network: nn.utils.parametrizations.spectral_norm(network.classifier.layers[0]),
    "a class of somebody else's": lambda network: setattr(network, "__class__", Doubled),
    "a part more": lambda network: setattr(network, "extra", nn.Identity()),
}


@pytest.mark.parametrize("change", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_a_changed_classifier_goes_the_usual_way(chosen, change):
    network = build(Maml, steps=1).eval()
    change(network)
    with torch.no_grad():
        found = network.classify(make_episodes())
    assert found.shape == (2, 4, WAYS) and not chosen


def test_conv32f_has_the_same_blocks(chosen):
    torch.manual_seed(0)
    network = Maml(build_backbone("conv32f", channels=4), channels=8, ways=WAYS, steps=1, inner_rate=0.2).double()
    ours = network.eval().classify(make_episodes())
    network.extra = nn.Identity()
    torch.testing.assert_close(ours, network.classify(make_episodes()), rtol=1e-10, atol=1e-11)
    assert len(chosen) == 1


@NEEDS_TRITON
@pytest.mark.skipif(DEVICE.type == "cpu", reason="no GPU here, and Triton's interpreter takes ten seconds")
def test_kernels_adapt_as_torch_does(monkeypatch):
    from hardlook.networks.kernels.task_kernels import TritonOperations

    network = build(Maml, channels=16, pixels=1, steps=1, inner_rate=0.1, slope=0.1)
    episodes = make_episodes(tasks=1, shots=1, queries=2, sides=(17, 16))
    expected_scores, expected = learn(network, episodes)
    operations = TritonOperations(torch.float32)
    monkeypatch.setattr(task_axis, "choose_operations", lambda *given: operations)
    narrow = {name: getattr(episodes, name).to(DEVICE, torch.float32) for name in ("support", "query")}
    scores, found = learn(
        network.to(DEVICE, torch.float32), replace(episodes, **narrow, labels=episodes.labels.to(DEVICE))
    )
    torch.testing.assert_close(scores.double().cpu(), expected_scores, rtol=1e-4, atol=1e-4)
    check({name: one.double().cpu() for name, one in found.items()}, expected, 1e-3)


def test_a_hook_of_all_modules_is_seen():
    network = build(Maml)
    handle = nn.modules.module.register_module_forward_hook(lambda *given: None)
    try:
        assert not task_axis._is_plain(network, network.emb_func)
    finally:
        handle.remove()
    assert task_axis._is_plain(network, network.emb_func)


def test_under_autocast_operations_are_those_of_its_type(monkeypatch):
    asked, before = [], (torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"))
    monkeypatch.setattr(task_axis, "find_operations", lambda *given: asked.append(given[1]) or "operations")
    network = build(Maml, channels=16).float()
    try:
        torch.set_autocast_enabled("cuda", True)
        for dtype in (torch.bfloat16, torch.float16):
            torch.set_autocast_dtype("cuda", dtype)
            found = task_axis.choose_operations(network, network.emb_func, make_images(2, 3, 3, 16, 16))
            assert (found is not None) == (dtype == torch.bfloat16)
    finally:
        torch.set_autocast_enabled("cuda", before[0])
        torch.set_autocast_dtype("cuda", before[1])
    assert asked == [torch.bfloat16]


def test_the_tensors_of_every_task_start_where_kernels_read_several_numbers_at_once():
    network = build(Maml, channels=16)
    rows = task_axis.TaskRows(network.emb_func, network.classifier.linear, torch.zeros(1, 4, 3, 16, 32))
    places = [place for layer in rows.layers for place in (layer.weight, layer.norm)]
    starts = [place.start for place in (*places, *rows.linear[:2])]
    assert all(start % task_axis.ALIGNED == 0 for start in (*starts, rows.size))
    assert len(rows.pack()) == rows.size


def test_an_autocast_around_a_training_step_is_off_inside(chosen, monkeypatch):
    seen = []
    for name in ("run", "go_back"):
        right = getattr(TorchOperations, name)
        monkeypatch.setattr(
            TorchOperations,
            name,
            lambda *given, right=right: seen.append(torch.is_autocast_enabled("cpu")) or right(*given),
        )
    with torch.autocast("cpu", torch.bfloat16):
        learn(build(Maml, steps=1), make_episodes())
    assert len(seen) > 8 and not any(seen)


def test_pixels_are_read_row_by_row(request):
    network, episodes = build(Maml, pixels=6, steps=2, inner_rate=0.2), make_episodes(sides=(33, 48))
    expected_scores, expected = learn(network, episodes)
    calls = request.getfixturevalue("chosen")
    scores, found = learn(network, episodes)
    assert calls
    torch.testing.assert_close(scores, expected_scores, rtol=1e-10, atol=1e-11)
    check(found, expected)
