import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from click_crowd import Person, open_store, stored_rows, take_part, world_study

from hardlook.collect.results.status import (
    build_status,
    describe_participant,
    describe_status,
    find_participant,
    find_participant_by_code,
)
from hardlook.collect.web.tokens import derive_completion_code, sign_token
from hardlook.errors import OptionError


def test_status_is_that_of_a_recount(gathered, recounted):
    study = gathered.study
    batches = stored_rows(study, "batches")
    found = build_status(study, gathered.store, now=1e9)
    valid, target = Counter(), study.settings.target_answers
    for row in recounted:
        valid[row["task"].id, row["mode"], row["device"]] += row["near"] and row["batch_valid"]
    assert max(valid.values()) <= target
    for device in ("pc", "mobile"):
        own = sum(count for (_, _, on), count in valid.items() if on == device)
        assert found["by_device"][device]["valid"] == own
        assert found["by_device"][device]["wanted"] == 4 * 2 * target
        for mode in ("text", "cut-out"):
            counts = found["by_mode"][mode][device]
            assert counts["valid"] == sum(n for (_, shown, on), n in valid.items() if (shown, on) == (mode, device))
        closed = sum(row["state"] != "open" and row["device"] == device for row in batches)
        assert found["batches_needed"][device] == math.ceil((4 * 2 * target - own) / (own / closed))
    assert found["valid"] == sum(valid.values()) and found["wanted"] == 2 * 4 * 2 * target
    done = {
        task.id
        for task in study.tasks
        if all(valid[task.id, m, d] >= target for m in ("text", "cut-out") for d in ("pc", "mobile"))
    }
    assert found["tasks"] == {"done": len(done), "all": 4}
    assert found["answers"] == len(recounted)
    states = Counter((row["state"], row["valid"]) for row in batches)
    assert found["batches"] == {
        "open": states["open", None],
        "valid": states["complete", 1] + states["returned", 1],
        "dropped": states["complete", 0],
        "given_up": states["returned", 0],
    }
    assert found["participants"]["joined"] == len(gathered.ids)
    # Nobody was seen in the last years.
    assert found["participants"]["at_work"] == 0


def test_who_is_at_work(gathered):
    people = stored_rows(gathered.study, "participants")
    last = max(row["seen"] for row in people)
    found = build_status(gathered.study, gathered.store, now=last)["participants"]
    assert found["at_work"] == sum(row["seen"] >= last - 900 and row["finished"] is None for row in people) > 0


def test_a_study_without_participants(tmp_path):
    study = world_study(tmp_path)
    with open_store(study) as store:
        found = build_status(study, store, now=0.0)
    assert (found["valid"], found["pending"], found["wanted"]) == (0, 0, 4 * 2 * 11)
    # Four tasks a batch: 44 answers of each device are 11 batches.
    assert found["batches_needed"] == {"all": 22, "pc": 11, "mobile": 11}


def test_nobody_sees_an_image_twice_so_few_images_are_small_batches(tmp_path):
    study = world_study(tmp_path)
    large = replace(study, settings=study.settings.model_copy(update={"batch_size": 10}))
    with open_store(large) as store:
        # Four images: 44 answers of each device are still 11 batches.
        assert build_status(large, store, now=0.0)["batches_needed"]["pc"] == 11


def test_batches_that_brought_nothing_are_no_forecast(tmp_path):
    study = world_study(tmp_path)
    with open_store(study) as store:
        take_part(study, store, Person(missed=(0, 1, 2, 3)), np.random.default_rng(0))
        assert build_status(study, store, now=0.0)["batches_needed"]["pc"] == 11


@pytest.mark.parametrize("spelt", [str, str.lower, lambda code: f" {code[:4]}-{code[4:8]} {code[8:]}"])
def test_a_code_finds_its_participant(gathered, spelt):
    study = gathered.study
    code = derive_completion_code(study.secret, gathered.ids["careless"])
    found = find_participant_by_code(study, gathered.store, spelt(code))
    assert found["code"] == code and (found["number"], found["answers"], found["inside"]) == (2, 4, 0.0)
    assert gathered.ids["careless"] not in str(found)


@pytest.mark.parametrize("code", ["", "0" * 12, "é", "' OR 1=1"])
def test_an_unknown_code_is_an_error(gathered, code):
    with pytest.raises(OptionError, match="no participant of this study"):
        find_participant_by_code(gathered.study, gathered.store, code)


