"""Every reader on damaged files: a result, or one error that names the file; `HARDLOOK_FUZZ` inputs, 20,000 by default.

    HARDLOOK_FUZZ=1000000 HARDLOOK_FUZZ_JOBS=2 HARDLOOK_FUZZ_KEEP=kept python -m pytest tests/fuzz/test_readers.py

runs the million on two cores; `HARDLOOK_FUZZ_SEED` gives other inputs. Inputs that fail are kept in the folder that
the message names. With HARDLOOK_FUZZ_KEEP that folder also has a journal, and the same command goes on where an earlier
one was interrupted; what failed is read again.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).resolve().parents[1] / "support"


def run_engine(*words, keep, jobs=1):
    """What the engine found, as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    command = [sys.executable, str(SUPPORT / "fuzz_engine.py"), "--jobs", str(jobs), "--keep", str(keep), *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture
def keep(tmp_path):
    """Outside of pytest's own folders where inputs are to stay: HARDLOOK_FUZZ_KEEP."""
    folder = Path(os.environ.get("HARDLOOK_FUZZ_KEEP", tmp_path / "failed inputs"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_damaged_files_give_a_result_or_one_error(keep):
    inputs, jobs = int(os.environ.get("HARDLOOK_FUZZ", "20000")), int(os.environ.get("HARDLOOK_FUZZ_JOBS", "1"))
    seed = os.environ.get("HARDLOOK_FUZZ_SEED", "0")
    journal = ("--journal", str(keep / "journal.jsonl")) if "HARDLOOK_FUZZ_KEEP" in os.environ else ()
    found = run_engine("--inputs", str(inputs), "--seed", seed, *journal, keep=keep, jobs=jobs)
    shown = {name: value for name, value in found.items() if name != "failures"}
    print(json.dumps(shown))
    kinds = [f"{one['kind']} in {one['kept']}\n{one['text'][-600:]}" for one in found["failures"]]
    assert found["inputs"] >= inputs * 0.99 and found["readers"] >= 40
    assert not kinds, f"{len(kinds)} of {found['inputs']} inputs failed:\n" + "\n".join(kinds[:20])


def test_an_interrupted_call_goes_on_and_reads_again_what_failed(tmp_path):
    keep = tmp_path / "failed inputs"
    keep.mkdir()
    journal = ("--journal", str(tmp_path / "journal.jsonl"), "--inputs", "124", "--readers", "fuzz_planted:READERS")
    first = run_engine(*journal, keep=keep)
    again = run_engine(*journal, keep=keep)
    assert first["read before"] == 0 < again["read before"] < again["inputs"] == first["inputs"]
    failed = [{(one["reader"], one["kind"]) for one in found["failures"]} for found in (first, again)]
    assert failed[0] == failed[1]
    with (tmp_path / "journal.jsonl").open("a") as stream:
        stream.write('["0", "cut o')
    assert run_engine(*journal, keep=keep)["read before"] == again["read before"]


def test_the_engine_notices_everything_that_may_not_happen(keep):
    """Planted readers that misbehave on some inputs: each kind is counted, with its input, and nothing else is."""
    found = run_engine("--inputs", "124", "--readers", "fuzz_planted:READERS", keep=keep)
    kinds = {}
    for one in found["failures"]:
        kinds.setdefault(one["reader"], set()).add(one["kind"])
    assert kinds == {
        "raises": {"uncaught ZeroDivisionError"},
        "exits": {"uncaught SystemExit"},
        "aborts": {"abort by SIGABRT"},
        "nameless": {"the error names no file"},
        "allocates": {"memory"},
        "asks": {"memory asked for before it was checked"},
    }
    assert found["inputs"] == 124
    # Readers decide by their input's bytes: of about half of twenty inputs each, all and only these are reported.
    for one in found["failures"]:
        assert (Path(one["kept"]) / "a").read_bytes()[0] % 2 == 1


def test_the_engine_ends_an_input_that_hangs(keep):
    words = ("--inputs", "3", "--seconds", "0.3", "--readers", "fuzz_planted:HANGING")
    found = run_engine(*words, keep=keep)
    assert found["inputs"] == 3 and {one["kind"] for one in found["failures"]} == {"hang"}


def test_inputs_depend_on_seed_reader_and_number_alone(keep):
    words = ("--inputs", "62", "--readers", "fuzz_planted:READERS")
    first, second, other = (
        {(one["reader"], one["number"]) for one in run_engine(*words, "--seed", seed, keep=keep, jobs=jobs)["failures"]}
        for seed, jobs in (("0", 1), ("0", 3), ("1", 1))
    )
    assert first == second != other
