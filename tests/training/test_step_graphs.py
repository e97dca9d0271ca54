"""Steps as CUDA graphs: every method trains as without; what cannot be recorded goes on; batches taken apart."""

import contextlib
import itertools
import warnings
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytest.importorskip("lightning_fabric", reason="the extra train is not installed")

from torch import nn  # noqa: E402

from hardlook.errors import RunError, RunWarning  # noqa: E402
from hardlook.networks.few_shot.catalogue import find_method, list_methods  # noqa: E402
from hardlook.training import step_graphs  # noqa: E402
from hardlook.training.checkpoint import read_weights  # noqa: E402
from hardlook.training.devices import open_fabric  # noqa: E402
from hardlook.training.few_shot import EpisodeRows, FewShotData, FewShotTrainee, train_few_shot  # noqa: E402
from hardlook.training.recipes import change_recipe, find_recipe, parse_budget  # noqa: E402
from hardlook.training.step_graphs import (  # noqa: E402
    CHECKED,
    WARM_UPS,
    StepGraphs,
    _Recorded,
    _warning_of_waits,
    change_tensors,
    describe,
    detach,
    list_tensors,
    may_replay,
    measure_difference,
)

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
CLASSES, EACH, SIZE = 8, 12, 36


@dataclass(frozen=True)
class Inner:
    corner: torch.Tensor


@dataclass(frozen=True)
class Batch:
    rows: torch.Tensor
    draws: Inner | None
    tasks: int = 0


def test_a_batch_is_taken_apart_and_put_together():
    batch = Batch(torch.tensor([1.0, 2.0]), Inner(torch.tensor([3.0])), 4)
    assert [one.tolist() for one in list_tensors(batch)] == [[1, 2], [3]]
    more = change_tensors(batch, lambda one: one + 1)
    assert more.rows.tolist() == [2, 3] and more.draws.corner.tolist() == [4] and more.tasks == 4
    assert batch.rows.tolist() == [1, 2]
    assert [one.tolist() for one in list_tensors({"loss": batch.rows, "count": 2})] == [[1, 2]]


def test_results_lose_what_their_gradients_need():
    loss = nn.Linear(2, 1)(torch.ones(1, 2)).sum()
    assert not detach({"loss": loss})["loss"].requires_grad and loss.requires_grad


@pytest.mark.parametrize(
    "other",
    [
        Batch(torch.zeros(3), Inner(torch.zeros(1))),
        Batch(torch.zeros(2), None),
        Batch(torch.zeros(2), Inner(torch.zeros(1)), 1),
        Batch(torch.zeros(2, dtype=torch.int64), Inner(torch.zeros(1))),
        Batch(torch.zeros(2), Inner(torch.zeros(1, 1))),
    ],
)
def test_a_step_of_another_shape_is_another_step(other):
    batch = Batch(torch.zeros(2), Inner(torch.zeros(1)))
    assert describe(batch) == describe(Batch(torch.ones(2), Inner(torch.ones(1))))
    assert describe(batch) != describe(other)


class Replaying(StepGraphs):
    """As on a GPU, where a graph is the step on the recorded batch; `freeze` is a context of what a recording fixed."""

    def __init__(self, step, module, freeze=contextlib.nullcontext):
        super().__init__(step, module)
        self.freeze, self.recorded = freeze, 0

    def _run_aside(self, batch):
        return detach(self._step(batch))

    def _watch(self, batch):
        return self._run_aside(batch), True

    def _record(self, batch):
        self.recorded += 1
        graphs, static = self, change_tensors(batch, torch.clone)
        gradients = [torch.zeros_like(one) if one.requires_grad else None for one in self._parameters]
        state = self._read_state()
        result = detach(self._step(static))
        self._restore(state)  # what is recorded does not run

        class Graph:
            def replay(self):
                with graphs.freeze():
                    found = graphs._step(static)
                for target, value in zip(list_tensors(result), list_tensors(found), strict=True):
                    target.copy_(value.detach())
                for target, parameter in zip(gradients, graphs._parameters, strict=True):
                    if target is not None:
                        target.copy_(parameter.grad)
                graphs._clear_gradients()

        return _Recorded(Graph(), static, result, gradients)


@contextlib.contextmanager
def multiplied(network, factor):
    before, network.factor = network.factor, factor
    yield
    network.factor = before


