import json

import pytest
from typer.testing import CliRunner

from hardlook.errors import HardlookError
from hardlook.similarity.commands import labels_app
from hardlook.similarity.label_sets import load_label_set


@pytest.fixture
def labels(monkeypatch):
    """`hardlook labels` as a function of words; `typed` is what the user types into it."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words, typed=None):
        result = CliRunner().invoke(labels_app, list(map(str, words)), input=typed)
        if isinstance(result.exception, HardlookError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    return call


@pytest.fixture
def names(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("crane\nforklift\nwheel loader\nzzqx\n")
    return path


def rows_of(table):
    return [line for line in table.read_text().splitlines() if not line.startswith("#")][1:]


def test_list(labels):
    assert "coco133" in labels("list") and "Cityscapes" in labels("list")
    sizes = {row["name"]: row["size"] for row in json.loads(labels("list", "--json"))}
    assert sizes["pc459"] == 459 and len(sizes) == 8


def test_show_gives_senses_and_glosses(labels):
    text = labels("show", "coco80")
    assert "a hand-operated electronic device" in text and "under street_sign.n.01" in text
    rows = {row["name"]: row for row in json.loads(labels("show", "coco80", "--variant", "published", "--json"))}
    assert rows["mouse"]["synset"] == "mouse.n.01" and rows["mouse"]["offset"] == "n02330245"


def test_show_takes_a_file(labels, names):
    assert "none" in labels("show", names)


def test_differences(labels):
    text = labels("differences", "ade150")
    assert "palm.n.03" in text and "the tree, not the inside of a hand" in text
    assert [row["label"] for row in json.loads(labels("differences", "voc20", "--json"))] == [
        "cow",
        "motorbike",
        "pottedplant",
        "tvmonitor",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("differences", "coco171"), "no published senses"),
        (("show", "nothing.csv"), "no label set and no file"),
        (("show", "cityscapes19", "--variant", "published"), "no variant"),
    ],
)
def test_errors(labels, words, said):
    with pytest.raises(HardlookError, match=said):
        labels(*words)


def test_map_writes_a_table_to_edit_and_chooses_nothing(labels, names, tmp_path):
    table = tmp_path / "deep" / "table.csv"
    assert "0 chosen, 1 proposed, 2 choose, 1 absent" in labels("map", names, "--out", table)
    assert rows_of(table) == [
        "0,,crane,,,,,choose",
        "1,,forklift,,,forklift.n.01,,proposed",
        "2,,wheel loader,,,,,choose",
        "3,,zzqx,,,,,absent",
    ]
    assert "#   crane.n.05: large long-necked wading bird" in table.read_text()
    # Load succeeds, and what is open is open.
    assert [label.synset for label in load_label_set(table)] == [None, "forklift.n.01", None, None]


def test_map_asks_and_takes_numbers_names_and_hypernyms(labels, names, tmp_path):
    table = tmp_path / "table.csv"
    typed = "9\n4\n1\nno_such.n.01\nh vehicle.n.01\nhat.n.01\n"
    said = labels("map", names, "--out", table, "--ask", typed=typed)
    assert "no candidate 9" in said and "no noun synset 'no_such.n.01'" in said and "near crane" in said
    assert rows_of(table) == [
        "0,,crane,,,crane.n.04,,chosen",
        "1,,forklift,,,forklift.n.01,,chosen",
        "2,,wheel loader,,,,vehicle.n.01,chosen",
        "3,,zzqx,,,hat.n.01,,chosen",
    ]


def test_map_goes_on_where_it_stopped(labels, names, tmp_path):
    table = tmp_path / "table.csv"
    labels("map", names, "--out", table, "--ask", typed="5\nq\n")
    assert rows_of(table)[0] == "0,,crane,,,crane.n.05,,chosen"
    assert rows_of(table)[1].endswith("proposed")
    counts = json.loads(labels("map", names, "--out", table, "--json"))
    assert (counts["chosen"], counts["proposed"], counts["choose"]) == (1, 1, 1)
    assert rows_of(table)[0] == "0,,crane,,,crane.n.05,,chosen"


def test_input_that_ends_early_keeps_what_was_chosen(labels, names, tmp_path):
    table = tmp_path / "table.csv"
    labels("map", names, "--out", table, "--ask", typed="4\n")
    assert rows_of(table)[0] == "0,,crane,,,crane.n.04,,chosen"


def test_map_needs_a_csv(labels, names, tmp_path):
    with pytest.raises(HardlookError, match="must be a "):
        labels("map", names, "--out", tmp_path / "table.txt")


@pytest.mark.parametrize("verb", ["list", "show", "differences", "map"])
def test_help_has_an_example(labels, verb):
    assert f"hardlook labels {verb}" in labels(verb, "--help")
