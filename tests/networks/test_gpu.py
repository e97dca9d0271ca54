"""Layers and calls for GPUs: the same results as the plain network's."""

import copy
import pickle
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import nn  # noqa: E402

from hardlook.errors import RunWarning  # noqa: E402
from hardlook.networks import gpu  # noqa: E402
from hardlook.networks.gpu import (  # noqa: E402
    CudaGraphs,
    build_channel_norm,
    build_upscaling,
    copy_without_weights,
    is_observed,
    multiplying,
    read_tf32,
    replace_channel_norms,
    replace_transposed_convolutions,
)
from hardlook.networks.sam import build_mask_decoder  # noqa: E402
from hardlook.rclicks.cost import count_flops  # noqa: E402

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 4), st.tuples(*[st.integers(1, 3)] * 2), st.booleans())
def test_upscaling_is_the_transposed_convolution(count, channels, filters, kernel, bias):
    torch.manual_seed(0)
    plain = nn.ConvTranspose2d(channels, filters, kernel, kernel, bias=bias).double()
    image = torch.randn(count, channels, 3, 4, dtype=torch.float64)
    with torch.no_grad():
        upscaled = build_upscaling(plain)(image)
        assert torch.allclose(upscaled, plain(image), rtol=0, atol=1e-12)
    assert upscaled.permute(0, 2, 3, 1).is_contiguous()


def test_only_layers_that_allow_it_are_replaced():
    layers = [
        nn.ConvTranspose2d(4, 4, 2, 2),
        nn.ConvTranspose2d(4, 4, 4, 2, padding=1),
        nn.ConvTranspose2d(4, 4, 2, 2, groups=2),
        nn.ConvTranspose2d(4, 4, 2, 2, dilation=2),
        nn.ConvTranspose2d(4, 4, 3, 2),
        nn.ConvTranspose2d(4, 4, 2, 2, output_padding=1),
    ]
    network = nn.ModuleDict({"inner": nn.Sequential(*layers)})
    assert replace_transposed_convolutions(network) == 1
    assert [isinstance(one, nn.ConvTranspose2d) for one in network["inner"]] == [False, *[True] * 5]


def test_sam_s_decoder_gives_the_same_masks(one_thread):
    torch.manual_seed(1)
    decoder = build_mask_decoder().eval()
    tokens, cells, grid = torch.randn(2, 3, 256), torch.randn(2, 4096, 256), torch.randn(4096, 256)
    with torch.no_grad():
        logits, ious = decoder(tokens, cells, grid)
        assert replace_transposed_convolutions(decoder) == 2
        replaced, same = decoder(tokens, cells, grid)
    assert torch.equal(ious, same)
    assert (replaced - logits).abs().max() < 1e-5 * logits.abs().max()


