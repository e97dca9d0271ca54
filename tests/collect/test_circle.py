"""The circle closed on real images: people with known habits click on the real pages, and the rest of hardlook knows
them again by what they left.

Two crowds of 8 click on the 7 images of GrabCut, one by `distance` and one evenly over each object. NSS is highest
for the map that people click by, whatever the maps are. With 20 people the right map leads by .54 (crowd `distance`)
and .41 (`uniform`) on average, with a standard deviation of .11, and was ahead in all of 1,000 simulated crowds. WD and
KS need several times as many clicks for that, so they are compared between the crowds, where their leads add up: to
about 4 and 3 standard deviations. The clicks are drawn by a seed, so the crowds are the same in every run.
"""

import json
import subprocess
from dataclasses import dataclass

import polars as pl
import pytest
from browsers import NEEDS_CHROMIUM
from circle_people import Habit, Person, send_people
from command_line import CommandLine
from command_server import hardlook_command
from served_studies import ServedStudy, change_settings, init

from hardlook.data.click_file import read_clicks
from hardlook.data.object_instances import list_instances
from hardlook.data.previous_masks import PreviousMasks
from hardlook.harness.runs.folder import RunFolder

for needed in ("starlette", "uvicorn", "sqlalchemy", "httpx", "playwright"):
    pytest.importorskip(needed, reason="the extra web or dev is not installed")

pytestmark = [
    pytest.mark.real,
    pytest.mark.browser,
    NEEDS_CHROMIUM,
]

CROWDS, PEOPLE, IMAGES = ("distance", "uniform"), 8, 7

QUICK = ("--image-seconds", 0.04, "--target-seconds", 0.04, "--again-seconds", 0.04)

