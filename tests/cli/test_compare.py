import io
import json

import pytest
from rich.console import Console
from small_runs import small_run

from hardlook.harness.registry import find_benchmark
from hardlook.report.compare.comparison import compare_runs, read_runs
from hardlook.report.compare.terminal import print_comparison


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three small runs of closed mIoU: a good model, a middling one and a bad one."""
    root = tmp_path_factory.mktemp("runs")
    for name, stranger, seed in (("good", 0.0, 0), ("middling", 0.3, 1), ("bad", 0.8, 2)):
        small_run(root / name, scenes=16, args={"stranger": stranger, "seed": seed}, given={"resamples": 50})
    return root


def compare(hardlook, *words):
    return hardlook("compare", *words, "--swaps", 199, "--quiet")


def test_two_runs_get_a_sentence_a_page_and_a_file(hardlook, runs, tmp_path):
    answer = compare(hardlook, runs / "good", runs / "bad", "--out", tmp_path / "compared")
    assert answer.code == 0, answer.err
    assert "good is better than bad in mIoU: 1.000 against" in answer.out
    assert "Same units: every model answered the same 16 units" in answer.out
    page = (tmp_path / "compared" / "comparison.html").read_text()
    assert "good is better than bad in mIoU" in page
    assert "prediction (good)" in page and "prediction (bad)" in page
    assert "https://" not in page
    document = json.loads((tmp_path / "compared" / "comparison.json").read_text())
    assert document["schema"] == "hardlook.comparison/1"
    assert [model["name"] for model in document["models"]] == ["good", "bad"]
    assert (document["resamples"], document["interval"]) == (2_000, "jackknife")


@pytest.mark.parametrize("name", ["", "run.html", "scores.html", "report.html", "comparison.html", "records/a.html"])
def test_a_comparison_replaces_and_hides_no_part_of_a_run(hardlook, runs, name):
    folder = runs / "good"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    answer = compare(hardlook, folder, runs / "bad", "--out", folder / name)
    assert answer.code == 1 and "remedy" in answer.err
    assert "this folder holds a run" in answer.err or "would replace a part of the run" in answer.err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_json_is_the_file_and_nothing_else_goes_to_standard_output(hardlook, runs, tmp_path):
    answer = compare(
        hardlook, runs / "good", runs / "bad", "--out", tmp_path / "page.html", "--json", "--names", "A, B"
    )
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert document == json.loads((tmp_path / "page.json").read_text())
    assert [model["name"] for model in document["models"]] == ["A", "B"]
    assert document["sentences"][0].startswith("A is better than B")
    assert (tmp_path / "page.html").is_file()


def test_several_runs_are_ranked(hardlook, runs, tmp_path):
    folders = [runs / name for name in ("bad", "good", "middling")]
    answer = compare(hardlook, *folders, "--out", tmp_path, "--alpha", 0.1, "--seed", 4)
    assert answer.code == 0, answer.err
    lines = [line.split() for line in answer.out.splitlines()]
    start = lines.index(["model", "miou", "\N{UPWARDS ARROW}"])
    assert [words[0] for words in lines[start + 1 : start + 4]] == ["good", "middling", "bad"]
    assert lines[start + 1][1:] == ["1.000", "a"]
    # A row for each pair in place of sentences.
    rows = [words for words in lines if words[-1:] in (["better"], ["worse"]) or "tell" in words]
    pairs = [words[1:3] if words[0] == "miou" else words[:2] for words in rows]
    assert pairs == [["bad", "good"], ["bad", "middling"], ["good", "middling"]]
    assert rows[0][-1] == "worse"
    assert "is worse than" not in answer.out
    document = json.loads((tmp_path / "comparison.json").read_text())
    assert (document["alpha"], document["seed"], document["level"]) == (0.1, 4, 0.9)
    assert len([one for one in document["differences"] if one["family"] == "headline scores"]) == 3


def test_a_reading_holds_for_all_runs_and_different_ones_are_refused(hardlook, runs, tmp_path):
    answer = compare(
        hardlook, runs / "good", runs / "bad", "--reading", "mean-over=gt-only", "--json", "--out", tmp_path
    )
    assert json.loads(answer.out)["readings"] == {"mean-over": "gt-only"}
    small_run(tmp_path / "other", scenes=16, given={"reading": {"mean-over": "gt-only"}})
    refused = compare(hardlook, runs / "good", tmp_path / "other", "--out", tmp_path / "none")
    assert refused.code == 1
    assert "different readings of mean-over: good: detectron2; other: gt-only" in refused.err
    assert "--reading mean-over=detectron2" in refused.err
    assert not (tmp_path / "none").exists()


def test_other_scenes_are_compared_on_the_overlap_with_a_warning(hardlook, runs, tmp_path):
    small_run(tmp_path / "short", scenes=12, args={"stranger": 0.8})
    answer = compare(hardlook, runs / "good", tmp_path / "short", "--out", tmp_path)
    assert answer.code == 0, answer.err
    assert "12 units have an answer of every model" in answer.out
    assert "4 of the 16 units of good are left out (scene-0012, scene-0013, scene-0014, scene-0015)" in answer.out
    assert "Warning" in answer.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["good"], "at least two runs"),
        (["good", "good"], "is given twice"),
        (["good", "nowhere"], "there is no run here"),
        (["good", "bad", "--alpha", "2"], "--alpha 2.0: expected a number between 0 and 1"),
        (["good", "bad", "--names", "one"], "--names: expected 2 different names"),
    ],
)
def test_what_cannot_be_compared_is_refused(hardlook, runs, tmp_path, words, told):
    folders = [runs / word if word in ("good", "bad", "nowhere") else word for word in words]
    answer = compare(hardlook, *folders, "--out", tmp_path / "none")
    assert answer.code == 1
    assert told in answer.err
    assert not (tmp_path / "none").exists()


class OnlyWhatIsAsked:
    """A benchmark with the functions that every one has, and none that are optional."""

    def __init__(self, inner):
        self.card, self.options, self.schema = inner.card, inner.options, inner.schema
        self.score, self.evaluate, self.list_units, self.report = (
            inner.score,
            inner.evaluate,
            inner.list_units,
            inner.report,
        )


def test_a_benchmark_without_tallies_is_shown_side_by_side(hardlook, runs, tmp_path, monkeypatch):
    from hardlook.open_vocabulary import closed_miou

    monkeypatch.setattr(closed_miou, "CLOSED_MIOU", OnlyWhatIsAsked(closed_miou.CLOSED_MIOU))
    assert find_benchmark("closed-miou").tallies is None and find_benchmark("closed-miou").qualities is None
    answer = compare(hardlook, runs / "good", runs / "bad", "--out", tmp_path)
    assert answer.code == 0, answer.err
    assert "it has no tallies" in answer.out and "pixel-accuracy" in answer.out
    document = json.loads((tmp_path / "comparison.json").read_text())
    assert document["differences"] == []
    # Without common resamples each run keeps the intervals of its own scorecard.
    assert document["scores"]["good"][0]["interval"] is not None
    assert "Side by side" in (tmp_path / "comparison.html").read_text()


def test_a_run_of_several_models_ends_in_their_comparison(hardlook, tmp_path):
    models = ("--model", "planted-segmenter,troubled_segmenters:Slow")
    args = ("--model-arg", "troubled_segmenters:Slow.seconds=0")
    answer = hardlook(
        "run", "closed-miou", "--out", tmp_path, "--scenes", 8, "--resamples", 20, "--quiet", "--json", *models, *args
    )
    assert answer.code == 0, answer.err
    assert list(json.loads(answer.out)) == ["planted-segmenter", "troubled_segmenters:Slow"]
    told = "planted-segmenter is better than troubled_segmenters:Slow in mIoU: 1.000 against"
    page = (tmp_path / "report.html").read_text()
    # Standard output holds the scorecards alone, and the page the comparison.
    assert told in page and told not in answer.err
    assert "`" not in page.split("Each model has its own report in")[1][:100]
    assert "troubled_segmenters:Slow/report.html" in page
    document = json.loads((tmp_path / "comparison.json").read_text())
    assert document["schema"] == "hardlook.comparison/1"


def test_without_json_the_comparison_is_printed_once_on_standard_output(hardlook, tmp_path):
    models = ("--model", "planted-segmenter,troubled_segmenters:Slow")
    args = ("--model-arg", "troubled_segmenters:Slow.seconds=0")
    answer = hardlook(
        "run", "closed-miou", "--out", tmp_path, "--scenes", 8, "--resamples", 20, "--quiet", *models, *args
    )
    assert answer.code == 0, answer.err
    said = " ".join(answer.out.split())
    assert said.count("planted-segmenter is better than troubled_segmenters:Slow in mIoU: 1.000 against") == 1
    assert said.index("2 models on 8 shared units") < said.index("all models:")
    assert "shared units" not in answer.err


def test_scores_that_take_long_say_how_many_swaps_they_took(hardlook, tmp_path):
    for name, stranger in (("one", 0.0), ("two", 0.6)):
        words = ("--model-arg", f"stranger={stranger}", "--scenes", 12, "--resamples", 5, "--quiet")
        assert hardlook("run", "open-ap", "--out", tmp_path / name, *words).code == 0
    folders = (tmp_path / "one", tmp_path / "two")
    answer = hardlook("compare", *folders, "--out", tmp_path / "found", "--quiet", "--json")
    document = json.loads(answer.out)
    assert document["swaps"] == 999
    assert any("999 random swaps" in note for note in document["notes"])
    # Twelve images have 4,096 swaps, more than such scores afford.
    assert {(one["swaps"], one["exact"]) for one in document["differences"] if not one["slice"]} == {(999, False)}
    (gain,) = [one for one in document["differences"] if one["name"] == "open-gain" and not one["slice"]]
    assert gain["verdict"] in ("higher", "lower", "cannot tell") and "open-gain" not in document["standings"]
    asked = hardlook("compare", *folders, "--out", tmp_path / "asked", "--quiet", "--json", "--swaps", 50)
    assert json.loads(asked.out)["swaps"] == 50


def test_an_empty_name_is_refused(hardlook, runs, tmp_path):
    answer = compare(hardlook, runs / "good", runs / "bad", "--names", "a,", "--out", tmp_path)
    assert answer.code == 1
    assert "--names: expected 2 different names for 2 runs" in answer.err


@pytest.mark.parametrize("names", [("good", "bad"), ("good", "middling", "bad")])
def test_narrow_terminals_keep_values_and_verdicts_whole(runs, names):
    compared = compare_runs(read_runs([runs / name for name in names]), names=names, swaps=199)
    console = Console(file=io.StringIO(), width=50, color_system=None)
    print_comparison(compared, console)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 50
    assert not any("\N{HORIZONTAL ELLIPSIS}" in line for line in lines)
    assert any(line.split()[-1:] == ["better"] for line in lines)


def test_runs_of_several_seeds_are_given_with_commas(hardlook, runs, tmp_path):
    groups = [",".join(str(runs / name) for name in names) for names in (("good", "middling"), ("bad",))]
    answer = compare(hardlook, *groups, "--names", "ours,theirs", "--resamples", 2_500, "--out", tmp_path)
    assert answer.code == 0, answer.err
    assert "means over runs of several seeds (ours: 2, theirs: 1)" in answer.out.replace("\n", " ")
    document = json.loads((tmp_path / "comparison.json").read_text())
    assert [model.get("folders", []) for model in document["models"]] == [
        [str(runs / "good"), str(runs / "middling")],
        [],
    ]
    assert document["resamples"] == 2_500


def test_fewer_resamples_than_a_comparison_needs_are_refused(hardlook, runs, tmp_path):
    answer = compare(hardlook, runs / "good", runs / "bad", "--resamples", 100, "--out", tmp_path)
    assert answer.code != 0 and "2000" in answer.err
    answer = compare(hardlook, runs / "good", runs / "bad", "--interval", "basic", "--out", tmp_path)
    assert answer.code != 0 and "choose jackknife or percentile" in answer.err