def make_steps():
    """A step with dropout, batch statistics and a number in Python, and its network."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    network.factor = 1.0

    def step(batch):
        loss = network.factor * network(batch["rows"]).square().mean()
        loss.backward()
        return {"loss": loss}

    return network, step


def run_steps(call, network, count, change=lambda number: None):
    """The losses of so many steps, and the network's weights and statistics after them."""
    optimiser, losses = torch.optim.SGD(network.parameters(), 0.1), []
    for number in range(count):
        change(number)
        torch.manual_seed(number)
        optimiser.zero_grad(set_to_none=True)
        losses.append(float(call({"rows": torch.randn(6, 4) + number})["loss"].detach()))
        optimiser.step()
    return losses, network.state_dict()


def test_checked_replays_leave_the_numbers_as_they_are():
    network, step = make_steps()
    expected, state = run_steps(step, network, WARM_UPS + 12)
    network, step = make_steps()
    graphs = Replaying(step, network)
    found, found_state = run_steps(graphs, network, WARM_UPS + 12)
    assert graphs.recorded == 1 and found == expected
    assert all(torch.equal(found_state[name], value) for name, value in state.items())
    assert int(state["1.num_batches_tracked"]) == WARM_UPS + 12


def test_a_graph_that_draws_the_same_again_is_not_used():
    network, step = make_steps()
    expected, state = run_steps(step, network, WARM_UPS + 4)
    network, step = make_steps()
    graphs = Replaying(step, network, freeze=lambda: contextlib.nullcontext(torch.manual_seed(99)))
    with pytest.warns(RunWarning, match="replay 1 of a training step differs by .* steps are not replayed"):
        found, found_state = run_steps(graphs, network, WARM_UPS + 4)
    assert found == expected and graphs._known.popitem()[1] is None
    assert all(torch.equal(found_state[name], value) for name, value in state.items())


def test_a_number_that_changes_later_ends_the_training():
    network, step = make_steps()
    graphs = Replaying(step, network, freeze=lambda: multiplied(network, 1.0))

    def change(number):
        network.factor = 1 + 0.1 * max(0, number - WARM_UPS - 3)

    with pytest.raises(RunError, match="replay 10 of a training step differs") as error:
        run_steps(graphs, network, WARM_UPS + 12, change)
    assert CHECKED[:2] == (1, 10) and "HARDLOOK_GRAPHS=off" in error.value.remedy


def test_a_graph_without_gradients_is_noticed_beside_large_sums():
    network, step = make_steps()

    def count(batch):
        return {"loss": step(batch)["loss"] * 0 + 1, "right": torch.tensor(500.0)}

    graphs = Replaying(count, network, freeze=lambda: multiplied(network, 0.0))
    with pytest.warns(RunWarning, match="replay 1 of a training step differs by 1 of its length"):
        run_steps(graphs, network, WARM_UPS + 1)


def test_parameters_that_a_step_moves_are_moved_once():
    network, step = make_steps()
    network.slow = nn.Parameter(torch.zeros(1), requires_grad=False)

    def follow(batch):
        network.slow.data += 1
        return step(batch)

    run_steps(Replaying(follow, network), network, WARM_UPS + 11)
    assert network.slow.item() == WARM_UPS + 11


def test_what_timing_decides_may_differ_once():
    network, step = make_steps()
    factors = iter([2.0])
    graphs = Replaying(step, network, freeze=lambda: multiplied(network, next(factors, 1.0)))
    run_steps(graphs, network, WARM_UPS + 2)
    assert graphs._known.popitem()[1] is not None


def test_a_check_without_memory_is_left_out(monkeypatch):
    network, step = make_steps()
    expected, _ = run_steps(step, network, WARM_UPS + 2)
    network, step = make_steps()
    graphs = Replaying(step, network)
    run = graphs._run_aside

    def run_out(batch):
        if graphs.recorded:
            network[1].running_mean += 1
            raise torch.OutOfMemoryError
        return run(batch)

    monkeypatch.setattr(graphs, "_run_aside", run_out)
    found, _ = run_steps(graphs, network, WARM_UPS + 2)
    assert found == expected


def test_a_second_comparison_without_memory_is_left_out(monkeypatch):
    network, step = make_steps()
    factors = iter([2.0])  # the first replay differs by timing
    graphs = Replaying(step, network, freeze=lambda: multiplied(network, next(factors, 1.0)))
    run, calls = graphs._run_aside, []

    def run_out(batch):
        if graphs.recorded:
            calls.append(1)
            if len(calls) == 3:
                raise torch.OutOfMemoryError
        return run(batch)

    monkeypatch.setattr(graphs, "_run_aside", run_out)
    run_steps(graphs, network, WARM_UPS + 2)
    assert graphs._known.popitem()[1] is not None


