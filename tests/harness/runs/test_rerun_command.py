"""The command that a run's folder spells: a command line that parses back to the same options."""

import json
import shlex
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.cli import arguments
from hardlook.harness import registry
from hardlook.harness.registry import BUILT_IN, find_benchmark
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import launch
from hardlook.harness.runs.rerun_command import build_rerun_command, list_changed_arguments
from hardlook.open_vocabulary.closed_miou import CLOSED_MIOU


def manifest(**options):
    return {"benchmark": {"name": "closed-miou"}, "options": options, "model": None}


def values(words, flag):
    return [after for word, after in pairwise(words) if word == flag]


@given(unit=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_any_id_survives_the_shell(unit):
    words = shlex.split(build_rerun_command(manifest(), unit=unit))
    assert words[:3] == ["hardlook", "run", "closed-miou"]
    assert words[3:] == ["--unit", unit, "--show"]


def test_only_what_differs_from_the_defaults_is_said():
    options = {
        "data": {"voc": "my data/VOC", "masks": "b"},
        "gt": None,
        "seed": 3,
        "reading": {"mean-over": "gt-only"},
        "split": "val",
        "keep_predictions": False,
        "pred_numbering": None,
    }
    words = shlex.split(build_rerun_command(manifest(**options), unit="u"))
    assert values(words, "--data") == ["voc=my data/VOC", "masks=b"]
    assert arguments.parse_pairs(values(words, "--reading"), "--reading") == {"mean-over": "gt-only"}
    assert values(words, "--seed") == ["3"]
    assert "--no-keep-predictions" in words
    assert not {"--gt", "--split", "--pred-numbering", "--model", "--out"} & set(words)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_options_that_are_read_back_from_a_file_are_known_as_the_defaults(name):
    defaults = find_benchmark(name).options.model_construct().model_dump(mode="json")
    stored = {"benchmark": {"name": name}, "options": json.loads(json.dumps(defaults)), "model": None}
    assert build_rerun_command(stored) == f"hardlook run {name} --out again"


def test_a_model_that_is_gone_keeps_all_its_arguments():
    model = {"name": "no.such:Model", "args": {"size": [4, 6], "path": None, "fast": True}}
    words = shlex.split(build_rerun_command({**manifest(), "model": model}))
    assert values(words, "--model") == ["no.such:Model"]
    assert values(words, "--model-arg") == ["size=4,6", "path=none", "fast=true"]
    assert words[-2:] == ["--out", "again"]


@pytest.mark.parametrize("model_args", [{}, {"stranger": "0.25", "seed": "4"}])
def test_the_command_of_a_real_run_gives_the_same_answers(tmp_path, monkeypatch, model_args):
    given = {"scenes": 4, "resamples": 0, "level": 0.9, "keep_predictions": False}
    launch("closed-miou", out=tmp_path / "run", model="planted-segmenter", model_args=model_args, given=given)
    stored = RunFolder(tmp_path / "run").read_manifest()
    words = shlex.split(build_rerun_command(stored))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", words)
    from hardlook.cli.app import main

    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    again = json.loads((tmp_path / "again" / "run.json").read_text())
    assert again["answers"] == stored["answers"]
    assert again["options"] == stored["options"]


def test_arguments_of_a_dotted_model_are_compared_with_its_defaults_unless_it_may_not_be_imported():
    model = {"name": "hardlook.models.planted.segmenters:PlantedSegmenter", "args": {"sibling": 0.3, "stranger": 0.0}}
    assert list_changed_arguments(model) == {"sibling": 0.3}
    assert list_changed_arguments(model, import_model=False) == {"sibling": 0.3, "stranger": 0.0}


@pytest.mark.parametrize(("threads", "words"), [(1, []), (2, ["--threads", "2"]), (16, ["--threads", "16"])])
def test_threads_are_said_where_there_are_several(threads, words):
    stored = {**manifest(), "answers": {"parts": {"threads": threads}}}
    assert shlex.split(build_rerun_command(stored, out="there")) == [
        *("hardlook", "run", "closed-miou"),
        *words,
        *("--out", "there"),
    ]


def test_the_call_for_an_object_says_only_what_differs_from_the_defaults():
    options = {"scenes": 24, "seed": 0, "gt": None, "split": "train", "gone": 4}
    model = {"name": "Net", "args": {}, "object": "the model is an object of Net"}
    stored = {**manifest(**options), "model": model, "answers": {"parts": {"threads": 3}}}
    defaults = find_benchmark("closed-miou").options.model_construct()
    assert (defaults.seed, defaults.gt) == (0, None) and defaults.scenes != 24 and defaults.split != "train"
    call = "hl.run('closed-miou', model=..., scenes=24, split='train', threads=3"
    assert build_rerun_command(stored, out="there") == f"{call}, out='there')  # model: the object Net"
    assert build_rerun_command(stored, unit="u 1") == f"{call}).unit('u 1')  # model: the object Net"


def test_a_benchmark_of_this_process_is_called_by_its_object(monkeypatch):
    own = replace(CLOSED_MIOU, card=replace(CLOSED_MIOU.card, name="own-miou"))
    monkeypatch.setattr(registry, "_ADDED", {"own-miou": own})
    stored = {**manifest(scenes=24), "benchmark": {"name": "own-miou"}}
    assert build_rerun_command(stored) == "hl.run(own_miou, scenes=24, out='again')"
    planted = {"name": "planted-segmenter", "args": {"stranger": 0.25, "ragged": 0.0}}
    assert build_rerun_command({**stored, "model": planted}) == (
        "hl.run(own_miou, model='planted-segmenter', model_args={'stranger': 0.25}, scenes=24, out='again')"
    )
    plain = {"name": "planted-segmenter", "args": {"ragged": 0.0}}
    assert "model_args" not in build_rerun_command({**stored, "model": plain})


def test_options_that_are_unknown_or_lists_or_switched_on():
    options = {"compare": ["wup", "lch"], "gone": 4, "keep_predictions": True, "level": 0.9}
    stored = {"benchmark": {"name": "open-miou"}, "options": options, "model": None}
    words = shlex.split(build_rerun_command(stored, unit="u"))
    defaults = find_benchmark("open-miou").options.model_construct()
    assert values(words, "--compare") == ["wup,lch"] and values(words, "--level") == ["0.9"]
    assert ("--keep-predictions" in words) == (defaults.keep_predictions is False) and "--gone" not in words


def test_values_below_and_above_a_default_are_both_said_in_a_call():
    model = {"name": "Net", "args": {}, "object": "the model is an object of Net"}
    defaults = find_benchmark("closed-miou").options.model_construct()
    for scenes in (defaults.scenes - 1, defaults.scenes + 1):
        assert f"scenes={scenes}" in build_rerun_command({**manifest(scenes=scenes), "model": model})
        assert f"--scenes {scenes}" in build_rerun_command(manifest(scenes=scenes))
    assert "scenes" not in build_rerun_command({**manifest(scenes=defaults.scenes), "model": model})
