"""One file that cannot be read costs its image alone, is named, and the command ends with exit code 3."""

import json
import shutil

import pytest

from hardlook.world.layouts import write_world

BROKEN = "2026_000003"

MODELS = ("--saliency", "planted-saliency", "--supervised", "planted-segmenter")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world") / "voc"
    write_world(folder, layout="voc", seed=0, count=16, size=(96, 72), correlation=0.0, image_format="png")
    return folder


@pytest.fixture(params=["SegmentationClass", "JPEGImages"])
def world(request, whole, tmp_path):
    shutil.copytree(whole, tmp_path / "voc")
    (tmp_path / "voc" / request.param / f"{BROKEN}.png").write_text("no picture")
    return tmp_path / "voc"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("words", "document", "key", "page"),
    [
        (("build", "toss", *MODELS, "--encoder", "planted-encoder"), "manifest.json", "failures", "report.html"),
        (("attributes", *MODELS), "", "failures", "report.html"),
        (
            ("build", "study-encoders", "--encoder", "planted-encoder", "--other", "planted-encoder"),
            "study.json", "failures", "report.html",
        ),
        (
            ("build", "study-saliency", "--saliency", "planted-saliency", "--other", "planted-saliency"),
            "study.json", "failures", "report.html",
        ),
        (("bias", "negatives"), "negatives.json", "unread", "negatives.html"),
        (
            ("bias", "select", "--saliency", "planted-saliency", "--fold", "0"),
            "selection.json", "unread", "selection.html",
        ),
    ],
)  # fmt: skip
def test_it_is_counted_and_named(hardlook, world, tmp_path, words, document, key, page):
    out = tmp_path / "out"
    answer = hardlook(*words, "--data", f"voc={world}", "--out", out, "--json")
    assert answer.code == 3 and "Traceback" not in answer.err and "1 image" in answer.err
    found = json.loads((out / document).read_text() if document else answer.out)
    assert [one["image"] for one in found[key]] == [BROKEN]
    assert BROKEN in (out / page).read_text() or "images that could not be read" in (out / page).read_text()


@pytest.mark.parametrize("verb", [("bias", "negatives"), ("attributes",)])
def test_a_split_that_does_not_name_it_is_whole(hardlook, world, tmp_path, verb):
    listed = world / "ImageSets" / "Segmentation"
    (listed / "good.txt").write_text("\n".join(f"2026_{n:06d}" for n in range(5, 14)))
    (listed / "bad.txt").write_text(f"2026_000005\n{BROKEN}\n")
    words = (*verb, "--data", f"voc={world}", "--out", tmp_path / "out")
    assert hardlook(*words, "--split", "good").code == 0
    assert hardlook(*words, "--split", "bad").code == 3


def test_nothing_but_broken_files_is_refused_with_the_first_reason(hardlook, world, tmp_path):
    (world / "ImageSets" / "Segmentation" / "one.txt").write_text(f"{BROKEN}\n")
    for words in (("attributes",), ("bias", "select", "--fold", "0", "--saliency", "planted-saliency")):
        answer = hardlook(*words, "--data", f"voc={world}", "--split", "one", "--out", tmp_path / "out")
        assert answer.code == 1 and "the file is not an image" in answer.err and BROKEN in answer.err


def test_select_counts_every_image_once(hardlook, world, tmp_path):
    words = ("bias", "select", "--saliency", "planted-saliency", "--fold", "0", "--out", tmp_path / "out", "--json")
    found = json.loads(hardlook(*words, "--data", f"voc={world}").out)
    assert found["images"] == 16
    assert found["training_images"] + found["without_training_class"] + len(found["unread"]) == 16


def fails_on(monkeypatch, target, method, picture):
    """Let a planted model raise for one picture."""
    import numpy as np

    asked = getattr(target, method)

    def answer(self, images):
        if any(np.array_equal(image, picture) for image in images):
            raise RuntimeError("no such picture")
        return asked(self, images)

    monkeypatch.setattr(target, method, answer)


@pytest.mark.parametrize(
    ("words", "where", "method"),
    [
        (("build", "toss", *MODELS, "--encoder", "planted-encoder"), "encoders.PlantedEncoder", "encode"),
        (
            ("build", "study-encoders", "--encoder", "planted-encoder", "--other", "planted-encoder"),
            "encoders.PlantedEncoder", "encode",
        ),
        (
            ("build", "study-saliency", "--saliency", "planted-saliency", "--other", "planted-saliency"),
            "saliency.PlantedSaliency", "saliency",
        ),
    ],
)  # fmt: skip
def test_a_model_that_fails_on_one_image_costs_that_image(hardlook, whole, tmp_path, monkeypatch, words, where, method):
    import importlib

    from hardlook.data.images import read_image

    module, name = where.split(".")
    target = getattr(importlib.import_module(f"hardlook.models.planted.{module}"), name)
    fails_on(monkeypatch, target, method, read_image(whole / "JPEGImages" / f"{BROKEN}.png"))
    answer = hardlook(*words, "--data", f"voc={whole}", "--out", tmp_path / "out", "-q")
    assert answer.code == 3 and BROKEN in answer.err and "no such picture" in answer.err
    assert BROKEN in (tmp_path / "out" / "report.html").read_text()


def test_tables_and_pairs_that_do_not_match_are_refused(hardlook, whole, tmp_path):
    built = ("build", "toss", *MODELS, "--encoder", "planted-encoder", "-q", "--data", f"voc={whole}")
    assert hardlook(*built, "--supervised-arg", "ragged=1", "--out", tmp_path / "built").code == 0
    table = tmp_path / "built" / "analysis" / "test_stats.csv"
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().replace("_2026_", "_1999_"))
    words = ("build", "study-weights", "--out", tmp_path / "study", "--pairs", tmp_path / "built")
    answer = hardlook(*words, "--attributes", other)
    assert answer.code == 1 and "have a partition" in answer.err and str(other) in answer.err
    assert not (tmp_path / "study").exists()
    easy = tmp_path / "easy.csv"
    lines = table.read_text().splitlines()
    easy.write_text(
        "\n".join([lines[0], *(",".join([*r[:2], "1.0", *r[3:]]) for r in (x.split(",") for x in lines[1:]))])
    )
    answer = hardlook(*words[:4], "--attributes", easy)
    assert answer.code == 1 and "is hard_sal or hard_nsal" in answer.err
