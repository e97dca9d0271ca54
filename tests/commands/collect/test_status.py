"""`hardlook collect status`: bars, sentences, and whose a completion code is."""

import json

import numpy as np
import pytest
from click_crowd import Person, open_store, take_part, world_study

from hardlook.collect.web.codes import completion_code
from hardlook.commands.collect.status import bar


@pytest.fixture(scope="module")
def working(tmp_path_factory):
    """A study that two have done a batch for and one has begun; the ids."""
    study = world_study(tmp_path_factory.mktemp("working"), modes=("text", "cut-out"), target_answers=2)
    rng = np.random.default_rng(0)
    people = (Person("pc"), Person("mobile", missed=(0, 1)), Person("pc", leaves_after=1))
    with open_store(study) as store:
        return study, [take_part(study, store, person, rng) for person in people]


def test_words_and_bars(hardlook, working):
    answer = hardlook("collect", "status", working[0].path)
    assert answer.code == 0, answer.err
    lines = [" ".join(line.split()) for line in answer.out.splitlines()]
    assert lines[0] == "Scenes: 4 of 32 valid clicks"
    assert f"all {'━' * 3}{'─' * 21} 4 of 32 (12 %), 4 under way" in lines
    assert f"pc {'━' * 6}{'─' * 18} 4 of 16 (25 %), 4 under way" in lines
    assert f"mobile {'─' * 24} 0 of 16 (0 %)" in lines
    assert any(line.startswith("cut-out, mobile ") for line in lines)
    assert "0 of 4 tasks done; 9 answers came in." in lines
    assert "3 participants: 0 at work in the last quarter of an hour, 0 finished." in lines
    assert "Batches: 1 open, 1 valid, 1 dropped, 0 given up." in lines
    # Four a batch so far on a PC, and as many hoped for on mobile devices: 12 and 16 are missing.
    assert lines[-1] == "About 7 more batches are needed: 3 on pc, 4 on mobile."


def test_numbers(hardlook, working):
    found = json.loads(hardlook("collect", "status", working[0].path, "--json").out)
    assert (found["valid"], found["pending"], found["wanted"]) == (4, 4, 32)
    assert found["batches_needed"] == {"all": 7, "pc": 3, "mobile": 4}


def test_whose_a_code_is(hardlook, working):
    study, ids = working
    code = completion_code(study.secret, ids[1])
    answer = hardlook("collect", "status", study.path, "--code", code.lower())
    assert answer.code == 0, answer.err
    found = json.loads(hardlook("collect", "status", study.path, "--code", code, "--json").out)
    assert f"The code is that of participant {found['number']} (mobile)." in answer.out
    assert "4 answers in 1 batch: 0 valid, 1 dropped, 0 given up, 0 open. There was more to do." in answer.out
    assert "50 % of the clicks lie inside." in answer.out and found["dropped_batches"] == 1
    assert ids[1] not in answer.out
    unknown = hardlook("collect", "status", study.path, "--code", "A" * 12)
    assert unknown.code == 1 and "no participant of this study" in unknown.err and unknown.out == ""


def test_a_study_that_was_never_served(hardlook, tmp_path):
    study = world_study(tmp_path, devices=("pc",))
    answer = hardlook("collect", "status", study.path)
    assert answer.code == 0 and "Scenes: 0 of 44 valid clicks" in answer.out
    assert "About 11 more batches are needed." in answer.out and "pc" not in answer.out


@pytest.mark.parametrize(("done", "wanted", "filled"), [(0, 0, 24), (0, 9, 0), (9, 9, 24), (8, 9, 21), (999, 1000, 23)])
def test_a_bar_is_full_when_all_is_done(done, wanted, filled):
    assert bar(done, wanted) == "━" * filled + "─" * (24 - filled)


def test_who_trained_is_counted_where_there_is_training(hardlook, tmp_path):
    study = world_study(tmp_path, training_tasks=1)
    with open_store(study) as store:
        for number in range(2):
            joined = store.join(None, "en", 10.0 + number)
        store.set_trained(joined.id, 20.0)
    assert "2 participants: 1 trained, 0 at work" in hardlook("collect", "status", study.path).out
