"""Reviews exported: the three files, agreement against other programs, and a dataset that reads back."""

import csv
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from hardlook.collect.results import reviews
from hardlook.collect.results.exclusion_rules import ExclusionRules
from hardlook.collect.results.export import export_study
from hardlook.collect.results.review_outcomes import ReviewedClaim, expand_counts
from hardlook.collect.results.reviews import export_review
from hardlook.collect.store.records import BatchRules, NewAnswer
from hardlook.collect.store.store import Store
from hardlook.collect.study.folder import open_study
from hardlook.collect.study.reviews import list_planted_claims, make_review_study
from hardlook.collect.study.settings import StudySettings
from hardlook.data.concept_context import open_dataset
from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.launch import launch

pytest.importorskip("sqlalchemy")

SCENES = 16


def make(folder, candidates=None, scenes=SCENES, **given):
    settings = {"kind": "review", "title": "Planted", "devices": ("any",), "target_answers": 2, "training_tasks": 0}
    return make_review_study(folder, candidates, StudySettings(**{**settings, **given}), scenes=scenes, seed=1)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return make(tmp_path_factory.mktemp("planted") / "study").path


@pytest.fixture
def study(planted, tmp_path):
    # A study moves with its candidates, so a copy is as good as a new one.
    return open_study(Path(shutil.copytree(planted, tmp_path / "study")))


@pytest.fixture
def store(study):
    with Store.open(study.database) as opened:
        opened.prepare(study.items, study.settings.devices, study.fingerprint)
        yield opened


def truth(study):
    """Whether each claim is right, by task."""
    claims = list_planted_claims(1, SCENES)
    return {task.id: claims[int(task.name[-10:-4]) - 1].answer for task in study.tasks}


def work(study, store, judge, *, most=1000, now=0.0):
    """One participant judges all that is assigned; `judge` gives 0 or 1 of a task."""
    rules = BatchRules.of(study.settings)
    someone = store.join(None, "en", now).id
    store.set_device(someone, "any", now)
    while most and (batch := store.next_batch(someone, rules, now)):
        for trial in batch.trials[:most]:
            key = f"{someone}-{trial.id}"[:64]
            value = judge(trial.item.task)
            store.answer(someone, NewAnswer(key, trial.id, value=value, reaction_ms=900.0), rules.needed, now + 1)
            most -= 1
    return someone


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_what_both_accept_is_kept_and_reads_back_as_a_dataset(study, store, tmp_path):
    right = truth(study)
    for now in (0.0, 10.0):
        work(study, store, right.get, now=now)
    report = export_review(study, store, tmp_path / "out")
    dataset = open_dataset(tmp_path / "out")
    good = {(task.concept, task.context, task.split) for task in study.tasks if right[task.id]}
    assert {(row.concept, row.context, row.split) for row in dataset.rows} == good
    assert len(dataset.rows) == report["kept"] == sum(right.values()) == SCENES - SCENES // 4
    by_name = {task.name: task for task in study.tasks}
    for row in dataset.rows:
        original = study.path / "candidates" / row.name.removeprefix("images/")
        assert row.path.read_bytes() == original.read_bytes()
        assert by_name[row.name.removeprefix("images/")].concept == row.concept
    assert report["agreement"]["percent"]["value"] == 1.0 == report["agreement"]["alpha"]["value"]
    assert report["images"] == {"copied": report["kept"], "of_the_study": {"count": 0, "examples": []}}
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == report


def test_the_kept_images_run_in_the_benchmark(planted, tmp_path):
    # Many images of few concepts, which tasks need; whether they are shown is nothing to the benchmark.
    images = Path(shutil.copytree(planted / "candidates", tmp_path / "found"))
    lines = [f"images/{i + 1:06d}.png,{('cat', 'dog')[i % 2]},{'abc'[i // 2 % 3]},test" for i in range(SCENES)]
    (images / "manifest.csv").write_text("\n".join(["path,concept,context,split", *lines]) + "\n")
    study = make(tmp_path / "study", images)
    with Store.open(study.database) as store:
        store.prepare(study.items, study.settings.devices, study.fingerprint)
        for _ in range(2):
            work(study, store, lambda task: 1)
        export_review(study, store, tmp_path / "out")
    given = {"data": {"root": str(tmp_path / "out")}, "tasks": 3, "ways": (2,), "shots": (1,), "queries": 1}
    given |= {"encoder": "planted-encoder", "resamples": 0}
    done = launch("metacoco", model="nearest-centroid", given=given, out=tmp_path / "run")
    assert done.scored.scorecard.units.failed == 0 < done.scored.scorecard.units.scored


