"""`hl.serve`: the explorer in the background of a notebook."""

import threading
import urllib.error
import urllib.request
import warnings

import pytest

import hardlook as hl
from hardlook.errors import DataError, RunWarning

pytest.importorskip("uvicorn", reason="the extra web is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    hl.run("closed-miou", scenes=4, resamples=10, out=folder / "mine", progress=False, report=False)
    return folder


def read(address):
    with urllib.request.urlopen(address, timeout=30) as response:
        return response.read().decode()


def test_it_serves_until_it_is_stopped(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explorer = hl.serve(folder)
    assert "planted-segmenter" in read(explorer.address)
    assert explorer.address in repr(explorer) and f'href="{explorer.address}"' in explorer._repr_html_()
    explorer.stop()
    explorer.stop()
    with pytest.raises(urllib.error.URLError):
        read(explorer.address)


def test_two_at_once_and_a_block_that_ends_them(folder):
    with hl.serve(folder) as first, hl.serve(folder / "mine") as second:
        assert first.address != second.address
        assert "planted-segmenter" in read(first.address) and "planted-segmenter" in read(second.address)
    with pytest.raises(urllib.error.URLError):
        read(first.address)


def test_waiting_ends_with_the_server(folder):
    explorer = hl.serve(folder)
    waiting = threading.Thread(target=explorer.wait)
    waiting.start()
    assert waiting.is_alive()
    explorer.stop()
    waiting.join(timeout=10)
    assert not waiting.is_alive()


def test_what_a_user_should_know_is_a_warning(folder, tmp_path):
    with pytest.warns(RunWarning, match="there is no run below this folder yet"):
        hl.serve(tmp_path).stop()
    with pytest.warns(RunWarning, match=r"0\.0\.0\.0 can be reached from other machines"):
        hl.serve(folder, host="0.0.0.0").stop()
    with pytest.raises(DataError, match="no such folder"):
        hl.serve(tmp_path / "nowhere")
