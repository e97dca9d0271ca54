"""One file to pay by: codes as the pages give them, durations, validity by the study's and the dashboard's rules."""

import polars as pl
import pytest
from web_visitors import StudyApp

from hardlook.collect.results.exclusion_rules import ExclusionRules
from hardlook.collect.results.payments import build_payments, describe_payments
from hardlook.collect.study.clicks import make_click_study
from hardlook.collect.study.instances import list_planted_instances
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.web.joining import find_completion_code
from hardlook.collect.web.site import Site
from hardlook.world.planted import PlantedWorld

PHASES = 5.0


@pytest.fixture(params=["complete", "valid"])
def paid(request, tmp_path):
    """Four people: a good one, one who misses, one who rushes, one who leaves in the middle."""
    settings = StudySettings(
        kind="clicks", title="Cups", batch_size=3, training_tasks=0, open_link=True, code_for=request.param
    )
    study = make_click_study(tmp_path / "study", list_planted_instances(PlantedWorld(seed=0, count=3)), settings)
    with StudyApp(study, study.database) as app:
        good = app.participant("mobile")
        good.do_batch(seconds=20.0)
        for behaviour in ("misses", "rushes", "leaves"):
            app.now += 100
            visitor = app.participant()
            trials = [trial["id"] for trial in visitor.batch()["batch"]["trials"]]
            for trial in trials:
                visitor.show(trial)
            app.now += PHASES if behaviour == "rushes" else 3 * PHASES
            for trial in trials[: 2 if behaviour == "leaves" else 3]:
                click = {"x": 0.0, "y": 0.0} if behaviour == "misses" else app.right_click(trial)
                assert visitor.answer(trial, **click).status == 200
        yield app


def test_codes_are_those_of_the_pages_and_validity_follows_the_rules(paid):
    table = build_payments(paid.study, paid.store)
    assert table["participant"].to_list() == [1, 2, 3, 4]
    site = Site(paid.study, paid.store, None, None, None, None, None, None)
    given = [find_completion_code(site, who) or "" for who in paid.store.participants()["id"]]
    assert table["code"].to_list() == given
    strict = paid.study.settings.code_for == "valid"
    assert [bool(code) for code in given] == [True, not strict, False, False]
    assert table["valid"].to_list() == [True, False, False, False]
    assert table["quick_batches"].to_list() == [0, 0, 1, 0] and table["valid_batches"].to_list() == [1, 0, 0, 0]
    assert table["minutes"].to_list() == pytest.approx([1.0, 0.25, 0.08, 0.25])
    assert table["batch_minutes"].to_list() == pytest.approx([1.0, 0.25, 0.08, None])
    assert table["joined"][0] == "1970-01-12T13:46:40Z" and table["device"].to_list() == ["mobile", *["pc"] * 3]
    assert describe_payments(table).startswith("4 joined, 1 have" if strict else "4 joined, 2 have")


def test_whom_a_rule_excludes_is_not_valid(paid):
    table = build_payments(paid.study, paid.store, ExclusionRules(participants=("1",)))
    assert table["excluded"].to_list() == ["named", "", "", ""] and not table["valid"].any()
    paid.store.set_rules({"participants": ["1"]})
    assert build_payments(paid.study, paid.store).equals(table)
    assert table.schema["valid"] == pl.Boolean


def test_nobody_yet(tmp_path):
    settings = StudySettings(kind="clicks", title="Cups", platform="sona", training_tasks=0)
    study = make_click_study(tmp_path / "study", list_planted_instances(PlantedWorld(seed=0, count=1)), settings)
    with StudyApp(study, study.database) as app:
        table = build_payments(study, app.store)
    assert table.height == 0 and table.columns[:3] == ["participant", "survey_code", "code"]