class ChannelsFirst(nn.LayerNorm):
    """As transformers' SamLayerNorm."""

    def __init__(self, channels, **options):
        super().__init__(channels, **options)
        self.data_format = "channels_first"

    def forward(self, features):
        return super().forward(features.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def make_norm(channels):
    torch.manual_seed(3)
    norm = ChannelsFirst(channels, eps=1e-3)
    nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    return norm


@pytest.mark.parametrize("channels", [1, 4, 64])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_norm_over_channels_is_torch_s(channels, layout):
    norm = make_norm(channels)
    image = (5 + torch.randn(2, channels, 6, 7) * torch.rand(2, 1, 6, 7)).to(memory_format=layout)
    exact = make_norm(channels).double()(image.double())
    with torch.no_grad():
        expected, found = norm(image), build_channel_norm(norm)(image)
    assert found.is_contiguous(memory_format=layout)
    errors = [(one - exact).abs().max() for one in (found, expected)]
    assert errors[0] <= 2 * errors[1] + 1e-6


def test_a_norm_over_channels_of_another_type_is_the_plain_one():
    norm, image = make_norm(4), torch.randn(2, 4, 6, 7)
    other = build_channel_norm(norm)
    assert other.weight is norm.weight
    with torch.no_grad():
        norm.bfloat16()
        assert torch.equal(other(image.bfloat16()), norm(image.bfloat16()))
        norm.double()
        assert torch.equal(other(image.double()), norm(image.double()))


def test_only_norms_over_few_channels_are_replaced_and_only_once():
    network = nn.Sequential(ChannelsFirst(64), nn.Sequential(ChannelsFirst(256), ChannelsFirst(4)), nn.LayerNorm(64))
    names = list(network.state_dict())
    assert replace_channel_norms(network) == 2 and replace_channel_norms(network) == 0
    kinds = [type(one).__name__ for one in (network[0], *network[1], network[2])]
    assert kinds == ["ChannelNorm", "ChannelsFirst", "ChannelNorm", "LayerNorm"]
    assert list(network.state_dict()) == names


def test_a_copy_without_weights_follows_the_given_network():
    network = nn.Sequential(nn.Linear(2, 2), nn.ModuleDict({"a": nn.Dropout(), "b": nn.BatchNorm1d(2)}))
    other, seen = copy_without_weights(network), []
    assert other.eval().training is other[1]["a"].training is False
    assert network.training is network[1]["a"].training is True
    other[1]["a"] = nn.Identity()
    assert isinstance(network[1]["a"], nn.Dropout)
    network[0].register_forward_hook(lambda *_: seen.append(1))
    network[0].weight = nn.Parameter(torch.ones(2, 2))
    network.double()
    assert other[0](torch.ones(1, 2, dtype=torch.float64)).dtype == torch.float64
    assert other[0].weight is network[0].weight and seen == [1]
    assert other[1]["b"].running_mean is network[1]["b"].running_mean


def test_a_counter_of_flops_sees_what_a_graph_would_hide():
    layer, seen = nn.Linear(8, 4), []
    graphs = CudaGraphs(lambda key, x: (seen.append((key, is_observed())), layer(x))[1:], warm_ups=1)
    rows = torch.randn(3, 8)
    assert not is_observed()
    with torch.inference_mode():
        assert [count_flops(lambda: graphs("a", rows)) for _ in range(3)] == [2 * 3 * 8 * 4] * 3
        assert torch.equal(graphs("a", rows)[0], layer(rows))  # the first call that counts, not the one to record
    assert seen == [("a", True)] * 3 + [("a", False)]


@NEEDS_GPU
def test_graphs_give_the_same_bits_for_every_shape():
    torch.manual_seed(2)
    layer = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 4)).cuda().eval()
    graphs = CudaGraphs(lambda key, x, y: (layer(x) + (key if y is None else y),), warm_ups=1, most=2)
    with torch.inference_mode():
        for _ in range(3):
            for rows in (1, 5, 9):
                x, y = torch.randn(rows, 8, device="cuda"), torch.randn(rows, 4, device="cuda")
                assert torch.equal(graphs(1, x, y)[0], layer(x) + y)
                assert torch.equal(graphs(2, x, None)[0], layer(x) + 2)


class Recording:
    """In place of CUDA's graphs: what a function does while it is recorded is done again at a replay."""

    def __init__(self, monkeypatch):
        self.graph, self.current, self.given, self.error = None, None, [], None
        monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: Graph([]))
        monkeypatch.setattr(torch.cuda, "graph", self.record)
        monkeypatch.setattr(torch.cuda, "device", self.enter)
        monkeypatch.setattr(torch.cuda, "Stream", lambda device: SimpleNamespace(device=torch.device(device)))
        monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
        self.stream = "the usual one"
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: self.stream)
        monkeypatch.setattr(torch.cuda, "set_stream", lambda stream: setattr(self, "stream", stream))

    @contextmanager
    def record(self, graph, **named):
        self.graph = graph
        assert named["capture_error_mode"] == "thread_local"  # other threads may ask for memory meanwhile
        self.given.append((self.current, named["pool"], named["stream"]))
        self.stream = named["stream"]  # and as in torch, it stays so if the end of the recording raises
        try:
            yield
        except RuntimeError as error:
            if self.error is not None:
                raise self.error  # noqa: B904, as the end of a recording
            raise error
        finally:
            self.graph = None

    @contextmanager
    def enter(self, device):
        self.current = device
        yield
        self.current = None

    def double(self, key, x):
        """A function to be replayed, slow enough for another thread to come between."""
        result = x * 2
        if self.graph is not None:
            self.graph.steps.append(lambda: (time.sleep(0.001), result.copy_(x * 2)))
        return (result,)


