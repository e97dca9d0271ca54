"""`hl.run(checkpoints=DIR)` and `hardlook run rclicks --checkpoints DIR`: every file runs, is compared and ranked."""

import json
import shutil
import zipfile

import pytest
import torch
from killed_runs import assert_alike, kill_after_first_records, whole_records

import hardlook as hl
from hardlook.api.checkpoint_runs import plan_checkpoints, run_plan
from hardlook.errors import ChangedRun, DataError, ModelError, OptionError, RunWarning, TooManyFailures
from hardlook.fingerprints import hash_file
from hardlook.harness.registry import find_benchmark
from hardlook.networks.interactive.checkpoints import fit_to_noise
from hardlook.networks.interactive.ritm import RITM
from hardlook.networks.interactive.simpleclick import SimpleClick
from hardlook.rclicks import cost_comparison

FEW = {"scenes": 2, "groups": 2, "rounds": 2, "user_clicks": "none", "resamples": 0}
FLAGS = [word for name, value in FEW.items() for word in (f"--{name.replace('_', '-')}", value)]
NAMES = ("cocolvis_icl_tiny", "tiny_itermask")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Random networks of two families, a damaged file, a foreign one and a text."""
    path = tmp_path_factory.mktemp("checkpoints")
    torch.manual_seed(25)
    hrnet = RITM(6, 4, small=True)
    vit = SimpleClick(patch=16, width=8, depth=1, heads=2, side=32, pyramid=(4, 4, 4, 4), head_width=4)
    for network in (hrnet, vit):
        fit_to_noise(network)
    torch.save({"state_dict": hrnet.state_dict()}, path / "tiny_itermask.pth")
    torch.save({"state_dict": vit.state_dict()}, path / "cocolvis_icl_tiny.pth")
    (path / "damaged.pth").write_bytes((path / "tiny_itermask.pth").read_bytes()[:9000])
    torch.save({"conv.weight": torch.zeros(3)}, path / "foreign.pt")
    (path / "README.md").write_text("weights")
    return path


def test_every_file_runs_and_the_command_resumes_what_the_function_began(hardlook, tmp_path, folder):
    with pytest.warns(RunWarning, match=r"2 files are not recognised: damaged\.pth"):
        runs = hl.run("rclicks", checkpoints=folder, out=tmp_path, progress=False, report=False, measure_cost=False,
                      model_args={"tiny_itermask.zoom": False}, **FEW)  # fmt: skip
    assert runs.names == NAMES and [run.model for run in runs] == ["cfr-icl", "ritm"]
    assert [runs[name].manifest["model"]["args"]["zoom"] for name in NAMES] == [True, False]
    assert set(runs.checkpoints.refused) == {"damaged.pth", "foreign.pt"}
    assert runs.compared.models == NAMES
    assert [path.name for path in runs.leaderboard.pages] == ["leaderboard.html", "leaderboard.parquet"]
    kept = {path: path.stat().st_mtime_ns for name in NAMES for path in (tmp_path / name / "records").iterdir()}
    for name in ("report.html", "leaderboard.html"):
        (tmp_path / name).unlink()

    answer = hardlook("run", "rclicks", "--checkpoints", folder, "--model-arg", "tiny_itermask.zoom=false", "--quiet",
                      "--no-measure-cost", *FLAGS, "--out", tmp_path, "--json")  # fmt: skip
    assert answer.code == 0, answer.err
    assert json.loads(answer.out) == {name: json.loads(runs[name].scorecard.to_json()) for name in NAMES}
    assert kept and kept == {path: path.stat().st_mtime_ns for path in kept}
    for line in (
        f"{folder}: 2 checkpoints; 2 files that are not recognised; 1 other files",
        "cocolvis_icl_tiny.pth: cfr-icl of no published size (SimpleClick's network; cfr-icl by the file's name)",
        "not recognised: foreign.pt: the checkpoint is of no network known here",
        f"all models: {tmp_path / 'report.html'}",
        f"leaderboard: {tmp_path / 'leaderboard.html'}",
    ):
        assert line in answer.err
    page = (tmp_path / "report.html").read_text()
    assert "2 files are checkpoints, 2 were not recognised; 1 others have no ending" in page
    assert "2 files that were not recognised" in page and "its end is missing" in page
    board = (tmp_path / "leaderboard.html").read_text()
    assert all(name in board for name in (*NAMES, "CFR-ICL ViT-H", "published"))
    assert not list(tmp_path.glob("*/cost.json")) and "latency" not in page + board


def test_the_cost_of_each_checkpoint_is_measured_once_and_on_both_pages(hardlook, tmp_path, folder, monkeypatch):
    monkeypatch.setattr(cost_comparison, "IMAGES", 1)
    monkeypatch.setattr(cost_comparison, "CLICKS", 1)
    (tmp_path / "weights").mkdir()
    shutil.copy(folder / "cocolvis_icl_tiny.pth", tmp_path / "weights" / "icl 1.pth")
    shutil.copy(folder / "cocolvis_icl_tiny.pth", tmp_path / "weights" / "two.pth")
    words = ("run", "rclicks", "--checkpoints", tmp_path / "weights", *FLAGS, "--out", tmp_path / "all")
    answer = hardlook(*words)
    assert answer.code == 0, answer.err
    assert all(f"measuring what {name} costs" in answer.err for name in ("icl 1", "two"))
    stored = {path: path.read_bytes() for path in (tmp_path / "all").glob("*/*.json")}
    assert len(stored) == 6, "run.json, scores.json and cost.json of each"
    cost = json.loads((tmp_path / "all" / "icl 1" / "cost.json").read_text())
    assert cost["model"]["weights"] == {"icl 1.pth": hash_file(tmp_path / "weights" / "icl 1.pth")}
    for page in ("report.html", "leaderboard.html"):
        assert "Robustness against latency" in (tmp_path / "all" / page).read_text()
    again = hardlook(*words)
    assert again.code == 0 and "measuring" not in again.err
    assert {path: path.read_bytes() for path in stored if path.name != "run.json"} == {
        path: content for path, content in stored.items() if path.name != "run.json"
    }


def damage(path, target):
    """A copy with changed bits in the middle of the largest tensor, which torch itself would load."""
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        largest = max(archive.infolist(), key=lambda member: member.file_size)
        middle = content.index(archive.read(largest)) + largest.file_size // 2
    content[middle : middle + 4] = b"\x00\xff\x00\x7f"
    target.write_bytes(content)


def test_a_checkpoint_that_cannot_be_loaded_stops_no_other(hardlook, tmp_path, folder):
    weights, out = tmp_path / "my weights", tmp_path / "out"
    weights.mkdir()
    shutil.copy(folder / "cocolvis_icl_tiny.pth", weights / "c good.pth")
    shutil.copy(folder / "damaged.pth", weights / "cut.pth")
    damage(folder / "cocolvis_icl_tiny.pth", weights / "a changed.pth")
    state = torch.load(folder / "cocolvis_icl_tiny.pth")["state_dict"]
    state["head.conv_seg.bias"][0] = float("nan")
    torch.save({"state_dict": state}, weights / "b overflown.pth")
    before = {path: path.stat().st_mtime_ns for path in weights.iterdir()}
    words = ("run", "rclicks", "--checkpoints", weights, *FLAGS, "--no-measure-cost", "--quiet", "--out", out)
    answer = hardlook(*words, "--json")
    assert answer.code == 3 and list(json.loads(answer.out)) == ["c good"]
    assert "warning: a changed did not run: the file is damaged: " in answer.err
    assert "warning: b overflown did not run: 1 tensors hold values that are not finite: head.conv" in answer.err
    page = (out / "report.html").read_text()
    assert "3 files are checkpoints (2 of them could not run), 1 were not recognised" in page
    assert "does not have its checksum" in page and "did not run" in page
    assert before == {path: path.stat().st_mtime_ns for path in weights.iterdir()}, "nothing is written there"
    (weights / "cut.pth").unlink()
    with pytest.warns(RunWarning, match="did not run"):
        again = hl.run("rclicks", checkpoints=weights, out=out, progress=False, measure_cost=False, **FEW)
    assert again.names == ("c good",) and list(again.stopped) == ["a changed", "b overflown"]
    (weights / "c good.pth").unlink()
    nothing = hardlook(*words)
    assert nothing.code == 1 and "remedy: download it again, or save it again from weights" in nothing.err


def test_killed_in_the_second_of_three_checkpoints_and_resumed(tmp_path, folder):
    weights, names = tmp_path / "weights", ("one", "three", "two")
    weights.mkdir()
    for name in names:
        shutil.copy(folder / "cocolvis_icl_tiny.pth", weights / f"{name}.pth")
    options = {**FEW, "scenes": 3}
    words = [str(word) for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    words = ["rclicks", "--checkpoints", str(weights), *words, "--no-measure-cost", "--batch-size", "1"]
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    kill_after_first_records(words, killed, flush=0.0, part="three")
    assert 0 < len(whole_records(killed / "three")) < 3 and not (killed / "two").exists()
    done = {path: path.stat().st_mtime_ns for path in (killed / "one" / "records").iterdir()}
    quick = {"batch_size": 1, "progress": False, "report": False, **options}
    runs = hl.run("rclicks", checkpoints=weights, out=killed, measure_cost=False, **quick)
    assert runs.names == names and runs.compared is not None and runs.leaderboard is not None
    assert done and done == {path: path.stat().st_mtime_ns for path in done}, "the first is not run again"
    hl.run("rclicks", model="simpleclick", model_args={"weights": str(weights / "three.pth")}, out=undisturbed, **quick)
    assert_alike(killed / "three", undisturbed)


def test_too_many_failed_units_stop_one_checkpoint_and_other_errors_all(tmp_path, folder):
    benchmark = find_benchmark("rclicks")
    plan = plan_checkpoints(benchmark, folder, {})
    done = hl.run("rclicks", model="disc", out=tmp_path / "tiny_itermask", progress=False, report=False, **FEW)
    errors = {"cocolvis_icl_tiny": TooManyFailures("2 of 2 units failed", unit="scene-1")}

    def run_one(name):
        if name in errors:
            raise errors[name]
        return done

    with pytest.warns(RunWarning, match="cocolvis_icl_tiny did not run: 2 of 2 units failed"):
        runs = run_plan(benchmark, plan, tmp_path, run_one)
    assert runs.names == ("tiny_itermask",) and runs.stopped == {"cocolvis_icl_tiny": "2 of 2 units failed"}
    for error in (OptionError("no such dataset"), DataError("gone", file="data/1.png"), ChangedRun("other options")):
        errors["cocolvis_icl_tiny"] = error
        with pytest.raises(type(error), match=error.what):
            run_plan(benchmark, plan, tmp_path, run_one)


@pytest.mark.parametrize(
    ("benchmark", "more", "told"),
    [
        ("rclicks", {"model": "disc"}, "model is given beside them"),
        ("rclicks", {"weights": "mine.pth"}, "weights is given beside them"),
        ("rclicks", {"unit": "0"}, "unit is given beside them"),
        ("closed-miou", {}, "closed-miou runs a semantic-segmenter"),
        ("rclicks", {"model_args": {"nobody.zoom": 1}}, "is for none of the models"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_runs(folder, benchmark, more, told):
    with pytest.raises(OptionError, match=told):
        hl.run(benchmark, checkpoints=folder, **more)


def test_arguments_that_a_model_lacks_and_empty_folders_are_refused(hardlook, tmp_path, folder):
    with pytest.raises(ModelError, match="zooom"):
        hl.run("rclicks", checkpoints=folder, model_args={"tiny_itermask.zooom": 1}, out=tmp_path / "out", **FEW)
    (tmp_path / "empty").mkdir()
    answer = hardlook("run", "rclicks", "--checkpoints", tmp_path / "empty", "--out", tmp_path / "out", *FLAGS)
    assert answer.code == 1 and "no file that ends in .pth" in answer.err and "remedy: put the published" in answer.err
    beside = hardlook("run", "rclicks", "--checkpoints", folder, "--model", "disc", "--out", tmp_path / "out")
    assert beside.code == 1 and "--model is given beside them" in beside.err
    other = hardlook("run", "closed-miou", "--checkpoints", folder, "--out", tmp_path / "out")
    assert other.code == 2 and not (tmp_path / "out").exists()