@pytest.mark.parametrize("draws", [True, False])
def test_a_step_that_draws_on_the_processor_is_not_recorded(monkeypatch, draws):
    network, step = make_steps()
    network[2].p = 0.5 if draws else 0.0
    graphs = StepGraphs(step, network)
    monkeypatch.setattr(graphs, "_run_aside", lambda batch: detach(step(batch)))
    monkeypatch.setattr(graphs, "_record", lambda batch: pytest.fail("it was recorded"))
    run_steps(graphs, network, WARM_UPS)
    assert list(graphs._known.values()) == ([None] if draws else [])


def test_other_warnings_of_a_step_are_shown(monkeypatch):
    network, step = make_steps()

    def warn(batch):
        import warnings

        warnings.warn("something else", UserWarning, stacklevel=1)
        return step(batch)

    graphs = StepGraphs(step, network)
    monkeypatch.setattr(graphs, "_run_aside", lambda batch: detach(warn(batch)))
    with pytest.warns(UserWarning, match="something else") as found:
        run_steps(graphs, network, WARM_UPS)
    assert len(found) == WARM_UPS


def test_lengths_of_differences():
    one = [torch.tensor([3.0]), torch.tensor([4.0])]
    assert measure_difference(one, one) == 0
    assert measure_difference([one[0], torch.tensor([4.4])], one) == pytest.approx(0.1)
    # A small tensor differs by a share of all, not of itself.
    small = [torch.tensor([100.0]), torch.tensor([1e-6])]
    assert measure_difference([small[0], torch.tensor([2e-6])], small) == pytest.approx(1e-6)
    assert measure_difference([small[0], torch.tensor([0.5])], small) == pytest.approx(0.5, 1e-5)
    for other in ([*one, torch.ones(1)], one[:1], [torch.tensor([torch.nan]), one[1]]):
        assert measure_difference(other, one) == float("inf")
    assert measure_difference([torch.ones(1)], [torch.zeros(1)]) == float("inf")
    assert measure_difference([torch.zeros(1)], [torch.zeros(1)]) == measure_difference([], []) == 0
    assert measure_difference([torch.tensor(1000)], [torch.tensor(1001)]) == float("inf")


@pytest.mark.parametrize(("word", "graphs"), [("off", False), ("OFF", False), ("0", False), ("no", False), ("", True)])
def test_graphs_can_be_switched_off(monkeypatch, word, graphs):
    monkeypatch.setenv("HARDLOOK_GRAPHS", word)
    fabric = SimpleNamespace(device=torch.device("cuda"), world_size=1)
    trainee = SimpleNamespace(replays=True)
    assert may_replay(trainee, fabric, "tf32") == graphs
    assert not may_replay(trainee, fabric, "float16") and not may_replay(SimpleNamespace(), fabric, "tf32")
    assert not may_replay(trainee, SimpleNamespace(device=torch.device("cuda"), world_size=2), "tf32")
    assert not may_replay(trainee, SimpleNamespace(device=torch.device("cpu"), world_size=1), "tf32")


def make_data():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (CLASSES * EACH, 40, 40, 3), dtype=np.uint8)

    def draw(numbers):
        keyed = np.random.default_rng(int(numbers[0]))
        classes = np.argsort(keyed.random((len(numbers), CLASSES)), 1)[:, :5]
        places = np.argsort(keyed.random((len(numbers), 5, EACH)), 2)[:, :, :4]
        rows = classes[..., None] * EACH + places
        return EpisodeRows(rows[..., :2], rows[..., 2:], classes)

    labels = np.repeat(np.arange(CLASSES), EACH)
    return FewShotData(images, labels, tuple(map(str, range(CLASSES))), draw)


def train(folder, method, steps, *, replays, monkeypatch, precision="float32", backbone="conv64f", **changes):
    monkeypatch.setattr(FewShotTrainee, "replays", replays)
    entry = find_method(method)
    backbone = "vit-small" if entry.facts.get("inputs") == "tokens" else backbone
    shape = {"ways": 5, "shots": 2, "queries": 2, **changes}
    recipe = change_recipe(find_recipe(method, backbone, entry.stages), shape)
    if len(entry.stages) > 1:
        recipe = change_recipe(recipe, {"shares": (1,) * len(entry.stages)})
    images = steps * max((stage.tasks * 20 if stage.stage == "episodes" else stage.batch) for stage in recipe.stages)
    fabric = open_fabric("cuda", precision=precision)
    fabric.launch(
        lambda opened: train_few_shot(
            make_data(), recipe, folder, opened, size=SIZE, budget=parse_budget(f"{images}images"), precision=precision,
            validations=1,
        )
    )  # fmt: skip
    return read_weights(folder)