def test_a_participant_in_words():
    batches = {"batches": 5, "valid_batches": 2, "dropped_batches": 1, "given_up_batches": 1, "open_batches": 1}
    busy = {"number": 7, "device": "pc", "answers": 18, **batches, "finished": False, "inside": 0.75}
    words = [
        "The code is that of participant 7 (pc).",
        "18 answers in 5 batches: 2 valid, 1 dropped, 1 given up, 1 open. There was more to do.",
    ]
    assert describe_participant(busy, "clicks") == [*words, "75 % of the clicks lie inside."]
    assert describe_participant({**busy, "inside": 0.0}, "clicks") == [*words, "0 % of the clicks lie inside."]
    # Without an answer there is no share, and in a study without clicks it means nothing.
    assert describe_participant({**busy, "inside": None}, "clicks") == words
    assert describe_participant({**busy, "inside": 0.75}, "ratings") == words
    fresh = {**dict.fromkeys(batches, 0), "number": 1, "device": None, "answers": 1, "batches": 1, "valid_batches": 1}
    assert describe_participant({**fresh, "finished": True, "inside": None}, "clicks") == [
        "The code is that of participant 1 (no device yet).",
        "1 answer in 1 batch: 1 valid, 0 dropped, 0 given up, 0 open. Nothing was left to do.",
    ]


def test_a_code_gives_the_quality_and_not_the_participants_name_in_the_study(gathered):
    code = derive_completion_code(gathered.study.secret, gathered.ids["careless"])
    row = find_participant(gathered.study, gathered.store, "code", code)
    found = find_participant_by_code(gathered.study, gathered.store, code)
    assert row.pop("participant") == gathered.ids["careless"]
    assert found == {"code": code, **row}


def a_status(by_device, by_mode=None, **changes):
    """A document of `build_status` with these counts of valid, pending and wanted answers."""

    def counts(valid, pending, wanted):
        return {"valid": valid, "pending": pending, "wanted": wanted}

    devices = {device: counts(*given) for device, given in by_device.items()}
    whole = counts(*map(sum, zip(*by_device.values(), strict=True)))
    modes = {mode: {device: counts(*given) for device, given in own.items()} for mode, own in (by_mode or {}).items()}
    people = {"joined": 3, "trained": 2, "at_work": 1, "finished": 1, "deleted": 0}
    return {
        "title": "Cats", "kind": "clicks", "answers": 9, **whole, "by_device": devices, "by_mode": modes,
        "tasks": {"done": 1, "all": 4}, "participants": people,
        "batches": {"open": 1, "valid": 2, "dropped": 3, "given_up": 4},
        "batches_needed": {"all": 3, "pc": 1, "mobile": 2}, **changes,
    }  # fmt: skip


def test_the_status_of_two_devices_and_modes_in_lines():
    modes = {"text": {"pc": (1, 0, 6), "mobile": (2, 0, 6)}, "cut-out": {"pc": (2, 1, 6), "mobile": (0, 0, 6)}}
    assert describe_status(a_status({"pc": (3, 1, 12), "mobile": (2, 0, 12)}, modes)) == [
        "Cats: 5 of 24 valid clicks",
        "",
        "all              ━━━━━───────────────────  5 of 24 (20 %), 1 under way",
        "pc               ━━━━━━──────────────────  3 of 12 (25 %), 1 under way",
        "mobile           ━━━━────────────────────  2 of 12 (16 %)",
        "text, pc         ━━━━────────────────────  1 of 6 (16 %)",
        "text, mobile     ━━━━━━━━────────────────  2 of 6 (33 %)",
        "cut-out, pc      ━━━━━━━━────────────────  2 of 6 (33 %), 1 under way",
        "cut-out, mobile  ────────────────────────  0 of 6 (0 %)",
        "",
        "1 of 4 tasks done; 9 answers came in.",
        "3 participants: 2 trained, 1 at work in the last quarter of an hour, 1 finished.",
        "Batches: 1 open, 2 valid, 3 dropped, 4 given up.",
        "About 3 more batches are needed: 1 on pc, 2 on mobile.",
    ]


