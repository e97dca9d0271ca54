import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hardlook.errors import OptionError
from zoo.trainings import RESULTS, Settings, append_lines, list_trainings, make_recipe, read_finished, run

ROOT = Path(__file__).parents[3]
NARROW = ("backbone.channels=8", "tasks=1", "batch=16")


def make_settings(study, out, **changes):
    return Settings(study, out, **{"budget": "36images", "validations": 2, "changes": NARROW, **changes})


def read_lines(out):
    return [json.loads(line) for line in (out / RESULTS).read_text().splitlines()]


@pytest.fixture(scope="module")
def results(study, tmp_path_factory):
    """Four methods: on features, with a head of its own, with a registered learner, on images."""
    out = tmp_path_factory.mktemp("zoo")
    settings = make_settings(study, out)
    changes = {"correlations": (0.9,), "seeds": (1,)}
    assert run(settings, only=["protonet", "baseline", "rfs", "maml"], **changes) == 0
    return settings, out


@pytest.mark.parametrize("method", ["protonet", "baseline", "rfs", "maml"])
def test_counts_are_those_of_the_benchmark(results, study, method, tmp_path):
    import hardlook as hl

    _, out = results
    ran = hl.run(
        "metacoco",
        model=str(out / "trainings" / f"conv64f-{method}-0.9-1"),
        data={"root": study / "planted-0.9" / "zoo.csv"},
        ways=(2,), shots=(1,), queries=2, tasks=5, repeats=1, modes=("blind", "iid", "ood", "swapped"),
        out=tmp_path / "run", progress=False,
    )  # fmt: skip
    records = ran.records.sort("mode", "index")
    scores = {(score.name, score.slice.get("mode", "")): score.value for score in ran.scorecard.scores}
    for line in (line for line in read_lines(out) if line["method"] == method):
        mode = line["mode"]
        assert records.filter(records["mode"] == mode)["correct"].to_list() == line["correct"]
        wrong = 5 * 4 - sum(line["correct"])
        if mode != "iid" and wrong:
            where = "" if mode == "ood" else mode
            assert scores["attraction", where] == pytest.approx(sum(line["attracted"]) / wrong)
            assert scores["attraction-chance", where] == pytest.approx(sum(line["misleading"]) / wrong)


def test_weights_are_those_of_hardlook_train(results, study, tmp_path):
    import hardlook as hl
    from hardlook.training.checkpoint import read_weights

    _, out = results
    changes = {"backbone.channels": 8, "tasks": 1, "batch": 16, "ways": 2, "shots": 1, "queries": 2}
    hl.train(
        "protonet", data=study / "planted-0.9" / "zoo.csv", out=tmp_path / "trained", recipe=changes, seed=1,
        image_size=32, budget="36images", validations=2, validation_tasks=3, progress=False, report=False,
    )  # fmt: skip
    ours, theirs = (read_weights(one) for one in (out / "trainings" / "conv64f-protonet-0.9-1", tmp_path / "trained"))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs) and ours.keys() == theirs.keys()


def test_a_finished_study_is_left_alone_and_a_cut_one_goes_on(results, study, tmp_path, capsys):
    _, out = results
    settings = make_settings(study, tmp_path)
    chosen = {"only": ["protonet"], "correlations": (0.9,), "seeds": (0, 1)}
    # The time is up before the first training, then never.
    assert run(settings, minutes=1e-9, **chosen) == 2
    assert run(settings, **chosen) == 0
    whole = read_lines(tmp_path)
    assert [line["correct"] for line in whole if line["seed"] == 1] == [
        line["correct"] for line in read_lines(out) if line["method"] == "protonet"
    ]
    path = tmp_path / RESULTS
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    assert len(lines) == 8
    # Killed while a line was written, and after some lines of a training: only whole trainings stay.
    for cut in ("".join(lines[:6]) + lines[6][:40], "".join(lines[:5])):
        path.write_text(cut)
        assert len(read_finished(path, 4)) == 1 and path.read_text() == "".join(lines[:4])
    capsys.readouterr()
    assert run(settings, **chosen) == 0
    assert "2 trainings, 1 of them done before" in capsys.readouterr().out
    assert [{**line, "test_seconds": 0} for line in read_lines(tmp_path)] == [
        {**one, "test_seconds": 0} for one in whole
    ]


def test_a_training_that_was_stopped_goes_on_from_its_folder(results, study, tmp_path, monkeypatch):
    """The time is up after the third of six steps."""
    import zoo.trainings

    _, out = results
    settings = make_settings(study, tmp_path)
    chosen = {"only": ["protonet"], "correlations": (0.9,), "seeds": (1,)}
    times = iter([0.0] * 6)  # deadline, start, first check, three steps; then it is up
    real = zoo.trainings.time.time
    monkeypatch.setattr(zoo.trainings.time, "time", lambda: next(times, 10.0**10))
    assert run(settings, minutes=1, **chosen) == 1
    monkeypatch.setattr(zoo.trainings.time, "time", real)
    assert (tmp_path / "trainings" / "conv64f-protonet-0.9-1" / "training-state.safetensors").is_file()
    assert run(settings, **chosen) == 0
    assert [line["correct"] for line in read_lines(tmp_path)] == [
        line["correct"] for line in read_lines(out) if line["method"] == "protonet"
    ]


