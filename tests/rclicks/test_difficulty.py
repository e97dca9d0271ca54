"""`hardlook clicks difficulty` over planted runs."""

import csv
import json
import shutil

import numpy as np
import polars as pl
import pytest

from hardlook.harness.checked_json import parse_checked_json
from hardlook.harness.sections import Gallery
from hardlook.rclicks.difficulty import (
    JoinedRuns,
    build_sections,
    describe_differences,
    find_differences,
    join_runs,
    read_run,
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two models on the same scenes, and a third run on fewer of them."""
    from hardlook.cli.app import app

    where = tmp_path_factory.mktemp("runs")
    plain = ["run", "rclicks", "--model", "disc", "--rounds", "2", "--groups", "3", "--resamples", "0"]
    for name, more in (
        ("soft", ["--model-arg", "fragility=.3", "--scenes", "5"]),
        ("hard", ["--model-arg", "fragility=.9", "--scenes", "5"]),
        ("few", ["--model-arg", "blunt=.5", "--scenes", "3"]),
        ("other", ["--scenes", "5", "--groups", "4", "--group-rule", "exact", "--user-clicks", "none"]),
    ):
        with pytest.raises(SystemExit) as left:
            app([*plain, *more, "--out", str(where / name)])
        assert not left.value.code
    return where


def records(folder):
    parts = [pl.read_parquet(path) for path in (folder / "records").glob("*.parquet")]
    return {row["unit"]: row for row in pl.concat(parts).iter_rows(named=True)}


def test_spreads_and_means_are_averaged_over_runs_first(hardlook, tmp_path, runs):
    answer = hardlook("clicks", "difficulty", runs / "soft", runs / "hard", "--out", tmp_path / "out")
    assert answer.code == 0 and "5 instances that all 2 runs have, by the clicks of simulated people" in answer.out
    with (tmp_path / "out/difficulty.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["difficulty"]) for row in rows] == sorted(
        (float(row["difficulty"]) for row in rows), reverse=True
    )
    answered = [records(runs / name) for name in ("soft", "hard")]
    for row in rows:
        ious = [
            np.array(one[row["instance"]]["user_intersection"]) / np.array(one[row["instance"]]["user_union"])
            for one in answered
        ]
        expected = sum(np.std(part) for part in ious) / sum(np.mean(part) for part in ious)
        assert float(row["difficulty"]) == pytest.approx(expected, rel=1e-4)
    page = (tmp_path / "out/page.html").read_text()
    assert "Pictures of hard" in page and page.count("data:image/jpeg") == 5 * 4
    assert "it matters least which click" in page


def test_the_run_that_is_shown_is_the_one_of_the_widest_spread():
    mean, std = np.array([[0.9, 0.9], [0.1, 0.1]]), np.array([[0.1, 0.4], [0.2, 0.2]])
    joined = JoinedRuns(("steady", "poor"), ("a", "b"), ("x", "x"), mean, std, "people", (0, 0), (2, 2))
    assert joined.widest == "steady"


def test_only_shared_instances_count_and_the_rest_is_said(hardlook, tmp_path, runs):
    answer = hardlook("clicks", "difficulty", runs / "soft", runs / "few", "--out", tmp_path, "--json")
    document = json.loads(answer.out)
    assert len(document["instances"]) == 3
    assert [run["alone"] for run in document["runs"]] == [2, 0]
    assert any("2 of soft" in words for words in document["in_words"])


def test_no_instance_is_among_the_hardest_and_the_easiest(runs):
    joined = join_runs([read_run(runs / name) for name in ("soft", "hard")])
    sections = build_sections(joined, [])
    hardest, easiest = (block for section in sections for block in section.blocks if isinstance(block, Gallery))
    names = [[example.unit for example in gallery.examples] for gallery in (hardest, easiest)]
    ordered = [joined.units[place] for place in joined.hardest_first]
    assert names == [ordered[:3], ordered[:2:-1]]


def test_what_differs_between_runs_is_said(hardlook, tmp_path, runs):
    answer = hardlook("clicks", "difficulty", runs / "soft", runs / "other", "--out", tmp_path, "--json")
    document = json.loads(answer.out)
    assert document["differences"] == {
        "groups": ["3", "4"],
        "group rule": ["threshold", "exact"],
        "people": ["simulated people", "no people"],
    }
    words = "\n".join(document["in_words"])
    assert "The runs differ in groups (soft: 3, other: 4); group rule (soft: threshold, other: exact); people" in words
    assert "The groups' clicks count here, so this shifts their spreads." in words
    assert "People's clicks are not used, since not every run has two or more of them on every instance" in words
    assert "(soft: 5 of 5, other: 0 of 5)" in words
    assert "What differs between the runs" in (tmp_path / "page.html").read_text()


def test_runs_that_differ_in_their_models_alone_have_nothing_to_say(runs):
    joined = join_runs([read_run(runs / name) for name in ("soft", "hard")])
    assert find_differences(joined.runs) == {} and describe_differences(joined) == []


def test_an_unfinished_run_and_other_people_are_said(tmp_path, runs):
    """As after a kill, and as with a second file of clicks."""
    for name in ("soft", "hard"):
        shutil.copytree(runs / name, tmp_path / name)
    path = tmp_path / "hard" / "run.json"
    manifest = parse_checked_json(path.read_text())
    manifest["units"], manifest["seed"] = 7, 4
    manifest["options"] |= {"seed": 4, "rounds": 9, "user_clicks": "there/clicks.csv"}
    manifest["answers"]["parts"]["data user_clicks"] = "0123456789abcdef"
    path.write_text(json.dumps(manifest))
    joined = join_runs([read_run(tmp_path / name) for name in ("soft", "hard")])
    assert find_differences(joined.runs) == {
        "rounds": ["2", "9"],
        "seed": ["0", "4"],
        "people": ["simulated people", "clicks.csv 01234567"],
    }
    words = describe_differences(joined)
    assert words[0] == "The run hard is not finished: 5 of its 7 instances have an answer."
    assert len(words) == 2 and "shifts" not in words[1]


def test_what_cannot_be_joined_is_named(hardlook, tmp_path, runs):
    out = ("--out", tmp_path / "out")
    assert "one run alone" in hardlook("clicks", "difficulty", runs / "soft", *out).err
    assert "given twice" in hardlook("clicks", "difficulty", runs / "soft", runs / "soft", *out).err
    assert "there is no run here" in hardlook("clicks", "difficulty", runs / "soft", tmp_path, *out).err
    assert not (tmp_path / "out").exists()
