"""`hl.demo`: the pages of `hardlook demo` from Python; tests/cli/test_demo.py has what is on them."""

import functools

import pytest

import hardlook as hl
from hardlook.errors import OptionError
from hardlook.harness.calibration import calibrate


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr("hardlook.api.demonstrating.calibrate", functools.partial(calibrate, settings=(0.0, 1.0)))
    monkeypatch.setattr("hardlook.api.demonstrating.SWAPS", 199)


def test_one_benchmark_with_its_four_pages(tmp_path, capsys):
    said = []
    made = hl.demo(tmp_path / "demo", benchmarks="closed-miou", progress=said.append)
    assert made.index == (tmp_path / "demo" / "index.html").resolve()
    assert len(made.pages) == 4 and all((made.index.parent / page).is_file() for page in made.pages)
    assert said[0].startswith("closed-miou: planted-segmenter") and "closed-miou: comparison" in said
    assert capsys.readouterr().out == ""
    assert "<iframe" in made._repr_html_() and made.index.read_text() == made.text


def test_an_unknown_benchmark_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(OptionError, match="closed-mio"):
        hl.demo(tmp_path / "demo", benchmarks=["closed-mio"])
    assert not (tmp_path / "demo").exists()
