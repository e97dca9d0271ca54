"""`hardlook clicks train`, tiny: it trains, goes on where it was, and refuses to mix trainings."""

import json

import pytest

from hardlook.errors import DataError
from hardlook.rclicks.training import loop, samples

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


def test_progress_of_a_training_killed_between_history_and_state(hardlook, tmp_path, monkeypatch):
    words = ("clicks", "train", "--scenes", 5, "--epochs", 2, *SMALL[:-1], "--json", "--out", tmp_path / "out")
    save_state = loop.save_state

    def killed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "save_state", killed)
    assert hardlook(*words).code == 130
    assert len((tmp_path / "out" / "history.jsonl").read_text().splitlines()) == 1
    monkeypatch.setattr(loop, "save_state", save_state)
    resumed = hardlook(*words)
    assert [row["epoch"] for row in json.loads(resumed.out)["history"]] == [1, 2]
    assert resumed.err.startswith("2/2 units, 0 failed") and resumed.err.endswith(" 0 s left\n")


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


def test_stems_that_cannot_be_used_are_left_out_with_exit_code_3(hardlook, tmp_path, clicked, broken, turned):
    (tmp_path / "stems.txt").write_text("000001\n000004\n")
    words = ("clicks", "train", "--user-clicks", turned, "--data", f"grabcut={broken}", *SMALL, "--epochs", 1)
    words = (*words, "--previous-masks", clicked.previous, "--validation", tmp_path / "stems.txt", "--out", tmp_path)
    answer = hardlook(*words)
    assert answer.code == 3, answer.err
    assert "on 1 stem, validated on 3 of other images" in answer.out
    document = json.loads((tmp_path / "training.json").read_text())
    assert [row["stem"] for row in document["unread"]] == ["grabcut/000002", "grabcut/000003"]
    assert "72x96" in document["unread"][0]["why"]
    [note] = [note for note in document["left_out"] if note["what"] == "stems that cannot be used"]
    assert note["count"] == 2 and document["settings"]["training_samples"] == 1
    said = "2 stems could not be used: grabcut/000002 ("
    assert said in answer.out and said in (tmp_path / "page.html").read_text()
    # Given again it goes on, and says so again.
    again = hardlook(*words, "--json")
    assert again.code == 3 and json.loads(again.out)["history"] == document["history"]


def test_a_part_without_any_stem_left_is_refused(hardlook, tmp_path, clicked, broken):
    (tmp_path / "stems.txt").write_text("000003\n")
    words = ("clicks", "train", "--user-clicks", clicked.clicks, "--data", f"grabcut={broken}", *SMALL)
    answer = hardlook(*words, "--validation", tmp_path / "stems.txt", "--out", tmp_path / "out")
    assert answer.code == 1 and "4 stems to train on and 0 to validate; 1 cannot be used" in answer.err
    assert "grabcut/000003" in answer.err and not (tmp_path / "out").exists()


def test_a_stem_that_fails_during_the_training_is_named(hardlook, tmp_path, clicked, monkeypatch):
    def far(clicks, error, **more):
        raise DataError("far away")

    monkeypatch.setattr(samples, "find_unusable", lambda *args, **more: {})
    monkeypatch.setattr(samples, "click_map", far)
    words = ("clicks", "train", "--user-clicks", clicked.clicks, "--data", f"grabcut={clicked.folder}", *SMALL)
    answer = hardlook(*words, "--out", tmp_path / "out")
    assert answer.code == 1 and "unit: grabcut/00000" in answer.err and "sample" not in answer.err


def test_a_training_that_never_started_does_not_lock_its_folder(hardlook, tmp_path, monkeypatch):
    words = ("clicks", "train", "--scenes", 5, "--epochs", 1, *SMALL, "--out", tmp_path / "out")
    with monkeypatch.context() as patched:
        patched.setattr(torch.cuda, "is_available", lambda: False)
        refused = hardlook(*words, "--device", "cuda")
    assert refused.code == 1 and "finds no GPU" in refused.err and "--device cpu" in refused.err
    assert not (tmp_path / "out").exists()
    (tmp_path / "text.pth").write_text("no weights")
    assert hardlook(*words, "--backbone", tmp_path / "text.pth").code == 1
    assert (tmp_path / "out/settings.json").is_file()
    assert hardlook(*words).code == 0
    assert json.loads((tmp_path / "out/settings.json").read_text())["backbone"] is None


def test_another_number_of_threads_is_refused_by_name(hardlook, tmp_path):
    words = ("clicks", "train", "--scenes", 5, "--epochs", 1, "--width", "small", "--size", 64, "-q", "--out", tmp_path)
    assert hardlook(*words, "--clip", 1).code == 0
    assert json.loads((tmp_path / "settings.json").read_text())["threads"] == 1
    changed = hardlook(*words, "--clip", 1, "--threads", 2)
    assert changed.code == 1 and "threads was 1, is 2" in changed.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--width", "large"), "base, small"),
        (("--precision", "int8"), "float32"),
        (("--device", "foo"), "choose cpu, cuda"),
        (("--split", "val"), "--split without --user-clicks"),
        (("--reading", "mask-sigma=mine"), "released"),
        (("--validation", "stems.txt"), "--validation without --user-clicks"),
        (("--previous-masks", "masks"), "--previous-masks without --user-clicks"),
        (("--backbone", "gone.pth"), "gone.pth"),
        (("--lr", "0"), "lr is above 0"),
    ],
)
def test_mistakes_are_named_before_any_work(hardlook, tmp_path, more, said):
    answer = hardlook("clicks", "train", "--out", tmp_path / "out", *more)
    assert answer.code == 1 and said in answer.err and not (tmp_path / "out").exists()