SETS = ("--batch-size", 4, "--most-batches", 2, "--training", 1, "--target-clicks", PEOPLE // 2)


@dataclass(frozen=True)
class Collected:
    """A crowd's study, the people who took part, and the folder of its export."""

    study: object
    people: list
    export: object

    @property
    def clicks(self):
        return self.export / "clicks.csv"


@pytest.fixture(scope="module")
def grabcut(shared_data):
    return shared_data / "data" / "GrabCut"


@pytest.fixture(scope="module")
def circle(grabcut, tmp_path_factory):
    """Both crowds, after they went through the pages of a study each; by click model."""
    root = tmp_path_factory.mktemp("circle")
    servers, crowds = [], {}
    try:
        for name in CROWDS:
            init("clicks", root / name, "--data", f"grabcut={grabcut}", *SETS, *QUICK, "--open-link")
            change_settings(root / name, limits={"open_batches_per_address": PEOPLE})
            server = ServedStudy(root / name, f"sqlite:///{root / name / 'answers.sqlite'}").start()
            servers.append(server)
            habit = Habit({"grabcut": grabcut}, name)
            crowds[name] = [
                Person(number, ("pc", "mobile")[number % 2], habit, server.address) for number in range(PEOPLE)
            ]
        send_people([person for pair in zip(*crowds.values(), strict=True) for person in pair])
    finally:
        for server in servers:
            server.stop()
    for name in CROWDS:
        command = [*hardlook_command(), "collect", "export", root / name, "--out", root / f"{name}-export"]
        subprocess.run(command, check=True, capture_output=True)
    return {name: Collected(root / name, crowds[name], root / f"{name}-export") for name in CROWDS}


@pytest.fixture
def hardlook(capsys, monkeypatch):
    return CommandLine(capsys, monkeypatch)


@pytest.mark.parametrize("crowd", CROWDS)
def test_the_export_holds_the_clicks_that_people_meant(circle, hardlook, crowd):
    people = circle[crowd].people
    meant = sorted((stem, one.device, *pixel) for one in people for stem, pixel in one.clicks.items())
    assert len(meant) == PEOPLE * IMAGES
    table = read_clicks(circle[crowd].clicks).frame
    assert sorted(table.select("full_stem", "device", "x", "y").rows()) == meant
    assert {one.practised for one in people} == {1}
    status = json.loads(hardlook("collect", "status", circle[crowd].study, "--json").out)
    assert status["valid"] == status["wanted"] == PEOPLE * IMAGES and status["batches"]["dropped"] == 0
    assert len({one.code for one in people}) == PEOPLE
    whose = hardlook("collect", "status", circle[crowd].study, "--code", people[3].code)
    assert "7 answers in 2 batches: 2 valid" in whose.out and "mobile" in whose.out


@pytest.fixture(scope="module")
def judged(circle, grabcut, tmp_path_factory):
    """Both click models on both crowds: KS, WD and NSS by (crowd, model)."""
    scores = {}
    for crowd in CROWDS:
        out = tmp_path_factory.mktemp("judged") / crowd
        command = [*hardlook_command(), "clicks", "evaluate", "--user-clicks", circle[crowd].clicks]
        command += ["--data", f"grabcut={grabcut}", "--models", "uniform,distance", "--draws", "30", "--out", out]
        subprocess.run([*command, "--quiet"], check=True, capture_output=True)
        for row in json.loads((out / "evaluation.json").read_text())["scores"]:
            if row["slice"] == "all":
                assert row["stems"] == IMAGES
                scores[crowd, row["model"]] = {name: row[name]["value"] for name in ("ks", "wd", "nss")}
    return scores


@pytest.mark.parametrize("crowd", CROWDS)
def test_the_click_model_by_which_people_click_is_preferred(judged, crowd):
    [other] = {*CROWDS} - {crowd}
    assert judged[crowd, crowd]["nss"] > judged[crowd, other]["nss"]


@pytest.mark.parametrize(("metric", "better"), [("nss", 1), ("wd", -1), ("ks", 1)])
def test_what_speaks_for_a_model_speaks_louder_among_its_own_people(judged, metric, better):
    lead = {crowd: judged[crowd, "distance"][metric] - judged[crowd, "uniform"][metric] for crowd in CROWDS}
    assert better * lead["distance"] > better * lead["uniform"]


def test_a_network_trains_on_the_export(circle, grabcut, hardlook, tmp_path, one_thread):
    words = ("--user-clicks", circle["distance"].clicks, "--data", f"grabcut={grabcut}", "--width", "small")
    answer = hardlook("clicks", "train", *words, "--size", 96, "--epochs", 1, "--out", tmp_path / "net", "--quiet")
    assert answer.code == 0, answer.err
    assert "on the clicks of people on 6 stems, validated on 1" in answer.out
    assert (tmp_path / "net" / "clickability.safetensors").stat().st_size > 100_000


@pytest.fixture(scope="module")
def run(circle, grabcut, tmp_path_factory):
    """A run of the benchmark with the people of the first crowd."""
    out = tmp_path_factory.mktemp("runs") / "grabcut"
    command = [*hardlook_command(), "run", "rclicks", "--user-clicks", circle["distance"].clicks]
    command += ["--data", f"grabcut={grabcut}", "--model", "grabcut", "--model-arg", "size=64", "--out", out]
    command += ["--model-arg", "iterations=1", "--rounds", "2", "--groups", "2", "--resamples", "20", "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    return out


def test_the_benchmark_is_played_with_these_peoples_clicks(circle, run):
    records = pl.read_parquet(RunFolder(run).records_path)
    played = records.select("unit", "user_x", "user_y").explode("user_x", "user_y")
    clicks = read_clicks(circle["distance"].clicks).frame
    expected = clicks.select(pl.concat_str(pl.lit("grabcut/"), "full_stem"), "x", "y").rows()
    assert sorted(played.rows()) == sorted(expected)
    scores = {row["name"] for row in json.loads((run / "scores.json").read_text())["scores"]}
    assert "user-iou1" in scores


def test_the_second_round_starts_from_that_run(run, grabcut, hardlook, tmp_path):
    study, out = tmp_path / "second", tmp_path / "second-export"
    data = ("--data", f"grabcut={grabcut}")
    rounds = ("--round", 2, "--masks", run, "--target-clicks", 4, "--batch-size", 4, "--quiet")
    made = hardlook("collect", "init", "clicks", study, *data, *rounds, "--json")
    assert made.code == 0, made.err
    tasks = json.loads(made.out)["tasks"]
    rehearsed = hardlook("collect", "rehearse", study, "--participants", 8, "--careless", 0, "--out", out, "--json")
    assert rehearsed.code == 0 and json.loads(rehearsed.out)["stored"] == 8 * tasks
    clicks = read_clicks(out / "clicks.csv").frame
    assert clicks.height == 8 * tasks and set(clicks["click_type"]) <= {"fn", "fp"}
    shown = PreviousMasks(out / "previous-masks")
    truths = {one.full_stem: one.read_target().mask for one in list_instances({"grabcut": grabcut}).instances}
    for stem, image, error, x, y in clicks.select("full_stem", "image_stem", "click_type", "x", "y").rows():
        assert shown.error(stem, truths[image], error, "grabcut")[int(y), int(x)], (stem, x, y)
    words = ("--user-clicks", out / "clicks.csv", "--previous-masks", out / "previous-masks", *data, "--draws", 5)
    answer = hardlook("clicks", "evaluate", *words, "--out", tmp_path / "judged", "--quiet", "--json")
    assert answer.code == 0, answer.err
    [whole] = [row for row in json.loads(answer.out)["scores"] if (row["slice"], row["model"]) == ("all", "distance")]
    assert whole["stems"] == tasks
