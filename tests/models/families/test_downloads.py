"""Weights on this machine come first; a download is announced; offline an error says where the file goes."""

import hashlib
import http.server
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hardlook.errors import ModelError
from hardlook.models.families.downloads import (
    OFFLINE,
    announce_download,
    describe_size,
    fetch_from_hub,
    fetch_url,
    forbid_downloads,
    is_offline,
)

constants = pytest.importorskip("huggingface_hub.constants")
torch = pytest.importorskip("torch")

CONTENT = b"weights" * 1000


class _Hub(http.server.BaseHTTPRequestHandler):
    """A hub of one repository with one file, as huggingface.co answers, and a plain file beside it."""

    def do_HEAD(self):
        known = self.path in ("/owner/net/resolve/main/pytorch_model.bin", f"/files/{self.server.file_name}")
        self.server.asked.append(self.path)
        self.send_response(200 if known else 404)
        if known:
            self.send_header("ETag", '"0123456789abcdef0123456789abcdef01234567"')
            self.send_header("X-Repo-Commit", "a" * 40)
            self.send_header("Content-Length", str(len(CONTENT)))
        else:
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
        self.end_headers()
        return known

    def do_GET(self):
        if self.do_HEAD():
            self.wfile.write(CONTENT)

    def log_message(self, *words):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A hub on this machine, and empty caches."""
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    served.asked, served.file_name = [], f"net-{hashlib.sha256(CONTENT).hexdigest()[:8]}.pth"
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{served.server_address[1]}"
    served.address = address
    monkeypatch.delenv(OFFLINE, raising=False)
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    before = torch.hub.get_dir()
    torch.hub.set_dir(str(tmp_path / "torch"))
    yield served
    torch.hub.set_dir(before)
    served.shutdown()
    thread.join()
    served.server_close()


FILES = ("model.safetensors", "pytorch_model.bin")


def test_a_download_says_what_it_fetches_how_much_and_from_whom(server, capsys):
    path = fetch_from_hub("owner/net", FILES, extra="timm")
    assert path.read_bytes() == CONTENT and path.name == "pytorch_model.bin"
    [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("downloading")]
    assert line.startswith(f"downloading pytorch_model.bin of owner/net (7 kB) from {server.address}/owner/net into ")


def test_what_is_cached_is_neither_fetched_nor_announced(server, capsys):
    path = fetch_from_hub("owner/net", FILES, extra="timm")
    capsys.readouterr()
    server.asked.clear()
    with forbid_downloads():
        assert fetch_from_hub("owner/net", FILES, extra="timm") == path
    assert not server.asked and "downloading" not in capsys.readouterr().err


def test_offline_nothing_is_asked_and_the_file_can_be_put_where_the_error_says(server, tmp_path):
    with forbid_downloads(), pytest.raises(ModelError, match="downloads are forbidden") as caught:
        fetch_from_hub("owner/net", FILES, extra="timm")
    assert not server.asked
    named = re.search(r"put it at (\S+);", caught.value.remedy)[1]
    assert named.startswith(str(tmp_path)) and f"{server.address}/owner/net" in caught.value.remedy
    Path(named).parent.mkdir(parents=True)
    Path(named).write_bytes(CONTENT)
    with forbid_downloads():
        assert fetch_from_hub("owner/net", FILES, extra="timm").read_bytes() == CONTENT


def test_a_failing_download_says_where_the_file_can_be_put(server):
    with pytest.raises(ModelError, match=r"of owner/other could not be downloaded") as caught:
        fetch_from_hub("owner/other", FILES, extra="timm")
    assert "put it at" in caught.value.remedy


def test_a_file_by_its_address_is_announced_checked_and_kept(server, capsys, tmp_path):
    url = f"{server.address}/files/{server.file_name}"
    path = fetch_url(url, 97 * 2**20)
    assert path == tmp_path / "torch" / "checkpoints" / server.file_name and path.read_bytes() == CONTENT
    assert capsys.readouterr().err == f"downloading {server.file_name} (102 MB) from {url} into {path}\n"
    with forbid_downloads():
        assert fetch_url(url) == path
    path.unlink()
    with forbid_downloads(), pytest.raises(ModelError) as caught:
        fetch_url(url)
    assert str(path) in caught.value.remedy and url in caught.value.remedy


def test_a_file_with_another_hash_is_not_kept(server, tmp_path):
    server.file_name = "net-00000000.pth"
    with pytest.raises(ModelError, match="hash"):
        fetch_url(f"{server.address}/files/net-00000000.pth")
    assert not (tmp_path / "torch" / "checkpoints" / "net-00000000.pth").exists()


@pytest.mark.parametrize(
    ("value", "offline"), [("1", True), ("yes", True), ("0", False), ("", False), ("False", False)]
)
def test_the_environment_forbids_downloads(monkeypatch, value, offline):
    monkeypatch.setenv(OFFLINE, value)
    assert is_offline() == offline


def test_the_environment_is_as_before_afterwards(monkeypatch):
    monkeypatch.delenv(OFFLINE, raising=False)
    with forbid_downloads(False):
        assert not is_offline()
    with pytest.raises(ModelError), forbid_downloads():
        child = f"import os; print(os.environ.get({OFFLINE!r}))"
        assert subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout.strip() == "1"
        announce_download("net.pth", None, "https://example.org")
    assert OFFLINE not in os.environ
    monkeypatch.setenv(OFFLINE, "0")
    with forbid_downloads():
        assert is_offline()
    assert os.environ[OFFLINE] == "0"


def test_sizes():
    assert [describe_size(size) for size in (None, 900, 2_400_000, 3_210_000_000)] == [
        "size unknown", "1 kB", "2 MB", "3.2 GB"
    ]  # fmt: skip
