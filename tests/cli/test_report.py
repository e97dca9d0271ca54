"""`hardlook report`: pages of runs, their galleries, and the index of several."""

import json
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from small_runs import small_run

from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.scoring import score_run
from hardlook.harness.sections import Gallery
from hardlook.report.run_report import _describe_run, build_report_sections, list_shown_units


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    small_run(folder / "a run", scenes=24)
    small_run(folder / "b", scenes=24, args={"ragged": 0.5})
    return folder


class Page(HTMLParser):
    """Links, pictures and codes of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.pictures, self.texts = [], 0, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if tag == "a" and name == "href"]
        self.pictures += tag == "img"

    def handle_data(self, data):
        self.texts.append(data)


def galleries(run, examples=6):
    sections = build_report_sections(score_run(RunFolder(run)), examples)
    return {block.title: block for part in sections for block in part.blocks if isinstance(block, Gallery)}


def test_the_units_to_look_at_are_those_of_the_first_quality(runs):
    scored = score_run(RunFolder(runs / "a run"))
    qualities = scored.benchmark.qualities(scored.records, scored.options).drop_nans()
    worst = qualities.sort("image-miou", "unit")["unit"].to_list()
    found = galleries(runs / "a run", 4)["The worst units"]
    assert [example.unit for example in found.examples] == worst[:4]
    value = qualities.filter(qualities["unit"] == worst[0])["image-miou"][0]
    record = next(row for row in scored.records.iter_rows(named=True) if row["unit"] == worst[0])
    assert found.examples[0].caption == f"Quality {value:.3f}. {scored.benchmark.caption(record)}"
    assert "where others like it have" in galleries(runs / "a run")["The most surprising units"].examples[0].caption


@pytest.mark.parametrize("examples", [0, 1, 3])
def test_examples_bound_every_gallery(hardlook, runs, tmp_path, examples):
    run = runs / "a run"
    assert all(len(gallery.examples) <= examples for gallery in galleries(run, examples).values())
    assert bool(galleries(run, examples)) == bool(examples)
    out = tmp_path / "page.html"
    answer = hardlook("report", run, "--examples", examples, "--out", out, "--json")
    assert json.loads(answer.out) == {
        "pages": [{"run": str(run), "report": str(out), "bytes": out.stat().st_size}],
        "index": None,
    }
    shown = list_shown_units(build_report_sections(score_run(RunFolder(run)), examples))
    page = Page(out.read_text())
    assert (page.pictures > 0) == bool(examples)
    # Each unit's command answers just that unit.
    commands = [shlex.split(text) for text in page.texts if text.startswith("hardlook run") and "--unit" in text]
    assert {words[words.index("--unit") + 1] for words in commands} == set(shown)
    assert all(words[-1] == "--show" and "stranger=0.3" in words for words in commands)


def test_a_page_without_galleries_is_small(hardlook, runs, tmp_path):
    hardlook("report", runs / "b", "--examples", 0, "--out", tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 3_000_000


def test_several_runs_get_a_page_each_and_an_index(hardlook, runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = hardlook("report", runs / "a run", runs / "b", "--examples", 1)
    assert answer.code == 0
    *pages, last = answer.out.split("\n")[:3]
    assert pages == [str(runs / name / "report.html") for name in ("a run", "b")]
    assert (tmp_path / last).resolve() == (runs / "reports.html").resolve()
    index = (runs / "reports.html").read_text()
    assert Page(index).links == ["a%20run/report.html", "b/report.html"]
    ids = re.findall(r' id="([^"]+)"', index)
    assert len(ids) == len(set(ids)) > 0
    for name in ("a run", "b"):
        assert (runs / name / "report.html").is_file()
        value = score_run(RunFolder(runs / name)).scorecard.get("miou").value
        assert f"{value:.3f}" in index


def test_the_index_goes_where_it_is_told_and_links_from_there(hardlook, runs, tmp_path):
    out = tmp_path / "deep" / "all.html"
    answer = hardlook("report", runs / "a run", runs / "b", "--examples", 0, "--out", out, "--json")
    document = json.loads(answer.out)
    assert document["index"] == str(out) and len(document["pages"]) == 2
    for link in Page(out.read_text()).links:
        assert (out.parent / link.replace("%20", " ")).resolve().is_file()


def test_a_folder_without_a_run_is_named(hardlook, runs, tmp_path):
    answer = hardlook("report", runs / "b", tmp_path)
    assert answer.code == 1 and str(tmp_path) in answer.err


def test_a_folder_as_out_gets_the_page_by_its_name(hardlook, runs, tmp_path):
    answer = hardlook("report", runs / "b", "--examples", 0, "--out", tmp_path)
    assert answer.out.split() == [str(tmp_path / "report.html")] and (tmp_path / "report.html").is_file()
    hardlook("report", runs / "a run", runs / "b", "--examples", 0, "--out", tmp_path / "new")
    assert Page((tmp_path / "new" / "reports.html").read_text()).links


def test_a_run_given_twice_is_one_run(hardlook, runs):
    answer = hardlook("report", runs / "b", runs / "b", "--examples", 0)
    assert answer.out.split() == [str(runs / "b" / "report.html")]


def test_a_run_that_is_not_finished_says_so(hardlook, tmp_path):
    small_run(tmp_path / "half", scenes=24, shard=(1, 2))
    records = score_run(RunFolder(tmp_path / "half")).records
    said = f"half: {len(records)} of 24 units are scored: {24 - len(records)} not answered yet"
    for words in (("report", "--examples", 0), ("figure",), ("table",), ("table", "--json")):
        answer = hardlook(words[0], tmp_path / "half", *words[1:])
        assert answer.code == 0 and said in answer.err and said not in answer.out
    assert f"<dd>{len(records)} of 24</dd>" in (tmp_path / "half" / "report.html").read_text().replace("\n", "")


def test_pictures_whose_data_are_gone_are_counted_once(hardlook, tmp_path):
    hardlook("world", "make", tmp_path / "data", "--layout", "voc", "--scenes", 12)
    given = ("--data", f"voc={tmp_path / 'data'}", "--model", "planted-segmenter")
    made = hardlook("run", "closed-miou", *given, "--out", tmp_path / "run", "--quiet")
    assert made.code == 0 and "without pictures" not in made.err
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    answer = hardlook("report", tmp_path / "run")
    shown = len(list_shown_units(build_report_sections(score_run(RunFolder(tmp_path / "run")))))
    assert answer.code == 0 and answer.err.count("without pictures") == 1
    assert f"{shown} units are shown without pictures" in answer.err and str(tmp_path / "data") in answer.err
    assert "without pictures" not in hardlook("report", tmp_path / "run", "--examples", 0).err


def test_a_unit_that_the_data_no_longer_hold_is_told_once_and_in_words(hardlook, runs, tmp_path, monkeypatch):
    scored = score_run(RunFolder(runs / "a run"))
    [gone, *_] = [example.unit for example in galleries(runs / "a run", 2)["The worst units"].examples]
    left = [unit for unit in scored.benchmark.list_units(scored.options) if unit.id != gone]
    changed = replace(scored.benchmark, list_units=lambda options: left)
    monkeypatch.setattr("hardlook.open_vocabulary.closed_miou.CLOSED_MIOU", changed)
    hardlook("report", runs / "a run", "--examples", 2, "--out", tmp_path / "page.html")
    said = [text for text in Page((tmp_path / "page.html").read_text()).texts if text.startswith("No picture")]
    assert set(said) == {"No picture: the data do not hold this unit any more."}


def test_settings_without_a_value_are_not_listed(runs):
    scored = score_run(RunFolder(runs / "b"))
    model = {**scored.manifest["model"], "args": {"device": "", "weights": None, "ragged": 0.5, "k": 0}}
    summary = _describe_run(replace(scored, manifest={**scored.manifest, "model": model}))
    assert "The model's settings: ragged=0.5, k=0." in summary
    assert "24 of 24 units were scored, 0 failed." in summary