class Graph(SimpleNamespace):
    def __init__(self, steps):
        super().__init__(steps=steps)

    def replay(self):
        for step in self.steps:
            step()


@pytest.fixture
def recording(monkeypatch):
    return Recording(monkeypatch)


def test_a_graph_is_recorded_and_replayed(recording):
    called = []
    graphs = CudaGraphs(lambda key, x: called.append(key) or recording.double(key, x))
    for number in range(5):
        for rows in (1, 3):
            x = torch.full((rows,), float(number))
            assert torch.equal(graphs("a", x)[0], x * 2)
    assert len(called) == 6
    assert len(recording.given) == 2


def test_threads_do_not_see_each_other_s_inputs(recording):
    graphs, wrong = CudaGraphs(recording.double), []
    for _ in range(3):
        graphs("a", torch.zeros(4))

    def work(number):
        x = torch.full((4,), float(number))
        wrong.extend(number for _ in range(20) if not torch.equal(graphs("a", x)[0], x * 2))

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_one_stream_after_another_uses_the_memory_of_graphs(monkeypatch):
    class Stream(list):
        wait_stream = list.append

    first, second = Stream(), Stream(["other"])
    graphs, results = CudaGraphs(lambda key, x: (x,)), (SimpleNamespace(is_cuda=True, device=None),)
    for stream in (first, first, second, second, first):
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device, stream=stream: stream)
        graphs._wait_for_last(results)
    assert (len(first), len(second)) == (1, 2)
    assert second[1] is first
    assert first[0] is second


def test_a_graph_is_recorded_on_a_stream_of_its_inputs_gpu(recording):
    """A tensor without memory stands for one of the second GPU; torch's own stream is of one GPU."""
    graphs, other = CudaGraphs(recording.double, warm_ups=0), CudaGraphs(recording.double, warm_ups=0)
    for device in ("meta", "cpu", "meta"):
        graphs("a", torch.zeros(2, device=device))
        graphs("b", torch.zeros(2, device=device))
    other("a", torch.zeros(2))
    assert len(recording.given) == 5
    for current, _, stream in recording.given:
        assert current == stream.device
    first, _, third, _, last = recording.given
    assert first[0].type == "meta"
    assert third[0].type == last[0].type == "cpu"
    assert recording.given[1][1:] == first[1:], "graphs share their memory, so they share the stream"
    assert len({id(one[1]) for one in (first, third, last)}) == len({id(one[2]) for one in (first, third, last)}) == 3


@pytest.mark.parametrize("end", [None, RuntimeError("operation failed during capture")])
def test_without_the_memory_to_record_the_function_is_called(recording, end):
    recording.error, tried = end, []

    def run(key, x):
        if recording.graph is not None and len(x) > 2:
            tried.append(key)
            raise torch.cuda.OutOfMemoryError("out of memory")
        return recording.double(key, x)

    graphs = CudaGraphs(run, warm_ups=1)
    for number in range(6):
        for rows in (2, 3):
            x = torch.full((rows,), float(number))
            assert torch.equal(graphs("a", x)[0], x * 2)
    assert tried == ["a"], "not again at every call"
    assert len(graphs._graphs) == 1 and recording.stream == "the usual one"


def test_what_cannot_be_recorded_is_called_with_one_warning(recording, monkeypatch):
    """A function that waits for the GPU, say; graphs of other shapes are used as before."""
    renewed = []
    monkeypatch.setattr(gpu, "renew_generator", renewed.append)

    def run(key, x):
        if recording.graph is not None and len(x) > 1:
            raise RuntimeError("operation not permitted when stream is capturing\nCUDA kernel errors might be")
        return recording.double(key, x)

    graphs = CudaGraphs(run, warm_ups=1)
    for _ in range(2):
        graphs("a", torch.zeros(1))
    graphs("a", torch.zeros(2))
    with pytest.warns(RunWarning, match=r"^calls are not replayed as CUDA graphs \(operation not permitted when"):
        assert torch.equal(graphs("a", torch.ones(2))[0], torch.full((2,), 2.0))
    for rows in (1, 2, 3, 3, 3):
        assert torch.equal(graphs("a", torch.ones(rows))[0], torch.full((rows,), 2.0))
    assert len(recording.given) == 2 and len(graphs._graphs) == 1 and recording.stream == "the usual one"
    assert renewed == [torch.device("cpu")]


