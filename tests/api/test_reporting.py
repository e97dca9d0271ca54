"""Pages of several runs from Python: those of `hardlook report`."""

import shutil

import pytest
from small_runs import small_run

import hardlook as hl


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for name in ("a", "b"):
        small_run(root / name, scenes=3)
    return root


def test_several_runs_get_pages_and_an_index_as_by_the_command(hardlook, folder):
    written = hl.runs(folder).report(examples=0)
    assert written.index.resolve() == (folder / "reports.html").resolve() and written.pages == (
        folder / "a" / "report.html", folder / "b" / "report.html",
    )  # fmt: skip
    texts = [path.read_bytes() for path in (*written.pages, written.index)]
    answer = hardlook("report", folder / "a", folder / "b", "--examples", 0)
    assert [path.read_bytes() for path in (*written.pages, written.index)] == texts
    assert answer.out.split() == [*map(str, written.pages), str(written.index)]


def test_of_one_run_there_is_no_index(folder, tmp_path):
    shutil.copytree(folder / "a", tmp_path / "a")
    written = hl.runs(tmp_path).report(examples=0, out=tmp_path / "page.html")
    assert written.pages == (tmp_path / "page.html",) and written.index is None
