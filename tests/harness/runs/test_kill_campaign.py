"""Runs and served studies that are killed at random moments equal undisturbed ones, and none says it is done before.

The suite kills a handful here, Ray's nodes in `test_ray_nodes.py`, and the server of a study in
`tests/collect/test_kills.py`. `HARDLOOK_KILLS=1000` kills a thousand times; with `HARDLOOK_KILLS_KEEP` a folder keeps a
journal, and the same command goes on where an earlier one was interrupted. `HARDLOOK_KILLS_ROUND=17` repeats one round.
"""

import json
import os
import time
from pathlib import Path

import pytest
from kill_campaign import ENGINES, KILLS, WRONG, Campaign, describe_rounds, read_journal

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")

WANTED = int(os.environ.get("HARDLOOK_KILLS", "0"))

ROUND = os.environ.get("HARDLOOK_KILLS_ROUND", "")


only_in_the_campaign = pytest.mark.skipif(not WANTED, reason="takes seconds; HARDLOOK_KILLS=1000 runs it")


def list_wrong(played):
    return {name: played[name] for name in WRONG if played.get(name)}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    made = Campaign(os.environ.get("HARDLOOK_KILLS_KEEP") or tmp_path_factory.mktemp("campaign"))
    yield made
    made.close()


@pytest.mark.skipif(bool(WANTED or ROUND), reason="the campaign runs instead")
@pytest.mark.parametrize("engine", ["inline", "processes"])
def test_a_few_kills_lose_and_change_nothing(campaign, engine):
    played = campaign.play(0, [engine], kills=2)
    assert not list_wrong(played), played
    assert played["kills"] == 2 and played["records"] >= 16


@pytest.mark.skipif(not ROUND, reason="HARDLOOK_KILLS_ROUND repeats one round of the campaign")
def test_one_round(campaign):
    played = campaign.play(int(ROUND))
    print(json.dumps(played, indent=1))
    assert not list_wrong(played)


@pytest.mark.skipif(not WANTED, reason="HARDLOOK_KILLS=1000 runs the campaign")
def test_the_campaign(campaign):
    before = sum(played["kills"] for played in read_journal(campaign.folder / "journal.jsonl"))
    started = time.monotonic()
    rounds = campaign.play_until(WANTED)
    kills = sum(played["kills"] for played in rounds)
    print(f"\n{kills} kills, {kills - before} of them now in {time.monotonic() - started:.0f} s")
    print(describe_rounds(rounds))
    assert set(KILLS) == {played["engine"] for played in rounds}
    assert not [played for played in rounds if list_wrong(played)]


def test_an_interrupted_campaign_goes_on_with_the_next_round(tmp_path, monkeypatch):
    (tmp_path / "journal.jsonl").write_text('{"round": 0, "kills": 5}\n{"round": 1, "kills": 5}\n{"round": 2, "ki')
    interrupted = Campaign(tmp_path)
    monkeypatch.setattr(interrupted, "play", lambda number: {"round": number, "kills": 4})
    rounds = interrupted.play_until(14)
    assert [(played["round"], played["kills"]) for played in rounds] == [(0, 5), (1, 5), (2, 4)]
    assert read_journal(tmp_path / "journal.jsonl") == rounds


def test_the_shortest_campaign_has_a_round_of_each_engine(tmp_path, monkeypatch):
    short, nothing_wrong = Campaign(tmp_path), dict.fromkeys(WRONG, 0)
    monkeypatch.setattr(short, "kill_runs", lambda path, number, engine, kills: {**nothing_wrong, "kills": kills})
    monkeypatch.setattr(short, "kill_server", lambda path, draw, kills: {**nothing_wrong, "kills": kills})
    assert [played["engine"] for played in short.play_until(sum(KILLS.values()))] == list(ENGINES)


@pytest.mark.parametrize(
    ("engine", "bug", "sign"),
    [
        ("inline", "torn writes", "unfinished"),
        ("inline", "forgotten unit", "false exits"),
        pytest.param("processes", "dropped batch", "stopped", marks=only_in_the_campaign),
        pytest.param("collect", "early acknowledgement", "lost", marks=only_in_the_campaign),
    ],
)
def test_a_planted_bug_is_found(tmp_path, campaign, engine, bug, sign):
    found = Campaign(tmp_path, planted=bug, only_events=engine == "inline")
    if engine == "collect":
        found.study = campaign.find_study()
    else:
        campaign.find_undisturbed(engine)
        found.undisturbed, found.events, found.seconds = campaign.undisturbed, campaign.events, campaign.seconds
    rounds = (found.play(number, [engine], kills=2) for number in range(10))
    assert any(list_wrong(played).get(sign) for played in rounds)
