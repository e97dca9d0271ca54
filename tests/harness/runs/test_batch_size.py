from types import SimpleNamespace

import pytest

from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.batch_size import choose_batch_size
from hardlook.harness.runs.evaluation import Worker

BENCHMARK = find_benchmark("closed-miou")

UNITS = BENCHMARK.list_units(BENCHMARK.options(scenes=64))


class OutOfMemoryError(RuntimeError):
    """Named as torch's."""


class Device:
    """A benchmark whose time for a batch is known: a fixed cost and one for each unit, up to a memory."""

    def __init__(self, fixed, each, memory, error=OutOfMemoryError):
        self.card = BENCHMARK.card
        self.fixed, self.each, self.memory, self.error, self.now = fixed, each, memory, error, 0.0

    def prepare(self, unit):
        return unit

    def evaluate(self, units, model):
        if len(units) > self.memory:
            raise self.error("CUDA out of memory")
        self.now += self.fixed + self.each * len(units)

    def choose(self, units=UNITS):
        return choose_batch_size(Worker(self, SimpleNamespace(device="cuda:0")), units, clock=lambda: self.now)


def test_grows_while_it_pays_off():
    # 1 + .1 n seconds for n: doubling pays until the fixed cost is small beside the rest; 11 % gained at 64.
    assert Device(1.0, 0.1, memory=1000).choose() == 64
    assert Device(0.0, 0.1, memory=1000).choose() == 1


@pytest.mark.parametrize("error", [OutOfMemoryError, MemoryError])
def test_stays_within_memory(error):
    assert Device(10.0, 0.01, memory=20, error=error).choose() == 16


def test_another_error_ends_the_search_and_is_left_to_the_run():
    assert Device(10.0, 0.01, memory=4, error=ValueError).choose() == min(4, BENCHMARK.card.batch_size)


def test_never_more_than_there_are_units():
    assert Device(10.0, 0.01, memory=1000).choose(UNITS[:5]) == 4


def test_on_a_processor_the_benchmarks_own_size_serves():
    assert choose_batch_size(Worker(BENCHMARK, SimpleNamespace()), UNITS) == BENCHMARK.card.batch_size