def test_a_failure_is_a_line_and_the_others_go_on(study, tmp_path, capsys):
    settings = make_settings(study, tmp_path, changes=(*NARROW, "protonet:lr=1e30"), validations=0)
    chosen = {"only": ["protonet", "matchingnet"], "correlations": (0.0,), "seeds": (0,)}
    assert run(settings, **chosen) == 0
    failed = [line for line in read_lines(tmp_path) if "error" in line]
    assert [line["method"] for line in failed] == ["protonet"] and "diverged" in failed[0]["error"]
    assert len(read_lines(tmp_path)) == 5
    assert "1 trainings failed" in capsys.readouterr().out
    assert run(make_settings(study, tmp_path, validations=0), retry=True, **chosen) == 0
    assert len(read_lines(tmp_path)) == 8 and not any("error" in line for line in read_lines(tmp_path))


def test_a_fault_in_a_method_is_a_line_too(study, tmp_path, monkeypatch):
    def fail(*_):
        raise TypeError("a fault")

    monkeypatch.setattr("zoo.trainings.train_and_test", fail)
    assert run(make_settings(study, tmp_path), only=["protonet"], correlations=(0.0,), seeds=(0,)) == 0
    assert [line["error"] for line in read_lines(tmp_path)] == ["TypeError: a fault"]


def test_more_images_than_the_study_has_tasks_for(study, tmp_path):
    with pytest.raises(OptionError, match="tasks for 120 images"):
        run(make_settings(study, tmp_path, budget="121images"), only=["protonet"])


def test_seeds_come_first_and_patterns_choose(study, tmp_path):
    listed = list_trainings(make_settings(study, tmp_path), only=["ifsl-*", "cpea"], without=["ifsl-m*"])
    assert {one.method for one in listed} == {"ifsl-baseline", "ifsl-cosine", "ifsl-knn", "ifsl-sib", "cpea"}
    assert [one.seed for one in listed] == [0] * 10 + [1] * 10
    assert {one.backbone for one in listed if one.method == "cpea"} == {"vit-small"}
    with pytest.raises(OptionError, match="no method"):
        list_trainings(make_settings(study, tmp_path), only=["nothing"])
    with pytest.raises(OptionError, match="no 7"):
        list_trainings(make_settings(study, tmp_path), seeds=(7,))


def test_changes_of_one_method(study, tmp_path):
    settings = make_settings(study, tmp_path, changes=("lr=0.5", "proto*:lr=0.25"))
    rates = {
        one.method: make_recipe(settings, one).stages[0].lr
        for one in list_trainings(settings, only=["protonet", "maml"], correlations=(0.0,), seeds=(0,))
    }
    assert rates == {"protonet": 0.25, "maml": 0.5}
    with pytest.raises(OptionError, match="KEY=VALUE"):
        make_recipe(make_settings(study, tmp_path, changes=("lr",)), list_trainings(settings)[0])


def test_stages_share_the_budget_equally_unless_it_is_said_otherwise(study, tmp_path):
    settings = make_settings(study, tmp_path, changes=())
    listed = {one.method: one for one in list_trainings(settings, only=["sib", "protonet"])}
    assert make_recipe(settings, listed["sib"]).shares == (1, 1)
    assert make_recipe(settings, listed["protonet"]).shares == ()
    earlier = make_settings(study, tmp_path, changes=("shares=",))
    assert make_recipe(earlier, listed["sib"]).shares == ()


BLOCKED = """
import sys

class Refuse:
    blocked = {"polars", "pydantic", "typer", "rich", "jinja2", "PIL", "cv2", "scipy", "numba", "xxhash", "hotcoco",
               "cachetools", "cloudpickle", "threadpoolctl", "torchmetrics"}
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.blocked:
            raise ModuleNotFoundError(f"blocked: {name}", name=name)

sys.meta_path.insert(0, Refuse())
import runpy
script = sys.argv.pop(1)
sys.argv[0] = script
runpy.run_path(script, run_name="__main__")
"""


def test_it_runs_with_torch_alone(study, tmp_path):
    words = ["run", "--study", study, "--out", tmp_path, "--only", "rfs", "--seeds", "0", "--budget", "16images"]
    words += ["--validations", "0", "--tasks", "2", "--workers", "1", "--set", *NARROW]
    command = [sys.executable, "-c", BLOCKED, str(ROOT / "benchmarks" / "zoo"), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert len(read_lines(tmp_path)) == 8 and "2 trainings, 0 of them done before" in done.stdout


def test_lines_are_appended_whole(tmp_path):
    append_lines(tmp_path / "a.jsonl", [{"a": 1}, {"a": 2}])
    append_lines(tmp_path / "a.jsonl", [{"a": 3}])
    assert (tmp_path / "a.jsonl").read_text() == '{"a":1}\n{"a":2}\n{"a":3}\n'