def test_the_status_of_one_device_names_none():
    modes = {"text": {"any": (4, 0, 6)}, "cut-out": {"any": (6, 0, 6)}}
    people = {"joined": 1, "trained": None, "at_work": 0, "finished": 1, "deleted": 2}
    changes = {"kind": "ratings", "participants": people, "answers": 1, "tasks": {"done": 1, "all": 1}}
    lines = describe_status(a_status({"any": (10, 0, 12)}, modes, **changes, batches_needed={"all": 1, "any": 1}))
    assert [line.split("  ")[0] for line in lines[2:5]] == ["all", "text", "cut-out"]
    assert lines[0] == "Cats: 10 of 12 ratings" and lines[4] == f"cut-out  {'━' * 24}  6 of 6 (100 %)"
    assert lines[6:] == [
        "1 of 1 task done; 1 answer came in.",
        "1 participant: 0 at work in the last quarter of an hour, 1 finished, 2 deleted on request.",
        "Batches: 1 open, 2 valid, 3 dropped, 4 given up.",
        "About 1 more batch is needed.",
    ]
    done = describe_status(a_status({"any": (12, 0, 12)}, {"text": {"any": (12, 0, 12)}}, batches_needed={"all": 0}))
    assert done[-1] == "No more batches are needed." and done[2].startswith("all  ━") and done[3] == ""
    # A study that wants nothing is done.
    assert describe_status(a_status({"any": (0, 0, 0)}, batches_needed={"all": 0}))[2].endswith("━  0 of 0 (100 %)")


def test_a_participant_is_found_by_what_they_or_a_researcher_know(tmp_path):
    study = world_study(tmp_path)
    with open_store(study) as store:
        ids = [
            store.join(name, "en", when, {"PROLIFIC_PID": person}).id
            for name, person, when in (("first", "5f1a", 1e3), ("second", "77", 2e3))
        ]
        link = f"https://study.example/join/{sign_token(study.secret, 'invitation', {'i': 'second'}, 5.0)}"
        known = {"id": ids[1], "number": " 2 ", "platform-id": " 77", "link": link}
        for by, value in known.items():
            assert find_participant(study, store, by, value)["participant"] == ids[1], by
        # What is true of one identifier is not taken for another.
        for by, value in (("id", "77"), ("platform-id", ids[1]), ("link", ids[1]), ("number", "3")):
            with pytest.raises(OptionError, match="no participant of this study has the"):
                find_participant(study, store, by, value)


def test_batches_needed_follow_from_what_closed_ones_brought(tmp_path):
    study = world_study(tmp_path)
    with open_store(study) as store:
        rng = np.random.default_rng(0)
        take_part(study, store, Person(), rng)
        take_part(study, store, Person(missed=(0, 1, 2, 3)), rng)
        found = build_status(study, store, now=0.0)
    # Two batches brought four answers, so the 40 that are missing need 20.
    assert (found["by_device"]["pc"]["valid"], found["batches_needed"]["pc"]) == (4, 20)


@pytest.mark.parametrize(("tasks", "trained"), [(0, None), (2, 1)])
def test_who_is_trained_is_counted_where_there_is_a_training_round(tmp_path, tasks, trained):
    study = world_study(tmp_path, scenes=1, training_tasks=tasks)
    with open_store(study) as store:
        ids = [store.join(None, "en", 1000.0).id for _ in range(2)]
        store.set_trained(ids[0], 1001.0)
        people = build_status(study, store, now=1e9)["participants"]
    assert people == {"joined": 2, "trained": trained, "at_work": 0, "finished": 0, "deleted": 0}


def test_whoever_was_seen_within_a_quarter_of_an_hour_is_at_work_until_they_finish(tmp_path):
    study = world_study(tmp_path, scenes=1, target_answers=1)
    with open_store(study) as store:
        store.join(None, "en", 1000.0)
        at_work = [
            build_status(study, store, now)["participants"]["at_work"] for now in (1000.0, 1899.0, 1900.0, 1901.0)
        ]
        assert at_work == [1, 1, 1, 0]
        who = take_part(study, store, Person(batches=2), np.random.default_rng(0), now=1900.0)
        people = build_status(study, store, now=1910.0)["participants"]
        assert (people["joined"], people["finished"], people["at_work"]) == (2, 1, 0)
        store.delete_participant(who)
        assert build_status(study, store, now=1910.0)["participants"]["deleted"] == 1
