"""`hardlook bias`: selection lists, class negatives and information, as a user types them."""

import csv
import json
import statistics

import numpy as np
import polars as pl
import pytest
from PIL import Image

from hardlook.world.layouts import write_world

SCENES = 24


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world") / "voc"
    write_world(folder, layout="voc", seed=0, count=SCENES, size=(96, 72))
    return folder


@pytest.fixture(scope="module")
def classes(world):
    """Image to the names of its classes, read from the masks themselves."""
    names = (world / "classes.txt").read_text().split("\n")
    masks = sorted((world / "SegmentationClass").glob("*.png"))
    return {path.stem: {names[n - 1] for n in np.unique(np.array(Image.open(path))) if 0 < n < 255} for path in masks}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


def attributes(path, classes, seed=0):
    """A table of made-up attributes for every class of every image of the world."""
    rng = np.random.default_rng(seed)
    rows = [(f"1_{image}{name}", name, image) for image, held in classes.items() for name in sorted(held)]
    numbers = {name: rng.random(len(rows)) for name in ("iou", "area_ratio", "saliou", "distractor_weight")}
    frame = pl.DataFrame(rows, schema=["filename", "class", "image"], orient="row").with_columns(
        **{name: pl.Series(values) for name, values in numbers.items()}, oss_perf=pl.Series(numbers["saliou"])
    )
    frame.write_csv(path)
    return frame


def test_select_writes_lists_table_page_and_numbers(hardlook, tmp_path, world, classes):
    out = tmp_path / "deep" / "selection"
    words = ("bias", "select", "--data", f"voc={world}", "--saliency", "planted-saliency", "--fold", 1, "--out", out)
    answer = hardlook(*words, "--leave-out")
    assert answer.code == 0 and "training images are kept" in answer.out and f"page: {out}" in answer.out
    kept, dropped, left = ((out / name).read_text().split() for name in ("kept.txt", "dropped.txt", "leave-out.txt"))
    document = json.loads((out / "selection.json").read_text())
    training, test = set(document["split"]["training"]), set(document["split"]["test"])
    trained = sorted(image for image, held in classes.items() if held & training)
    assert sorted(kept + dropped) == trained
    assert left == [image for image in trained if not classes[image] & test]
    with (out / "selection.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    shares = {
        row["image"]: int(row["covered_pixels"]) / int(row["salient_pixels"])
        for row in rows
        if int(row["salient_pixels"])
    }
    median = statistics.median(shares.values())
    assert document["median"]["value"] == pytest.approx(median)
    assert sorted(dropped) == sorted(image for image, share in shares.items() if share < median)
    assert [row["image"] for row in rows if row["kept"] == "1"] == kept
    assert document["leave_out"] == {"kept": len(left), "kept_by_both": len(set(left) & set(kept))}
    page = (out / "selection.html").read_text()
    for text in ("K of the training images", "an oracle, not a legal one-shot setting", "55.39 to 59.03", "Edge cases"):
        assert text in page
    assert page.count("data:image/jpeg") == 2 * (min(8, len(set(kept) & set(shares))) + min(8, len(dropped)))


