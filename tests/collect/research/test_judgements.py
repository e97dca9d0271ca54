"""Ratings and reviews on the dashboard: means, distributions and verdicts as given, agreement worked out by hand."""

import csv
import re
import statistics

import pytest
from research_judging import judged_by, ratings_study, review_study
from sklearn.metrics import cohen_kappa_score

from hardlook.collect.results.export import export_study
from hardlook.report.formatting import MISSING

from .conftest import dashboard, tables


def like(task):
    return min(10, len("".join(task.labels)) + len(task.measure) % 4)


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    study = ratings_study(tmp_path_factory.mktemp("ratings") / "study")
    people = [like, lambda task: 1 + like(task) % 10, lambda task: 10, lambda task: 3, like]
    store, said = judged_by(study, people)
    yield study, store, [(task, value) for person in said.values() for task, value in person.items()]
    store.close()


@pytest.fixture
def researcher(rated):
    return dashboard(rated[0], rated[1]).log_in()


def test_means_and_distributions_are_those_of_the_ratings(researcher, rated):
    study, _, said = rated
    table = tables(researcher.page("/research/images"))["Ratings by measure"]
    for measure, mean, ratings, things, spread in table[1:]:
        own = [value for task, value in said if study.by_id[task].measure == measure]
        assert (mean, ratings) == (f"{statistics.mean(own):.2f}", str(len(own)))
        assert int(things) == len({task for task, _ in said if study.by_id[task].measure == measure})
        assert spread == " ".join(str(own.count(rating)) for rating in range(1, 11))
    assert [row[0] for row in table[1:]] == ["path", "wup"]


def test_each_thing_has_its_mean_and_sorts_by_it(researcher, rated):
    study, _, said = rated
    table = tables(researcher.page("/research/images?sort=low"))["Things that are rated"]
    means = []
    for labels, measure, _, mean, ratings, given in table[1:]:
        own = sorted(
            value
            for task, value in said
            if study.by_id[task].measure == measure and ", ".join(study.by_id[task].labels) == labels
        )
        assert (ratings, given) == (str(len(own)), ", ".join(map(str, own)))
        means.append(statistics.mean(own))
        assert mean == f"{means[-1]:.2f}"
    assert means == sorted(means)
    assert len(means) == 6


def test_things_are_filtered_by_words_and_measure(researcher):
    table = tables(researcher.page("/research/images?q=DOG&measure=wup"))["Things that are rated"]
    assert [row[:2] for row in table[1:]] == [["cat, dog", "wup"]]
    assert researcher.get("/research/images?measure=lin").status_code == 400


def test_without_ratings_nothing_is_claimed(tmp_path):
    study = ratings_study(tmp_path / "study", measures=("",), question="likeness")
    store, _ = judged_by(study, [])
    with store:
        page = dashboard(study, store).log_in().page("/research/images")
    assert tables(page)["Ratings by measure"][1][:3] == ["all", MISSING, "0"]


def test_script_in_labels_is_escaped(tmp_path):
    script = "<script>window.hacked=1</script>"
    study = ratings_study(tmp_path / "study", labels=((script, "car"),), measures=(script,))
    store, _ = judged_by(study, [lambda task: 5])
    with store:
        page = dashboard(study, store).log_in().page("/research/images")
    assert script not in page
    assert page.count("&lt;script&gt;") > 2


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
def review_view_researcher(reviewed):
    return dashboard(*reviewed).log_in()


def cards(page):
    """Name to outcome and verdicts."""
    found = {}
    for card in re.findall(r"<li>\s*<a [^>]*><img(.*?)</ul>", page, re.DOTALL):
        name = re.search('alt="([^"]*)"', card)[1]
        outcome = re.search('class="outcome">([^<]*)<', card)[1]
        found[name] = (outcome, re.findall(r"participant (\d) (accepts|declines)", card))
    return found


def test_every_candidate_has_its_verdicts_and_outcome(review_view_researcher):
    found = cards(review_view_researcher.page("/research/images"))
    for place, pair in enumerate(zip(SAID[1], SAID[2], strict=True)):
        outcome, verdicts = found[f"image-{place}.jpg"]
        assert outcome == ("kept" if sum(pair) == 2 else "rejected" if sum(pair) == 0 else "rejected, disputed")
        assert sorted(verdicts) == [(str(n), ("declines", "accepts")[value]) for n, value in enumerate(pair, 1)]


def test_agreement_is_that_of_the_two(review_view_researcher):
    said = review_view_researcher.words("/research/images")
    assert "3 kept 3 rejected 0 undecided 2 disputed" in said
    assert "reviewed by two or more 6 reviews alike 66.7 %" in said
    # Of two raters and no missing review Fleiss' kappa is Scott's pi: (4/6 - (64 + 16)/144) / (1 - 80/144).
    assert f"Fleiss' kappa {(4 / 6 - 80 / 144) / (1 - 80 / 144):.3f}" in said
    assert f"{cohen_kappa_score(SAID[1], SAID[2]):.2f}" == "0.25"


def test_candidates_are_filtered(review_view_researcher):
    assert set(cards(review_view_researcher.page("/research/images?show=disputed"))) == {"image-1.jpg", "image-4.jpg"}
    assert set(cards(review_view_researcher.page("/research/images?show=kept&q=SAND"))) == {
        "image-3.jpg",
        "image-5.jpg",
    }
    assert "No matching candidate." in review_view_researcher.words("/research/images?show=undecided")


def test_nothing_is_said_of_clicks_and_the_progress_is_of_one_device(review_view_researcher):
    assert "any 100 % 12 12 0 6 of 6" in review_view_researcher.words("/research")
    for address in ("", "/participants", "/images", "/rules", "/export"):
        assert "inside" not in review_view_researcher.words(f"/research{address}")


def test_rules_leave_out_verdicts_here_as_in_the_export(review_view_researcher, reviewed, tmp_path):
    study, store = reviewed
    preview = tables(review_view_researcher.page("/research/rules?participants=2"))["Valid answers that remain"]
    assert preview[1] == ["any", "12", "12", "6", "12"]
    assert review_view_researcher.post("/research/rules", participants="2").status_code == 303
    assert "0 kept 0 rejected 6 undecided" in review_view_researcher.words("/research/images")
    assert all(len(verdicts) == 1 for _, verdicts in cards(review_view_researcher.page("/research/images")).values())
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
    assert f"reviewed by two or more 0 reviews alike {MISSING}" in said