NOT_RECORDED = {
    "adm", "adm-kl", "cdkt-ml", "cdkt-pl", "dsn", "frn", "mcl", "moco", "r2d2", "r2d2-mcl", "tpn",  # wait for the GPU
    "ata-gnn", "ata-relationnet", "ata-tpn", "s2m2",  # draw on the processor
}  # fmt: skip


@NEEDS_GPU
@pytest.mark.parametrize("method", [one.name for one in list_methods()])
def test_every_method_trains_as_without_graphs(method, tmp_path, monkeypatch):
    recorded = []
    record = StepGraphs._record

    def watch(self, batch):
        found = record(self, batch)
        recorded.append(found is not None)
        return found

    monkeypatch.setattr(StepGraphs, "_record", watch)
    steps = 2 * (WARM_UPS + 4)
    plain = train(tmp_path / "plain", method, steps, replays=False, monkeypatch=monkeypatch)
    again = train(tmp_path / "again", method, steps, replays=False, monkeypatch=monkeypatch)
    assert not recorded
    replayed = train(tmp_path / "replayed", method, steps, replays=True, monkeypatch=monkeypatch)
    assert (method in NOT_RECORDED and not any(recorded)) or (recorded and all(recorded))
    for name, value in plain.items():
        # Some kernels add in an order that timing decides: two trainings without graphs differ by so much.
        noise = float((again[name] - value).abs().max())
        bound = 3 * noise + 1e-4 * float(value.abs().max())
        assert float((replayed[name] - value).abs().max()) <= bound, (name, noise)


@NEEDS_GPU
@pytest.mark.parametrize("kind", ["waits", "draws on the processor", "counts"])
def test_what_cannot_be_recorded_goes_on(kind):
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1)).cuda()

    def step(batch):
        loss = layer(batch["rows"]).square().mean()
        if kind == "waits" and float(loss.detach()) < 0:
            raise AssertionError
        if kind == "draws on the processor":
            loss = loss * float(torch.rand(()))
        loss.backward()
        return {"loss": loss}

    graphs, losses = StepGraphs(step, layer), []
    for number in range(WARM_UPS + 4):
        torch.manual_seed(number)
        layer.zero_grad(set_to_none=True)
        losses.append(float(graphs({"rows": torch.full((3, 4), float(number + 1), device="cuda")})["loss"]))
    expected = []
    for number in range(WARM_UPS + 4):
        torch.manual_seed(number)
        layer.zero_grad(set_to_none=True)
        expected.append(float(step({"rows": torch.full((3, 4), float(number + 1), device="cuda")})["loss"]))
    assert losses == pytest.approx(expected)
    assert (None in graphs._known.values()) == (kind != "counts")


@NEEDS_GPU
@pytest.mark.parametrize("backbone", ["conv64f", "resnet12"])
def test_rounded_steps_with_fused_norms_train_as_without_graphs(backbone, tmp_path, monkeypatch):
    settings = {"monkeypatch": monkeypatch, "backbone": backbone, "precision": "bfloat16"}
    plain, again = (train(tmp_path / name, "protonet", 12, replays=False, **settings) for name in ("plain", "again"))
    replayed = train(tmp_path / "replayed", "protonet", 12, replays=True, **settings)
    for name, value in plain.items():
        noise = float((again[name] - value).norm())
        assert float((replayed[name] - value).norm()) <= 3 * noise + 5e-2 * float(value.norm()), name


@NEEDS_GPU
def test_dropblocks_drop_more_with_every_replayed_step(tmp_path, monkeypatch):
    from hardlook.networks.backbones import resnet12

    monkeypatch.setattr(resnet12, "DROP_STEPS", 12)
    settings = {"monkeypatch": monkeypatch, "backbone": "resnet12"}
    plain = train(tmp_path / "plain", "protonet", 12, replays=False, **settings)
    again = train(tmp_path / "again", "protonet", 12, replays=False, **settings)
    replayed = train(tmp_path / "replayed", "protonet", 12, replays=True, **settings)
    for name, value in plain.items():
        noise = float((again[name] - value).abs().max())
        assert float((replayed[name] - value).abs().max()) <= 3 * noise + 1e-3 * float(value.abs().max()), name


