import csv
import json
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from click_crowd import Person, open_store, take_part, world_study
from web_visitors import StudyApp

from hardlook.collect.results import export
from hardlook.collect.results.answers import BATCH_CLASSES, CLASSES
from hardlook.collect.results.exclusion_rules import ExclusionRules
from hardlook.collect.results.export import export_study
from hardlook.collect.study.folder import make_study, open_study
from hardlook.collect.study.ratings import RatingPlan, make_rating_study
from hardlook.collect.study.reviews import make_review_study
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import RatingTask
from hardlook.data.click_file import read_clicks
from hardlook.errors import DataError, OptionError

RULES = ExclusionRules(most_late_ms=50.0)


def rows_of(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def exported(gathered, tmp_path_factory):
    out = tmp_path_factory.mktemp("exported")
    return out, export_study(gathered.study, gathered.store, out, RULES)


def test_every_answer_is_in_one_class_and_the_numbers_add_up(gathered, exported, recounted):
    out, report = exported
    slow = gathered.ids["slow"]

    def literal(row):
        if row["participant"] == slow:
            return "excluded by rule"
        if row["batch"]["state"] == "open" or (row["batch"]["state"] == "returned" and not row["batch_valid"]):
            return "batch not complete"
        if not row["batch_valid"]:
            return "batch invalid"
        return "valid" if row["near"] else "outside"

    classes = Counter(map(literal, recounted))
    answers = report["answers"]
    assert {name: answers[name] for name in CLASSES} == {name: classes[name] for name in CLASSES}
    assert sum(answers[name] for name in CLASSES) == answers["all"] == len(recounted)
    assert min(classes[name] for name in CLASSES[:-1]) > 0
    batches = report["batches"]
    by_batch = {row["batch"]["id"]: literal({**row, "near": True}) for row in recounted}
    assert {name: batches[name] for name in BATCH_CLASSES} == {
        name: Counter(by_batch.values())[name] for name in BATCH_CLASSES
    }
    assert batches["all"] == sum(batches[name] for name in BATCH_CLASSES) == len(by_batch)
    assert len(read_clicks(out / "clicks.csv")) == len(rows_of(out / "previews.csv")) == classes["valid"]
    assert Counter(row["class"] for row in rows_of(out / "every-click.csv")) == classes
    assert report["judged_otherwise"] == {"answers": 0, "batches": 0}


def test_excluded_participants_are_listed_by_number(gathered, exported):
    out, report = exported
    assert report["rules"] == {"from": "a file", "most_late_ms": 50.0}
    assert report["excluded"] == {"3": "median lateness in ms 90, above 50"}
    assert [row["number"] for row in rows_of(out / "participants.csv") if row["excluded"]] == ["3"]
    assert len(rows_of(out / "participants.csv")) == len(gathered.ids)


def test_answers_by_another_pointer_are_flagged_and_excluded_by_rule(gathered, tmp_path):
    rules = ExclusionRules(most_pointer_conflicts=0.5)
    document = export_study(gathered.study, gathered.store, tmp_path, rules)
    people = rows_of(tmp_path / "participants.csv")
    flagged = [row for row in people if int(row["pointer_conflicts"])]
    assert [row["number"] for row in flagged] == [row["number"] for row in people if row["excluded"]] == ["3"]
    every = [row for row in rows_of(tmp_path / "every-click.csv") if row["pointer_conflict"] == "true"]
    assert {(row["participant"], row["device"], row["pointer"]) for row in every} == {("3", "mobile", "mouse")}
    assert {row["class"] for row in every} == {"excluded by rule"} and document["rules"]


def test_no_id_of_a_participant_leaves_the_store(gathered, exported):
    out, report = exported
    text = "".join(path.read_text() for path in out.iterdir())
    assert not any(one in text for one in gathered.ids.values())
    assert {path.name for path in out.iterdir()} == set(report["files"])


def test_the_page_shows_what_was_collected(exported):
    out, _ = exported
    page = (out / "page.html").read_text()
    for said in ("excluded by rule", "PC against mobile", "Display modes against text", "Where people missed"):
        assert said in page
    assert page.count("<img") >= 8 and "No picture" not in page and "https://" not in page


def test_equal_answers_give_equal_files(gathered, exported, tmp_path):
    out, _ = exported
    export_study(gathered.study, gathered.store, tmp_path, RULES)
    assert all((tmp_path / path.name).read_bytes() == path.read_bytes() for path in out.iterdir())


def test_one_mode_alone(gathered, recounted, tmp_path):
    report = export_study(gathered.study, gathered.store, tmp_path, ExclusionRules(), mode="text")
    valid = [row for row in recounted if row["near"] and row["batch_valid"]]
    text = sum(row["mode"] == "text" for row in valid)
    assert report["answers"]["valid"] == report["written"]["clicks"] == text
    assert report["answers"]["of another display mode"] == len(valid) - text
    # Previews are for comparing modes: all of them stay.
    assert report["written"]["previews"] == len(valid)
    with pytest.raises(OptionError, match="no display mode 'shifted'"):
        export_study(gathered.study, gathered.store, tmp_path / "more", mode="shifted")
    assert not (tmp_path / "more").exists()


def test_rules_of_the_dashboard_run_unless_others_are_given(tmp_path):
    study = world_study(tmp_path, scenes=4)
    with open_store(study) as store:
        rng = np.random.default_rng(0)
        quick = take_part(study, store, Person(reaction=50.0), rng)
        take_part(study, store, Person(), rng, now=2000.0)
        store.set_rules({"least_reaction_ms": 200.0, "participants": [quick, "nobody"]})
        found = export_study(study, store, tmp_path / "out")
        assert found["rules"] == {"from": "the dashboard", "least_reaction_ms": 200.0, "participants": ["1"]}
        assert list(found["excluded"]) == ["1"] and found["unknown_participants"] == 1
        assert (found["answers"]["valid"], found["answers"]["excluded by rule"]) == (4, 4)
        assert quick not in (tmp_path / "out/report.json").read_text()
        free = export_study(study, store, tmp_path / "out", ExclusionRules())
        assert free["rules"] == {"from": "none"} and free["answers"]["valid"] == 8
        assert not (tmp_path / "out/previews.csv").exists()
        store.set_rules({"least_inside": "many"})
        with pytest.raises(DataError, match="least_inside"):
            export_study(study, store, tmp_path / "out")


def test_no_answers_give_empty_files(tmp_path):
    study = world_study(tmp_path, modes=("text", "cut-out"))
    with open_store(study) as store:
        # The folder may be new, the one above it too.
        report = export_study(study, store, tmp_path / "new/out")
    assert report["in_words"] == ["There are no answers yet. The files have their columns and no rows."]
    assert len(read_clicks(tmp_path / "new/out/clicks.csv")) == len(read_clicks(tmp_path / "new/out/previews.csv")) == 0
    assert report["answers"]["all"] == 0 and report["participants"] == []
    assert "There are no answers yet" in (tmp_path / "new/out/page.html").read_text()
    assert len(rows_of(tmp_path / "new/out/images.csv")) == len(study.items)


def test_a_mask_that_is_gone_is_named(gathered, tmp_path):
    shutil.copytree(gathered.study.path, tmp_path / "study")
    study = open_study(tmp_path / "study")
    study.file(study.tasks[1].mask).unlink()
    with pytest.raises(DataError, match="does not exist") as raised:
        export_study(study, gathered.store, tmp_path / "out")
    assert raised.value.unit == study.tasks[1].id and study.tasks[1].mask in raised.value.file
    assert not (tmp_path / "out").exists()


def test_folders_of_something_else_are_refused(gathered, exported, tmp_path):
    with pytest.raises(OptionError, match="the study's own folder"):
        export_study(gathered.study, gathered.store, gathered.study.path)
    out, _ = exported
    shutil.copytree(out, tmp_path / "out")
    there = json.loads((tmp_path / "out/report.json").read_text())
    there["study"]["fingerprint"] = "another"
    (tmp_path / "out/report.json").write_text(json.dumps(there))
    with pytest.raises(DataError, match="results of another study"):
        export_study(gathered.study, gathered.store, tmp_path / "out")


def test_other_kinds_are_written_by_their_own_modules(tmp_path, monkeypatch):
    settings = StudySettings(kind="ratings", title="Pairs", devices=("any",), training_tasks=0)
    pair = RatingTask("t000001", "pair/cat/dog", "pair", ("cat", "dog"), "path", 0.2)
    study = make_study(tmp_path / "study", settings, [pair], made={"round": 1})
    asked = []
    monkeypatch.setattr(export, "export_ratings", lambda *given: asked.append(given) or {"in_words": ["Rated."]})
    with open_store(study) as store:
        assert export_study(study, store, tmp_path / "out", RULES)["in_words"] == ["Rated."]
        assert asked == [(study, store, tmp_path / "out", RULES)]
        with pytest.raises(OptionError, match="--mode, --all-clicks with a study of kind ratings"):
            export_study(study, store, tmp_path / "out", mode="text", all_clicks=True)


@pytest.mark.parametrize("kind", ["review", "ratings"])
def test_reviews_and_ratings_in_no_time_are_left_out_and_counted(tmp_path, kind):
    settings = StudySettings(
        kind=kind, title="T", devices=("any",), batch_size=2, training_tasks=0, open_link=True, target_answers=1
    )
    if kind == "review":
        study = make_review_study(tmp_path / "study", None, settings, scenes=2)
    else:
        study = make_rating_study(tmp_path / "study", RatingPlan(measures=("path",), pairs=2), settings)
    with StudyApp(study, study.database) as app:
        for seconds in (0.3, 0.7):
            app.participant().do_batch(seconds=seconds, value=1)
        document = export_study(study, app.store, tmp_path / "out")
    counts = document["reviews"] if kind == "review" else document["ratings"]
    assert counts == 2
    left_out = document["left_out"]
    quick = left_out["answers_of_quick_batches"] if kind == "review" else left_out[0]["count"]
    assert quick == 2
    page = (tmp_path / "out" / "page.html").read_text()
    assert "less time than they take" in page


def test_a_deletion_during_an_export_is_before_or_after_it(tmp_path):
    """Answers, batches and participants are of one moment."""
    study, rng = world_study(tmp_path, devices=("pc",)), np.random.default_rng(0)
    store = open_store(study)
    for _ in range(3):
        take_part(study, store, Person("pc"), rng)
    who = store.participants()["id"][1]

    class Meanwhile:
        """Another process deletes somebody after the answers were read."""

        def __getattr__(self, name):
            return getattr(store, name)

        def batches(self):
            if store.participant(who):
                with ThreadPoolExecutor(1) as other:
                    other.submit(store.delete_participant, who).result()
            return store.batches()

    export_study(study, Meanwhile(), tmp_path / "out")
    assert store.count_deleted() == 1
    export_study(study, store, tmp_path / "after")
    rows = [(tmp_path / out / "every-click.csv").read_text().count("\n") - 1 for out in ("out", "after")]
    store.close()
    assert rows == [12, 8]


def test_masks_of_earlier_predictions_are_exported_with_the_clicks(gathered, tmp_path):
    study = open_study(shutil.copytree(gathered.study.path, tmp_path / "study"))
    out = tmp_path / "without"
    listed = export_study(study, gathered.store, out)["files"]
    assert export.PREVIOUS_MASKS not in listed and not (out / export.PREVIOUS_MASKS).exists()
    masks = study.file(export.PREVIOUS_MASKS)
    masks.mkdir(parents=True)
    (masks / "a.png").write_bytes(b"mask")
    for _ in range(2):  # a second export into the same folder replaces the first
        listed = export_study(study, gathered.store, tmp_path / "with")["files"]
        assert export.PREVIOUS_MASKS in listed
        assert (tmp_path / "with" / export.PREVIOUS_MASKS / "a.png").read_bytes() == b"mask"


def test_the_report_is_written_in_the_letters_of_the_study(tmp_path):
    study = world_study(tmp_path, scenes=1, title="Größe und 大小")
    with open_store(study) as store:
        export_study(study, store, tmp_path / "out")
    text = (tmp_path / "out" / "report.json").read_text(encoding="utf-8")
    assert '"title": "Größe und 大小"' in text and text.endswith("}\n") and text.startswith('{\n "schema"')
