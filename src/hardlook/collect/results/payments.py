"""What is needed to pay participants, in one table: platform ids, completion codes, durations and validity.

The table names people's ids on a platform beside their numbers in the export. It is therefore not one of the files of
`hardlook collect export`, which may be published.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from hardlook.collect.results.answers import list_dropped_batches
from hardlook.collect.results.exclusion_rules import ExclusionRules, find_excluded, parse_rules
from hardlook.collect.results.quality import measure_participants
from hardlook.collect.study.folder import Study
from hardlook.collect.web.tokens import derive_completion_code

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

_COUNTS = ("answers", "batches", "valid_batches", "dropped_batches", "quick_batches", "checks", "failed_checks")


def build_payments(study: Study, store: Store, rules: ExclusionRules | None = None) -> pl.DataFrame:
    """One row per participant, in the order of joining; without `rules` those of the dashboard apply.

    `participant` is the number of every other file; then come the platform's parameters, `code` (empty where none was
    earned), `joined` (UTC), `minutes` from joining to the last answer and `batch_minutes` in complete batches, counts,
    `excluded` (the rules' reasons) and `valid`: a code was earned, a batch counts, and no rule excludes.
    """
    with store.one_snapshot():
        answers, batches, people = store.answers(), store.batches(), store.participants()
        quality = measure_participants(study, answers, batches, people, store.check_answers())
    excluded = find_excluded(quality, parse_rules(store.rules()) if rules is None else rules)
    earned = _find_earned(study, answers, batches)
    times = batches.filter(pl.col("state") == "complete").group_by("participant")
    spent = times.agg(((pl.col("closed") - pl.col("opened")).sum() / 60).alias("batch_minutes"))
    last = answers.group_by("participant").agg(pl.col("received").max().alias("last"))
    joined = people.select(pl.col("id").alias("participant"), pl.col("joined").alias("began"))
    table = quality.join(joined, on="participant", how="left", maintain_order="left")
    for part in (last, spent):
        table = table.join(part, on="participant", how="left", maintain_order="left")
    ids = dict(store.platform_ids().select("participant", "parameters").iter_rows())
    parameters = [json.loads(ids.get(participant, "{}")) for participant in table["participant"]]
    codes = [derive_completion_code(study.secret, one) if one in earned else "" for one in table["participant"]]
    reasons = [excluded.get(one, "") for one in table["participant"]]
    table = table.with_columns(
        *(
            pl.Series(name, [given.get(name, "") for given in parameters], pl.String)
            for name in study.settings.id_parameters
        ),
        pl.Series("code", codes, pl.String),
        pl.Series("excluded", reasons, pl.String),
    )
    return table.select(
        pl.col("number").alias("participant"),
        *study.settings.id_parameters,
        *("code", "device"),
        pl.from_epoch((pl.col("began") * 1000).cast(pl.Int64), time_unit="ms")
        .dt.strftime("%Y-%m-%dT%H:%M:%SZ")
        .alias("joined"),
        ((pl.col("last") - pl.col("began")) / 60).round(2).alias("minutes"),
        pl.col("batch_minutes").round(2),
        *_COUNTS,
        "excluded",
        ((pl.col("code") != "") & (pl.col("valid_batches") > 0) & (pl.col("excluded") == "")).alias("valid"),
    )


def describe_payments(table: pl.DataFrame) -> str:
    """A sentence for a terminal on the table of `build_payments`."""
    people, codes, valid = table.height, (table["code"] != "").sum(), table["valid"].sum()
    return f"{people} joined, {codes} have a completion code, {valid} of them with valid work"


def _find_earned(study: Study, answers: pl.DataFrame, batches: pl.DataFrame) -> set[str]:
    """The participants with a batch that earns a completion code."""
    counts = pl.col("state") == "complete"
    if study.settings.code_for == "valid":
        counts &= pl.col("valid").fill_null(False)
    dropped = list_dropped_batches(study.settings, answers)
    return set(batches.filter(counts & ~pl.col("id").is_in(dropped))["participant"])
