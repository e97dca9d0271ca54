"""`hardlook clicks train`, tiny: it trains, goes on where it was, and refuses to mix trainings."""

import json

import pytest

from hardlook.clicks.training import loop

torch = pytest.importorskip("torch")

SMALL = ("--width", "small", "--size", 64, "--batch-size", 4, "--clip", 1, "--threads", 1, "--quiet")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_planted_people_are_learnt_from_and_a_longer_call_is_refused(hardlook, tmp_path):
    out = tmp_path / "out"
    words = ("clicks", "train", "--scenes", 6, *SMALL, "--out", out)
    answer = hardlook(*words, "--epochs", 2)
    assert answer.code == 0 and "simulated people on 6 stems, validated on 2" in answer.out
    document = json.loads((out / "training.json").read_text())
    history = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in history] == [1, 2] and document["history"] == history
    best = max(history, key=lambda record: record["validation"]["sim"])
    assert document["best_epoch"] == best["epoch"]
    page = (out / "page.html").read_text()
    assert page.count("data:image/jpeg") == 2 * 3 and "Training and validation" in page
    again = hardlook(*words, "--epochs", 2, "--json")
    assert again.code == 0 and json.loads(again.out)["history"] == history
    changed = hardlook(*words, "--epochs", 3, "--lr", 0.02)
    assert changed.code == 1 and "epochs was 2, is 3; lr was 0.01, is 0.02" in changed.err
    judged = hardlook(
        *("clicks", "evaluate", "--models", "uniform,clickability", "--scenes", 2, "--draws", 2, "-q", "--json"),
        *("--model-arg", f"clickability.path={out / 'clickability.safetensors'}", "--out", tmp_path / "judged"),
    )
    assert judged.code == 0 and json.loads(judged.out)["models"]["clickability"]["weights"]


def test_a_killed_training_goes_on_as_if_nothing_had_happened(hardlook, tmp_path, monkeypatch):
    words = ("clicks", "train", "--scenes", 5, "--epochs", 2, *SMALL, "--json", "--out")
    whole = json.loads(hardlook(*words, tmp_path / "whole").out)
    validate, calls = loop.validate, []

    def killed(*args, **more):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return validate(*args, **more)

    monkeypatch.setattr(loop, "validate", killed)
    assert hardlook(*words, tmp_path / "killed").code == 130
    assert not (tmp_path / "killed" / "page.html").exists()
    resumed = json.loads(hardlook(*words, tmp_path / "killed").out)
    assert len(calls) == 3

    def untimed(document):
        return [{name: value for name, value in row.items() if name != "seconds"} for row in document["history"]]

    assert untimed(resumed) == untimed(whole)
    checkpoints = [(tmp_path / name / "clickability.safetensors").read_bytes() for name in ("whole", "killed")]
    assert checkpoints[0] == checkpoints[1]


def test_people_are_learnt_from_by_image(hardlook, tmp_path, clicked):
    (tmp_path / "stems.txt").write_text("000001\n000004\n")
    files = (
        "--user-clicks",
        clicked.clicks,
        "--data",
        f"grabcut={clicked.folder}",
        "--previous-masks",
        clicked.previous,
    )
    words = ("clicks", "train", *files, *SMALL, "--epochs", 1, "--json")
    answer = hardlook(*words, "--validation", tmp_path / "stems.txt", "--out", tmp_path / "out")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    # Two first rounds and the later round of the first image are held back together.
    assert document["settings"]["validation_samples"] == 3 and document["settings"]["training_samples"] == 3
    assert {note["what"] for note in document["left_out"]} >= {"stems without an instance", "stems of later rounds"}
    (tmp_path / "stems.txt").write_text("somewhere\n")
    answer = hardlook(*words, "--validation", tmp_path / "stems.txt", "--out", tmp_path / "other")
    assert answer.code == 1 and "no image of the data is in the list" in answer.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--width", "large"), "base, small"),
        (("--precision", "int8"), "float32"),
        (("--reading", "mask-sigma=mine"), "released"),
        (("--validation", "stems.txt"), "--data without --user-clicks"),
        (("--backbone", "gone.pth"), "gone.pth"),
        (("--lr", "0"), "lr and clip are above 0"),
    ],
)
def test_mistakes_are_named_before_any_work(hardlook, tmp_path, more, said):
    answer = hardlook("clicks", "train", "--out", tmp_path / "out", *more)
    assert answer.code == 1 and said in answer.err and not (tmp_path / "out").exists()
