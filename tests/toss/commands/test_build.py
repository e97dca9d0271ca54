"""`hardlook build`: tiers from your own data, and the design studies, as a user types them.

`hardlook build toss` into a used folder, from a finished table, and from memberships.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
from collections import Counter
from itertools import pairwise

import cv2
import pytest
from tier_lists import tier_lists

from hardlook.data.toss_pairs import list_pair_files
from hardlook.toss.tiers.attributes import read_attributes, write_attributes
from hardlook.toss.tiers.folder import list_changed_files
from hardlook.toss.tiers.rules import PARTITIONS
from hardlook.world.layouts import write_world

MODELS = ("--saliency", "planted-saliency", "--supervised", "planted-segmenter", "--encoder", "planted-encoder")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world") / "voc"
    write_world(folder, layout="voc", seed=0, count=16, size=(96, 72), correlation=0.0, image_format="png")
    return folder


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_tiers_are_built_with_manifest_and_report(hardlook, world, tmp_path):
    out = tmp_path / "built"
    answer = hardlook("build", "toss", "--data", f"voc={world}", *MODELS, "--out", out)
    assert answer.code == 0 and "tier 1" in answer.out and str(out / "report.html") in answer.out
    rows = read_attributes(out / "analysis" / "test_stats.csv")
    listed = tier_lists(out, 1, 2)
    assert {pair.query for one in listed for pair in one.pairs} <= {row.filename for row in rows}
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["models"]["saliency"]["name"] == "planted-saliency" and manifest["seed"] == 0
    assert manifest["thresholds"]["easy_above"] == 0.75 and len(manifest["cells"]) == 12 * 16
    assert list_changed_files(out) == ()
    page = (out / "report.html").read_text()
    assert "What could not be filled" in page and "Pairs per cell" in page


def test_partitions_follow_the_thresholds(hardlook, world, tmp_path):
    out = tmp_path / "built"
    hardlook("build", "toss", "--data", f"voc={world}", *MODELS, "--supervised-arg", "ragged=1", "--out", out)
    rows = {row.filename: row for row in read_attributes(out / "analysis" / "test_stats.csv")}
    for one in tier_lists(out, 1):
        for pair in one.pairs:
            row = rows[pair.query]
            assert pair.split == f"{'easy' if row.iou > 0.75 else 'hard'}_{'sal' if row.saliou > 0.5 else 'nsal'}"


def test_the_same_seed_gives_the_same_bytes_also_from_images_and_masks(hardlook, world, tmp_path):
    base = ("build", "toss", *MODELS, "-q", "--out")
    hardlook(*base, tmp_path / "a", "--data", f"voc={world}")
    hardlook(*base, tmp_path / "a", "--data", f"voc={world}")
    hardlook(*base, tmp_path / "b", "--data", f"voc={world}")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    hardlook(
        *base, tmp_path / "c", "--images", world / "JPEGImages", "--masks", world / "SegmentationClass",
        "--labels", world / "classes.txt",
    )  # fmt: skip
    lists = {name: data for name, data in contents(tmp_path / "a").items() if name.startswith("tiers/")}
    assert lists == {name: data for name, data in contents(tmp_path / "c").items() if name.startswith("tiers/")}
    hardlook(*base, tmp_path / "d", "--data", f"voc={world}", "--seed", "1")
    other = {name: data for name, data in contents(tmp_path / "d").items() if name.startswith("tiers/")}
    assert set(other) == set(lists) and other != lists


def test_a_ready_table_stands_for_two_models(hardlook, world, tmp_path):
    hardlook("build", "toss", "--data", f"voc={world}", *MODELS, "-q", "--out", tmp_path / "a")
    table = tmp_path / "a" / "analysis" / "test_stats.csv"
    answer = hardlook(
        "build", "toss", "--data", f"voc={world}", "--attributes", table, "--encoder", "planted-encoder", "-q",
        "--out", tmp_path / "b",
    )  # fmt: skip
    assert answer.code == 0
    for name, data in contents(tmp_path / "a").items():
        if name.startswith("tiers/"):
            assert (tmp_path / "b" / name).read_bytes() == data


def test_tier_three_comes_from_fss(hardlook, world, tmp_path):
    fss = tmp_path / "fss"
    for name in ("abacus", "bus"):
        (fss / name).mkdir(parents=True)
        for number in range(1, 7):
            source = sorted((world / "JPEGImages").iterdir())[number]
            image = cv2.imread(str(source))
            cv2.imwrite(str(fss / name / f"{number}.bmp"), image)
            mask = cv2.imread(str(world / "SegmentationClass" / source.name), cv2.IMREAD_GRAYSCALE)
            cv2.imwrite(str(fss / name / f"{number}.png"), (mask > 0) * 255)
    base = ("build", "toss", "--data", f"voc={world}", "--data", f"fss={fss}", *MODELS, "-q", "--out")
    assert hardlook(*base, tmp_path / "a").code == 0
    pairs = tier_lists(tmp_path / "a", 3)[0].pairs
    assert len(pairs) == 30 and all("_abacus_" in pair.query and "_abacus_" in pair.support for pair in pairs)
    own = tmp_path / "drop.txt"
    own.write_text("Abacus\n")
    assert hardlook(*base, tmp_path / "b", "--resembling", own).code == 0
    assert {pair.query.split("_")[1] for pair in tier_lists(tmp_path / "b", 3)[0].pairs} == {"bus"}


def test_a_broken_image_is_counted_and_named(hardlook, world, tmp_path):
    copy = tmp_path / "voc"
    shutil.copytree(world, copy)
    broken = copy / "JPEGImages" / "2026_000003.png"
    broken.write_bytes(broken.read_bytes()[:2000])
    answer = hardlook("build", "toss", "--data", f"voc={copy}", *MODELS, "-q", "--out", tmp_path / "built")
    assert answer.code == 3 and "2026_000003" in answer.err
    manifest = json.loads((tmp_path / "built" / "manifest.json").read_text())
    assert [failure["image"] for failure in manifest["failures"]] == ["2026_000003"]
    listed = tier_lists(tmp_path / "built", 1, 2)
    assert not any("2026_000003" in pair.query + pair.support for one in listed for pair in one.pairs)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--encoder", "planted-encoder"), "--saliency, --supervised and --encoder are needed"),
        ((*MODELS, "--folds", "99"), "there are 12 classes"),
        ((*MODELS, "--split", "trainval"), "trainval"),
        ((*MODELS, "--reading", "void=ours"), "void"),
        ((*MODELS, "--reading", "resembling=theirs"), "no such reading"),
        ((*MODELS, "--images", "x"), "no source of class masks|no folder"),
    ],
)
def test_what_cannot_be_built_says_why(hardlook, world, tmp_path, words, message):
    answer = hardlook("build", "toss", "--data", f"voc={world}", *words, "-q", "--out", tmp_path / "built")
    assert answer.code == 1 and re.search(message, answer.err)


def test_two_encoders_are_compared(hardlook, world, tmp_path):
    base = ("build", "study-encoders", "--data", f"voc={world}", "--encoder", "planted-encoder", "--other")
    alike = hardlook(*base, "planted-encoder", "--other-arg", "turn=1", "--out", tmp_path / "a", "--json", "-q")
    document = json.loads(alike.out)
    # A turned space keeps its cosines up to rounding, and pairs at the mean may fall either way.
    assert document["agreement"]["value"] > 0.98
    apart = hardlook(*base, "planted-encoder", "--other-arg", "context=1", "--out", tmp_path / "b", "--json", "-q")
    assert json.loads(apart.out)["agreement"]["value"] < document["agreement"]["value"]
    assert json.loads(apart.out)["published_percent_with_clip"] == {"VGG19": 80.08, "ResNeXt": 86.25}
    assert "Cosines of the same pairs" in (tmp_path / "b" / "report.html").read_text()


def test_two_saliency_models_are_compared(hardlook, world, tmp_path):
    answer = hardlook(
        "build", "study-saliency", "--data", f"voc={world}", "--saliency", "planted-saliency", "--other",
        "planted-saliency", "--other-arg", "faint=1", "--out", tmp_path, "-q", "--json",
    )  # fmt: skip
    borders = json.loads(answer.out)["borders"]
    first, second = borders["planted-saliency (1)"], borders["planted-saliency (2)"]
    assert first["undecided"]["value"] < second["undecided"]["value"]
    assert first["blank_maps"] == second["blank_maps"]


def test_weights_are_studied_from_a_table(hardlook, world, tmp_path):
    words = ("--supervised-arg", "ragged=1", "-q", "--out", tmp_path / "built")
    hardlook("build", "toss", "--data", f"voc={world}", *MODELS, *words)
    table = tmp_path / "built" / "analysis" / "test_stats.csv"
    base = ("build", "study-weights", "--attributes", table, "--json", "--out")
    by_threshold = json.loads(hardlook(*base, tmp_path / "a").out)
    by_pairs = json.loads(hardlook(*base, tmp_path / "b", "--pairs", tmp_path / "built").out)
    assert by_threshold["readings"]["mask mean"] == by_pairs["readings"]["mask mean"]
    assert "pair mean" in by_pairs["readings"] and "pair mean" not in by_threshold["readings"]
    assert by_pairs["published"]["easy_sal"]["proportion"] == 3.01


ENCODER = ("--encoder", "planted-encoder")


@pytest.fixture
def build(hardlook, world, tmp_path):
    def built(out, *words):
        return hardlook("build", "toss", "--data", f"voc={world}", *words, "-q", "--out", tmp_path / out)

    return built


def lists(folder):
    return {file.name: file.path.read_bytes() for file in list_pair_files(folder)}


def test_a_used_folder_has_the_lists_of_the_last_build_alone(build, tmp_path):
    assert build("used", *MODELS, "--folds", 4, "--name", "first").code == 0
    assert build("used", *MODELS, "--folds", 2).code == 0
    assert build("fresh", *MODELS, "--folds", 2).code == 0
    assert lists(tmp_path / "used") == lists(tmp_path / "fresh")
    assert {file.fold for file in list_pair_files(tmp_path / "used")} == {0, 1}
    assert list_changed_files(tmp_path / "used") == ()


def test_lists_of_somebody_else_are_refused_and_kept(build, tmp_path):
    foreign = tmp_path / "theirs" / "tiers" / "attribute" / "split0_q_easy_sal.txt"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("1_a 1_b\n")
    answer = build("theirs", *MODELS)
    assert answer.code == 1 and "1 pair lists that no build wrote" in answer.err and "remedy" in answer.err
    assert foreign.read_text() == "1_a 1_b\n"


def test_a_name_cannot_leave_the_folder(build, tmp_path):
    answer = build("deep/out", *MODELS, "--name", "../../../x")
    assert answer.code == 1 and "names no folder" in answer.err
    assert not list(tmp_path.rglob("*_test.txt"))


def test_rows_of_a_ready_table_do_not_pass_for_measured_ones(build, tmp_path):
    build("a", *MODELS)
    table = tmp_path / "a" / "analysis" / "test_stats.csv"
    measured = table.read_bytes()
    changed = tmp_path / "changed.csv"
    text = measured.decode().splitlines()
    # Supervised IoU of every mask to 0: all are hard.
    changed.write_text("\n".join([text[0], *(",".join([*row[:2], "0.0", *row[3:]]) for row in csv.reader(text[1:]))]))
    assert build("a", "--attributes", changed, *ENCODER).code == 0
    assert {row.iou for row in read_attributes(table)} == {0.0}
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    assert manifest["attributes"]["name"] == "changed.csv"
    assert manifest["attributes"]["sha256"] == hashlib.sha256(changed.read_bytes()).hexdigest()
    assert build("a", *MODELS).code == 0
    assert table.read_bytes() == measured
    assert json.loads((tmp_path / "a" / "manifest.json").read_text())["attributes"] is None


def test_masks_without_a_row_and_rows_without_numbers_are_counted(build, tmp_path):
    build("a", *MODELS)
    rows = read_attributes(tmp_path / "a" / "analysis" / "test_stats.csv")
    write_attributes(tmp_path / "short.csv", rows[:-3])
    text = (tmp_path / "short.csv").read_text().splitlines()
    cells = text[1].split(",")
    text[1] = ",".join([*cells[:2], "nan", *cells[3:]])
    (tmp_path / "short.csv").write_text("\n".join([*text, "12_elsewhere,,.5,.5,.5,.5,2,0,cup,elsewhere"]))
    answer = build("b", "--attributes", tmp_path / "short.csv", *ENCODER)
    assert answer.code == 0 and "3 masks have no row in the table" in answer.out
    assert "1 masks have no partition" in answer.out
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert manifest["masks_without_a_row"] == [row.filename for row in rows[-3:]]
    assert manifest["attributes"]["rows_of_other_masks"] == 1
    assert manifest["masks"] == len(rows) - 3 == manifest["partitioned"] + 1
    page = (tmp_path / "b" / "report.html").read_text()
    assert "Masks without a row" in page and rows[-1].filename in page
    queries = {pair.query for one in tier_lists(tmp_path / "b", 1) for pair in one.pairs}
    assert cells[0] not in queries


@pytest.mark.parametrize(("content", "message"), [(b"\xff\x00", "not text"), (None, "a folder")])
def test_what_is_no_table_has_no_traceback(build, tmp_path, content, message):
    path = tmp_path / "table.csv"
    path.mkdir() if content is None else path.write_bytes(content)
    answer = build("b", "--attributes", path, *ENCODER)
    assert answer.code == 1 and message in answer.err and "remedy" in answer.err and "Traceback" not in answer.err


def test_memberships_stand_for_the_thresholds(build, tmp_path):
    build("a", *MODELS, "--supervised-arg", "ragged=1")
    assert build("b", "--memberships", tmp_path / "a", *ENCODER).code == 0
    first, second = lists(tmp_path / "a"), lists(tmp_path / "b")
    assert first == second
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert manifest["memberships"]["masks_used"] == manifest["partitioned"] > 0
    assert "saliency" not in manifest["models"] and "easy_above" not in manifest["thresholds"]
    assert "that of the lists that were given" in (tmp_path / "b" / "report.html").read_text()


def test_memberships_without_data_make_tier_one(hardlook, build, world, tmp_path):
    build("a", *MODELS, "--supervised-arg", "ragged=1")
    words = ("build", "toss", "--memberships", tmp_path / "a", "--out", tmp_path / "b")
    named = hardlook(*words, "--labels", world / "classes.txt")
    assert named.code == 0 and "tier 2         0 pairs" in named.out
    ours, theirs = lists(tmp_path / "b"), lists(tmp_path / "a")
    tier_one = {name: data for name, data in theirs.items() if name.startswith("tier1")}
    assert {name: data for name, data in ours.items() if name.startswith("tier1")} == tier_one
    assert not any(name.startswith("tier2") for name in ours)
    few = tmp_path / "few.txt"
    few.write_text("cat\ndog\n")
    answer = hardlook(*words, "--labels", few)
    assert answer.code == 1 and "there are 2 class names" in answer.err


@pytest.mark.real
def test_published_memberships_give_all_320_published_cells(hardlook, shared_data, tmp_path):
    toss = shared_data / "reference" / "toss"
    answer = hardlook("build", "toss", "--memberships", toss, "--out", tmp_path / "built", "--json")
    manifest = json.loads(answer.out)
    assert answer.code == 0 and len(manifest["cells"]) == 320
    for fold in range(4):
        for query in PARTITIONS:
            lines = (toss / "data" / "tiers" / "attribute" / f"split{fold}_q_{query}.txt").read_text().splitlines()
            # In a file: the partitions of supports in order, in each the five classes.
            classes = [line.partition("_")[0] for line in lines]
            starts = [0, *(n for n in range(1, len(lines)) if classes[n] != classes[n - 1]), len(lines)]
            published = [end - start for start, end in pairwise(starts)]
            found = [c["pairs"] for c in manifest["cells"] if (c["fold"], c["query"]) == (fold, query)]
            assert found == published and len(found) == 20
    assert lists(tmp_path / "built").keys() >= {f"pascal5i/split{fold}_test" for fold in range(4)}
    assert Counter(one.name.partition("/")[0] for one in tier_lists(tmp_path / "built", 1)) == {"tier1": 16}
