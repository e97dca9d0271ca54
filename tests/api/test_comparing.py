"""`hl.compare` and `hl.leaderboard` give what the commands write."""

import json

import pytest

import hardlook as hl
from hardlook.errors import OptionError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("compared")
    for name, fault in (("good", 0.0), ("bad", 0.5)):
        hl.run("closed-miou", model="planted-segmenter", model_args={"stranger": fault}, scenes=12, resamples=50,
               out=root / name, progress=False)  # fmt: skip
    return root


@pytest.fixture(scope="module")
def compared(folder):
    return hl.compare(hl.load(folder / "good"), folder / "bad", swaps=999)


def test_the_command_writes_the_same_numbers(compared, folder, hardlook, tmp_path):
    answer = hardlook("compare", folder / "good", folder / "bad", "--swaps", 999, "--out", tmp_path / "c", "-q")
    document = json.loads((tmp_path / "c" / "comparison.json").read_text())
    assert answer.code == 0 and document["sentences"] == compared.sentences
    row = compared.verdicts.row(0, named=True)
    stored = next(one for one in document["differences"] if one["name"] == "miou" and not one["slice"])
    assert (row["difference"], row["p"], row["verdict"]) == (stored["value"], stored["p_value"], stored["verdict"])
    assert row["low"] == stored["interval"]["low"] and row["first value"] == stored["first_value"]
    by_function = hl.compare(folder / "good", folder / "bad", swaps=999, out=tmp_path / "page.html")
    assert by_function.document == document and by_function.page.is_file()


def test_the_ranking_and_what_a_notebook_shows(compared):
    assert compared.ranking["model"].to_list() == ["good", "bad"] and compared.ranking["rank"].to_list() == [1, 2]
    shown = compared._repr_html_()
    assert compared.sentences[0].replace("'", "&#x27;") in shown and "1.000" in shown
    assert compared.sentences[0] in repr(compared)
    slices = compared.differences.drop_nulls("slice class")
    assert set(slices["score"]) == {"iou"} and slices.height > 3


def test_seeds_are_lists_of_runs(folder):
    seeds = hl.compare([folder / "good", folder / "bad"], [folder / "bad", folder / "good"], names=["a", "b"], swaps=99)
    assert seeds.comparison.seeds == (2, 2) and seeds.verdicts["difference"].to_list() == [0.0]


@pytest.mark.parametrize(
    ("more", "words"), [({"alpha": 2}, "between 0 and 1"), ({"interval": "wald"}, "no such interval")]
)
def test_bad_arguments(folder, more, words):
    with pytest.raises(OptionError, match=words):
        hl.compare(folder / "good", folder / "bad", **more)
    with pytest.raises(OptionError, match="at least two runs"):
        hl.compare(folder / "good")


def test_a_leaderboard_writes_only_where_it_is_told(folder, tmp_path):
    before = sorted(folder.iterdir())
    board = hl.leaderboard(folder)
    assert sorted(folder.iterdir()) == before and board.pages == ()
    values = board.frame.filter((board.frame["score"] == "miou") & (board.frame["slice"] == ""))
    assert values["value"].to_list()[0] < 1 or values["value"].to_list()[1] < 1
    assert "closed-miou: 2 runs" in repr(board) and "<table>" in board._repr_html_()
    written = hl.leaderboard(folder, out=tmp_path / "board")
    assert all(page.is_file() for page in written.pages) and len(written.pages) == 2
    with pytest.raises(OptionError, match="no run of toss"):
        hl.leaderboard(folder, benchmark="toss")


def test_a_site_is_that_of_the_command(folder, hardlook, tmp_path):
    board = hl.leaderboard(folder, site=tmp_path / "function")
    assert board.site == tmp_path / "function" / "index.html" and board.pages == ()
    assert hardlook("leaderboard", folder, "--site", tmp_path / "command").code == 0
    files = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "function", tmp_path / "command")
    ]
    assert files[0] == files[1] and len(files[0]) > 4
    with pytest.raises(OptionError, match="something else than a leaderboard site"):
        hl.leaderboard(folder, site=folder.parent)


def test_the_table_of_a_paper_is_that_of_the_command(compared, folder, hardlook, tmp_path):
    hl.compare(folder / "good", folder / "bad", swaps=999, out=tmp_path / "c")
    assert compared.format_table() == hardlook("table", tmp_path / "c").out
    words = ("all-scores", "--format", "latex", "--intervals", "brackets")
    text = compared.format_table(all_scores=True, intervals="brackets", out=tmp_path / "a.tex")
    assert (tmp_path / "a.tex").read_text() == text == hardlook("table", tmp_path / "c", *words).out
