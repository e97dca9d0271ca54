from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from hardlook.errors import ChangedRun, DataError, OptionError
from hardlook.harness.options import fields_that_change, is_unset_addition
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs import plan
from hardlook.harness.runs.evaluation import Job, Worker
from hardlook.harness.runs.plan import (
    check_unchanged,
    choose_batch_size,
    find_nearest_ids,
    find_units,
    list_units,
    make_plan,
)
from hardlook.models.identity import ModelIdentity
from hardlook.models.registry import build

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


@pytest.mark.parametrize("error", [OutOfMemoryError, ValueError])
def test_a_batch_has_a_unit_even_where_a_single_one_fails(error):
    assert Device(10.0, 0.01, memory=0, error=error).choose() == 1


def test_another_error_ends_the_search_and_is_left_to_the_run():
    assert Device(10.0, 0.01, memory=4, error=ValueError).choose() == min(4, BENCHMARK.card.batch_size)


def test_never_more_than_there_are_units():
    assert Device(10.0, 0.01, memory=1000).choose(UNITS[:5]) == 4


def test_on_a_processor_the_benchmarks_own_size_serves():
    assert choose_batch_size(Worker(BENCHMARK, SimpleNamespace()), UNITS) == BENCHMARK.card.batch_size


def test_a_slow_model_has_small_batches_on_every_device():
    for device, fixed in (("cpu", 1.0), ("cuda:0", 1.0)):
        slow = SimpleNamespace(device=device, units_per_batch=2)
        timed = Device(fixed, 0.01, memory=1000)
        assert choose_batch_size(Worker(timed, slow), UNITS, clock=lambda timed=timed: timed.now) == 2


def planned(model="planted-segmenter"):
    worker = Worker(BENCHMARK, build("planted-segmenter", role=BENCHMARK.card.role))
    return make_plan(Job("closed-miou", model), worker, BENCHMARK.options(scenes=64), UNITS, batch_size=4)


def test_a_plan_fits_its_own_folder_and_every_change_is_listed():
    plan, here = planned(), Path("run")
    check_unchanged(dict(plan.parts), plan, here)
    stored = {**plan.parts, "batch size": 5, "gone": 1}
    with pytest.raises(ChangedRun) as caught:
        check_unchanged(stored, replace(plan, parts={**plan.parts, "new": 2}), here)
    head, *lines = caught.value.what.split("\n")
    assert head.endswith("with other units or answers:")
    assert lines == [
        "  batch size: 5 in the folder, 4 now", "  gone: 1 in the folder, nothing now",
        "  new: nothing in the folder, 2 now",
    ]  # fmt: skip
    assert caught.value.file == "run"


def test_a_model_that_is_not_registered_has_a_plan_under_its_own_name():
    known, own = planned(), planned("mine")
    assert own.parts["model name"] == "mine"
    assert {name for name in known.parts if known.parts[name] != own.parts[name]} == {"model name", "model args"}


def test_an_added_option_is_part_of_the_fingerprint_only_where_it_is_set():
    """So that records of runs before the option was added still fit."""
    benchmark = find_benchmark("rclicks")
    worker = Worker(benchmark, build("disc", role=benchmark.card.role))
    plans = []
    for given in ({}, {"draws": 2}):
        options = benchmark.options(scenes=2, **given)
        units = benchmark.list_units(options)
        plans.append(make_plan(Job("rclicks", "disc"), worker, options, units, batch_size=2).parts)
    assert "option draws" not in plans[0] and plans[1]["option draws"] == 2
    assert plans[0]["option rounds"] == 20


def plan_stored(folder, **more):
    options = BENCHMARK.options(gt=folder / "gt", pred=folder / "pred", labels=str(folder / "labels.csv"))
    units = BENCHMARK.list_units(options)
    return make_plan(Job("closed-miou"), Worker(BENCHMARK, None), options, units, batch_size=2, **more).parts


