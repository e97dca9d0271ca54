"""Every command has `--json`, and prints a document of JSON and nothing else there."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import typer
from command_server import hardlook_command
from small_runs import small_run

from hardlook.cli.app import COMMANDS, load_command
from hardlook.cli.run import build_command
from hardlook.harness.registry import BUILT_IN, STUDIES, find_benchmark

# Verbs whose words are read later, since each benchmark has flags of its own.
PASSED_ON = {"run", "bias support", "bias saliency", "export pairs"}


def leaves(command, path=()):
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(path), command
        return
    # A group may do work of its own beside its subcommands.
    if command.invoke_without_command and not command.no_args_is_help:
        yield " ".join(path), command
    for name, one in inner.items():
        yield from leaves(one, (*path, name))


LOADED = {name: load_command(name) for name in COMMANDS}
LEAVES = {path: leaf for name, command in LOADED.items() for path, leaf in leaves(command, (name,))}


def flags(command):
    return {word for parameter in command.params for word in parameter.opts}


def strict(text):
    def refuse(word):
        raise ValueError(f"JSON has no {word}")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("verb", sorted(LEAVES.keys() - PASSED_ON))
def test_every_command_has_the_flag(verb):
    assert "--json" in flags(LEAVES[verb])
    assert LEAVES[verb].get_short_help_str()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_help_is_the_first_of_the_commands_own(name):
    assert " ".join(LOADED[name].help.split("\n\n")[0].split()) == COMMANDS[name][1]
    assert "--install-completion" not in flags(LOADED[name])


@pytest.mark.parametrize("name", [*BUILT_IN, *STUDIES])
def test_every_benchmark_has_the_flag(name):
    one = typer.Typer()
    one.command()(build_command(name, find_benchmark(name)))
    assert "--json" in flags(typer.main.get_command(one))


def test_the_verbs_that_read_their_words_later_are_known():
    assert {
        verb for verb, command in LEAVES.items() if "ignore_unknown_options" in command.context_settings
    } == PASSED_ON


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("json") / "run"
    small_run(out, scenes=6)
    return out


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    from hardlook.collect.study.clicks import make_click_study
    from hardlook.collect.study.instances import list_planted_instances
    from hardlook.collect.study.settings import StudySettings
    from hardlook.world.planted import PlantedWorld

    settings = StudySettings(kind="clicks", title="JSON", training_tasks=0)
    return make_click_study(
        tmp_path_factory.mktemp("json") / "study", list_planted_instances(PlantedWorld(seed=0, count=2)), settings
    ).path


QUICK = {
    "run": [(), ("closed-miou", "--scenes", 4, "--resamples", 10, "--out", "OUT", "-q")],
    "bias support": [("--scenes", 24, "--resamples", 10, "--out", "OUT", "-q")],
    "bias saliency": [("--scenes", 24, "--resamples", 10, "--out", "OUT", "-q")],
    "report": [("RUN",)],
    "figure": [("RUN",)],
    "table": [("RUN",)],
    "score": [("RUN",), ("RUN", "--reading", "mean-over=gt-only")],
    "export": [("RUN",), ("RUN", "--out", "OUT"), ("--schema",)],
    "export pairs": [("--scenes", 24, "--tiers", 3, "--out", "OUT", "-q")],
    "verify": [("RUN",), ("RUN", "--repair")],
    "calibrate": [("closed-miou", "--out", "OUT", "--settings", 3, "--set", "scenes=6", "--set", "resamples=0")],
    "models": [(), ("no-such-*",)],
    "check": [("semantic-segmenter", "planted-segmenter"), ("semantic-segmenter", "troubled_segmenters:WrongSize")],
    "weights list": [()],
    "labels list": [()],
    "labels show": [("voc20",)],
    "labels differences": [("voc20",)],
    "labels map": [("NAMES", "--out", "OUT.csv")],
    "similarity measures": [()],
    "world make": [("OUT", "--scenes", 4)],
    "collect init clicks": [("OUT", "--scenes", 2, "--training", 0, "-q")],
    "collect init ratings": [("OUT", "--pairs", 4)],
    "collect invite": [("STUDY", "--count", 2)],
    "collect status": [("STUDY",)],
    "collect backup": [("STUDY", "--out", "OUT")],
    "collect payments": [("STUDY",), ("STUDY", "--out", "OUT.csv")],
    "collect export": [("STUDY",), ("STUDY", "--out", "OUT")],
    "collect rehearse": [("STUDY", "--participants", 2, "--batches", 1)],
}

# Of these the tests of their own look at the output.
SLOW = {
    "attributes", "bias information", "bias negatives", "bias select", "build study-encoders", "build study-saliency",
    "build study-weights", "build toss", "clicks ablation", "clicks cost", "clicks difficulty", "clicks evaluate",
    "clicks show", "clicks train", "collect delete",
    "compare", "data contexts-from-voc", "data inspect", "data plant-contexts", "data spuriousness", "leaderboard",
    "collect init review", "collect serve", "gate", "serve", "similarity analyse", "similarity make", "weights install",
    "join", "train", "weights import",
}  # fmt: skip


def test_no_command_is_forgotten():
    assert QUICK.keys() | SLOW | {"demo", "weights where"} == LEAVES.keys()


@pytest.mark.parametrize(("verb", "words"), [(verb, words) for verb, calls in QUICK.items() for words in calls])
def test_nothing_but_json_is_printed(hardlook, run, study, tmp_path, verb, words):
    (tmp_path / "names.txt").write_text("crane\nforklift\n")
    places = {"RUN": run, "OUT": tmp_path / "out", "OUT.csv": tmp_path / "out.csv", "NAMES": tmp_path / "names.txt"}
    places["STUDY"] = study
    answer = hardlook(*verb.split(), *(places.get(word, word) for word in words), "--json")
    assert answer.code in (0, 1, 4), answer.err
    assert isinstance(strict(answer.out), dict | list)


def test_a_part_of_a_run_says_what_is_open(hardlook, tmp_path):
    words = ("run", "closed-miou", "--scenes", 8, "--batch-size", 2, "--resamples", 10, "--out", tmp_path, "-q")
    part = strict(hardlook(*words, "--shard", "1/2", "--json").out)
    assert part["answered"] + part["open"] == 8 and part["open"] > 0 and part["failed"] == 0
    assert strict(hardlook(*words, "--shard", "2/2", "--json").out)["units"]["scored"] == 8


def test_the_demo_says_where_its_pages_are(hardlook, tmp_path, monkeypatch):
    monkeypatch.setattr("hardlook.api.demonstrating.BUILT_IN", {})
    assert strict(hardlook("demo", "--out", tmp_path, "--json").out) == {
        "index": str(tmp_path / "index.html"),
        "pages": [],
    }


@pytest.mark.real
def test_weights_say_where_they_are(hardlook):
    answer = hardlook("weights", "where", "u2netp", "--json")
    if answer.code:
        pytest.skip(f"the weights are not installed: {answer.err}")
    assert all(Path(path).is_file() for path in strict(answer.out).values())


SMALL_RUN = ("run", "closed-miou", "--model", "MODEL", "--scenes", 4, "--resamples", 10, "--out", "OUT")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(SMALL_RUN, id="run"),
        pytest.param((*SMALL_RUN, "--engine", "processes"), id="processes"),
        pytest.param((*SMALL_RUN, "--unit", "scene-0001"), id="unit"),
        pytest.param(("check", "semantic-segmenter", "MODEL"), id="check"),
    ],
)
def test_what_a_model_prints_goes_to_standard_error(tmp_path, words):
    places = {"MODEL": "misbehaving_segmenters:Prints", "OUT": tmp_path / "out"}
    support = Path(__file__).parent.parent / "support"
    done = subprocess.run(
        [*hardlook_command(), *(str(places.get(word, word)) for word in words), "--json"],
        env={**os.environ, "PYTHONPATH": str(support)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert isinstance(strict(done.stdout), dict | list), done.stderr
    for line in ("segmenting 1", "written by C", "left in a buffer of C"):
        assert line in done.stderr


def test_errors_leave_standard_output_empty(hardlook):
    answer = hardlook("score", "nowhere", "--json")
    assert (answer.code, answer.out) == (1, "")
    assert "there is no run here" in answer.err