def test_errors_of_the_function_itself_are_raised(recording):
    def run(key, x):
        raise ValueError("no such key")

    graphs = CudaGraphs(run, warm_ups=0)
    with pytest.raises(ValueError, match="no such key"):
        graphs("a", torch.zeros(1))


def test_graphs_make_room_for_a_call_without_the_memory(recording, monkeypatch):
    emptied = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(len(graphs._graphs)))

    def run(key, x):
        if len(x) == 3 or (len(x) == 2 and graphs._graphs):
            raise torch.cuda.OutOfMemoryError("out of memory")
        return recording.double(key, x)

    graphs = CudaGraphs(run, warm_ups=1)
    for rows in (1, 1, 1, 2, 2, 2, 1, 1, 1):
        assert torch.equal(graphs("a", torch.ones(rows))[0], torch.full((rows,), 2.0))
    assert emptied == [0] and len(recording.given) == 1 and not graphs._graphs
    with pytest.raises(torch.cuda.OutOfMemoryError):
        graphs("a", torch.ones(3))


def test_a_graph_that_made_room_is_recorded_only_after_further_calls(recording):
    graphs = CudaGraphs(recording.double, most=1)
    for rows in (1, 2, 1, 1, 1):
        for _ in range(2 if rows == 2 else 1):
            graphs("a", torch.zeros(rows))
    assert len(recording.given) == 1
    graphs("a", torch.zeros(2))
    assert len(recording.given) == 2, "the graph of one row made room"
    for _ in range(2):
        graphs("a", torch.zeros(1))
    assert len(recording.given) == 2
    graphs("a", torch.zeros(1))
    assert len(recording.given) == 3


def keep(key, x):
    return (x,)


@pytest.mark.parametrize("again", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy])
def test_a_copy_has_the_function_and_no_graphs(recording, again):
    graphs = CudaGraphs(keep, warm_ups=1, most=5)
    for _ in range(2):
        graphs("a", torch.zeros(1))
    other = again(graphs)
    assert (other._function, other._warm_ups, other._most) == (keep, 1, 5)
    assert len(graphs._graphs) == 1
    assert not other._graphs and not other._uses


def test_an_upscaling_refers_to_the_convolution_without_owning_it():
    plain = nn.ConvTranspose2d(4, 3, 2, 2)
    layer = build_upscaling(plain)
    assert layer.replaced_layers == (plain,) and list(layer.modules()) == [layer]
    assert sorted(layer.state_dict()) == ["bias", "product"] and not list(layer.parameters())


NEWER = pytest.mark.skipif(not hasattr(torch.backends.cudnn, "conv"), reason="torch has no fp32_precision")


@contextmanager
def set_precision(owner, value):
    before = owner.fp32_precision
    owner.fp32_precision = value
    try:
        yield
    finally:
        owner.fp32_precision = before


def test_what_torch_may_round_is_read():
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    try:
        for products in (True, False):
            matmul.allow_tf32 = products
            for convolutions in (True, False):
                with torch.backends.cudnn.flags(enabled=True, allow_tf32=convolutions):
                    assert read_tf32() == (products, convolutions)
    finally:
        matmul.allow_tf32 = before


@NEWER
def test_what_torch_may_round_is_read_where_its_older_names_are_errors():
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = read_tf32()
    with cudnn.flags(enabled=True, allow_tf32=False):
        assert read_tf32() == (before.products, False)
        with set_precision(cudnn.conv, "tf32"):
            with pytest.raises(RuntimeError):
                assert cudnn.allow_tf32
            assert read_tf32() == (before.products, True)
        with set_precision(matmul, "tf32"):
            with pytest.raises(RuntimeError):
                assert matmul.allow_tf32
            assert read_tf32() == (True, False)
            with set_precision(cudnn.conv, "tf32"):
                assert read_tf32() == (True, True)
        assert not cudnn.allow_tf32
    assert read_tf32() == before


