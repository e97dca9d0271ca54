"""The demo: what a new user sees first."""

import functools
import html.parser
import re
from pathlib import Path

import pytest

from hardlook.api.demonstrating import TRAINED
from hardlook.harness.calibration import calibrate
from hardlook.harness.registry import BUILT_IN


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.targets = []

    def handle_starttag(self, tag, attributes):
        href = dict(attributes).get("href", "")
        if tag == "a" and href and not href.startswith("#"):
            self.targets.append(href)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Fewer settings of each dial and fewer swaps, on which no page, link or verdict depends."""
    monkeypatch.setattr("hardlook.api.demonstrating.calibrate", functools.partial(calibrate, settings=(0.0, 1.0)))
    monkeypatch.setattr("hardlook.api.demonstrating.SWAPS", 199)


def test_demo_runs_every_benchmark_and_links_its_pages(hardlook, tmp_path):
    answer = hardlook("demo", "--out", tmp_path / "demo")
    assert answer.code == 0, answer.err
    assert answer.out.strip() == f"open {(tmp_path / 'demo' / 'index.html').resolve()}"
    page = (tmp_path / "demo" / "index.html").read_text()
    links = Links()
    links.feed(page)
    assert len(links.targets) == 4 * len(BUILT_IN) + len(TRAINED)
    assert "metacoco-trained/report.html" in links.targets and "protonet-caltech101" in page
    assert all((Path(tmp_path) / "demo" / target).is_file() for target in links.targets)
    assert page.count("sound is better than faulty") == len(BUILT_IN)
    for shown in (page, (tmp_path / "demo" / "closed-miou-faulty" / "report.html").read_text()):
        captions = re.findall("<figcaption>.*?</figcaption>", shown, re.DOTALL)
        (caption,) = (one for one in captions if "All images together have 0.752, more than any context:" in one)
        assert "A context has 14 to 15 of the 22 classes, mostly harder ones" in caption


def test_a_second_demo_finds_the_first_and_writes_the_same_page(hardlook, tmp_path):
    words = ("demo", "--benchmark", "closed-miou", "--out", tmp_path / "demo")
    assert hardlook(*words).code == 0
    page = (tmp_path / "demo" / "index.html").read_text()
    assert hardlook(*words).code == 0
    assert (tmp_path / "demo" / "index.html").read_text() == page


def test_an_unknown_benchmark_is_refused_before_anything_runs(hardlook, tmp_path):
    answer = hardlook("demo", "--benchmark", "closed-mio", "--out", tmp_path / "demo")
    assert answer.code == 1
    assert "closed-miou" in answer.err
    assert not (tmp_path / "demo").exists()
