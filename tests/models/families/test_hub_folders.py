"""Folders, cache and downloads of the model hub, with a hub on this machine."""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import threading
from pathlib import Path

import pytest

from hardlook.errors import DataError, ModelError
from hardlook.models.families.downloads import OFFLINE
from hardlook.models.families.hub_folders import find_model_folder, list_cached_models, read_model_config
from hardlook.models.registry import build, find

pytest.importorskip("huggingface_hub")
pytest.importorskip("transformers")

COMMIT = "a" * 40


class Hub(http.server.BaseHTTPRequestHandler):
    """Answers as huggingface.co does for one repository, owner/net, whose files are `server.files`."""

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        if (body := self.answer()) is not None:
            self.wfile.write(body)

    def answer(self):
        self.server.asked.append(self.path)
        files, body, headers = self.server.files, None, {}
        prefix = "/owner/net/resolve/"
        if self.path.startswith("/api/models/owner/net/tree/"):
            listed = [
                {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                for name, content in files.items()
            ]
            body, headers["Content-Type"] = json.dumps(listed).encode(), "application/json"
        elif self.path.startswith("/api/models/owner/net"):
            entries = [{"rfilename": name, "size": len(content)} for name, content in files.items()]
            body = json.dumps({"id": "owner/net", "sha": COMMIT, "siblings": entries}).encode()
            headers["Content-Type"] = "application/json"
        elif self.path.startswith(prefix) and (name := self.path.removeprefix(prefix).partition("/")[2]) in files:
            body = files[name]
            headers = {"ETag": f'"{hashlib.sha1(body).hexdigest()}"', "X-Repo-Commit": COMMIT}
        self.send_response(404 if body is None else 200)
        if body is None:
            headers["X-Error-Code"] = "RepoNotFound"
        for name, value in {**headers, "Content-Length": str(len(body or b""))}.items():
            self.send_header(name, value)
        self.end_headers()
        return body

    def log_message(self, *words):
        pass


@pytest.fixture
def hub(monkeypatch, tmp_path, hub_folder):
    """A hub with the small ViT, its code and a pickle beside it; an empty cache."""
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    served.asked = []
    served.files = {path.name: path.read_bytes() for path in hub_folder("vit").iterdir()}
    served.files |= {"pytorch_model.bin": b"x" * 50, "modeling_mine.py": b"raise SystemExit", "onnx/model.onnx": b"y"}
    threading.Thread(target=served.serve_forever, daemon=True).start()
    served.address = f"http://127.0.0.1:{served.server_address[1]}"
    monkeypatch.setenv("HF_ENDPOINT", served.address)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(OFFLINE, raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield served
    served.shutdown()
    served.server_close()


def test_a_download_is_announced_and_then_cached(hub, capsys, pictures, hub_folder, monkeypatch):
    assert list_cached_models() == []
    assert find("hf:owner/net").card.roles == ("encoder",)
    said = capsys.readouterr().err
    assert "config.json of owner/net" in said and hub.address in said
    model = build("hf:owner/net", "encoder")
    said = capsys.readouterr().err
    size = sum(len(hub.files[name]) for name in ("config.json", "model.safetensors", "preprocessor_config.json"))
    assert f"the model owner/net ({size / 1e3:.0f} kB) from {hub.address}/owner/net" in said
    local = build(f"hf:{hub_folder('vit')}", "encoder")
    assert (model.encode(pictures).vectors == local.encode(pictures).vectors).all()
    fetched = {path.name for path in find_model_folder("owner/net").iterdir()}
    assert fetched == {"config.json", "model.safetensors", "preprocessor_config.json"}  # no code, no pickle
    assert list_cached_models() == list_cached_models("owner/*") == ["owner/net"]
    # From now on nothing is asked for, and being offline is no obstacle.
    hub.asked.clear()
    monkeypatch.setenv(OFFLINE, "1")
    build("hf:owner/net@main", "encoder")
    assert hub.asked == [] and capsys.readouterr().err == ""


@pytest.mark.parametrize("variable", [OFFLINE, "HF_HUB_OFFLINE"])
def test_offline_forbids_downloads(variable, hub, monkeypatch):
    monkeypatch.setenv(variable, "1")
    with pytest.raises(ModelError, match="downloads are forbidden") as caught:
        find("hf:owner/net")
    assert hub.address in caught.value.remedy and hub.asked == []
    with pytest.raises(ModelError, match="downloads are forbidden"):
        find_model_folder("owner/net")
    assert hub.asked == []


def test_offline_files_can_be_put_where_the_error_says(hub, monkeypatch):
    monkeypatch.setenv(OFFLINE, "1")
    with pytest.raises(ModelError) as caught:
        read_model_config("owner/net@v1")
    place = Path(re.search(r"put it at (\S+);", caught.value.remedy)[1])
    place.parent.mkdir(parents=True)
    place.write_bytes(hub.files["config.json"])
    assert read_model_config("owner/net@v1")["model_type"] == "vit"
    with pytest.raises(ModelError) as caught:
        find_model_folder("owner/net@v1")
    folder = Path(re.search(r"put it at (\S+);", caught.value.remedy)[1])
    assert folder == place.parent
    for name in ("model.safetensors", "preprocessor_config.json"):
        (folder / name).write_bytes(hub.files[name])
    assert build("hf:owner/net@v1", "encoder") and hub.asked == []


def test_what_the_hub_does_not_have_is_an_error(hub):
    with pytest.raises(ModelError, match="owner/other could not be downloaded") as caught:
        read_model_config("owner/other")
    assert "hf:FOLDER" in caught.value.remedy
    del hub.files["model.safetensors"], hub.files["pytorch_model.bin"]
    with pytest.raises(ModelError, match="no weights that transformers reads"):
        find_model_folder("owner/net")


def test_a_pickle_is_fetched_where_there_is_nothing_else(hub):
    del hub.files["model.safetensors"]
    assert (find_model_folder("owner/net") / "pytorch_model.bin").is_file()


@pytest.mark.parametrize("name", ["a/b/c", "../up", "no such folder", "a/../b"])
def test_names_that_are_neither_folder_nor_repository(name, hub):
    with pytest.raises(DataError, match="does not exist"):
        find_model_folder(name)
    assert hub.asked == []


def test_a_local_folder_comes_before_the_hub(hub, tmp_path, monkeypatch):
    folder = tmp_path / "owner" / "net"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"no config\.json"):
        read_model_config("owner/net")
    (folder / "config.json").write_text('{"model_type": "sam"}')
    assert find("hf:owner/net").card.roles == ("promptable-segmenter",)
    assert hub.asked == []
