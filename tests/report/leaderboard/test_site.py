"""`hardlook leaderboard RUNS --site DIR`: a folder of plain files with working links."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

import hardlook as hl


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("site") / "runs"
    for name, fault in (("a/net", 0.1), ("b/net", 0.4)):
        hl.run("closed-miou", model="planted-segmenter", model_args={"stranger": fault}, scenes=4, resamples=50,
               out=root / name, progress=False)  # fmt: skip
    hl.run("open-miou", scenes=4, resamples=50, out=root / "open", progress=False, report=False)
    return root


def list_links(page):
    return [unquote(link) for link in re.findall(r'href="([^"#]+)"', page.read_text()) if not link.startswith("data:")]


def test_every_link_leads_to_a_file_of_the_site(runs, tmp_path, hardlook):
    answer = hardlook("leaderboard", runs, "--site", tmp_path / "public")
    site = tmp_path / "public"
    assert answer.code == 0 and str(site / "index.html") in answer.out
    assert not (runs / "leaderboard.html").exists()
    links = list_links(site / "index.html")
    assert len(links) == 5 and all((site / link).is_file() for link in links), links
    text = (site / "index.html").read_text()
    assert "a/net" in text and "b/net" in text and "It has no report" in text
    reports = [site / link for link in links if link.endswith("report.html")]
    assert {path.read_bytes() for path in reports} == {
        (runs / name / "report.html").read_bytes() for name in ("a/net", "b/net")
    }
    assert "https://" not in text
    document = json.loads(hardlook("leaderboard", runs, "--site", site, "--json").out)
    assert document["site"] == str(site / "index.html") and document["pages"] == [] and document["table"] is None


def test_a_site_is_written_again_without_what_is_gone(runs, tmp_path, hardlook):
    copied, site = tmp_path / "runs", tmp_path / "public"
    shutil.copytree(runs, copied)
    hardlook("leaderboard", copied, "--site", site)
    shutil.rmtree(copied / "b")
    shutil.rmtree(copied / "open")
    assert hardlook("leaderboard", copied, "--site", site).code == 0
    assert len(list(site.glob("runs/*"))) == 1 and len(list(site.glob("leaderboard*.html"))) == 1


@pytest.mark.parametrize("place", ["other", "runs", "file"])
def test_nothing_else_is_written_over(runs, tmp_path, hardlook, place):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine")
    (tmp_path / "file").write_text("mine")
    site = runs if place == "runs" else tmp_path / place
    before = sorted(path for path in Path(site).rglob("*"))
    answer = hardlook("leaderboard", runs, "--site", site)
    assert answer.code == 1 and "--site" in answer.err
    assert sorted(path for path in Path(site).rglob("*")) == before
