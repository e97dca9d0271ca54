"""One unit's whole record, lists and pictures too, read from the one row of the one part that holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hardlook.contract.records import Record
from hardlook.errors import RunError
from hardlook.explorer.gathering import PART, ROW, RunState


def read_whole(state: RunState, row: Mapping[str, Any]) -> Record:
    """The record of a row of the run's table."""
    import polars as pl

    path = state.paths[row[PART]]
    columns = ["unit", *(column.name for column in state.benchmark.schema.columns)]
    try:
        found = pl.scan_parquet(path).slice(row[ROW], 1).select(columns).collect().to_dicts()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RunError("the part of the records that holds this unit cannot be read any more") from error
    if not found or found[0]["unit"] != row["unit"]:
        raise RunError("the records have changed since this page was asked for", remedy="load the page again")
    return found[0]
