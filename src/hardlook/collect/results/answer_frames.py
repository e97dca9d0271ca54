"""The frames that a store gives, with the types that the results count on, also where they have no rows.

>>> empty = typed_answers(pl.DataFrame({name: [] for name in ANSWER_TYPES}))
>>> empty.schema["inside"], empty.schema["reaction_ms"]
(Boolean, Float64)
>>> measured_phases(empty).columns[-5:]
['image', 'target', 'again', 'frame', 'longest_frame']
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from hardlook.errors import DataError

ANSWER_TYPES: Mapping[str, type[pl.DataType]] = {
    **dict.fromkeys(("key", "participant", "item", "task", "mode", "device", "batch", "batch_state"), pl.String),
    **dict.fromkeys(("durations", "circumstances"), pl.String),
    **dict.fromkeys(("x", "y", "reaction_ms", "received"), pl.Float64),
    **dict.fromkeys(("inside", "near", "batch_valid"), pl.Boolean),
    **dict.fromkeys(("early", "batch_number", "position", "shows", "value"), pl.Int64),
}
BATCH_TYPES: Mapping[str, type[pl.DataType]] = {
    **dict.fromkeys(("id", "participant", "device", "state"), pl.String),
    "valid": pl.Boolean,
    **dict.fromkeys(("trials", "answered"), pl.Int64),
}
PARTICIPANT_TYPES: Mapping[str, type[pl.DataType]] = {
    **dict.fromkeys(("id", "device"), pl.String),
    **dict.fromkeys(("joined", "trained", "seen", "finished"), pl.Float64),
}
PHASES = ("image", "target", "again")
DURATIONS = pl.Struct(dict.fromkeys((*PHASES, "frame", "longest_frame"), pl.Float64))
SCREEN = ("ratio", "view_width", "view_height", "shown_width", "shown_height", "zoom", "queued_ms")
CIRCUMSTANCES = pl.Struct(
    {"pointer": pl.String, **dict.fromkeys(SCREEN, pl.Float64), "hidden": pl.Int64, "restarts": pl.Int64}
)


def typed_answers(answers: pl.DataFrame) -> pl.DataFrame:
    """Answers with flags as booleans; columns of ours beside them stay."""
    return answers.cast(ANSWER_TYPES)  # type: ignore[arg-type]


def typed_batches(batches: pl.DataFrame) -> pl.DataFrame:
    """Batches; `trials` counts what was handed out, `answered` those of it that have an answer."""
    return batches.cast(BATCH_TYPES)  # type: ignore[arg-type]


def typed_participants(participants: pl.DataFrame) -> pl.DataFrame:
    """Participants in the order in which they joined, with `number`, the name that they go by in every file.

    >>> two = pl.DataFrame({"id": ["b", "a"], "device": [None, "pc"], "joined": [2.0, 1.0], "trained": [None, 1.5],
    ...                     "seen": [2.0, 1.5], "finished": [None, None]})
    >>> typed_participants(two).select("number", "id").rows()
    [(1, 'a'), (2, 'b')]
    """
    return participants.cast(PARTICIPANT_TYPES).sort("joined", "id").with_row_index("number", 1)  # type: ignore[arg-type]


def measured_phases(answers: pl.DataFrame) -> pl.DataFrame:
    """Answers with the milliseconds of each phase and of frames; null where the browser did not say."""
    return _unpacked(answers, "durations", DURATIONS)


def shown_on(answers: pl.DataFrame) -> pl.DataFrame:
    """Answers with what the screen was like; null where the browser did not say."""
    return _unpacked(answers, "circumstances", CIRCUMSTANCES)


def _unpacked(answers: pl.DataFrame, name: str, kind: pl.Struct) -> pl.DataFrame:
    try:
        return answers.with_columns(pl.col(name).str.json_decode(kind).struct.unnest())
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{name} of an answer are not JSON: {error}", remedy="restore the database") from error