@pytest.fixture
def stored(tmp_path):
    """A folder of true and predicted maps and their labels."""
    for name in ("gt", "pred"):
        (tmp_path / "data" / name).mkdir(parents=True)
        for image in range(3):
            np.save(tmp_path / "data" / name / f"{image}.npy", np.zeros((64, 512), np.uint8))
    (tmp_path / "data" / "labels.csv").write_text("id,name\n0,sky\n1,cat\n")
    return tmp_path / "data"


@pytest.mark.parametrize("changed", ["gt", "pred"])
def test_one_changed_pixel_of_the_data_is_another_plan(stored, changed):
    before = plan_stored(stored)
    assert plan_stored(stored) == before
    file = stored / changed / "1.npy"
    values = np.load(file)
    values[32, 256] = 1
    np.save(file, values)
    after = plan_stored(stored, full_fingerprint=True)
    assert {name for name in before if before[name] != after[name]} == {f"data {changed}"}


def test_data_that_were_moved_are_the_same_plan_and_missing_ones_an_error(stored):
    before = plan_stored(stored)
    moved = stored.rename(stored.with_name("moved"))
    assert plan_stored(moved) == before
    options = BENCHMARK.options(gt=moved / "gt", pred=moved / "none", labels=str(moved / "labels.csv"))
    with pytest.raises(DataError, match="pred: there is no such file or folder"):
        make_plan(Job("closed-miou"), Worker(BENCHMARK, None), options, UNITS, batch_size=2)


def test_the_run_folder_inside_of_the_data_is_no_part_of_them(stored):
    before = plan_stored(stored)
    out = stored / "pred" / "run"
    out.mkdir()
    (out / "run.json").write_text("{}")
    assert plan_stored(stored, out=out) == before


def test_versions_of_the_libraries_that_a_model_runs_on_are_part_of_the_plan():
    plain = planned()
    assert not [name for name in plain.parts if name.startswith("library ")]
    model = build("planted-segmenter", role=BENCHMARK.card.role)
    model.libraries = ("polars", "numpy")
    worker, options = Worker(BENCHMARK, model), BENCHMARK.options(scenes=64)
    parts = make_plan(Job("closed-miou", "planted-segmenter"), worker, options, UNITS, batch_size=4).parts
    libraries = {name: version for name, version in parts.items() if name.startswith("library ")}
    assert libraries == {"library numpy": np.__version__, "library polars": pl.__version__}


def test_units_are_found_by_their_ids_in_the_order_asked_for_and_once():
    found = find_units(UNITS, ["scene-0007", "scene-0002", "scene-0007"])
    assert [unit.id for unit in found] == ["scene-0007", "scene-0002"]
    with pytest.raises(OptionError, match="--unit scene-7: this is none of the 64 units") as caught:
        find_units(UNITS, ["scene-0002", "scene-7"])
    near = caught.value.remedy.removeprefix("the nearest are: ").split(", ")
    assert len(near) == 5 and all(one.startswith("scene-") and one.endswith("7") for one in near)


def test_of_very_many_ids_those_with_the_same_beginning_are_compared(monkeypatch):
    ids = [f"a-{number:03}" for number in range(30)] + [f"b-{number:03}" for number in range(3)]
    monkeypatch.setattr(plan, "MAX_COMPARED", 20)
    assert sorted(find_nearest_ids("b-0x1", ids)) == ["b-000", "b-001", "b-002"]
    assert len(find_nearest_ids("zzz", ids, most=4)) == 4
    monkeypatch.setattr(plan, "MAX_COMPARED", 33)
    assert find_nearest_ids("b-0x1", ids, most=2)[0] == "b-001"


def test_data_without_units_are_an_error():
    empty = replace(BENCHMARK, list_units=lambda options: [])
    with pytest.raises(DataError, match="benchmark 'closed-miou' finds no units in this data"):
        list_units(empty, BENCHMARK.options())