@pytest.mark.parametrize(("factor", "used"), [(1.05, True), (1.1, False)])
def test_a_replay_may_differ_by_twice_what_two_runs_do(monkeypatch, factor, used):
    """Runs differ by 0.03; a hundredth more is allowed."""
    network, step = make_steps()
    graphs = Replaying(step, network, freeze=lambda: multiplied(network, factor))
    run, factors = graphs._run_aside, itertools.cycle([1.0, 1.03])

    def waver(batch):
        with multiplied(network, next(factors) if graphs.recorded else 1.0):
            return run(batch)

    monkeypatch.setattr(graphs, "_run_aside", waver)
    with contextlib.nullcontext() if used else pytest.warns(RunWarning, match="steps are not replayed"):
        run_steps(graphs, network, WARM_UPS + 1)
    assert (graphs._known.popitem()[1] is not None) == used


def test_a_graph_that_leaves_the_statistics_as_they_are_is_noticed():
    network, step = make_steps()

    @contextlib.contextmanager
    def without_momentum():
        network[1].momentum = 0.0
        yield
        network[1].momentum = 0.1

    graphs = Replaying(step, network, freeze=without_momentum)
    with pytest.warns(RunWarning, match="replay 1 of a training step differs"):
        run_steps(graphs, network, WARM_UPS + 1)


def test_a_step_that_waits_for_the_gpu_is_not_recorded(monkeypatch):
    """Torch warns of it; nobody else is told."""
    network, step = make_steps()
    network[2].p = 0.0

    def wait(batch):
        warnings.warn("called a synchronizing CUDA operation", UserWarning, stacklevel=1)
        return detach(step(batch))

    graphs = StepGraphs(step, network)
    monkeypatch.setattr(graphs, "_record", lambda batch: pytest.fail("it was recorded"))
    monkeypatch.setattr(graphs, "_run_aside", lambda batch: detach(step(batch)))
    run_steps(graphs, network, WARM_UPS - 1)
    monkeypatch.setattr(graphs, "_run_aside", wait)
    run_steps(graphs, network, 1)
    assert list(graphs._known.values()) == [None]


def test_torch_warns_of_waits_only_meanwhile(monkeypatch):
    modes = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    with pytest.raises(KeyError), _warning_of_waits():
        assert modes == ["warn"]
        raise KeyError
    assert modes == ["warn", 0]


@pytest.fixture
def recording(monkeypatch):
    """As if this machine had a GPU, where what is recorded runs; the streams that were set."""
    streams = []
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph", lambda graph, stream: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "the usual one")
    monkeypatch.setattr(torch.cuda, "set_stream", streams.append)
    monkeypatch.setattr(StepGraphs, "_forget_recording", StepGraphs._clear_gradients)
    return streams


def test_a_recording_has_a_batch_of_its_own(recording):
    network, step = make_steps()
    network[2].p = 0.0
    batch = {"rows": torch.randn(6, 4)}
    recorded = StepGraphs(step, network)._record(batch)
    assert torch.equal(recorded.batch["rows"], batch["rows"])
    assert recorded.batch["rows"].data_ptr() != batch["rows"].data_ptr()
    assert not recorded.result["loss"].requires_grad
    assert all(one is two.grad is not None for one, two in zip(recorded.gradients, network.parameters(), strict=True))


@pytest.mark.parametrize("fails", [True, False])
def test_a_recording_that_draws_on_the_processor_or_fails_leaves_no_trace(recording, fails):
    """A replay would draw the same numbers again."""
    network, step = make_steps()

    def run(batch):
        result = step(batch)
        if fails:
            raise RuntimeError("operation not permitted when stream is capturing")
        return result

    before = torch.get_rng_state()
    assert StepGraphs(run, network)._record({"rows": torch.ones(6, 4)}) is None
    assert torch.equal(torch.get_rng_state(), before)
    assert all(one.grad is None for one in network.parameters())
    assert recording == (["the usual one"] if fails else [])


def test_after_a_failed_recording_earlier_steps_are_recorded_anew(monkeypatch):
    """The generator gets another state, which seeds set; what was recorded before draws from the old one."""
    renewed = []
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(step_graphs, "renew_generator", renewed.append)
    network, step = make_steps()
    network[2].p = 0.0
    graphs = Replaying(step, network)
    record = graphs._record

    def fail(batch):
        if len(batch["rows"]) == 6:
            return record(batch)
        graphs._forget_recording()
        return None

    monkeypatch.setattr(graphs, "_record", fail)
    for rows in (6, 6, 6, 6, 5, 5, 5, 5, 6, 5):
        network.zero_grad(set_to_none=True)
        graphs({"rows": torch.randn(rows, 4)})
    assert graphs.recorded == 2 and renewed == [torch.device("cuda", 0)]
    assert [one is None for one in graphs._known.values()] == [True, False]
