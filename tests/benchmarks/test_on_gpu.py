import os
import re

import pytest

import on_gpu
from on_gpu import ALL, ROOT, Measurement, main, run_all


def test_each_ends_as_it_does_and_its_output_is_kept(tmp_path):
    measurements = {
        "good": Measurement(("-c", "print(7)"), 60),
        "bad": Measurement(("-c", "print('so far'); raise SystemExit(3)"), 60),
        "slow": Measurement(("-c", "print('begun', flush=True); import time; time.sleep(60)"), 1.5),
        "late": Measurement(("-c", "print('not this one')"), 60),
    }
    rows = run_all({name: measurements[name] for name in ("good", "bad", "slow")}, tmp_path)
    assert [ending.partition(", ")[0] for _, ending in rows] == ["done", "exit status 3", "stopped: it took too long"]
    kept = (tmp_path / "measured.txt").read_text()
    assert re.findall(r"^== (\w+) ([a-z ]+\d?)|^([^=].*)$", kept, re.MULTILINE) == [
        ("", "", "7"), ("good", "done", ""), ("", "", "so far"), ("bad", "exit status 3", ""), ("", "", "begun"),
        ("slow", "stopped", ""),
    ]  # fmt: skip
    assert run_all({"late": measurements["late"]}, tmp_path, seconds=0) == [("late", "left out: the time was used up")]
    assert (tmp_path / "measured.txt").read_text() == kept


def test_the_scripts_find_the_package_of_this_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "other"))
    run_all({"path": Measurement(("-c", "import os; print(os.environ['PYTHONPATH'])"), 60)}, tmp_path)
    text = (tmp_path / "measured.txt").read_text()
    assert f"\n{ROOT / 'src'}{os.pathsep}{tmp_path / 'other'}\n" in text


@pytest.mark.parametrize("measurement", ALL.values(), ids=ALL)
def test_every_script_has_the_options_that_it_is_given(measurement):
    text = (ROOT / measurement.arguments[0]).read_text()
    assert all(f'add_argument("{one}"' in text for one in measurement.arguments[1:] if one.startswith("--"))


def test_some_can_be_chosen(monkeypatch, tmp_path, capsys):
    seen = []

    def run(chosen, out, seconds):
        seen.append((chosen, out, seconds))
        return [("x", "done, 1 s")]

    monkeypatch.setattr(on_gpu, "run_all", run)
    with pytest.raises(SystemExit) as done:
        main(["--out", str(tmp_path), "--only", "maml", "trials", "--seconds", "5"])
    assert done.value.code == 0 and seen == [({"maml": ALL["maml"], "trials": ALL["trials"]}, tmp_path, 5.0)]
    assert "x                    done, 1 s" in capsys.readouterr().out
