"""The server is killed again and again while people click: nothing that it acknowledged is lost, nothing is doubled.

Four kills on each database here; HARDLOOK_KILLS=30 for as many as anybody likes.
"""

import os
import threading
import time

import numpy as np
import pytest
from served_studies import ServedStudy, change_settings, init

from hardlook.collect.rehearsal.participants import simulate_crowd
from hardlook.collect.rehearsal.rehearse import audit_answers
from hardlook.collect.store.store import Store
from hardlook.collect.study.folder import open_study

KILLS = int(os.environ.get("HARDLOOK_KILLS", 4))

PEOPLE = 20

NO_WAITING = {"image": 0, "target": 0, "target_text": 0, "again": 0}


@pytest.fixture
def study(tmp_path):
    init("clicks", tmp_path / "study", "--scenes", 60, "--training", 0, "--open-link", "--quiet")
    limits = dict.fromkeys(("per_participant", "per_address", "open_batches_per_address"), 1_000_000)
    change_settings(tmp_path / "study", timings=NO_WAITING, limits=limits, batch_size=5, most_batches=1000)
    return open_study(tmp_path / "study")


def test_no_acknowledged_click_is_lost(study, database_url):
    server = ServedStudy(study.path, database_url).start()
    heard, so_far = [], [0]
    # Everybody answers as long as the server is being killed, which their thinking time sees to.
    people = threading.Thread(
        target=lambda: heard.append(
            simulate_crowd(
                study,
                server.address,
                participants=PEOPLE,
                batches=2 * KILLS // 3 + 2,
                thinking=0.2,
                on_answers=lambda number: so_far.append(number),
            )
        )
    )
    people.start()
    waits = np.random.default_rng(0)
    try:
        # Not while they still join: it is clicks that are to be hit.
        while people.is_alive() and so_far[-1] < PEOPLE:
            time.sleep(0.05)
        for _ in range(KILLS):
            time.sleep(waits.uniform(0.1, 0.6))
            if not people.is_alive():
                break
            server.kill()
            server.start()
        people.join(timeout=300)
        assert heard, "the participants did not come to an end"
    finally:
        server.stop()
    assert server.kills == KILLS
    with Store.open(database_url) as store:
        found = audit_answers(store, heard[0].answers, target=study.settings.target_answers)
        batches = store.batches()
    assert found.clean, found
    assert found.acknowledged > PEOPLE * 5
    # A batch is assigned whole or not at all.
    assert batches.filter(batches["state"] == "open").height <= PEOPLE
    # Some of them had to send a click twice, or the kills hit nothing.
    assert max(one.sent for one in heard[0].answers) > 1