def test_every_candidate_is_in_exactly_one_file(study, store, tmp_path):
    work(study, store, lambda task: int(task[-1] in "13579"))
    work(study, store, lambda task: int(task[-1] in "12345"), most=10)
    report = export_review(study, store, tmp_path / "out")
    said = {}
    for task, value in store.answers().select("task", "value").iter_rows():
        said.setdefault(task, []).append(value)
    expected = Counter()
    for task in study.tasks:
        values = said.get(task.id, [])
        expected["undecided" if len(values) < 2 else "kept" if all(values) else "rejected"] += 1
    files = {"kept": "manifest.csv", "rejected": "rejected.csv", "undecided": "undecided.csv"}
    found = {name: rows(tmp_path / "out" / file) for name, file in files.items()}
    assert {name: len(listed) for name, listed in found.items()} == {name: report[name] for name in files} == expected
    assert min(expected.values()) > 0
    listed = [Path(row["path"]).name for part in found.values() for row in part]
    assert sorted(listed) == sorted(Path(task.name).name for task in study.tasks)
    for row in found["rejected"]:
        assert int(row["declined"]) > 0
    assert sum(cell["kept"] for cell in report["cells"]) == report["kept"]
    assert sum(cell["candidates"] for cell in report["cells"]) == report["candidates"] == SCENES


def test_agreement_equals_that_of_other_programs(study, store, tmp_path):
    rng = np.random.default_rng(4)
    one, other = ({task.id: int(rng.random() < share) for task in study.tasks} for share in (0.7, 0.5))
    work(study, store, one.get)
    work(study, store, other.get, now=5.0)
    found = export_review(study, store, tmp_path / "out")["agreement"]
    a, b = ([said[task.id] for task in study.tasks] for said in (one, other))
    assert found["cohen"] == pytest.approx(cohen_kappa_score(a, b))
    assert found["alpha"]["value"] == pytest.approx(krippendorff.alpha([a, b], level_of_measurement="nominal"))
    assert found["percent"]["value"] == np.mean(np.array(a) == b)
    assert found["alpha"]["low"] <= found["alpha"]["value"] <= found["alpha"]["high"]
    pooled = np.mean(a + b)
    chance = pooled**2 + (1 - pooled) ** 2
    assert found["fleiss"]["value"] == pytest.approx((np.mean(np.array(a) == b) - chance) / (1 - chance))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8))
def test_a_table_without_names_has_everybodys_reviews(counts):
    table = expand_counts(np.array(counts))
    assert [int((table == 1)[:, unit].sum()) for unit in range(len(counts))] == [accepted for accepted, _ in counts]
    assert [int((table == 0)[:, unit].sum()) for unit in range(len(counts))] == [declined for _, declined in counts]


def test_people_left_out_by_a_rule_do_not_count(study, store, tmp_path):
    right = truth(study)
    work(study, store, right.get)
    work(study, store, lambda task: 0, now=5.0)
    everybody = export_review(study, store, tmp_path / "all")
    assert (everybody["kept"], everybody["undecided"]) == (0, 0)
    without = export_review(study, store, tmp_path / "some", ExclusionRules(participants=("2",)))
    assert without["undecided"] == SCENES and without["left_out"]["answers_of_excluded_participants"] == SCENES
    assert [one["participant"] for one in without["excluded"]] == [2]
    store.set_rules({"participants": ["2"]})
    assert export_review(study, store, tmp_path / "dashboard")["excluded"] == without["excluded"]


