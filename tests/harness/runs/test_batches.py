from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import HardlookError, OptionError
from hardlook.fingerprints import hash_value
from hardlook.harness.benchmark import Benchmark, BenchmarkCard, LazyUnits, ScoreMeaning, Unit, UnitList
from hardlook.harness.options import BenchmarkOptions
from hardlook.harness.records import Column, RecordSchema
from hardlook.harness.runs import batches as batching
from hardlook.harness.runs import record_store
from hardlook.harness.runs.batches import IndexedUnits, batches_of_shard, make_batches
from hardlook.harness.runs.launch import RunSettings, launch
from hardlook.harness.scorecard import LeftOut, Scorecard

unit_lists = st.lists(st.sampled_from(["", "a", "b", "c"]), max_size=40).map(
    lambda groups: [Unit(str(index), None, group) for index, group in enumerate(groups)]
)


@given(unit_lists, st.integers(1, 9))
def test_every_unit_once_and_no_batch_too_large(units, size):
    batches = make_batches(units, size)
    assert sorted(unit.id for batch in batches for unit in batch) == sorted(unit.id for unit in units)
    assert all(1 <= len(batch) <= size for batch in batches)


@given(unit_lists, st.integers(1, 9))
def test_a_group_that_fits_is_never_split(units, size):
    batches = make_batches(units, size)
    for group in {unit.group for unit in units} - {""}:
        members = sum(unit.group == group for unit in units)
        touched = sum(any(unit.group == group for unit in batch) for batch in batches)
        if members <= size:
            assert touched == 1


@given(unit_lists, st.integers(1, 9), st.integers(1, 5))
def test_shards_partition_the_batches(units, size, count):
    batches = make_batches(units, size)
    shared = [batch for index in range(count) for batch in batches_of_shard(batches, (index + 1, count))]
    assert sorted(shared, key=lambda batch: batch[0].id) == sorted(batches, key=lambda batch: batch[0].id)


@pytest.mark.parametrize(
    ("name", "what", "unit", "file"),
    [
        (3, "type int", "3", None),
        (None, "NoneType", "None", None),
        ("a\ud800", "not text in UTF-8", "a\\ud800", None),
        ("caf\udce9", "name of a file or folder is not UTF-8", None, "caf\\xe9"),
    ],
)
def test_an_id_that_records_cannot_hold_is_an_error_that_names_the_unit(name, what, unit, file):
    with pytest.raises(HardlookError, match=what) as raised:
        IndexedUnits([Unit("a", 0), Unit(name, 0)])
    assert (raised.value.unit, raised.value.file) == (unit, file)


def test_any_text_in_utf_8_is_an_id():
    assert len(IndexedUnits([Unit("", 0), Unit("\N{SNOWMAN}/'\n\0", 0)])) == 2


@pytest.mark.parametrize("shard", [(0, 3), (4, 3)])
def test_a_shard_outside_its_range_is_refused(shard):
    with pytest.raises(OptionError, match="from 1 to the second"):
        batches_of_shard(make_batches([], 1), shard)


@given(unit_lists, st.integers(1, 9))
def test_whole_groups_are_never_split_and_still_every_unit_comes_once(units, size):
    batches = make_batches(units, size, whole_groups=True)
    assert sorted(unit.id for batch in batches for unit in batch) == sorted(unit.id for unit in units)
    for group in {unit.group for unit in units} - {""}:
        assert sum(any(unit.group == group for unit in batch) for batch in batches) == 1
    assert all(len(batch) <= size or len({unit.group for unit in batch}) == 1 for batch in batches)


def pack_into_lists(units, size, whole_groups):
    """The layout as a plain loop over lists of units, in which stored runs were made."""
    groups: dict[str, list[Unit]] = {}
    for position, unit in enumerate(units):
        groups.setdefault(unit.group or f"\0{position}", []).append(unit)
    packed, current = [], []
    for group in groups.values():
        step = len(group) if whole_groups else size
        for start in range(0, len(group), step):
            piece = group[start : start + step]
            if current and len(current) + len(piece) > size:
                packed.append(tuple(current))
                current = []
            current.extend(piece)
    return [*packed, tuple(current)] if current else packed


@given(unit_lists, st.integers(1, 9), st.booleans(), st.integers(1, 7))
def test_the_layout_of_stored_runs_stays(units, size, whole_groups, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "_CHUNK", chunk)
        batches = make_batches(units, size, whole_groups=whole_groups)
    assert list(batches) == pack_into_lists(units, size, whole_groups)


