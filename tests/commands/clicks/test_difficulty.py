"""`hardlook clicks difficulty` over planted runs."""

import csv
import json

import numpy as np
import polars as pl
import pytest


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two models on the same scenes, and a third run on fewer of them."""
    from hardlook.commands.app import app

    where = tmp_path_factory.mktemp("runs")
    plain = ["run", "rclicks", "--model", "disc", "--rounds", "2", "--groups", "3", "--resamples", "0"]
    for name, more in (
        ("soft", ["--model-arg", "fragility=.3", "--scenes", "5"]),
        ("hard", ["--model-arg", "fragility=.9", "--scenes", "5"]),
        ("few", ["--model-arg", "blunt=.5", "--scenes", "3"]),
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
    assert "Pictures of hard" in page and page.count("data:image/jpeg") == 2 * 5 * 4


def test_only_shared_instances_count_and_the_rest_is_said(hardlook, tmp_path, runs):
    answer = hardlook("clicks", "difficulty", runs / "soft", runs / "few", "--out", tmp_path, "--json")
    document = json.loads(answer.out)
    assert len(document["instances"]) == 3
    assert [run["alone"] for run in document["runs"]] == [2, 0]
    assert any("2 of soft" in words for words in document["in_words"])


def test_what_cannot_be_joined_is_named(hardlook, tmp_path, runs):
    out = ("--out", tmp_path / "out")
    assert "one run alone" in hardlook("clicks", "difficulty", runs / "soft", *out).err
    assert "given twice" in hardlook("clicks", "difficulty", runs / "soft", runs / "soft", *out).err
    assert "there is no run here" in hardlook("clicks", "difficulty", runs / "soft", tmp_path, *out).err
    assert not (tmp_path / "out").exists()