def test_no_review_and_one_reviewer(study, store, tmp_path):
    nothing = export_review(study, store, tmp_path / "nothing")
    assert (nothing["undecided"], nothing["agreement"], nothing["reviews"]) == (SCENES, None, 0)
    assert rows(tmp_path / "nothing" / "manifest.csv") == []
    with pytest.raises(DataError, match="no image here"):
        open_dataset(tmp_path / "nothing")
    work(study, store, lambda task: 1)
    one = export_review(study, store, tmp_path / "one")
    assert (one["undecided"], one["agreement"], one["participants"]) == (SCENES, None, 1)
    assert "judged by two people yet" in " ".join(one["in_words"])


def test_people_who_all_accept_have_no_alpha(study, store, tmp_path):
    for _ in range(2):
        work(study, store, lambda task: 1)
    report = export_review(study, store, tmp_path / "out")
    assert report["agreement"]["alpha"]["value"] is None and report["kept"] == SCENES
    assert "all answers are the same" in " ".join(report["in_words"])


def test_answers_that_are_neither_yes_nor_no_are_counted(study, store, tmp_path):
    work(study, store, lambda task: 7)
    report = export_review(study, store, tmp_path / "out")
    assert report["left_out"]["answers_neither_yes_nor_no"] == SCENES and report["reviews"] == 0


def test_candidates_that_are_gone_or_changed_come_from_the_study(study, store, tmp_path):
    for _ in range(2):
        work(study, store, lambda task: 1)
    candidates = study.path / "candidates" / "images"
    (candidates / "000001.png").unlink()
    (candidates / "000002.png").write_bytes((candidates / "000003.png").read_bytes())
    report = export_review(study, store, tmp_path / "out")
    taken = report["images"]["of_the_study"]
    assert taken == {"count": 2, "examples": ["images/000001.png", "images/000002.png"]}
    task = next(task for task in study.tasks if task.name == "images/000002.png")
    copied = next(row for row in open_dataset(tmp_path / "out").rows if row.name.endswith("000002.png"))
    assert copied.path.read_bytes() == study.file(task.image).read_bytes()


def test_names_that_lead_elsewhere_stay_inside_the_export(tmp_path):
    make(tmp_path / "world", scenes=4)
    source = tmp_path / "world" / "candidates"
    listed = tmp_path / "lists" / "deep"
    listed.mkdir(parents=True)
    lines = [f"../../world/candidates/images/00000{i}.png,cat,a <b>snow</b> place," for i in (1, 2)]
    lines.append(f"{source / 'images' / '000003.png'},cat,snow,")
    (listed / "list.csv").write_text("\n".join(["path,concept,context,split", *lines]) + "\n")
    study = make(tmp_path / "study", listed / "list.csv")
    with Store.open(study.database) as store:
        store.prepare(study.items, study.settings.devices, study.fingerprint)
        for _ in range(2):
            work(study, store, lambda task: 1)
        out = tmp_path / "out" / "here"
        export_review(study, store, out)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"here"}
    kept = open_dataset(out).rows
    assert len(kept) == 3 and all(row.path.resolve().is_relative_to(out.resolve()) for row in kept)
    page = (out / "page.html").read_text()
    assert "<b>snow</b>" not in page and "&lt;b&gt;snow" in page


def test_the_page_shows_kept_rejected_and_disputed_images(study, store, tmp_path):
    right = truth(study)
    work(study, store, right.get)
    work(study, store, lambda task: right[task] if task < "t000012" else 0, now=5.0)
    export_study(study, store, tmp_path / "out")
    page = (tmp_path / "out" / "page.html").read_text()
    for words in ("Kept images", "Disputed", "Rejected by all", "Krippendorff", "Of 16 candidates"):
        assert words in page
    assert page.count("data:image/jpeg") > 10
    assert "https://" not in page and "http://" not in page.replace("http://www.w3.org", "")


def test_the_candidates_manifest_is_never_replaced(study, store):
    with pytest.raises(OptionError, match="candidates' manifest"):
        export_review(study, store, study.path / "candidates")


def test_answers_of_another_study_are_refused(study, tmp_path):
    (study.path / "candidates" / "manifest.csv").write_text("path,concept,context\nimages/000005.png,cat,snow\n")
    other = make(tmp_path / "other", study.path / "candidates")
    with Store.open(other.database) as store:
        store.prepare(other.items, other.settings.devices, other.fingerprint)
        work(other, store, lambda task: 1)
        with pytest.raises(DataError, match="not of this study"):
            export_review(study, store, tmp_path / "out")


