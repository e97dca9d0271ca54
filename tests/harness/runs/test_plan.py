import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import OptionError
from hardlook.harness.benchmark import Unit
from hardlook.harness.runs.plan import batches_of_shard, make_batches

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


@pytest.mark.parametrize("shard", [(0, 3), (4, 3)])
def test_a_shard_outside_its_range_is_refused(shard):
    with pytest.raises(OptionError, match="from 1 to the second"):
        batches_of_shard([], shard)


@given(unit_lists, st.integers(1, 9))
def test_whole_groups_are_never_split_and_still_every_unit_comes_once(units, size):
    batches = make_batches(units, size, whole_groups=True)
    assert sorted(unit.id for batch in batches for unit in batch) == sorted(unit.id for unit in units)
    for group in {unit.group for unit in units} - {""}:
        assert sum(any(unit.group == group for unit in batch) for batch in batches) == 1
    assert all(len(batch) <= size or len({unit.group for unit in batch}) == 1 for batch in batches)
