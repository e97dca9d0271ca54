import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.collect.results.exclusion_rules import (
    ExclusionRules,
    find_excluded,
    find_unknown_participants,
    parse_rules,
    read_rules,
)
from hardlook.errors import DataError

PEOPLE = pl.DataFrame(
    {
        "participant": ["a", "b", "c"],
        "number": [1, 2, 3],
        "answers": [20, 3, 0],
        "inside": [0.9, 0.5, None],
        "reaction_ms": [800.0, 90.0, None],
        "early_share": [0.1, 0.4, None],
        "late_ms": [5.0, 60.0, None],
        "dropped_batches": [0, 2, 0],
    }
)


@pytest.mark.parametrize(
    ("rule", "value", "whom"),
    [
        ("least_inside", 0.5, ""),
        ("least_inside", 0.51, "b"),
        ("least_reaction_ms", 90.0, ""),
        ("least_reaction_ms", 91.0, "b"),
        ("most_early_share", 0.4, ""),
        ("most_early_share", 0.05, "ab"),
        ("most_late_ms", 59.0, "b"),
        ("most_dropped_batches", 2, ""),
        ("most_dropped_batches", 1, "b"),
        ("least_answers", 4, "bc"),
        ("participants", ("3", "a"), "ac"),
    ],
)
def test_each_rule_excludes_the_right_participants(rule, value, whom):
    assert "".join(find_excluded(PEOPLE, ExclusionRules(**{rule: value}))) == whom


def test_all_rules_are_off_at_first():
    assert find_excluded(PEOPLE, ExclusionRules()) == {} and ExclusionRules().active_rules() == {}


def test_all_reasons_are_listed():
    rules = ExclusionRules(least_inside=0.6, most_dropped_batches=0, participants=("2",))
    assert find_excluded(PEOPLE, rules) == {"b": "named; share inside 0.5, below 0.6; dropped batches 2, above 0"}


def test_unknown_names_are_listed():
    assert find_unknown_participants(PEOPLE, ExclusionRules(participants=("a", "3", "nobody"))) == ("nobody",)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_stricter_rule_leaves_out_no_fewer(one, other):
    mild, strict = sorted((one, other))
    lenient = find_excluded(PEOPLE, ExclusionRules(least_inside=mild))
    assert lenient.keys() <= find_excluded(PEOPLE, ExclusionRules(least_inside=strict)).keys()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"least_inside": 2}, "least_inside: "),
        ({"lest_inside": 0.5}, "lest_inside: "),
        ({"most_dropped_batches": -1}, "most_dropped_batches: "),
        ({"participants": ["1"] * 100_001}, "participants: "),
        ({"participants": ["1" * 65]}, "participants"),
        ([], "the rules: "),
    ],
)
def test_rules_that_cannot_be_are_named(given, said):
    with pytest.raises(DataError, match=said):
        parse_rules(given)


def test_rules_of_a_file(tmp_path):
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"least_inside": 0.6, "participants": ["4"]}))
    assert read_rules(path) == ExclusionRules(least_inside=0.6, participants=("4",))
    path.write_text("{")
    with pytest.raises(DataError, match="not readable as JSON"):
        read_rules(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_rules(tmp_path / "none.json")


def test_a_participants_number_may_be_written_as_a_number(tmp_path):
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"participants": [3, "1"]}))
    assert sorted(find_excluded(PEOPLE, read_rules(path))) == ["a", "c"]


def test_as_many_participants_as_a_study_can_have_may_be_named():
    rules = parse_rules({"participants": ["1"] * 99_999 + ["1" * 64]})
    assert len(rules.participants) == 100_000