def a_report(cells):
    return {"cells": [{"concept": k, "context": x, "candidates": 3, "kept": 2, "rejected": 1, "undecided": 0}
                      for k, x in cells]}  # fmt: skip


@pytest.mark.parametrize(
    ("concepts", "contexts", "drawn"), [(30, 1, True), (1, 30, True), (31, 1, False), (1, 31, False)]
)
def test_cells_are_drawn_as_long_as_they_can_be_read(concepts, contexts, drawn):
    cells = [(f"c{k:02}", f"x{x:02}") for k in range(concepts) for x in range(contexts)]
    *maps, table = reviews._build_cells(a_report(cells))
    assert len(maps) == drawn and len(table.rows) == len(cells)
    assert table.rows[0] == ("c00", "x00", 3, 2, 1, 0)


def test_a_cell_without_candidates_is_empty_in_the_map():
    drawn, _ = reviews._build_cells(a_report([("cat", "fog"), ("dog", "snow")]))
    assert np.array_equal(drawn.values, [[2, np.nan], [np.nan, 2]], equal_nan=True)


@pytest.mark.parametrize(("count", "more"), [(500, ""), (501, " The first 500 of 501; report.json has all.")])
def test_a_long_table_says_what_it_leaves_out(count, more):
    listed = [{"n": number, "m": 0} for number in range(count)]
    table = reviews._build_table("Reviewers", "Milliseconds.", ("n",), listed)
    assert (table.caption, len(table.rows), table.rows[-1]) == (f"Milliseconds.{more}", 500, (499,))


def test_eight_images_of_each_kind_are_shown(study):
    tasks = study.tasks[:14]
    counts = [(2, 0)] * 9 + [(0, 2)] * 3 + [(1, 1)] * 2
    claims = [ReviewedClaim(task, *said, 2) for task, said in zip(tasks, counts, strict=True)]
    galleries = {one.title: one for one in reviews._build_galleries(claims)}
    assert {title: (len(one.examples), one.caption) for title, one in galleries.items()} == {
        "Kept": (8, "8 of 9."),
        "Rejected by all": (3, "3 of 3."),
        "Disputed": (2, "2 of 2."),
    }
    assert galleries["Disputed"].examples[0].caption.startswith("1 of 2 reviewers accepted. `")
    assert galleries["Rejected by all"].examples[0].caption.startswith("0 of 2 reviewers accepted. `")


def test_of_many_candidates_that_are_gone_five_are_named(study, store, tmp_path):
    for _ in range(2):
        work(study, store, lambda task: 1)
    names = [f"images/{number:06d}.png" for number in range(1, 8)]
    for name in names:
        (study.path / "candidates" / name).unlink()
    report = export_review(study, store, tmp_path / "out")
    assert report["images"]["of_the_study"] == {"count": 7, "examples": names[:5]}
    assert "7 kept images came from the study" in " ".join(report["in_words"])


def test_a_study_of_another_kind_is_no_review(study, store, tmp_path):
    other = replace(study, settings=study.settings.model_copy(update={"kind": "ratings"}))
    with pytest.raises(OptionError, match="a study of ratings, not a review"):
        export_review(other, store, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_picture_that_cannot_be_read_leaves_its_error(study):
    task = study.tasks[0]
    [picture] = reviews._load_pictures(study, ReviewedClaim(task, 1, 1, 2))
    assert picture.label == f"{task.concept}, {task.context}"
    study.file(task.image).write_bytes(b"no image")
    assert task.image.rpartition("/")[2] in reviews._load_pictures(study, ReviewedClaim(task, 1, 1, 2))


def test_the_report_is_written_in_the_letters_of_the_study(study, store, tmp_path):
    named = replace(study, settings=study.settings.model_copy(update={"title": "Größe und 大小"}))
    export_review(named, store, tmp_path / "out")
    text = (tmp_path / "out" / "report.json").read_text(encoding="utf-8")
    assert '"title": "Größe und 大小"' in text and text.endswith("}\n") and text.startswith('{\n "schema"')
