import io
import json
import sys

import pytest
from small_runs import small_run

from hardlook.cli.app import main
from hardlook.cli.printing import allow_every_character, print_json, print_output

WORDS = ("run", "closed-miou", "--scenes", 8, "--resamples", 20)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("printing") / "run"
    small_run(out, scenes=8)
    return out


def test_a_run_ends_with_its_report_and_fits_on_a_screen(hardlook, tmp_path):
    answer = hardlook(*WORDS, "--out", tmp_path / "run", "-q")
    lines = answer.out.splitlines()
    assert lines[-1] == f"report: {tmp_path / 'run' / 'report.html'}"
    assert len(lines) <= 40
    assert "miou ↑" in answer.out and "iou by class ↑" in answer.out and "Readings: mean-over=" in answer.out
    assert "\x1b" not in answer.out


@pytest.mark.parametrize("verb", ["run", "score"])
def test_full_prints_every_score(hardlook, run, tmp_path, verb):
    words = (*WORDS, "--out", tmp_path / "run", "-q") if verb == "run" else ("score", run)
    short, full = hardlook(*words).out, hardlook(*words, "--full").out
    assert "class: cat" not in short
    folder = tmp_path / "run" if verb == "run" else run
    scores = json.loads((folder / "scores.json").read_text())["scores"]
    crossed = [score for score in scores if len(score["slice"]) == 2]
    assert crossed
    for score in crossed:
        assert ", ".join(f"{key}: {value}" for key, value in score["slice"].items()) in full


def test_a_default_model_is_named_on_standard_error(hardlook, tmp_path):
    answer = hardlook(*WORDS, "--out", tmp_path / "a", "--json", "-q")
    assert answer.err == (
        "no --model given: planted-segmenter is used; `hardlook models --role semantic-segmenter` lists others\n"
    )
    assert json.loads(answer.out)["model"] == "planted-segmenter"
    loud = hardlook(*WORDS, "--out", tmp_path / "b")
    assert loud.err.startswith("no --model given: planted-segmenter")
    assert loud.err.count("no --model") == 1
    assert "8/8 units" in loud.err


def test_a_model_that_was_named_is_not_told_again(hardlook, tmp_path):
    assert "no --model" not in hardlook(*WORDS, "--out", tmp_path, "--model", "planted-segmenter").err


def test_a_run_that_is_made_ready_first_tells_it_once(hardlook, tmp_path):
    answer = hardlook("run", "metacoco", "--tasks", 2, "--resamples", 10, "--out", tmp_path, "-q")
    assert answer.err.count("no --model given: planted-learner") == 1


class OldTerminal(io.TextIOWrapper):
    """A standard output of another encoding than UTF-8."""

    def __init__(self, encoding):
        self.written = io.BytesIO()
        super().__init__(self.written, encoding=encoding, write_through=True)


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("ascii", "^ v - \\u00e9 \\u732b"), ("latin-1", "^ v - \xe9 \\u732b"), ("utf-8", "↑ ↓ \N{MINUS SIGN} é 猫")],
)
def test_what_an_encoding_lacks_is_printed_by_a_like_character(monkeypatch, encoding, shown):
    terminal = OldTerminal(encoding)
    with monkeypatch.context() as changed:
        changed.setattr(sys, "stdout", terminal)
        allow_every_character()
        print_output("↑ ↓ \N{MINUS SIGN} é 猫")
        print_json({"text": "é 猫"})
    text, document = terminal.written.getvalue().decode(encoding).split("\n", 1)
    assert text == shown and json.loads(document) == {"text": "é 猫"}


def test_scores_are_printed_on_an_old_terminal(monkeypatch, run):
    terminal = OldTerminal("ascii")
    with monkeypatch.context() as changed:
        changed.setattr(sys, "stdout", terminal)
        changed.setattr(sys, "argv", ["hardlook", "score", str(run)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code in (None, 0) and b"miou ^" in terminal.written.getvalue()
