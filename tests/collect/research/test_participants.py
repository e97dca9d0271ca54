"""Rules: the preview says what saving gives, and saving gives what the export then holds."""

import csv
import re

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardlook.collect.research.participants import flagging_rules, list_columns
from hardlook.collect.results.exclusion_rules import find_excluded
from hardlook.collect.results.export import export_study
from hardlook.collect.study.settings import StudySettings

from .conftest import tables, words

RULES = [
    {"least_inside": "0.5"},
    {"least_reaction_ms": "1000"},
    {"most_early_share": "0"},
    {"most_late_ms": "100"},
    {"most_dropped_batches": "1"},
    {"least_answers": "6"},
    {"participants": "4, 5 8"},
    {"least_inside": "0.8", "participants": "3"},
]


def out_of(page):
    """Participants by number whom the page says are left out, and valid answers by device."""
    found = tables(page)
    people = {row[0] for row in found.get("Participants left out", [[]])[1:]}
    remaining = found["Valid answers that remain"]
    place = max(i for i, name in enumerate(remaining[0]) if name.startswith("with"))
    return people, {row[0]: int(row[place]) for row in remaining[1:]}


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: " ".join(rules))
def test_saving_gives_what_the_preview_showed(researcher, gathered, tmp_path, rules):
    study, store, _ = gathered
    query = "&".join(f"{name}={value}" for name, value in rules.items())
    page = researcher.page(f"/research/rules?{query}")
    people, remaining = out_of(page)
    assert store.rules() == {}
    kept = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.split('class="save"')[1]))
    saved = researcher.client.post("/research/rules", data=kept)
    assert (saved.status_code, saved.headers["location"]) == (303, "/research/rules?saved=yes")
    after = researcher.page("/research/rules?saved=yes")
    assert "The rules are saved." in words(after)
    assert out_of(after) == (people, remaining)
    export_study(study, store, tmp_path)
    with (tmp_path / "clicks.csv").open() as stream:
        devices = [row["device"] for row in csv.DictReader(stream)]
    assert remaining == {"pc": devices.count("pc"), "mobile": devices.count("mobile"), "all": len(devices)}
    left = {
        row[0]
        for row in tables(researcher.page("/research/participants?flagged=yes"))["Participants"][1:]
        if len(row) > 1
    }
    assert people <= left


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    least=st.floats(0, 1).map(lambda share: round(share, 3)),
    reaction=st.integers(0, 2000),
    dropped=st.integers(0, 3),
)
def test_the_preview_excludes_as_a_literal_reading_of_the_rules_does(researcher, recounted, least, reaction, dropped):
    qualities, clicks = recounted
    page = researcher.page(
        f"/research/rules?least_inside={least}&least_reaction_ms={reaction}&most_dropped_batches={dropped}"
    )
    out = {
        who
        for who, one in qualities.items()
        if (one["inside"] is not None and one["inside"] < least)
        or (one["reaction"] is not None and one["reaction"] < reaction)
        or one["dropped"] > dropped
    }
    remaining = [click for click in clicks if click["counts"] and click["participant"] not in out]
    people, said = out_of(page)
    assert people == {str(qualities[who]["number"]) for who in out}
    assert said["all"] == len(remaining)


def test_a_pointer_of_another_device_a_rushed_batch_and_a_failed_check_are_flagged():
    fine = {"answers": 9, "inside": 1.0, "quick_batches": 0, "failed_checks": 0, "pointer_conflict_share": 0.0}
    odd = {"b": {"pointer_conflict_share": 0.1}, "c": {"quick_batches": 1}, "d": {"failed_checks": 1}}
    rows = [{"participant": "a", "number": 1, **fine}]
    rows += [{"participant": who, "number": n, **fine, **change} for n, (who, change) in enumerate(odd.items(), 2)]
    flags = find_excluded(pl.DataFrame(rows), flagging_rules(StudySettings(kind="clicks", title="Cups")))
    assert flags.keys() == odd.keys() and "pointer of another device 0.1, above 0" in flags["b"]
    titles = {column.key: column.title for column in list_columns("clicks")}
    assert titles["pointer_conflicts"] == "other pointer" and "pointer_conflicts" not in {
        column.key for column in list_columns("review")
    }


def test_payments_are_downloaded_from_the_export_page(researcher, gathered):
    assert 'href="/research/payments.csv"' in researcher.page("/research/export")
    answer = researcher.client.get("/research/payments.csv")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/csv")
    assert answer.text.count("\n") == len(gathered[2]) + 1