def test_select_is_the_same_twice_and_asks_the_model_once(hardlook, tmp_path, world, monkeypatch):
    def words(name):
        where = ("--data", f"voc={world}", "--split", "train", "--classes", "cat,dog,car", "--out", tmp_path / name)
        return ("bias", "select", *where, "--saliency", "planted-saliency", "--quiet", "--json")

    first = hardlook(*words("a"))

    def fail(self, images):
        raise AssertionError("the masks are on disk")

    monkeypatch.setattr("hardlook.models.planted.saliency.PlantedSaliency.saliency", fail)
    second = hardlook(*words("b"))
    assert json.loads(first.out) == json.loads(second.out) and first.err == ""
    for name in ("kept.txt", "selection.csv", "selection.html"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    listed = set((world / "ImageSets" / "Segmentation" / "train.txt").read_text().split())
    chosen = {name for file in ("kept.txt", "dropped.txt") for name in (tmp_path / "a" / file).read_text().split()}
    assert chosen <= listed and json.loads(first.out)["split"]["training"] == ["cat", "dog", "car"]
    assert not (tmp_path / "a" / "leave-out.txt").exists()


def test_select_names_what_it_could_not_read_and_goes_on(hardlook, tmp_path):
    world = tmp_path / "world"
    write_world(world, layout="voc", seed=1, count=8, size=(96, 72))
    broken = sorted((world / "JPEGImages").iterdir())[2]
    broken.write_bytes(broken.read_bytes()[:300])
    out = tmp_path / "out"
    answer = hardlook(
        "bias", "select", "--data", f"voc={world}", "--saliency", "planted-saliency", "--fold", 0, "--out", out
    )
    document = json.loads((out / "selection.json").read_text())
    assert answer.code == 3 and "could not be read" in answer.err
    assert [one["image"] for one in document["unread"]] == [broken.stem]
    assert broken.stem not in (out / "kept.txt").read_text()


def test_negatives_counts_shares_alone(hardlook, tmp_path, world, classes):
    answer = hardlook("bias", "negatives", "--data", f"voc={world}", "--out", tmp_path, "--json")
    document = json.loads(answer.out)
    assert document["association"] is None and "No one-shot result was given" in document["in_words"]
    assert document == json.loads((tmp_path / "negatives.json").read_text())
    rows = {row["class"]: row for row in document["classes"]}
    fold = [name for name, row in rows.items() if row["fold"] == rows["cat"]["fold"]]
    trained = [held for held in classes.values() if held - set(fold)]
    assert rows["cat"]["distractors"]["paper"]["value"] == sum("cat" in held for held in trained) / len(trained)
    masks = [("cat" in held) for held in trained for name in held if name not in fold]
    assert rows["cat"]["distractors"]["released"]["value"] == sum(masks) / len(masks)
    page = (tmp_path / "negatives.html").read_text()
    assert "Published: share as background against one-shot IoU" in page


def test_negatives_with_a_table_and_with_a_run(hardlook, tmp_path, world, classes):
    frame = attributes(tmp_path / "attributes.csv", classes)
    words = ("bias", "negatives", "--data", f"voc={world}", "--attributes", tmp_path / "attributes.csv", "--json")
    document = json.loads(hardlook(*words, "--out", tmp_path / "n").out)
    assert document["measured"] == "drop" and document["model"] == "the one-shot model of attributes.csv"
    drops = {row["class"]: row["drop"]["value"] for row in document["classes"] if row["drop"]}
    theirs = frame.group_by("class").agg(drop=(pl.col("iou") - pl.col("oss_perf")).mean())
    assert drops == pytest.approx(dict(theirs.iter_rows()))
    run = tmp_path / "run"
    model = ("--model", "planted-one-shot", "--model-arg", "saliency=.5", "--tiers", 1)
    assert hardlook("run", "toss", *model, "--out", run, "--quiet").code == 0
    with_run = json.loads(hardlook(*words[:4], "--run", run, "--out", tmp_path / "r", "--json").out)
    assert with_run["measured"] == "one-shot IoU" and with_run["pairs"] == "tier 1"
    known = {row["class"]: row["one_shot"]["value"] for row in with_run["classes"] if row["one_shot"]}
    sums = {}
    for row in pl.read_parquet(run / "records" / "*.parquet").iter_rows(named=True):
        one = sums.setdefault(row["class"], [0, 0])
        one[0] += row["intersection"]
        one[1] += row["predicted"] + row["truth"] - row["intersection"] - row["predicted_void"]
    assert known == {name: intersection / union for name, (intersection, union) in sums.items()}
    assert "Spearman" in with_run["in_words"] and "planted-one-shot" in with_run["in_words"]


def test_information_of_a_planted_cause(hardlook, tmp_path, classes):
    attributes(tmp_path / "attributes.csv", classes)
    out = tmp_path / "i"
    answer = hardlook("bias", "information", "--attributes", tmp_path / "attributes.csv", "--out", out)
    assert answer.code == 0 and "Salience has the most information about which" in answer.out
    document = json.loads((out / "information.json").read_text())
    # Success is salience above .5 here, so salience tells all there is: ln 2 for an even outcome, a little less else.
    assert document["attributes"][0]["attribute"] == "salience"
    p = document["success"]
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    assert document["attributes"][0]["information"]["value"] == pytest.approx(entropy, abs=0.1)
    assert document["absent"] == ["centredness", "blobs"] and document["attributes"][0]["published"] == 0.21
    page = (out / "information.html").read_text()
    assert "Not in the table: centredness, blobs." in page and "chance, at most" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("select", "--data", "voc={world}", "--saliency", "planted-saliency"), "expected one of --fold and --classes"),
        (("select", "--data", "voc={world}", "--fold", "0", "--classes", "cat"), "expected one of --fold"),
        (("select", "--data", "voc={world}", "--fold", "9"), "no such fold"),
        (("select", "--data", "voc={world}", "--classes", "unicorn"), "no class 'unicorn'"),
        (
            ("select", "--data", "voc={world}", "--fold", "0", "--saliency", "planted-encoder"),
            "does not have the role saliency",
        ),
        (("select", "--data", "voc={world}", "--fold", "0", "--split", "test"), "no split 'test'"),
        (("select", "--data", "voc=nowhere", "--fold", "0"), "no folder for voc"),
        (("negatives", "--data", "voc={world}", "--reading", "distractors=mine"), "no such value"),
        (("negatives", "--data", "voc={world}", "--reading", "other=paper"), "no such reading"),
        (("negatives", "--data", "voc={world}", "--run", "nowhere"), "there is no run here"),
        (("negatives", "--data", "voc={world}", "--folds", "40"), "--folds 40"),
        (("information", "--attributes", "none.csv"), "does not exist"),
    ],
)
def test_errors_say_what_to_do(hardlook, tmp_path, monkeypatch, world, words, message):
    monkeypatch.chdir(tmp_path)
    answer = hardlook("bias", *(word.format(world=world) for word in words), "--out", tmp_path / "out")
    assert answer.code == 1 and message in answer.err and "Traceback" not in answer.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [(), ("select",), ("negatives",), ("information",)])
