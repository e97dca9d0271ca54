"""What reviews decide, and how far reviewers agree, against scikit-learn and plain loops."""

import csv
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from hardlook.collect.results.review_outcomes import (
    ReviewedClaim,
    _choose_path,
    _compute_cohen_kappa,
    count_alike_pairs,
    count_reviews,
    count_verdicts,
    measure_agreement,
    measure_reviewers,
    write_claims,
)
from hardlook.collect.study.tasks import ReviewTask
from hardlook.errors import DataError


def claim(number, accepted, declined, wanted=2, **more):
    names = {"name": f"{number}.jpg", "concept": "cat", "context": "snow", **more}
    task = ReviewTask(
        f"t{number}", f"s{number}", names["name"], names["concept"], names["context"], f"images/{number}.jpg"
    )
    return ReviewedClaim(task, accepted, declined, wanted)


@pytest.mark.parametrize(
    ("accepted", "declined", "wanted", "outcome", "disputed"),
    [
        (0, 0, 1, "undecided", False),
        (1, 0, 1, "kept", False),
        (0, 1, 1, "rejected", False),
        (2, 0, 3, "undecided", False),
        (1, 1, 3, "undecided", True),
        (3, 0, 3, "kept", False),
        (2, 1, 3, "rejected", True),
        (4, 0, 3, "kept", False),
        (4, 1, 3, "rejected", True),
    ],
)
def test_a_claim_is_kept_where_enough_people_reviewed_it_and_all_accepted(
    accepted, declined, wanted, outcome, disputed
):
    found = claim(1, accepted, declined, wanted)
    assert (found.outcome, found.disputed, found.reviews) == (outcome, disputed, accepted + declined)


def rows(*given):
    return pl.DataFrame(
        [(who, f"t{task}", f"s{task}", value, float(ms)) for who, task, value, ms in given],
        {
            "participant": pl.String,
            "task": pl.String,
            "subject": pl.String,
            "value": pl.Int64,
            "reaction_ms": pl.Float64,
        },
        orient="row",
    )


def a_study(count, wanted=2):
    tasks = [claim(number, 0, 0).task for number in range(1, count + 1)]
    return SimpleNamespace(tasks=tasks, settings=SimpleNamespace(target_answers=wanted), path=Path("study"))


def test_reviews_are_counted_by_claim_in_the_order_of_the_study():
    counted = count_reviews(a_study(3), rows(("a", 2, 1, 1), ("b", 2, 0, 1), ("c", 2, 1, 1), ("a", 1, 0, 1)))
    assert [(one.task.id, one.accepted, one.declined, one.wanted) for one in counted] == [
        ("t1", 0, 1, 2),
        ("t2", 2, 1, 2),
        ("t3", 0, 0, 2),
    ]
    with pytest.raises(DataError, match="answers to 2 tasks that are not of this study, such as s8"):
        count_reviews(a_study(3), rows(("a", 9, 1, 1), ("a", 8, 1, 1), ("a", 1, 1, 1)))


def test_only_claims_with_two_reviews_say_anything_about_agreement():
    claims = (claim(1, 1, 0), claim(2, 2, 0), claim(3, 1, 2), claim(4, 0, 0), claim(5, 0, 1))
    assert count_verdicts(claims).tolist() == [[2, 0], [1, 2]]
    assert count_verdicts(()).shape == (0, 2)
    assert measure_agreement((claim(1, 1, 0), claim(2, 0, 1)), rows(("a", 1, 1, 1), ("a", 2, 0, 1))) is None


@given(st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=6), min_size=1, max_size=8))
def test_alike_pairs_are_those_of_a_loop(reviews):
    counts = np.array([[sum(own), len(own) - sum(own)] for own in reviews])
    expected = [
        [sum(one == other for one, other in permutations(own, 2)), len(list(permutations(own, 2)))] for own in reviews
    ]
    assert count_alike_pairs(counts).tolist() == expected


def two_people(first, second):
    """Claims 1 to n as two people reviewed them, and the rows of their answers."""
    answers = rows(
        *(
            (who, number, value, 100)
            for who, own in (("a", first), ("b", second))
            for number, value in enumerate(own, 1)
        )
    )
    claims = tuple(
        claim(n, one + other, 2 - one - other) for n, (one, other) in enumerate(zip(first, second, strict=True), 1)
    )
    return claims, answers


