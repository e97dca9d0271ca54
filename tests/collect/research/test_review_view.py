"""A review study: verdicts and outcomes as they were given, agreement as worked out by hand."""

import csv
import re

import pytest
from sklearn.metrics import cohen_kappa_score

from hardlook.collect.results.export import export_study
from hardlook.report.numerals import NOTHING

from .conftest import dashboard, tables
from .judging import judged_by, review_study

SAID = {1: [1, 1, 0, 1, 0, 1], 2: [1, 0, 0, 1, 1, 1]}


def told(number):
    return lambda task: SAID[number][int(task.id[1:]) - 1]


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory):
    study = review_study(tmp_path_factory.mktemp("review") / "study")
    store, said = judged_by(study, [told(1), told(2)])
    assert [len(one) for one in said.values()] == [6, 6]
    yield study, store
    store.close()


@pytest.fixture
def researcher(reviewed):
    return dashboard(*reviewed).log_in()


def cards(page):
    """Name to outcome and verdicts."""
    found = {}
    for card in re.findall(r"<li>\s*<a [^>]*><img(.*?)</ul>", page, re.DOTALL):
        name = re.search('alt="([^"]*)"', card)[1]
        outcome = re.search('class="outcome">([^<]*)<', card)[1]
        found[name] = (outcome, re.findall(r"participant (\d) (accepts|declines)", card))
    return found


def test_every_candidate_has_its_verdicts_and_outcome(researcher):
    found = cards(researcher.page("/research/images"))
    for place, pair in enumerate(zip(SAID[1], SAID[2], strict=True)):
        outcome, verdicts = found[f"image-{place}.jpg"]
        assert outcome == ("kept" if sum(pair) == 2 else "rejected" if sum(pair) == 0 else "rejected, disputed")
        assert sorted(verdicts) == [(str(n), ("declines", "accepts")[value]) for n, value in enumerate(pair, 1)]


def test_agreement_is_that_of_the_two(researcher):
    said = researcher.words("/research/images")
    assert "3 kept 3 rejected 0 undecided 2 disputed" in said
    assert "judged by two or more 6 reviews alike 66.7 %" in said
    # Of two raters and no missing review Fleiss' kappa is Scott's pi: (4/6 - (64 + 16)/144) / (1 - 80/144).
    assert f"Fleiss' kappa {(4 / 6 - 80 / 144) / (1 - 80 / 144):.3f}" in said
    assert f"{cohen_kappa_score(SAID[1], SAID[2]):.2f}" == "0.25"


def test_candidates_are_filtered(researcher):
    assert set(cards(researcher.page("/research/images?show=disputed"))) == {"image-1.jpg", "image-4.jpg"}
    assert set(cards(researcher.page("/research/images?show=kept&q=SAND"))) == {"image-3.jpg", "image-5.jpg"}
    assert "No candidate is like this." in researcher.words("/research/images?show=undecided")


def test_nothing_is_said_of_clicks_and_the_progress_is_of_one_device(researcher):
    assert "any 100 % 12 12 0 6 of 6" in researcher.words("/research")
    for address in ("", "/participants", "/images", "/rules", "/export"):
        assert "inside" not in researcher.words(f"/research{address}")


def test_rules_leave_out_verdicts_here_as_in_the_export(researcher, reviewed, tmp_path):
    study, store = reviewed
    preview = tables(researcher.page("/research/rules?participants=2"))["Valid answers that remain"]
    assert preview[1] == ["any", "12", "12", "6", "12"]
    assert researcher.post("/research/rules", participants="2").status_code == 303
    assert "0 kept 0 rejected 6 undecided" in researcher.words("/research/images")
    assert all(len(verdicts) == 1 for _, verdicts in cards(researcher.page("/research/images")).values())
    export_study(study, store, tmp_path / "out")
    store.set_rules({})
    with (tmp_path / "out" / "undecided.csv").open() as stream:
        assert len(list(csv.DictReader(stream))) == 6


def test_without_reviews_nothing_is_claimed(tmp_path):
    study = review_study(tmp_path / "study")
    store, _ = judged_by(study, [])
    with store:
        said = dashboard(study, store).log_in().words("/research/images")
    assert "0 kept 0 rejected 6 undecided" in said
    assert f"judged by two or more 0 reviews alike {NOTHING}" in said