def test_garbage_is_collected_after_units_are_listed_only_where_it_was_before(monkeypatch):
    seen = []

    def list_paused(options):
        seen.append(gc.isenabled())
        return UNITS[:2]

    benchmark, was_enabled = replace(BENCHMARK, list_units=list_paused), gc.isenabled()
    try:
        for switch, expected in ((gc.enable, True), (gc.disable, False)):
            switch()
            assert len(list_units(benchmark, BENCHMARK.options(scenes=2))) == 2
            assert gc.isenabled() is expected
    finally:
        (gc.enable if was_enabled else gc.disable)()
    assert seen == [False, False]


def test_units_whose_files_do_not_fit_into_memory_leave_the_benchmarks_own_size():
    device = Device(1.0, 0.1, memory=1000)

    def prepare(unit):
        raise MemoryError

    device.prepare = prepare
    assert device.choose() == BENCHMARK.card.batch_size


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ("a1b2", "xxh3:c3", True),
        ("xxh3:a1", "xxh3:c3", False),
        ("a1b2", "c3d4", False),
    ],
)
def test_hashes_of_version_0_1_are_said_to_cover_less(before, now, told):
    plan = planned()
    plan = replace(plan, parts={**plan.parts, "data voc": now})
    with pytest.raises(ChangedRun) as caught:
        check_unchanged({**plan.parts, "data voc": before}, plan, Path("run"))
    assert ("version 0.1 hashed only the ends of files" in caught.value.what) == told
    assert "start again with --new" in caught.value.remedy
    # Of data alone: other parts were never hashed so.
    with pytest.raises(ChangedRun) as caught:
        check_unchanged({**plan.parts, "model": before}, replace(plan, parts={**plan.parts, "model": now}), Path("run"))
    assert "version 0.1" not in caught.value.what


def test_where_a_weights_file_lies_and_which_device_ran_is_no_part_of_the_plan():
    identity = ModelIdentity("planted-segmenter", BENCHMARK.card.role, {}, "xxh3:0")
    args = {"weights": "/somewhere/net.pt", "name": "net.pth", "device": "cuda:1", "stranger": 0.5}
    parts = plan._model_parts(
        replace(identity, args=args, weights={"net.pt": "xxh3:1"}, device="cuda:1"), SimpleNamespace()
    )
    assert parts["model args"] == {"name": "net.pth", "stranger": 0.5}
    assert (parts["model device"], parts["model weights"]) == ("cuda", {"net.pt": "xxh3:1"})
    assert plan._model_parts(replace(identity, device="cpu"), None)["model device"] == "cpu"
    assert args["device"] == "cuda:1"


def test_among_few_ids_the_nearest_need_not_begin_alike():
    ids = ["scene-0001", "scene-0002", "xcene-0017", "street-1"]
    assert find_nearest_ids("scene-0017", ids, most=2)[0] == "xcene-0017"
    assert len(find_nearest_ids("scene-0017", ids, most=9)) == 4


@pytest.mark.parametrize(("name", "model"), [("rclicks", "disc"), ("closed-miou", "planted-segmenter")])
def test_every_option_that_changes_units_or_answers_is_part_of_the_plan(name, model):
    benchmark = find_benchmark(name)
    options = benchmark.options(scenes=2)
    worker = Worker(benchmark, build(model, role=benchmark.card.role))
    parts = make_plan(Job(name, model), worker, options, benchmark.list_units(options), batch_size=2).parts
    changing = fields_that_change(benchmark.options, "units") | fields_that_change(benchmark.options, "answers")
    sources = benchmark.sources(options)
    expected = {
        field
        for field in changing
        if field != "data" and field not in sources and not is_unset_addition(options, field)
    }
    assert {part.removeprefix("option ") for part in parts if part.startswith("option ")} == expected
    # Of both ends of the alphabet, seen from "data".
    assert name == "closed-miou" or (min(expected) < "data" < max(expected))
    assert (parts["batch size"], parts["threads"]) == (2, 1)
