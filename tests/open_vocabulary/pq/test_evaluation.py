import polars as pl
import pytest
from two_vocabularies import spoken_records

from hardlook.errors import DataError
from hardlook.harness.registry import find_benchmark

BENCHMARK = find_benchmark("open-pq")


def test_a_word_that_is_a_thing_to_one_model_and_stuff_to_another_is_refused():
    renamed = spoken_records("open-pq", 2, {"cat": "cow"})
    kinds = renamed["things"][0].to_list()
    stuff = renamed.with_columns(things=pl.lit([*kinds[:-1], 1 - kinds[-1]], pl.List(pl.Int64)))
    longer = spoken_records("open-pq", 2, {"cat": "cow", "sky": "boat"})
    with pytest.raises(DataError, match="'cow' is a thing in one run and stuff in another"):
        BENCHMARK.merge_vocabularies([longer, stuff])