@given(unit_lists, st.integers(1, 9), st.integers(1, 3), st.data())
def test_batches_are_chosen_and_cut_as_sets_of_units_are(units, size, count, data):
    batches = batches_of_shard(make_batches(units, size), (1, count))
    marked = np.array(data.draw(st.lists(st.booleans(), min_size=len(units), max_size=len(units))), bool)
    ids = {unit.id for unit, mark in zip(units, marked, strict=True) if mark}
    here = {unit.id for batch in batches for unit in batch}
    assert {unit.id for unit, mark in zip(units, batches.mark_units(), strict=True) if mark} == here
    with_any = [batch for batch in batches if any(unit.id in ids for unit in batch)]
    cut = [tuple(unit for unit in batch if unit.id in ids) for batch in with_any]
    assert list(batches.with_any(marked)) == with_any
    assert list(batches.cut_to(marked)) == cut == list(batches.with_any(marked).cut_to(marked))
    assert batches.cut_to(marked).mark_units().tolist() == [unit.id in ids & here for unit in units]


@given(st.sets(st.text(st.characters(exclude_categories=["Cs"]), min_size=1)), st.data())
def test_units_are_found_by_their_ids(ids, data):
    units = IndexedUnits([Unit(name, None) for name in sorted(ids)])
    some = data.draw(st.sets(st.sampled_from(sorted(ids)))) if ids else set()
    for split in (0, len(some) // 2):
        parts = [pl.Series(sorted(some)[:split], dtype=pl.String), pl.Series(sorted(some)[split:], dtype=pl.String)]
        assert list(units.list_ids(units.mark(parts))) == sorted(some)
    assert units.fingerprint == hash_value(sorted(ids))


def test_two_units_with_one_id_are_named():
    with pytest.raises(HardlookError, match="two units with one id") as caught:
        IndexedUnits([Unit("a", 0), Unit("b", 0), Unit("a", 1)])
    assert caught.value.unit == "a"


def test_ids_with_equal_hashes_are_told_apart(monkeypatch):
    hash_ids = batching._hash_ids
    monkeypatch.setattr(batching, "_hash_ids", lambda ids, seed: hash_ids(ids, seed) // (1 if seed > 1 else 2**62))
    units = IndexedUnits([Unit(name, 0) for name in "abcdefgh"])
    assert "".join(units.list_ids(units.mark([pl.Series(["h", "c"])]))) == "ch"
    assert units.fingerprint == hash_value(list("abcdefgh"))


@given(unit_lists, st.integers(1, 9), st.integers(1, 7))
def test_lazy_units_are_packed_and_fingerprinted_as_a_list_of_them_is(units, size, chunk):
    lazy = LazyUnits(len(units), *([getattr(unit, name) for unit in units].__getitem__ for name in Unit.__match_args__))
    assert list(lazy) == units and [lazy[-1 - n] for n in range(len(units))] == units[::-1]
    assert lazy[1:9:2] == units[1:9:2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "_CHUNK", chunk)
        assert list(make_batches(lazy, size)) == list(make_batches(units, size))
        assert IndexedUnits(lazy).fingerprint == IndexedUnits(units).fingerprint


def test_lazy_units_are_made_when_their_batch_is_read_and_keep_what_was_left_out():
    made, note = [], LeftOut("images", 1, "too small", ("x",))

    def make_payload(position):
        made.append(position)
        return position

    units = IndexedUnits(LazyUnits(10, "unit-{}".format, make_payload, left_out=[note]))
    assert units.left_out == IndexedUnits(UnitList([Unit("a", 0)], [note])).left_out == (note,)
    batches = make_batches(units, 4)
    assert len(batches) == 3 and made == []
    assert [unit.payload for unit in batches[1]] == made == [4, 5, 6, 7]


class Payload:
    """Counts the payloads that are alive."""

    alive = most = 0

    def __init__(self, position):
        self.position = position
        Payload.alive += 1
        Payload.most = max(Payload.most, Payload.alive)

    def __del__(self):
        Payload.alive -= 1


COUNTED = Benchmark(
    card=BenchmarkCard(
        "counted", "1", "Counted", "", "saliency", (ScoreMeaning("share", "share", "", headline=True),),
        default_model="planted-saliency", batch_size=7,
    ),
    options=BenchmarkOptions,
    schema=RecordSchema((Column("number", "int", ""),)),
    list_units=lambda options: LazyUnits(100, "unit-{:03d}".format, Payload),
    evaluate=lambda units, model: [{"unit": unit.id, "number": unit.payload.position} for unit in units],
    score=lambda records, options: Scorecard("counted", "1", "", ()),
    report=lambda records, scorecard: [],
)  # fmt: skip


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_run_of_lazy_units_holds_one_batch_of_them_at_a_time(tmp_path, monkeypatch, interrupted):
    monkeypatch.setattr(record_store, "FLUSH_RECORDS", 10)
    if interrupted:
        settings = RunSettings(shard=(2, 3))
        assert launch(f"{__name__}:COUNTED", out=tmp_path, settings=settings).progress.open == 65
        next(iter(sorted(tmp_path.glob("records/*")))).unlink()
    Payload.most = Payload.alive = 0
    done = launch(f"{__name__}:COUNTED", out=tmp_path)
    assert done.scored.records["number"].to_list() == list(range(100))
    assert Payload.most <= 2 * 7
    assert launch(f"{__name__}:COUNTED", out=tmp_path).progress.before == 100
