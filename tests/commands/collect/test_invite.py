"""`hardlook collect invite`: links that the study reads back, each another."""

import json
import time

import pytest

pytest.importorskip("sqlalchemy", reason="the extra web is not installed")

from hardlook.collect.study.folder import make_study
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import RatingTask
from hardlook.collect.web.invitations import invitation_in


@pytest.fixture
def study(tmp_path):
    tasks = [RatingTask("t1", "pair/1", "pair", ("cat", "dog"), "path", 0.25)]
    settings = StudySettings(kind="ratings", title="Alike", devices=("any",))
    return make_study(tmp_path / "study", settings, tasks, made={"of": "a test"})


def test_links_are_signed_by_the_study_and_end(hardlook, study):
    answer = hardlook("collect", "invite", study.path, "--count", 5, "--days", 2, "--base-url", "https://x.example/")
    lines = answer.out.splitlines()
    assert answer.code == 0 and len(set(lines)) == 5
    tokens = [line.removeprefix("https://x.example/join/") for line in lines]
    now = time.time()
    assert len({invitation_in(study.secret, token, now) for token in tokens}) == 5
    assert all(invitation_in(study.secret, token, now + 2 * 86_400 - 60) for token in tokens)
    assert not any(invitation_in(study.secret, token, now + 2 * 86_400 + 1) for token in tokens)
    assert not any(invitation_in(bytes(32), token, now) for token in tokens)


def test_as_json(hardlook, study):
    said = json.loads(hardlook("collect", "invite", study.path, "--count", 2, "--json").out)
    assert said["days"] == 30 and len(said["links"]) == 2


def test_what_cannot_be(hardlook, study, tmp_path):
    assert "no public address" in hardlook("collect", "invite", study.path, "--base-url", "x/y").err
    assert "no study here" in hardlook("collect", "invite", tmp_path).err
    assert hardlook("collect", "invite", study.path, "--count", 0).code == 2
