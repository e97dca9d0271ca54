"""A rating study: means and distributions of what was given, counted literally."""

import statistics

import pytest

from hardlook.report.numerals import NOTHING

from .conftest import dashboard, tables
from .judging import judged_by, ratings_study


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
    assert tables(page)["Ratings by measure"][1][:3] == ["all", NOTHING, "0"]


def test_script_in_labels_is_escaped(tmp_path):
    script = "<script>window.hacked=1</script>"
    study = ratings_study(tmp_path / "study", labels=((script, "car"),), measures=(script,))
    store, _ = judged_by(study, [lambda task: 5])
    with store:
        page = dashboard(study, store).log_in().page("/research/images")
    assert script not in page
    assert page.count("&lt;script&gt;") > 2
