"""The cache keeps its bound, removes what was used least recently, and creates a value once for all who ask."""

import copy
import math
import pickle
import subprocess
import sys
import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.caching import ArrayCache, LRUCache, count_array_bytes, freeze_arrays
from hardlook.errors import OptionError


class ModelCache:
    """The same cache in plain words: a list of keys with sizes, the latest last."""

    def __init__(self, max_size):
        self.max_size, self.sizes, self.created = max_size, OrderedDict(), 0

    def ask(self, key, size):
        if key in self.sizes:
            self.sizes.move_to_end(key)
            return
        self.created += 1
        if self.max_size == 0:
            return
        self.sizes[key] = min(size, self.max_size)
        while sum(self.sizes.values()) > self.max_size:
            self.sizes.popitem(last=False)


@given(st.integers(0, 60), st.lists(st.integers(0, 9), max_size=60))
def test_sizes_against_a_plain_model(max_size, keys):
    cache, model = LRUCache(max_size, size_of=lambda value: 3 * value), ModelCache(max_size)
    for key in keys:
        assert cache.get_or_create(key, lambda key=key: key) == key
        model.ask(key, 3 * key)
        assert [other for other in range(10) if other in cache] == sorted(model.sizes)
        assert cache.size == sum(model.sizes.values()) <= max_size
        assert max_size == 0 or key in cache
    assert cache.created == model.created
    assert len(cache) == len(model.sizes)


@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from(["ask", "discard"]), st.integers(0, 5)), max_size=40))
def test_counts_and_discards_against_a_plain_model(max_size, steps):
    cache, model = LRUCache(max_size), ModelCache(max_size)
    for step, key in steps:
        if step == "ask":
            assert cache.get_or_create(key, lambda key=key: key * 10) == key * 10
            model.ask(key, 1)
        else:
            cache.discard(key)
            model.sizes.pop(key, None)
        assert [other for other in range(6) if other in cache] == sorted(model.sizes)
    assert cache.created == model.created


def test_the_least_recently_used_is_removed_first():
    cache = LRUCache(3)
    for key in "abcad":
        cache.get_or_create(key, lambda: None)
    assert [key for key in "abcd" if key in cache] == ["a", "c", "d"]
    assert cache.created == 4, "a value of None is a value"


def test_the_latest_value_is_kept_whatever_its_size():
    cache = LRUCache(10, size_of=float)
    cache.get_or_create("light", lambda: 4)
    cache.get_or_create("heavy", lambda: 400)
    assert "heavy" in cache and "light" not in cache
    assert cache.get_or_create("heavy", lambda: pytest.fail("created again")) == 400
    cache.get_or_create("light", lambda: 4)
    assert "heavy" not in cache and "light" in cache and cache.size == 4


def test_a_cache_of_size_0_keeps_nothing():
    cache = LRUCache(0)
    assert [cache.get_or_create("key", lambda: 1) for _ in range(3)] == [1, 1, 1]
    assert cache.created == 3 and len(cache) == 0


def test_a_cache_without_a_bound():
    cache = LRUCache(math.inf)
    for number in range(1000):
        cache.get_or_create(number, lambda: None)
    assert len(cache) == 1000


@pytest.mark.parametrize("make", [LRUCache, ArrayCache])
def test_a_negative_size_is_refused(make):
    with pytest.raises(OptionError, match="size -1"):
        make(-1)


def ask_from_threads(count, ask):
    """What each of `count` threads got out of `ask`, all of them started at once; exceptions as values."""
    start, answers = threading.Barrier(count), []

    def run():
        start.wait()
        try:
            answers.append(ask())
        except Exception as error:
            answers.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    return answers


class Gate:
    """A `create` that waits until it is opened, then returns its outcome or raises it."""

    def __init__(self, outcome):
        self.outcome, self.calls = outcome, 0
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self):
        self.calls += 1
        self.entered.set()
        assert self.opened.wait(20)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def open_after_waiters(monkeypatch):
    """Opens a gate once so many callers wait for its value."""

    def prepare(gate, count):
        class CountingFuture(Future):
            def result(self, timeout=None):
                waiting.append(threading.get_ident())
                if len(waiting) == count:
                    gate.opened.set()
                return super().result(timeout)

        waiting = []
        monkeypatch.setattr("hardlook.caching.Future", CountingFuture)

    return prepare


