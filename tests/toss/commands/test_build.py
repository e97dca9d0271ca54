"""`hardlook build`: tiers from your own data, and the design studies, as a user types them."""

import json
import re
import shutil

import cv2
import pytest
from tier_lists import tier_lists

from hardlook.toss.tiers.attributes import read_attributes
from hardlook.toss.tiers.folder import list_changed_files
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
    ("words", "said"),
    [
        (("--encoder", "planted-encoder"), "--saliency, --supervised and --encoder are needed"),
        ((*MODELS, "--folds", "99"), "there are 12 classes"),
        ((*MODELS, "--split", "trainval"), "trainval"),
        ((*MODELS, "--reading", "void=ours"), "void"),
        ((*MODELS, "--reading", "resembling=theirs"), "no such reading"),
        ((*MODELS, "--images", "x"), "nobody knows|no source of class masks|no folder"),
    ],
)
def test_what_cannot_be_built_says_why(hardlook, world, tmp_path, words, said):
    answer = hardlook("build", "toss", "--data", f"voc={world}", *words, "-q", "--out", tmp_path / "built")
    assert answer.code == 1 and re.search(said, answer.err)


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
