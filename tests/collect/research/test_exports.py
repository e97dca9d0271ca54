"""The files of the dashboard are those of the command, whole, one export at a time."""

import io
import threading
import time
import zipfile

import pytest
from research_judging import judged_by, ratings_study, review_study

from hardlook.collect.research.exports import ExportJob, build_export_view
from hardlook.collect.results.export import export_study
from hardlook.errors import DataError

from .conftest import PEOPLE, crowd, dashboard, tables


def finished(researcher):
    """Wait for the export that was started."""
    for _ in range(600):
        page = researcher.page("/research/export")
        if "Running for" not in page:
            return page
        time.sleep(0.1)
    raise AssertionError("the export took a minute")


def unpacked(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_archive_holds_the_files_of_the_command(researcher, gathered, tmp_path):
    study, store, _ = gathered
    assert researcher.get("/research/export/files.zip").status_code == 404
    assert researcher.post("/research/rules", least_inside="0.5").status_code == 303
    assert researcher.post("/research/export").status_code == 303
    page = finished(researcher)
    assert "Download rectangles-19700101-0246.zip" in page
    answer = researcher.get("/research/export/files.zip")
    assert answer.headers["content-type"] == "application/zip"
    assert "rectangles-19700101-0246.zip" in answer.headers["content-disposition"]
    export_study(study, store, tmp_path / "out")
    expected = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert unpacked(answer.content) == expected
    assert all(name in page for name in expected)


def test_a_display_mode_and_all_clicks_can_be_chosen(researcher, gathered, tmp_path):
    study, store, _ = gathered
    assert researcher.post("/research/export", mode="text", all_clicks="yes").status_code == 303
    finished(researcher)
    files = unpacked(researcher.get("/research/export/files.zip").content)
    export_study(study, store, tmp_path / "out", mode="text", all_clicks=True)
    assert files["clicks.csv"] == (tmp_path / "out" / "clicks.csv").read_bytes()
    assert researcher.post("/research/export", mode="nothing").status_code == 400


@pytest.mark.parametrize("make", [review_study, ratings_study])
def test_reviews_and_ratings_are_exported_as_by_the_command(tmp_path, make):
    study = make(tmp_path / "study")
    store, _ = judged_by(study, [lambda task: 1, lambda task: 1])
    with store:
        someone = dashboard(study, store).log_in()
        assert someone.post("/research/export").status_code == 303
        page = finished(someone)
        assert "Download" in page
        files = unpacked(someone.get("/research/export/files.zip").content)
        export_study(study, store, tmp_path / "out")
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert files == {path.relative_to(tmp_path / "out").as_posix(): path.read_bytes() for path in written}


def test_one_export_at_a_time_and_the_last_is_kept():
    job, go, runs = ExportJob(lambda: 5.0), threading.Event(), []

    def write(out, advance):
        runs.append(out)
        advance(2)
        go.wait(30)
        out.mkdir()
        (out / "a.txt").write_text(str(len(runs)))

    assert job.start(write, tasks=3)
    assert not job.start(write, tasks=3)
    while job.state.done < 2:
        time.sleep(0.01)
    assert (job.state.running, job.state.of, job.state.archive) == (True, 3, None)
    go.set()
    wait(job)
    first = job.state.archive
    assert unpacked(first.read_bytes()) == {"a.txt": b"1"}
    with first.open("rb") as reading:
        assert job.start(write, tasks=3)
        wait(job)
        assert not first.exists()
        assert unpacked(reading.read()) == {"a.txt": b"1"}
    assert unpacked(job.state.archive.read_bytes()) == {"a.txt": b"2"}
    assert len(runs) == 2


def test_a_failure_is_reported_without_paths_and_can_be_tried_again(tmp_path):
    job = ExportJob(lambda: 5.0)

    def fail(out, advance):
        raise DataError("no mask", file=tmp_path / "deep" / "mask.png", remedy="make the study anew")

    assert job.start(fail, tasks=1)
    wait(job)
    assert job.state.problem == "no mask (mask.png); make the study anew."
    assert not job.state.running
    assert job.start(lambda out, advance: out.mkdir(), tasks=1)
    wait(job)
    assert job.state.problem == ""
    assert job.state.archive is not None


def test_a_failed_export_is_shown_on_the_page(tmp_path):
    study, store, _ = crowd(tmp_path / "study", {"one": PEOPLE["slow"]})
    for task in study.tasks:
        study.file(task.mask).unlink(missing_ok=True)
    with store:
        someone = dashboard(study, store).log_in()
        assert someone.post("/research/export").status_code == 303
        page = finished(someone)
    assert "The export failed" in page
    assert str(tmp_path) not in page
    assert not tables(page)


def test_the_page_needs_no_archive_on_disk(gathered):
    """A newer export may delete the archive while the page of the last one is made."""
    job = ExportJob(lambda: 5.0)
    assert job.start(lambda out, advance: out.mkdir(), tasks=1)
    wait(job)
    size = job.state.archive.stat().st_size
    job.state.archive.unlink()
    assert build_export_view(gathered[0], job)["size"] == f"{size} B"


def wait(job):
    for _ in range(600):
        if not job.state.running:
            return
        time.sleep(0.05)
    raise AssertionError("the export took half a minute")


def test_files_that_hold_a_deleted_participant_are_removed():
    job, go = ExportJob(lambda: 0.0), threading.Event()

    def write(out, advance):
        out.mkdir()
        (out / "a.csv").write_text("a")
        assert go.wait(30)

    def wait():
        while job.state.running:
            time.sleep(0.005)

    go.set()
    job.start(write, 1)
    wait()
    archive = job.state.archive
    job.discard()
    assert job.state.archive is None and not archive.exists()
    # One that is being written is not offered either; the next one is.
    go.clear()
    job.start(write, 1)
    job.discard()
    go.set()
    wait()
    assert job.state.archive is None and "deleted while the files were made" in job.state.problem
    job.start(write, 1)
    wait()
    assert job.state.archive.is_file() and not job.state.problem