def test_a_value_is_created_once_for_all_who_ask_meanwhile(open_after_waiters):
    cache, gate = LRUCache(4), Gate(["value"])
    open_after_waiters(gate, 11)
    answers = ask_from_threads(12, lambda: cache.get_or_create("key", gate))
    assert gate.calls == cache.created == 1
    assert len(answers) == 12 and all(answer is gate.outcome for answer in answers)


def test_an_exception_reaches_all_who_wait_and_is_not_kept(open_after_waiters):
    cache, gate = LRUCache(4), Gate(ValueError("once"))
    open_after_waiters(gate, 5)
    answers = ask_from_threads(6, lambda: cache.get_or_create("key", gate))
    assert answers == [gate.outcome] * 6
    assert gate.calls == 1 and cache.created == 0 and "key" not in cache
    assert cache.get_or_create("key", lambda: 3) == 3


def test_a_size_that_cannot_be_taken_reaches_the_caller():
    cache = LRUCache(4, size_of=len)
    with pytest.raises(TypeError):
        cache.get_or_create("key", lambda: 1)
    assert cache.get_or_create("key", lambda: "abc") == "abc"


def test_a_retry_right_after_an_exception_creates_the_value():
    cache = LRUCache(4)

    def ask():
        for attempt in range(100):
            try:
                return cache.get_or_create("key", lambda attempt=attempt: attempt // (attempt > 3))
            except ZeroDivisionError:
                continue

    assert all(isinstance(answer, int) for answer in ask_from_threads(8, ask))


def test_another_key_does_not_wait():
    cache, gate = LRUCache(4), Gate(1)
    thread = threading.Thread(target=lambda: cache.get_or_create("slow", gate))
    thread.start()
    assert gate.entered.wait(20)
    assert cache.get_or_create("quick", lambda: 2) == 2
    assert "slow" not in cache
    gate.opened.set()
    thread.join(20)
    assert "slow" in cache


def test_a_value_may_be_created_from_another_of_the_same_cache():
    cache = LRUCache(4)
    assert cache.get_or_create("outer", lambda: cache.get_or_create("inner", lambda: 2) + 1) == 3
    assert "inner" in cache and "outer" in cache


def test_a_value_that_is_discarded_while_it_is_created_is_not_kept():
    cache, gate, answers = LRUCache(4), Gate("old"), []
    thread = threading.Thread(target=lambda: answers.append(cache.get_or_create("key", gate)))
    thread.start()
    assert gate.entered.wait(20)
    cache.discard("key")
    assert cache.get_or_create("key", lambda: "new") == "new"
    gate.opened.set()
    thread.join(20)
    assert answers == ["old"]
    assert cache.get_or_create("key", lambda: pytest.fail("created again")) == "new"


def test_many_threads_and_keys_keep_the_bound():
    cache, numbers = LRUCache(5), np.random.default_rng(0).integers(0, 12, (8, 400)).tolist()
    rows = iter(numbers)

    def ask():
        return [cache.get_or_create(key, lambda key=key: key) == key for key in next(rows)]

    assert all(all(answer) for answer in ask_from_threads(8, ask))
    assert len(cache) == cache.size == 5


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))])
def test_a_copy_starts_empty(duplicate):
    for cache in (LRUCache(7, count_array_bytes), ArrayCache(7)):
        cache.get_or_create("key", lambda: np.zeros(2, np.uint8))
        other = duplicate(cache)
        assert (type(other), other.max_size, len(other), other.created) == (type(cache), 7, 0, 0)
        assert other.get_or_create("key", lambda: np.zeros(4, np.uint8)).nbytes == other.size == 4


@dataclass
class Pair:
    left: np.ndarray
    right: object = None


def test_arrays_are_counted_in_bytes_and_read_only():
    cache = ArrayCache(200)
    kept = cache.get_or_create("a", lambda: Pair(np.zeros(10, np.float32), Pair(np.zeros(3, np.uint8))))
    assert cache.size == 40 + 3 + 64
    for array in (kept.left, kept.right.left):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_view_does_not_keep_its_base():
    kept = ArrayCache(100).get_or_create("a", lambda: np.arange(1000, dtype=np.uint8)[:10])
    assert kept.base is None and kept.tolist() == list(range(10))
    own = np.zeros(3)
    assert freeze_arrays(own) is own


def test_networks_and_training_do_not_need_the_cache():
    script = (
        "import sys, hardlook.networks.clickability, hardlook.networks.segnext, hardlook.networks.sam;"
        "import hardlook.networks.tiny_vit, hardlook.rclicks.training.loop;"
        "sys.exit('cachetools' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