@pytest.mark.parametrize("rounded", [True, False])
def test_how_torch_multiplies_is_set_and_set_back(rounded):
    cudnn = torch.backends.cudnn
    before = read_tf32(), cudnn.benchmark, cudnn.deterministic
    with pytest.raises(KeyError), multiplying(rounded=rounded, benchmark=True, deterministic=True):
        assert read_tf32() == (rounded, rounded) and cudnn.benchmark and cudnn.deterministic
        raise KeyError
    assert (read_tf32(), cudnn.benchmark, cudnn.deterministic) == before


@NEWER
@pytest.mark.parametrize("rounded", [True, False])
def test_how_torch_multiplies_is_set_where_its_older_names_are_errors(rounded):
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    for owner, value in ((cudnn.conv, "tf32"), (matmul, "tf32"), (torch.backends, "ieee"), (cudnn, "ieee")):
        with set_precision(owner, value):
            before = [one.fp32_precision for one in (matmul, cudnn.conv, cudnn.rnn)], cudnn.deterministic
            with multiplying(rounded=rounded, benchmark=False, deterministic=True):
                assert read_tf32() == (rounded, rounded) and cudnn.deterministic
            assert ([one.fp32_precision for one in (matmul, cudnn.conv, cudnn.rnn)], cudnn.deterministic) == before
    with cudnn.flags(enabled=True, allow_tf32=False), set_precision(cudnn.conv, "tf32"):
        before = cudnn.benchmark
        for benchmark in (True, False):
            with multiplying(rounded=rounded, benchmark=benchmark, deterministic=False):
                assert (cudnn.benchmark, cudnn.deterministic) == (benchmark, False)
                assert cudnn.rnn.fp32_precision == ("tf32" if rounded else "ieee")
            assert cudnn.benchmark == before
    with multiplying(rounded=rounded, benchmark=False, deterministic=True):
        assert cudnn.allow_tf32 == matmul.allow_tf32 == rounded


@pytest.mark.parametrize("name", ["highest", "high", "medium"])
def test_a_named_precision_of_products_is_set_back(name):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        with multiplying(rounded=True, benchmark=False, deterministic=True):
            assert read_tf32().products
        assert torch.get_float32_matmul_precision() == name
    finally:
        torch.set_float32_matmul_precision(before)


def test_shapes_that_seldom_come_back_are_forgotten():
    graphs = CudaGraphs(keep, warm_ups=3, most=1)
    for rows in range(1, 40):
        graphs("a", torch.zeros(rows))
    assert len(graphs._uses) == 16


def test_numbers_of_another_type_are_another_graph(recording):
    graphs = CudaGraphs(recording.double, warm_ups=0)
    for kind in (torch.float32, torch.float64, torch.float32):
        x = torch.full((2,), 1 / 3, dtype=kind)
        found = graphs("a", x)[0]
        assert found.dtype == kind and torch.equal(found, x * 2)
    assert len(recording.given) == 2


def test_the_graph_that_was_used_longest_ago_makes_room(recording):
    graphs = CudaGraphs(recording.double, warm_ups=0, most=2)
    for rows in (1, 2, 1, 3, 1):
        graphs("a", torch.zeros(rows))
    assert len(recording.given) == 3
    graphs("a", torch.zeros(2))
    assert len(recording.given) == 4


def test_inputs_and_results_are_the_caller_s(recording):
    graphs = CudaGraphs(recording.double, warm_ups=0)
    given = [torch.full((2,), float(number)) for number in range(3)]
    found = [graphs("a", x)[0] for x in given]
    assert [one.tolist() for one in given] == [[0, 0], [1, 1], [2, 2]]
    assert [one.tolist() for one in found] == [[0, 0], [2, 2], [4, 4]]


def test_an_input_may_be_none(recording):
    graphs = CudaGraphs(lambda key, nothing, x: recording.double(key, x), warm_ups=0)
    for number in range(3):
        x = torch.full((2,), float(number))
        assert torch.equal(graphs("a", None, x)[0], x * 2)
    assert len(recording.given) == 1


def test_a_replay_waits_for_the_last_one_before_it_writes(recording, monkeypatch):
    graphs, seen = CudaGraphs(recording.double, warm_ups=0), []

    def wait(results):
        [(_, static, _)] = graphs._graphs.values()
        seen.append(float(static[0]))

    monkeypatch.setattr(graphs, "_wait_for_last", wait)
    for number in (1.0, 2.0, 3.0):
        graphs("a", torch.tensor(number))
    assert seen == [1, 1, 2]