def test_help_has_an_example(hardlook, words):
    answer = hardlook("bias", *words, "--help")
    assert answer.code == 0 and "Example" in answer.out and "hardlook bias" in answer.out


@pytest.mark.real
def test_selection_of_real_photographs(hardlook, tmp_path, shared_data):
    """Twelve photographs with u2netp: the lists are made from K as the table states it."""
    pytest.importorskip("onnxruntime")
    from hardlook.errors import HardlookError
    from hardlook.models.weights.install import locate_weights

    try:
        locate_weights("u2netp")
    except HardlookError as error:
        pytest.skip(str(error))
    real = shared_data / "data" / "VOCdevkit" / "VOC2012"
    root = tmp_path / "voc"
    (root / "ImageSets" / "Segmentation").mkdir(parents=True)
    for name in ("JPEGImages", "SegmentationClass"):
        (root / name).symlink_to(real / name)
    ids = (real / "ImageSets" / "Segmentation" / "train.txt").read_text().split()[:12]
    (root / "ImageSets" / "Segmentation" / "few.txt").write_text("\n".join(ids))
    words = ("--data", f"voc={root}", "--split", "few", "--saliency", "u2netp", "--fold", 2, "--out", tmp_path / "out")
    assert hardlook("bias", "select", *words, "--quiet").code == 0
    rows = pl.read_csv(tmp_path / "out" / "selection.csv")
    assert rows["K"].is_between(0, 1).all() and set(rows["image"]) <= set(ids)
    assert (rows["kept"] == (rows["K"] >= rows["K"].median()).cast(int)).all()
