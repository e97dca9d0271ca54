"""Errors of the file system name the file that was meant, and the remedy."""

import os

import pytest
from small_runs import small_run

from hardlook import __version__
from hardlook.cli.app import describe_os_error
from hardlook.harness.runs.folder import write_atomically
from hardlook.world.layouts import write_world


def raised(call, *given):
    with pytest.raises(OSError) as found:
        call(*given)
    return describe_os_error(found.value)


def test_a_folder_in_place_of_a_file(tmp_path):
    said = raised(write_atomically, tmp_path, "text")
    assert said == f"this is a folder, and a file was expected\n  file: {tmp_path}\n  remedy: give the name of a file"


def test_a_file_in_place_of_a_folder(tmp_path):
    (tmp_path / "page.html").write_text("")
    said = raised((tmp_path / "page.html" / "run.json").read_text)
    assert "this is a file, and a folder was expected" in said and "remedy: give a folder" in said
    assert "this name is already in use" in raised((tmp_path / "page.html").mkdir)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_names_the_page_and_not_the_file_beside_it(tmp_path):
    tmp_path.chmod(0o555)
    said = raised(write_atomically, tmp_path / "page.html", "text")
    tmp_path.chmod(0o755)
    assert "no permission" in said and f"file: {tmp_path / 'page.html'}\n" in said


def test_a_name_beside_a_place_stands_for_the_place():
    said = describe_os_error(PermissionError(13, "Permission denied", "out/.page.html.4711.0123abcd"))
    assert "\n  file: out/page.html\n" in said


def test_what_has_no_words_keeps_those_of_the_system():
    assert describe_os_error(OSError(5, "Input/output error")) == "Input/output error"
    assert describe_os_error(OSError("torn")) == "torn"


def test_a_full_disk_says_what_to_do():
    full = describe_os_error(
        OSError(28, "No space left on device: this file needs 3.0 MB", "run/records/part-1.parquet")
    )
    assert "needs 3.0 MB\n  file: run/records/part-1.parquet\n  remedy: free some space" in full


def test_a_folder_as_the_file_of_a_command_is_one_message(hardlook, tmp_path):
    small_run(tmp_path / "run", scenes=4)
    answer = hardlook("table", tmp_path / "run", "scores", "--out", tmp_path)
    assert answer.code == 1 and "this is a folder, and a file was expected" in answer.err
    assert f"file: {tmp_path}\n" in answer.err and answer.out == ""


def test_the_version_is_that_of_the_package(hardlook):
    answer = hardlook("--version")
    assert (answer.code, answer.out) == (0, f"hardlook {__version__}\n")


def test_a_name_that_is_not_utf_8_is_named(hardlook, tmp_path):
    write_world(tmp_path / "data", layout="isegm", seed=0, count=1, size=(96, 72), correlation=0.0, image_format="png")
    for file in (tmp_path / "data").glob("*/000001*"):
        file.rename(file.with_stem(os.fsdecode(b"caf\xe9")))
    data = f"mine={tmp_path / 'data'}"
    for words in (("run", "rclicks", "--model", "disc"), ("collect", "init", "clicks", tmp_path / "study")):
        out = ("--out", tmp_path / "out") if words[0] == "run" else ()
        answer = hardlook(*words, "--data", data, *out)
        assert answer.code == 1 and "Traceback" not in answer.err
        assert "is not UTF-8" in answer.err and "caf\\xe9" in answer.err and "remedy: rename it" in answer.err
