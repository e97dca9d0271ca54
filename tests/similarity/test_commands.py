"""`hardlook similarity` and `hardlook labels` as a user types them."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from hardlook.errors import HardlookError
from hardlook.similarity.commands import labels_app
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.matrix_files import read_matrix
from hardlook.similarity.measures import MEASURES, compute_similarity

FREE = "path,wup,lin,lesk"


@pytest.fixture
def names(tmp_path):
    path = tmp_path / "yard.csv"
    path.write_text(
        "name,aliases,synset\ncrane,,crane.n.05\ncrane-machine,crane,crane.n.04\nforklift,,forklift.n.01\n"
        "heron,,heron.n.02\n"
    )
    return path


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "few.txt"
    path.write_text("crane 1 0 1\nforklift 1 0 .2\nheron 0 1 0\n")
    return path


@pytest.mark.parametrize("ending", ["csv", "npy", "parquet"])
def test_the_matrix_is_written_and_reads_back(hardlook, tmp_path, ending):
    out = tmp_path / "deep" / f"S.{ending}"
    answer = hardlook("similarity", "voc20", "--measure", "wup", "--out", out)
    assert answer.code == 0 and f"written: {out}" in answer.out and "Most similar" not in answer.out
    labels = load_label_set("voc20")
    assert np.array_equal(read_matrix(out, labels).values, compute_similarity(labels, "wup").matrix)


def test_the_summary_has_both_means_the_published_one_and_the_pairs(hardlook):
    answer = hardlook("similarity", "coco80")
    matrix = compute_similarity(load_label_set("coco80"), "path").matrix
    assert f"{matrix.mean():.4f}  {matrix.std():.4f}" in answer.out
    off = matrix[~np.eye(80, dtype=bool)]
    assert f"{off.mean():.4f}  {off.std():.4f}" in answer.out
    assert "0.083" in answer.out and "ImageNet-1k's labels only" in answer.out
    assert "stop sign: not in WordNet: stands as street_sign.n.01" in answer.out
    assert "0.5000  sandwich, hot dog" in answer.out


def test_json_and_options_before_the_labels(hardlook):
    answer = hardlook("similarity", "--measure", "lin", "--variant", "published", "voc20", "--json")
    document = json.loads(answer.out)
    matrix = compute_similarity(load_label_set("voc20", "published"), "lin").matrix
    assert document["mean"] == pytest.approx(matrix.mean()) and document["variant"] == "published"
    assert document["published"]["mean"] == 0.015 and "not comparable" in document["published"]["note"]
    assert document["out"] is None and len(document["pairs"]) == 12


def test_a_file_of_labels_with_vectors(hardlook, names, vectors):
    answer = hardlook("similarity", names, "--measure", "word2vec", "--source", vectors, "--json")
    document = json.loads(answer.out)
    first = document["pairs"][0]
    assert (first["first"], first["second"]) == ("crane", "crane-machine") and first["similarity"] == pytest.approx(1)
    assert document["treated"] == [{"label": "crane-machine", "how": "as 'crane'"}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing",), "no label set and no file 'nothing'"),
        (("voc20", "--measure", "near"), "there is no measure 'near'"),
        (("voc20", "--measure", "word2vec"), "needs a file"),
        (("voc20", "--measure", "path", "--source", "x"), "takes no source"),
        (("voc20", "--unknown", "guess"), "no such treatment"),
        (("voc20", "--unknown", "random"), "only embeddings have"),
        (("voc20", "--out", "S.txt"), "no format for .txt"),
        (("analyse", "voc20", "--measures", "path", "--neighbours", "unicorn"), "no label 'unicorn'"),
        (("analyse", "voc20", "--source", "glove"), "expected NAME=VALUE"),
        (("analyse", "pc459", "--variant", "published", "--measures", "path"), "--unknown zero"),
    ],
)
def test_errors_say_what_to_do(hardlook, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    answer = hardlook("similarity", *words)
    assert answer.code == 1 and said in answer.err and "Traceback" not in answer.err
    assert not list(tmp_path.iterdir())


def test_random_directions_follow_the_seed(hardlook, tmp_path, vectors):
    names = tmp_path / "names.txt"
    names.write_text("crane\nheron\nzzqx\nqqzx\n")
    words = ("similarity", names, "--measure", "glove", "--source", vectors, "--unknown", "random", "--json")
    first, again, other = (json.loads(hardlook(*words, "--seed", seed).out) for seed in (1, 1, 2))
    assert first == again and first["mean"] != other["mean"]
    assert "a random vector (seed 1)" in first["treated"][0]["how"]


def test_analysis_of_a_shipped_set(hardlook, tmp_path):
    words = ("similarity", "analyse", "coco80", "--measures", FREE, "--neighbours", "banana", "--out", tmp_path)
    answer = hardlook(*words)
    path = compute_similarity(load_label_set("coco80"), "path").matrix
    assert answer.code == 0 and f"mean {path.mean():.4f}  std {path.std():.4f}" in answer.out
    assert f"page: {tmp_path / 'analysis.html'}" in answer.out
    document = json.loads((tmp_path / "analysis.json").read_text())
    matrix = compute_similarity(load_label_set("coco80"), "wup").matrix
    assert document["measures"]["wup"]["std"] == pytest.approx(matrix.std())
    assert list(document["neighbours"]) == ["banana"]
    # Both are edible_fruit.n.01 in WordNet: two edges apart.
    assert document["neighbours"]["banana"]["path"][0] == ["apple", pytest.approx(1 / 3)]
    assert document["spearman"]["path"]["path"] == pytest.approx(1)
    mouse = next(case for case in document["polysemy"]["cases"] if case["label"] == "mouse")
    assert (mouse["chosen"], mouse["rank"], mouse["senses"]) == ("mouse.n.04", 4, 4)
    assert document["variants"]["pairs"] == 80 * 79 // 2
    page = (tmp_path / "analysis.html").read_text()
    for said in ("Density of similarities", "Neighbours of banana", "Rank agreement", "Similarity by lesk"):
        assert said in page
    for said in ("If another sense were chosen", "The pairs that change most", "Of 80 labels 60 are shown"):
        assert said in page
    assert "not comparable with the columns before them" in page and len(page) < 3e6


def test_analysis_of_a_file_with_vectors(hardlook, tmp_path, names, vectors):
    out = tmp_path / "analysis"
    words = ("similarity", "analyse", names, "--measures", "path,fasttext", "--source", f"fasttext={vectors}")
    document = json.loads(hardlook(*words, "--out", out, "--json").out)
    assert document["variants"] is None
    (shared,) = document["shared_words"]
    assert shared["similarity"]["fasttext"] == pytest.approx(1) and shared["similarity"]["path"] < 0.2
    page = (out / "analysis.html").read_text()
    assert "Labels that share a word" in page and "Published and corrected" not in page


def test_one_measure_alone_has_nothing_to_agree_with(hardlook, tmp_path):
    assert hardlook("similarity", "analyse", "voc20", "--measures", "identity", "--out", tmp_path).code == 0
    page = (tmp_path / "analysis.html").read_text()
    assert "Rank agreement" not in page and "If another sense" not in page


def test_an_analysis_is_the_same_twice(hardlook, tmp_path):
    for folder in ("a", "b"):
        hardlook("similarity", "analyse", "voc20", "--measures", "path,lesk", "--out", tmp_path / folder)
    for name in ("analysis.html", "analysis.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_measures(hardlook):
    answer = hardlook("similarity", "measures")
    assert all(name in answer.out for name in MEASURES)
    rows = {row["name"]: row for row in json.loads(hardlook("similarity", "measures", "--json").out)}
    assert rows["path"]["state"] == "ready" and rows["word2vec"]["state"] == "source"


def test_measures_say_what_to_install(hardlook, monkeypatch):
    monkeypatch.setattr("hardlook.models.weights.install.get_weights_status", lambda name: "missing")
    monkeypatch.setattr("hardlook.extras.is_installed", lambda module: False)
    rows = {row["name"]: row for row in json.loads(hardlook("similarity", "measures", "--json").out)}
    assert rows["glove"]["install"] == ["hardlook weights install glove-6b-50d"]
    assert rows["sentence"]["install"] == ['pip install "hardlook[hf]"', "hardlook weights install all-minilm-l6-v2"]
    assert 'pip install "hardlook[hf]"' in hardlook("similarity", "measures").out


@pytest.mark.parametrize("words", [(), ("voc20",), ("analyse",), ("measures",)])
def test_help_has_an_example(hardlook, words):
    answer = hardlook("similarity", *words, "--help")
    assert answer.code == 0 and "Example" in answer.out and "hardlook similarity" in answer.out


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
def name_file(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("crane\nforklift\nwheel loader\nzzqx\n")
    return path


def rows_of(table):
    return [line for line in table.read_text().splitlines() if not line.startswith("#")][1:]


def test_list_of_label_sets(labels):
    assert "coco133" in labels("list") and "Cityscapes" in labels("list")
    sizes = {row["name"]: row["size"] for row in json.loads(labels("list", "--json"))}
    assert sizes["pc459"] == 459 and sizes["ade847"] == 847 and len(sizes) == 9


def test_show_gives_senses_and_glosses(labels):
    text = labels("show", "coco80")
    assert "a hand-operated electronic device" in text and "under street_sign.n.01" in text
    rows = {row["name"]: row for row in json.loads(labels("show", "coco80", "--variant", "published", "--json"))}
    assert rows["mouse"]["synset"] == "mouse.n.01" and rows["mouse"]["offset"] == "n02330245"


def test_show_takes_a_file(labels, name_file):
    assert "none" in labels("show", name_file)


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
def test_errors_of_labels(labels, words, said):
    with pytest.raises(HardlookError, match=said):
        labels(*words)


def test_map_writes_a_table_to_edit_and_chooses_nothing(labels, name_file, tmp_path):
    table = tmp_path / "deep" / "table.csv"
    assert "0 chosen, 1 proposed, 2 choose, 1 absent" in labels("map", name_file, "--out", table)
    assert rows_of(table) == [
        "0,,crane,,,,,choose",
        "1,,forklift,,,forklift.n.01,,proposed",
        "2,,wheel loader,,,,,choose",
        "3,,zzqx,,,,,absent",
    ]
    assert "#   crane.n.05: large long-necked wading bird" in table.read_text()
    # Load succeeds, and what is open is open.
    assert [label.synset for label in load_label_set(table)] == [None, "forklift.n.01", None, None]


def test_map_asks_and_takes_numbers_names_and_hypernyms(labels, name_file, tmp_path):
    table = tmp_path / "table.csv"
    typed = "9\n4\n1\nno_such.n.01\nh vehicle.n.01\nhat.n.01\n"
    said = labels("map", name_file, "--out", table, "--ask", typed=typed)
    assert "no candidate 9" in said and "no noun synset 'no_such.n.01'" in said and "near crane" in said
    assert rows_of(table) == [
        "0,,crane,,,crane.n.04,,chosen",
        "1,,forklift,,,forklift.n.01,,chosen",
        "2,,wheel loader,,,,vehicle.n.01,chosen",
        "3,,zzqx,,,hat.n.01,,chosen",
    ]


def test_map_resumes(labels, name_file, tmp_path):
    table = tmp_path / "table.csv"
    labels("map", name_file, "--out", table, "--ask", typed="5\nq\n")
    assert rows_of(table)[0] == "0,,crane,,,crane.n.05,,chosen"
    assert rows_of(table)[1].endswith("proposed")
    counts = json.loads(labels("map", name_file, "--out", table, "--json"))
    assert (counts["chosen"], counts["proposed"], counts["choose"]) == (1, 1, 1)
    assert rows_of(table)[0] == "0,,crane,,,crane.n.05,,chosen"


def test_input_that_ends_early_keeps_what_was_chosen(labels, name_file, tmp_path):
    table = tmp_path / "table.csv"
    labels("map", name_file, "--out", table, "--ask", typed="4\n")
    assert rows_of(table)[0] == "0,,crane,,,crane.n.04,,chosen"


def test_map_needs_a_csv(labels, name_file, tmp_path):
    with pytest.raises(HardlookError, match="must be a "):
        labels("map", name_file, "--out", tmp_path / "table.txt")


@pytest.mark.parametrize("verb", ["list", "show", "differences", "map"])
def test_help_of_labels_has_an_example(labels, verb):
    assert f"hardlook labels {verb}" in labels(verb, "--help")
