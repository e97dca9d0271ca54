"""ovseg, simseg and maskclip through the command line on photographs, killed and resumed, and damaged files."""

import json
import shutil

import pytest
from killed_runs import assert_alike, check_killed_and_resumed, tear

torch = pytest.importorskip("torch")

from hostile_pickles import attacks  # noqa: E402
from tiny_clip import make_ovseg_state, make_state  # noqa: E402
from tiny_fc_clip import write_tokenizer  # noqa: E402
from tiny_hub_models import write_hub_folder  # noqa: E402

from hardlook.models.planted.segmenters import PlantedPanoptic  # noqa: E402

WORDS = "person, man, woman\ncat, kitten\nsky, clouds\ngrass, lawn\ncar, automobile\ntraffic light\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Weights of OVSeg and CLIP, a tokenizer, a CLIP of transformers, and words with synonyms."""
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("files")
    write_hub_folder(folder / "hub", "clip")
    torch.save({"model": make_ovseg_state(), "iteration": 3}, folder / "ovseg.pth")
    torch.save(make_state(), folder / "clip.pt")
    (folder / "words.txt").write_text(WORDS)
    write_tokenizer(folder / "tokenizer")
    return folder


@pytest.fixture
def coco(shared_data, tmp_path):
    """A function from a number to the options for that many of COCO's photographs."""

    def choose(count):
        folder = shared_data / "data" / "coco100"
        (tmp_path / "masks").mkdir()
        for path in sorted((folder / "semantic").iterdir())[:count]:
            (tmp_path / "masks" / path.name).write_bytes(path.read_bytes())
        return [
            "--data", f"images={folder / 'images'}", "--data", f"masks={tmp_path / 'masks'}", "--labels", "coco133",
            "--numbering", "category-id", "--ignore", "0", "--resamples", "20",
        ]  # fmt: skip

    return choose


def list_options(model, files, **more):
    """The words of `hardlook run open-miou` for a small model; what GrabCut makes of a click is named by it."""
    given = {"labels": files / "words.txt"}
    if model == "maskclip":
        given["encoder"] = f"hf:{files / 'hub'}"
    else:
        given |= {"proposals": "grabcut", "points": 1, **(more or {"weights": "random:1", "size": "tiny"})}
    arguments = [word for key, value in given.items() for word in ("--model-arg", f"{key}={value}")]
    return ["open-miou", "--model", model, *arguments, "--pred-labels", str(files / "words.txt")]


@pytest.mark.real
def test_a_killed_run_resumes_to_the_same_records(coco, files, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    check_killed_and_resumed([*list_options("ovseg", files), *coco(3), "--batch-size", "1"], tmp_path, units=3)


@pytest.mark.real
@pytest.mark.parametrize("model", ["simseg", "maskclip"])
def test_lost_records_are_made_again_alike(hardlook, coco, files, tmp_path, model):
    words = ["run", *list_options(model, files), *coco(2), "--batch-size", "1", "--out"]
    answer = hardlook(*words, tmp_path / "whole")
    assert answer.code == 0, answer.err
    shutil.copytree(tmp_path / "whole", tmp_path / "torn")
    assert tear(tmp_path / "torn", 1) == 1
    assert hardlook(*words, tmp_path / "torn").code == 0
    assert_alike(tmp_path / "torn", tmp_path / "whole")
    scores = json.loads((tmp_path / "whole" / "scores.json").read_text())["scores"]
    values = {score["name"]: score["value"] for score in scores if not score.get("slice")}
    assert 0 <= values["miou"] <= values["open-miou"] <= 1


@pytest.mark.real
def test_a_run_from_files_names_them(hardlook, coco, files, tmp_path):
    given = {"weights": files / "ovseg.pth", "clip": files / "clip.pt", "tokenizer": files / "tokenizer"}
    answer = hardlook("run", *list_options("ovseg", files, **given), *coco(1), "--out", tmp_path / "run")
    assert answer.code == 0, answer.err
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert set(run["model"]["weights"]) == {"words.txt", "ovseg.pth", "clip.pt", "vocab.json", "merges.txt"}


@pytest.mark.parametrize(
    ("model", "share", "right"), [("ovseg", "0", True), ("simseg", "1", True), ("ovseg", "1", False)]
)
def test_shares_are_between_the_proposals_and_clip(hardlook, tmp_path, model, share, right):
    """True segments with their true labels: all right where they decide, random where a random CLIP does."""
    words = ["--model-arg", "proposals=planted-panoptic", "--model-arg", "weights=random:1", "--model-arg", "size=tiny"]
    labels = ["--model-arg", f"share={share}", "--pred-labels", ",".join(PlantedPanoptic.labels)]
    out = tmp_path / "run"
    answer = hardlook(
        "run", "open-miou", "--model", model, *words, *labels, "--scenes", 3, "--resamples", 0, "--out", out
    )
    assert answer.code == 0, answer.err
    values = {score["name"]: score["value"] for score in json.loads((out / "scores.json").read_text())["scores"]}
    assert values["pixel-accuracy"] == 1 if right else values["pixel-accuracy"] < 0.5


@pytest.mark.parametrize("argument", ["weights", "clip"])
def test_a_file_that_would_run_code_stops_the_run(hardlook, files, tmp_path, argument):
    trace, bad = tmp_path / "trace", tmp_path / "bad.pth"
    torch.save({"model": {**make_ovseg_state(), "payload": attacks(trace)["os.system"]}}, bad)
    words = list_options("ovseg", files, **{argument: bad})
    answer = hardlook("run", *words, "--scenes", "2", "--unknown", "zero", "--out", tmp_path / "run")
    assert answer.code != 0 and "bad.pth" in answer.err
    assert not trace.exists() and not (tmp_path / "run" / "records").exists()


def test_the_models_are_listed_with_what_they_need(hardlook):
    answer = hardlook("models", "--role", "semantic-segmenter")
    for name, argument in (("ovseg", "proposals=MODEL"), ("simseg", "proposals=MODEL"), ("maskclip", "encoder=hf:")):
        assert name in answer.out and argument in answer.out.replace("\n", " ")


@pytest.mark.parametrize("model", ["ovseg", "simseg"])
def test_the_check_passes(hardlook, files, model):
    given = list_options(model, files)[3:-2]
    answer = hardlook("check", "semantic-segmenter", model, *given)
    assert answer.code == 0, answer.out + answer.err
