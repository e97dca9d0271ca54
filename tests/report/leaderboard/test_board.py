"""Whole leaderboards: runs beside published rows, at the right place, with ranks only where they mean something.

Ranks: an order, ties, and who gets none.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from leaderboard_runs import score, write_run
from scipy.stats import rankdata

from hardlook.errors import OptionError
from hardlook.harness.benchmark import ScoreMeaning
from hardlook.report.leaderboard.board import (
    Row,
    build_leaderboard,
    describe_differences,
    find_first_run,
    is_comparable_with_paper,
    name_runs,
    rank_rows,
)
from hardlook.report.leaderboard.runs import collect_runs
from hardlook.report.leaderboard.terminal import print_leaderboards

SAME = "comparable with the published table: the same pairs"


def board_of(root, **more):
    found = collect_runs(root)
    [(name, runs)] = found.runs.items()
    return build_leaderboard(found.benchmarks[name], runs, found.left_out, **more)


def ranks(ranking):
    return {(row.kind, row.method): row.rank for row in ranking.rows}


def test_published_models_are_ranked_with_runs_that_can_be_compared(tmp_path):
    """LCA of Table 4: PFENet 59.75, HSNet 59.10, Baseline 58.59, RPMM 54.49, RePRI 54.14."""
    write_run(tmp_path / "a", [score("lca", 0.59, comparable=SAME)], benchmark="toss", model="mine")
    write_run(tmp_path / "b", [score("lca", 0.50, comparable=SAME)], benchmark="toss", model="worse")
    [ranking] = board_of(tmp_path).rankings
    assert ranks(ranking) == {
        ("published", "PFENet"): 1,
        ("published", "HSNet"): 2,
        ("run", "mine"): 3,
        ("published", "Baseline"): 4,
        ("published", "RPMM"): 5,
        ("published", "RePRI"): 6,
        ("run", "worse"): 7,
    }


def test_published_models_have_no_rank_beside_other_images(tmp_path):
    words = "not comparable: the pairs are of the planted world"
    write_run(tmp_path / "a", [score("lca", 0.59, comparable=words)], benchmark="toss", model="mine")
    [ranking] = board_of(tmp_path).rankings
    assert {key: rank for key, rank in ranks(ranking).items() if rank} == {("run", "mine"): 1}
    why = "the runs here cannot be compared with what is published: the pairs are of the planted world"
    assert all(
        row.flags == (why,) and "a run of all the published pairs" in row.note for row in ranking.of("published")
    )
    assert [row.note for row in ranking.of("run")] == [words]


def test_slices_that_the_paper_prints_are_ranked_by_themselves(tmp_path):
    scores = [score("lca", 0.7, comparable=SAME), score("lca", 0.57, comparable=SAME, fold="0")]
    write_run(tmp_path / "a", scores, benchmark="toss", model="mine")
    [fold] = board_of(tmp_path).slices
    # Supplement, Table 2, LCA of the first fold: .56, .60, .52, .56, .57.
    assert (dict(fold.where), ranks(fold)["run", "mine"], ranks(fold)["published", "HSNet"]) == ({"fold": "0"}, 2, 2)
    assert ranks(fold)["published", "PFENet"] == 1


def test_a_run_of_one_dataset_stands_beside_that_dataset(tmp_path):
    words = "comparable with the published scores of GrabCut, which are those of 50 instances"
    scores = [score("noc90-base", 1.7, comparable=words), score("noc90-base", 1.7, comparable=words, dataset="grabcut")]
    write_run(tmp_path / "a", scores, benchmark="rclicks", model="mine", options={"data": {"grabcut": "GrabCut"}})
    board = board_of(tmp_path)
    [ranking] = board.rankings
    assert (dict(ranking.where), board.slices) == ({"dataset": "grabcut"}, ())
    mobile = next(row for row in ranking.of("published") if row.method.startswith("MobileSAM"))
    # Table 9: MobileSAM needs 1.7 centre clicks on GrabCut, as this run does.
    assert (mobile.value, mobile.rank) == (1.7, next(row.rank for row in ranking.of("run")))
    assert len(ranking.of("published")) == 33


@pytest.mark.parametrize(("ways", "shots", "best"), [(5, 1, 0.6023), (5, 5, 0.7236), (10, 1, 0.3316)])
def test_blind_accuracies_stand_beside_the_same_ways_and_shots(tmp_path, ways, shots, best):
    options = {"ways": [ways], "shots": [shots], "data": {"root": "somewhere"}}
    write_run(tmp_path / "a", [score("blind", 0.4)], benchmark="metacoco", options=options)
    [ranking] = board_of(tmp_path).rankings
    assert dict(ranking.where) == {"ways": str(ways), "shots": str(shots)}
    assert max(row.value for row in ranking.of("published")) == best


def test_where_nothing_is_published_of_these_units_what_there_is_stands_without_rank(tmp_path):
    write_run(tmp_path / "a", [score("open-miou", 0.4)], benchmark="open-miou")
    [ranking] = board_of(tmp_path).rankings
    assert len(ranking.of("published")) == 27
    assert {row.rank for row in ranking.of("published")} == {None}
    assert "of other units: dataset: A-847" in {row.flags[0] for row in ranking.of("published")}


def test_runs_that_differ_are_shown_without_a_rank(tmp_path):
    fine = [score("miou", 0.5)]
    for name in "ab":
        write_run(tmp_path / name, fine, model=name, readings={"mean-over": "detectron2"})
    write_run(tmp_path / "c", fine, model="c", units="xyz", created="2001-01-01")
    write_run(tmp_path / "d", fine, model="d", readings={"mean-over": "gt-only"})
    write_run(tmp_path / "e", fine, model="e", options={"ignore": 0})
    write_run(tmp_path / "f", fine, model="f", counts=(20, 18, 2))
    write_run(tmp_path / "g", fine, model="g", parts={"data planted world": "other"})
    board = board_of(tmp_path)
    told = {entry.method: "; ".join(entry.flags) for entry in board.entries}
    assert told == {
        "a": "",
        "b": "",
        "c": "other units than the first run",
        "d": "other readings than the first run: mean-over=gt-only",
        "e": "other settings than the first run: ignore=0",
        "f": "2 of 20 units failed",
        "g": "other data than the first run: planted world",
    }
    assert board.first.method == "a"
    assert {row.method for row in board.rankings[0].rows if row.rank} == {"a", "b"}


def test_what_belongs_to_the_method_is_no_difference(tmp_path):
    write_run(tmp_path / "a", [score("miou", 0.5)], model="", parts={"data pred": "1"}, options={"pred": "x"})
    write_run(tmp_path / "b", [score("miou", 0.6)], model="", parts={"data pred": "2"}, options={"resamples": 9})
    write_run(tmp_path / "c", [score("miou", 0.7)], options={"level": 0.5, "keep_predictions": False})
    [ranking] = board_of(tmp_path).rankings
    assert ranks(ranking) == {
        ("run", "net"): 1,
        ("run", "stored predictions (b)"): 2,
        ("run", "stored predictions (a)"): 3,
    }


def test_encoders_of_few_shot_learners_may_differ_and_transductive_learners_stand_apart(tmp_path):
    for name, encoder in (("a", "one"), ("b", "two"), ("c", "one")):
        parts = {"data encoder model": encoder}
        options, scores = {"encoder": encoder}, [score("blind", 0.5)]
        write_run(tmp_path / name, scores, benchmark="metacoco", model=name, options=options, parts=parts)
    board = board_of(tmp_path, marks=lambda model: ("transductive",) if model == "c" else ())
    assert {entry.method: bool(entry.flags) for entry in board.entries} == {
        "a with one": False,
        "b with two": False,
        "c with one": True,
    }


def test_scores_can_be_sorted_by_and_must_exist(tmp_path):
    write_run(tmp_path / "a", [score("lca", 0.5), score("hca", 0.4), score("rejection", 0.9)], benchmark="toss")
    names = [ranking.meaning.name for ranking in board_of(tmp_path, sort="rejection").rankings]
    assert names == ["rejection", "lca", "hca"]
    with pytest.raises(OptionError, match="toss has no such score") as error:
        board_of(tmp_path, sort="lcaa")
    assert "lca" in error.value.remedy


def test_lower_is_better_where_it_is(tmp_path):
    write_run(tmp_path / "a", [score("noc90", 3.0)], benchmark="rclicks", model="slow")
    write_run(tmp_path / "b", [score("noc90", 2.0)], benchmark="rclicks", model="fast")
    [ranking] = board_of(tmp_path).rankings
    assert [row.method for row in ranking.rows if row.rank] == ["fast", "slow"]


VALUES = st.sampled_from([0.1, 0.2, 0.3, math.nan])

ROWS = st.lists(st.builds(
    Row, kind=st.sampled_from(["run", "published"]), method=st.sampled_from("abc"), value=VALUES,
    flags=st.sampled_from([(), ("other units than the first run",)]),
))  # fmt: skip


@given(ROWS, st.booleans())
def test_ranks_are_those_of_scipy_among_rows_that_can_be_compared(rows, higher):
    found = rank_rows(rows, ScoreMeaning("s", "S", "", higher_is_better=higher))
    counted = [row for row in found if not row.flags and not math.isnan(row.value)]
    values = np.array([row.value for row in counted])
    assert [row.rank for row in counted] == rankdata(-values if higher else values, method="min").astype(int).tolist()
    assert all(row.rank is None for row in found if row not in counted)


@given(ROWS, st.booleans(), st.randoms())
def test_the_order_is_best_first_and_does_not_depend_on_the_order_of_rows(rows, higher, random):
    meaning = ScoreMeaning("s", "S", "", higher_is_better=higher)
    shuffled = random.sample(rows, len(rows))
    assert [repr(row) for row in rank_rows(rows, meaning)] == [repr(row) for row in rank_rows(shuffled, meaning)]
    values = [row.value for row in rank_rows(rows, meaning)]
    known = [value for value in values if not math.isnan(value)]
    assert values[: len(known)] == sorted(known, reverse=higher)


@given(st.lists(st.tuples(
    st.sampled_from(["net", "other"]), st.dictionaries(st.sampled_from("kl"), st.integers(0, 2)), st.uuids().map(str),
)))  # fmt: skip
def test_every_run_has_a_name_of_its_own(runs):
    names = name_runs(runs)
    assert len(set(names)) == len(names)
    assert all(name.startswith(run[0]) for name, run in zip(names, runs, strict=True))


def test_what_differs_is_told():
    first = {"units": "a", "data voc": "1", "option rounds": 20, "reading nof": "released", "option seed": 0}
    assert describe_differences(dict(first), first) == ()
    assert describe_differences({**first, "units": "b", "option seed": 1}, first) == ("other units than the first run",)
    assert describe_differences({**first, "data voc": "2"}, first) == ("other data than the first run: voc",)
    assert describe_differences({**first, "option rounds": 8, "reading nof": "paper"}, first) == (
        "other settings than the first run: rounds=8",
        "other readings than the first run: nof=paper",
    )
    # A part that only one of them has, say of another version, is no difference.
    assert describe_differences({**first, "option new": 1, "data voc (every byte)": "9"}, first) == ()


@given(st.lists(st.sampled_from("aab"), min_size=1))
def test_the_first_run_is_the_earliest_of_the_largest_group(letters):
    chosen = letters[find_first_run([{"units": letter} for letter in letters])]
    assert letters.count(chosen) == max(map(letters.count, letters))
    assert find_first_run([{"units": letter} for letter in letters]) == letters.index(chosen)


def test_conditions_that_no_option_tells_give_no_rank():
    assert is_comparable_with_paper("comparable with the published scores of GrabCut, which are those of 50 instances")
    for words in ("", "not comparable: fewer folds", "not in the paper: its tables have no such score",
                  "comparable where the images are MetaCoCo's", "comparable with X; provided that weights are theirs",
                  "beside the paper's: only the pattern compares"):  # fmt: skip
        assert not is_comparable_with_paper(words)


def test_runs_on_several_published_datasets_are_ranked_within_each(tmp_path):
    """Open mIoU of Table 4: on A-150 .404, .399, .390, .369 are the best; on PC-59 CAT-Seg has .654."""
    for name, labels, units, value in (
        ("a", "ade150", "ade", 0.40), ("b", "ade150", "ade", 0.35), ("c", "pc59", "context", 0.70)
    ):  # fmt: skip
        options = {"labels": labels, "gt": "truth", "variant": "published"}
        write_run(tmp_path / name, [score("open-miou", value, comparable=SAME)], benchmark="open-miou", model=name,
                  units=units, options=options)  # fmt: skip
    board = board_of(tmp_path)
    [ade] = board.rankings
    [context] = [one for one in board.slices if one.where == {"dataset": "PC-59"}]
    assert (ranks(ade)["run", "a"], ranks(ade)["run", "b"], ranks(ade)["published", "FC-CLIP"]) == (2, 6, 1)
    assert ranks(ade)["run", "c"] is None, "of other units"
    assert (ranks(context)["run", "c"], ranks(context)["published", "CAT-Seg"]) == (1, 2)
    assert ("run", "a") not in ranks(context)


def test_the_terminal_shows_the_ranking_of_each_dataset(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    for name, labels in (("a", "ade150"), ("c", "pc59")):
        options = {"labels": labels, "gt": "truth", "variant": "published"}
        write_run(tmp_path / name, [score("open-miou", 0.5, comparable=SAME)], benchmark="open-miou", model=name,
                  units=labels, options=options)  # fmt: skip
    print_leaderboards([board_of(tmp_path)], ())
    printed = capsys.readouterr().out
    for line in ("open mIoU (dataset: A-150)", "open mIoU (dataset: PC-59)", "published, Table 4, PC-59"):
        assert line in printed
    assert "no rank" not in printed