FIRST, SECOND = [1, 1, 1, 0, 0, 1, 0, 1], [1, 0, 1, 0, 0, 1, 1, 1]


def test_agreement_of_two_people_is_scikit_learns():
    found = measure_agreement(*two_people(FIRST, SECOND))
    assert found["claims"] == 8 and found["percent"]["value"] == pytest.approx(6 / 8)
    assert found["cohen"] == pytest.approx(cohen_kappa_score(FIRST, SECOND))
    for name in ("percent", "fleiss", "alpha"):
        assert found[name]["low"] < found[name]["value"] < found[name]["high"]


def test_kappa_is_of_two_people_and_the_claims_that_both_reviewed():
    claims, answers = two_people(FIRST, SECOND)
    third = rows(("c", 1, 1, 100))
    assert measure_agreement(claims, pl.concat([answers, third]))["cohen"] is None
    # A claim that one person reviewed alone is not among those with two reviews.
    alone = (*claims, claim(9, 1, 0))
    assert measure_agreement(alone, pl.concat([answers, rows(("a", 9, 1, 100))]))["cohen"] == pytest.approx(
        cohen_kappa_score(FIRST, SECOND)
    )


def test_reviewers_are_compared_with_the_others_of_the_same_claims():
    answers = rows(
        ("a", 1, 1, 100), ("b", 1, 1, 200), ("c", 1, 0, 300), ("a", 2, 0, 500), ("b", 2, 1, 400), ("d", 3, 1, 50)
    )
    found = {row["participant"]: row for row in measure_reviewers(answers).to_dicts()}
    # a: with b on the first claim, not with c, not with b on the second.
    assert {who: row["alike"] for who, row in found.items()} == {
        "a": pytest.approx(1 / 3),
        "b": pytest.approx(1 / 3),
        "c": 0,
        "d": None,
    }
    assert {who: row["accepted"] for who, row in found.items()} == {"a": 0.5, "b": 1, "c": 0, "d": 1}
    assert {who: (row["reviews"], row["reaction_ms"]) for who, row in found.items()} == {
        "a": (2, 300),
        "b": (2, 300),
        "c": (1, 300),
        "d": (1, 50),
    }


def test_claims_are_written_with_their_counts(tmp_path):
    write_claims(tmp_path / "claims.csv", [claim(1, 2, 1), claim(2, 0, 3, name="b, c.jpg", concept="dog")])
    with (tmp_path / "claims.csv").open(newline="") as lines:
        written = list(csv.DictReader(lines))
    assert [(row["path"], row["concept"], row["context"], row["accepted"], row["declined"]) for row in written] == [
        ("1.jpg", "cat", "snow", "2", "1"),
        ("b, c.jpg", "dog", "snow", "0", "3"),
    ]


def test_where_all_reviews_are_alike_their_share_has_the_bounds_of_a_share():
    found = measure_agreement(*two_people([1, 0] * 10, [1, 0] * 10))["percent"]
    # Twenty of twenty images: Clopper and Pearson.
    assert (found["value"], found["high"]) == (1, 1) and found["low"] == pytest.approx(0.025 ** (1 / 20))


@pytest.mark.parametrize(
    ("name", "suffix", "path"),
    [
        ("a/b.jpg", ".jpg", "images/a/b.jpg"),
        ("a/b.JPG", ".jpg", "images/a/b.JPG"),
        ("a/b.jpg", ".JPG", "images/a/b.jpg"),
        ("a/b.jpg", ".png", "images/a/b.jpg.png"),
        ("/etc/b.jpg", ".jpg", "images/t7.jpg"),
        ("a/../b.jpg", ".png", "images/t7.png"),
        ("a\\b.jpg", ".jpg", "images/t7.jpg"),
    ],
)
def test_a_kept_image_stays_below_the_folder_of_images(name, suffix, path):
    assert _choose_path(claim(7, 1, 0, name=name).task, suffix) == path


def test_kappa_is_of_two_people_alone():
    one = rows(("p", 1, 1, 5), ("p", 2, 0, 5))
    two = rows(("p", 1, 1, 5), ("q", 1, 1, 5), ("p", 2, 0, 5), ("q", 2, 0, 5))
    three = pl.concat([two, rows(("r", 1, 1, 5))])
    assert _compute_cohen_kappa(one) is None and _compute_cohen_kappa(three) is None
    assert _compute_cohen_kappa(two) == 1.0
