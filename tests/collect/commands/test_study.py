"""`hardlook collect export`, and its files in the commands that read clicks.

`hardlook collect invite`: links that the study reads back, each another.

`hardlook collect serve` as a user starts it: addresses, warnings, a real socket, and an end without noise.

`hardlook collect status`: bars, sentences, and whose a completion code is.
"""

import http.client
import io
import json
import os
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from urllib.parse import urlencode, urlsplit

import numpy as np
import pytest
from click_crowd import Person, open_store, take_part, world_study
from collect_people import assert_counts_are_true
from command_server import hardlook_command

from hardlook.collect.results.export import export_study
from hardlook.collect.results.status import format_bar
from hardlook.collect.study.click_regions import ClickRegion
from hardlook.collect.study.clicks import make_region_study
from hardlook.collect.study.folder import make_study, open_study
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import RatingTask
from hardlook.collect.web.sessions import derive_research_key
from hardlook.collect.web.tokens import derive_completion_code, read_invitation, sign_token
from hardlook.data.object_instances import list_instances
from hardlook.data.previous_masks import compute_error_mask

PER_DEVICE = 11


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """World, study and answers: people on a PC click deep inside, those on a mobile device in the left half."""
    folder = tmp_path_factory.mktemp("collected")
    study = world_study(folder)
    rng = np.random.default_rng(5)
    with open_store(study) as store:
        for _ in range(PER_DEVICE):
            take_part(study, store, Person("pc", part="deep"), rng)
            take_part(study, store, Person("mobile", part="left"), rng)
    return folder


@pytest.fixture(scope="module")
def exported(collected, tmp_path_factory):
    out, study = tmp_path_factory.mktemp("exported"), open_study(collected / "study")
    with open_store(study) as store:
        return out, export_study(study, store, out)


def test_the_same_files_as_from_python(hardlook, collected, exported, tmp_path):
    answer = hardlook("collect", "export", collected / "study", "--out", tmp_path, "-q", "--json")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert document == json.loads((tmp_path / "report.json").read_text()) | {"out": str(tmp_path)}
    assert sorted(document["files"]) == sorted(path.name for path in tmp_path.iterdir())
    assert document["answers"]["valid"] == document["written"]["clicks"] == 2 * PER_DEVICE * 4
    assert (tmp_path / "clicks.csv").read_bytes() == (exported[0] / "clicks.csv").read_bytes()


def test_clicks_evaluate_reads_the_export_and_prefers_the_right_model(hardlook, collected, exported, tmp_path):
    out, document = exported
    words = ("--user-clicks", out / "clicks.csv", "--data", f"grabcut={collected / 'world'}")
    answer = hardlook(
        *("clicks", "evaluate", *words, "--models", "uniform,distance", "--draws", 20, "-q", "--json"),
        *("--out", tmp_path / "judged"),
    )
    assert answer.code == 0, answer.err
    judged = json.loads(answer.out)
    overall = {row["model"]: row for row in judged["scores"] if (row["slice"], row["value"]) == ("device", "pc")}
    better, worse = overall["distance"], overall["uniform"]
    assert better["nss"]["value"] > worse["nss"]["value"] and better["wd"]["value"] < worse["wd"]["value"]
    # Two ways to the same comparison: the files, and the store.
    [row] = judged["pc_against_mobile"]
    ours = document["pc_against_mobile"]["cut-out"]
    assert row["stems"] == ours["stems"] == 4
    for metric in ("ks", "pl1", "wd"):
        assert row[metric]["value"] == pytest.approx(ours[metric]["value"])
    assert ours["ks"]["value"] < 1


def test_clicks_train_runs_on_the_export(hardlook, collected, exported, tmp_path, one_thread):
    out, _ = exported
    answer = hardlook(
        *("clicks", "train", "--user-clicks", out / "clicks.csv", "--data", f"grabcut={collected / 'world'}"),
        *("--width", "small", "--size", 64, "--batch-size", 4, "--clip", 1, "--threads", 1, "--epochs", 1, "--quiet"),
        *("--json", "--out", tmp_path / "trained"),
    )
    assert answer.code == 0, answer.err
    assert (tmp_path / "trained/clickability.safetensors").is_file()


def test_the_benchmark_runs_with_the_users_of_the_export(hardlook, collected, exported, tmp_path):
    out, _ = exported
    answer = hardlook(
        *("run", "rclicks", "--model", "disc", "--data", f"grabcut={collected / 'world'}"),
        *("--user-clicks", out / "clicks.csv", "--clicks", "uniform", "--rounds", 2, "--groups", 2),
        *("--resamples", 0, "-q", "--json", "--out", tmp_path / "run"),
    )
    assert answer.code == 0, answer.err
    [score] = [one for one in json.loads(answer.out)["scores"] if one["name"] == "user-iou1" and not one["slice"]]
    assert score["n"] == 4 and 0 < score["value"] <= 100


def test_previews_are_read_with_their_modes(hardlook, tmp_path):
    study = world_study(tmp_path, modes=("text", "silhouette"), devices=("pc",), target_answers=10)
    rng = np.random.default_rng(6)
    with open_store(study) as store:
        for _ in range(20):
            take_part(study, store, Person("pc"), rng)
    answer = hardlook("collect", "export", study.path, "--out", tmp_path / "out", "-q", "--mode", "text", "--json")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert document["pc_against_mobile"] == {} and document["answers"]["of another display mode"] == 40
    judged = hardlook(
        *(
            "clicks",
            "evaluate",
            "--user-clicks",
            tmp_path / "out/clicks.csv",
            "--data",
            f"grabcut={tmp_path / 'world'}",
        ),
        *("--previews", tmp_path / "out/previews.csv", "--models", "uniform", "--draws", 2, "-q", "--json"),
        *("--out", tmp_path / "judged"),
    )
    assert judged.code == 0, judged.err
    theirs, ours = json.loads(judged.out)["modes_against_text"], document["modes_against_text"]
    assert list(theirs) == list(ours) == ["silhouette"]
    assert theirs["silhouette"]["wd"]["value"] == pytest.approx(ours["silhouette"]["wd"]["value"])


def test_a_second_round_is_read_with_its_masks(hardlook, collected, tmp_path):
    regions = []
    for one, kind in zip(list_instances({"grabcut": collected / "world"}).instances, ("fn", "fp"), strict=False):
        target = one.read_target().mask
        half = np.arange(target.shape[1]) < np.median(np.nonzero(target)[1])
        previous = target & half if kind == "fn" else np.logical_or(target, half)
        names = (one.dataset, one.image_stem, "", f"{one.image_stem}_ritm_{kind}_pc_1", one.read(), target)
        more = {"model_type": "ritm", "click_type": kind, "previous": previous, "subject": one.image_key}
        regions.append(ClickRegion(*names, compute_error_mask(target, previous, kind), **more))
    settings = StudySettings(kind="clicks", title="Errors", devices=("pc",), training_tasks=0, least_inside=0.5)
    study, rng = make_region_study(tmp_path / "study", regions, settings), np.random.default_rng(7)
    with open_store(study) as store:
        for _ in range(3):
            take_part(study, store, Person("pc"), rng)
    answer = hardlook("collect", "export", study.path, "--out", tmp_path / "out", "-q", "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["study"]["round"] == 2 and "previous-masks" in json.loads(answer.out)["files"]
    judged = hardlook(
        *(
            "clicks",
            "evaluate",
            "--user-clicks",
            tmp_path / "out/clicks.csv",
            "--data",
            f"grabcut={collected / 'world'}",
        ),
        *("--previous-masks", tmp_path / "out/previous-masks", "--models", "uniform", "--draws", 2, "-q", "--json"),
        *("--out", tmp_path / "judged"),
    )
    assert judged.code == 0, judged.err
    stems = {row["value"]: row["stems"] for row in json.loads(judged.out)["scores"] if row["slice"] == "click_type"}
    assert stems == {"fn": 1, "fp": 1}
    # Who gets which task first is drawn anew each time; three clicks of equal height would be noted as well.
    assert "stems in the comparison of devices" in {note["what"] for note in json.loads(judged.out)["left_out"]}


def test_the_report_names_the_reading_that_ran(hardlook, collected, tmp_path):
    words = ("collect", "export", collected / "study", "--out", tmp_path / "out", "-q", "--json")
    found = {}
    for reading in ("released", "paper"):
        answer = json.loads(hardlook(*words, "--reading", f"wd={reading}").out)
        assert answer["readings"] == {"wd": reading}
        assert f"by the reading <code>{reading}</code>" in (tmp_path / "out" / "page.html").read_text()
        found[reading] = [one["wd"]["value"] for one in answer["pc_against_mobile"].values() if one["wd"]]
    assert found["released"] and found["released"] != found["paper"]
    assert json.loads(hardlook(*words).out)["readings"] == {"wd": "released"}
    assert "--reading wd=ours: there is no such reading" in hardlook(*words, "--reading", "wd=ours").err


def test_words_for_people(hardlook, collected, tmp_path):
    (tmp_path / "rules.json").write_text('{"least_answers": 5}')
    words = ("collect", "export", collected / "study", "--out", tmp_path / "out", "--rules", tmp_path / "rules.json")
    answer = hardlook(*words)
    assert answer.code == 0, answer.err
    assert "88 answers of 22 participants: 0 valid; left out: 88 excluded by rule." in answer.out
    assert "Rules of exclusion from a file leave out 22 participants." in answer.out
    assert f"page: {tmp_path / 'out/page.html'}" in answer.out
    every = hardlook("collect", "export", collected / "study", "--out", tmp_path / "all", "--all-clicks", "-q")
    assert every.code == 0 and "clicks.csv holds 88 clicks, invalid ones too." in every.out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--mode", "shifted"), "no display mode 'shifted'"),
        (("--rules", "gone.json"), "the rules cannot be read"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(hardlook, collected, tmp_path, more, message):
    answer = hardlook("collect", "export", collected / "study", "--out", tmp_path / "out", "-q", *more)
    assert answer.code == 1 and message in answer.err and not (tmp_path / "out").exists()


def test_a_database_of_another_study_is_refused(hardlook, collected, tmp_path):
    other = world_study(tmp_path, modes=("text",), training_tasks=1)
    database = f"sqlite:///{collected / 'study/answers.sqlite'}"
    for verb in (("export", "--out", tmp_path / "out"), ("status",)):
        answer = hardlook("collect", verb[0], other.path, *verb[1:], "--database", database)
        assert answer.code == 1 and "answers to other tasks" in answer.err, answer.err
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_study(hardlook, tmp_path):
    answer = hardlook("collect", "export", tmp_path, "--out", tmp_path / "out")
    assert answer.code == 1 and "no study here" in answer.err


pytest.importorskip("sqlalchemy", reason="the extra web is not installed")


@pytest.fixture
def study(tmp_path):
    tasks = [RatingTask("t1", "pair/1", "pair", ("cat", "dog"), "path", 0.25)]
    settings = StudySettings(kind="ratings", title="Alike", devices=("any",))
    return make_study(tmp_path / "study", settings, tasks, made={"of": "a test"})


def test_links_are_signed_by_the_study_and_end(hardlook, study):
    answer = hardlook("collect", "invite", study.path, "--count", 5, "--days", 2, "--base-url", "https://x.example/")
    lines = answer.out.splitlines()
    assert answer.code == 0 and len(set(lines)) == 5
    tokens = [line.removeprefix("https://x.example/join/") for line in lines]
    now = time.time()
    assert len({read_invitation(study.secret, token, now) for token in tokens}) == 5
    assert all(read_invitation(study.secret, token, now + 2 * 86_400 - 60) for token in tokens)
    assert not any(read_invitation(study.secret, token, now + 2 * 86_400 + 1) for token in tokens)
    assert not any(read_invitation(bytes(32), token, now) for token in tokens)


def test_as_json(hardlook, study):
    document = json.loads(hardlook("collect", "invite", study.path, "--count", 2, "--json").out)
    assert document["days"] == 30 and len(document["links"]) == 2


def test_what_cannot_be(hardlook, study, tmp_path):
    assert "not a public address" in hardlook("collect", "invite", study.path, "--base-url", "x/y").err
    assert "no study here" in hardlook("collect", "invite", tmp_path).err
    assert hardlook("collect", "invite", study.path, "--count", 0).code == 2


pytest.importorskip("uvicorn", reason="the extra web is not installed")

pytest.importorskip("sqlalchemy", reason="the extra web is not installed")


@pytest.fixture
def serve_study(tmp_path):
    tasks = [RatingTask(f"t{n}", f"pair/{n}", "pair", ("cat", "dog"), "path", 0.25) for n in range(2)]
    fields = {"devices": ("any",), "batch_size": 2, "target_answers": 2, "open_link": True}
    settings = StudySettings(kind="ratings", title="Alike", **fields)
    return make_study(tmp_path / "study", settings, tasks, made={"of": "a test"}).path


@pytest.fixture
def served(serve_study):
    """A server as a user starts it, on a free port."""
    words = [sys.executable, "-m", "hardlook", "collect", "serve", str(serve_study), "--port", "0", "--json"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    yield server, json.loads(server.stdout.readline())
    server.kill()
    server.communicate()


def ask(address, method, path, body=None, **headers):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer, answer.read().decode("utf-8", "replace")


@pytest.fixture
def quiet(monkeypatch):
    """Everything but the serving itself."""
    seen = []
    monkeypatch.setattr("hardlook.serving.serve", lambda app, listening, to_open: seen.append(listening))
    yield seen
    for listening in seen:
        listening.close()


def test_a_real_server_from_consent_to_a_stored_answer(served, serve_study):
    server, addresses = served
    address = addresses["address"]
    assert address.startswith("http://127.0.0.1:") and addresses["listening"] == address
    page, text = ask(address, "GET", "/")
    assert page.status == 200 and "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["server"] is None
    form = page.headers["set-cookie"].partition(";")[0]
    token = re.search('name="csrf" value="([^"]+)"', text)[1]
    fields = urlencode({"csrf": token, "token": "", "agree": "yes", "language": "en"})
    joined, _ = ask(address, "POST", "/join", fields, Cookie=form, Content_Type="application/x-www-form-urlencoded")
    assert joined.status == 303
    session = joined.headers["set-cookie"].partition(";")[0]
    state = json.loads(ask(address, "GET", "/api/state", Cookie=session)[1])
    own = {"Cookie": session, "X_CSRF_Token": state["csrf"], "Content_Type": "application/json"}
    trial = json.loads(ask(address, "POST", "/api/batch", "{}", **own)[1])["batch"]["trials"][0]["id"]
    assert ask(address, "POST", f"/api/trials/{trial}/show", "{}", **own)[0].status == 200
    body = json.dumps({"key": "k" * 16, "trial": trial, "value": 7})
    # As chunks, whose length nobody says beforehand.
    answer, text = ask(address, "POST", "/api/answers", (part.encode() for part in (body[:9], body[9:])), **own)
    assert (answer.status, json.loads(text)["stored"]) == (200, True)
    endless = (b"x" * 4096 for _ in range(1000))
    try:
        assert ask(address, "POST", "/api/answers", endless, **own)[0].status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # the server hung up while we were still sending, which is as good

    assert ask(address, "GET", "/", Host="evil.example")[0].status == 421
    assert ask(address, "GET", "/health")[1] == '{"ok":true}'
    door, _ = ask(address, "GET", urlsplit(addresses["researchers"]).path)
    assert door.status == 200 and "SameSite=strict" in door.headers["set-cookie"]
    server.send_signal(signal.SIGINT)
    _, errors = server.communicate(timeout=30)
    assert "Traceback" not in errors
    assert (serve_study / "answers.sqlite").is_file()


def test_addresses_for_people(hardlook, serve_study, quiet):
    answer = hardlook("collect", "serve", serve_study, "--port", 0)
    assert answer.code == 0 and not answer.err
    key = derive_research_key(open_study(serve_study).secret)
    assert re.search(r"participants  http://127\.0\.0\.1:\d+/\n", answer.out)
    assert re.search(rf"researchers   http://127\.0\.0\.1:\d+/research/key/{re.escape(key)}\n", answer.out)
    settings = json.loads((serve_study / "study.json").read_text())
    (serve_study / "study.json").write_text(json.dumps({**settings, "open_link": False}))
    moved = serve_study.rename(serve_study.parent / "a study")
    told = hardlook("collect", "serve", moved, "--port", 0).out
    words = shlex.split(re.search(r"\(by invitation: hardlook (.*)\)", told)[1])
    link = hardlook(*words, "--count", 1).out
    assert link.startswith(f"{re.search(r'participants +(http://127.0.0.1:[0-9]+/) ', told)[1]}join/")
    moved.rename(serve_study)
    change = {**settings, "open_link": False, "platform": "prolific"}
    (serve_study / "study.json").write_text(json.dumps(change))
    assert "/?PROLIFIC_PID=..." in hardlook("collect", "serve", serve_study, "--port", 0).out


def test_payments_are_one_file(hardlook, serve_study, tmp_path):
    answer = hardlook("collect", "payments", serve_study)
    assert answer.code == 0 and "0 joined" in answer.out
    assert (serve_study / "payments.csv").read_text().startswith("participant,code,device,joined,minutes,")
    (tmp_path / "rules.json").write_text('{"least_answers": 1}')
    words = ("--out", tmp_path / "paid.csv", "--rules", tmp_path / "rules.json")
    assert hardlook("collect", "payments", serve_study, *words).code == 0 and (tmp_path / "paid.csv").is_file()


@pytest.mark.parametrize("name", ["secret.key", "study.json", "answers.sqlite", "images/a.csv"])
def test_payments_and_exports_replace_no_part_of_the_study(hardlook, serve_study, name):
    before = {path: path.read_bytes() for path in serve_study.rglob("*.*") if path.is_file()}
    for verb in ("payments", "export"):
        answer = hardlook("collect", verb, serve_study, "--out", serve_study / name)
        assert answer.code == 1 and "would replace a part of the study" in answer.err
    assert before.items() <= {path: path.read_bytes() for path in serve_study.rglob("*.*") if path.is_file()}.items()


def test_strangers_without_https_are_warned_about(hardlook, serve_study, quiet):
    answer = hardlook("collect", "serve", serve_study, "--host", "0.0.0.0", "--port", 0)
    assert answer.code == 0 and "warning: 0.0.0.0 can be reached from other machines" in answer.err
    assert "the connection is not encrypted" in answer.err
    with_https = ("--public-url", "https://study.example", "--trusted-proxy", "10.0.0.1", "--json")
    behind = hardlook("collect", "serve", serve_study, "--host", "0.0.0.0", "--port", 0, *with_https)
    assert behind.code == 0 and not behind.err
    document = json.loads(behind.out)
    assert document["address"] == "https://study.example/"
    assert document["researchers"].startswith("https://study.example/research/key/")


def test_a_proxy_that_is_not_trusted_is_warned_about(hardlook, serve_study, quiet):
    answer = hardlook("collect", "serve", serve_study, "--port", 0, "--public-url", "https://study.example")
    assert answer.code == 0 and "all who come through the proxy count as one address" in answer.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--public-url", "study.example"), "is not a public address"),
        (("--trusted-proxy", "127.0.0.1"), "without a public address"),
        (("--database", "mysql://me:hush@there/x"), ""),
        (("--database", "sqlite:////nowhere/at/all.sqlite"), ""),
    ],
)
def test_options_that_cannot_be(hardlook, serve_study, quiet, words, message):
    answer = hardlook("collect", "serve", serve_study, "--port", 0, *words)
    assert answer.code == 1 and message in answer.err and "remedy" in answer.err
    assert "hush" not in answer.err + answer.out and "Traceback" not in answer.err and not quiet


def test_a_database_named_by_the_environment(hardlook, serve_study, quiet, tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_DATABASE", f"sqlite:///{tmp_path / 'elsewhere.sqlite'}")
    assert hardlook("collect", "serve", serve_study, "--port", 0).code == 0
    assert (tmp_path / "elsewhere.sqlite").is_file() and not (serve_study / "answers.sqlite").exists()


def test_the_database_of_another_study(hardlook, serve_study, quiet, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(serve_study, other)
    (other / "tasks.jsonl").write_text((serve_study / "tasks.jsonl").read_text().replace("dog", "cow"))
    database = f"sqlite:///{tmp_path / 'one.sqlite'}"
    assert hardlook("collect", "serve", serve_study, "--port", 0, "--database", database).code == 0
    answer = hardlook("collect", "serve", other, "--port", 0, "--database", database)
    assert answer.code == 1 and "one.sqlite" in answer.err


def test_no_study_and_a_port_in_use(hardlook, serve_study, tmp_path):
    nothing = hardlook("collect", "serve", tmp_path / "nowhere", "--port", 0)
    assert nothing.code == 1 and "no study here" in nothing.err
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = hardlook("collect", "serve", serve_study, "--port", port)
    assert answer.code == 1 and f"cannot listen on 127.0.0.1 port {port}" in answer.err


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "sqlalchemy"])
def test_without_the_extra_the_remedy_is_named(hardlook, serve_study, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    answer = hardlook("collect", "serve", serve_study, "--port", 0)
    assert answer.code == 1 and 'pip install "hardlook[web]"' in answer.err


def test_help_says_what_it_does(hardlook):
    text = " ".join(hardlook("collect", "serve", "--help").out.split())
    assert "hardlook collect serve study --open" in text and "HARDLOOK_DATABASE" in text


@pytest.mark.parametrize("verb", [("serve", "--port", 0), ("rehearse", "--participants", 1)])
def test_a_study_with_a_mode_that_it_was_not_made_for_is_refused(hardlook, tmp_path, verb):
    made = hardlook("collect", "init", "clicks", tmp_path / "s", "--scenes", 1, "--training", 0)
    assert made.code == 0, made.err
    path = tmp_path / "s" / "study.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "modes": ["cut-out", "silhouette"]}))
    answer = hardlook("collect", verb[0], tmp_path / "s", *verb[1:])
    assert answer.code == 1 and f"file: {path}" in answer.err and "'silhouette'" in answer.err


@pytest.fixture(scope="module")
def working(tmp_path_factory):
    """A study that two have done a batch for and one has begun; the ids."""
    study = world_study(tmp_path_factory.mktemp("working"), modes=("text", "cut-out"), target_answers=2)
    rng = np.random.default_rng(0)
    people = (Person("pc"), Person("mobile", missed=(0, 1)), Person("pc", leaves_after=1))
    with open_store(study) as store:
        return study, [take_part(study, store, person, rng) for person in people]


def test_words_and_bars(hardlook, working):
    answer = hardlook("collect", "status", working[0].path)
    assert answer.code == 0, answer.err
    lines = [" ".join(line.split()) for line in answer.out.splitlines()]
    assert lines[0] == "Scenes: 4 of 32 valid clicks"
    assert f"all {'━' * 3}{'─' * 21} 4 of 32 (12 %), 4 under way" in lines
    assert f"pc {'━' * 6}{'─' * 18} 4 of 16 (25 %), 4 under way" in lines
    assert f"mobile {'─' * 24} 0 of 16 (0 %)" in lines
    assert any(line.startswith("cut-out, mobile ") for line in lines)
    assert "0 of 4 tasks done; 9 answers came in." in lines
    assert "3 participants: 0 at work in the last quarter of an hour, 0 finished." in lines
    assert "Batches: 1 open, 1 valid, 1 dropped, 0 given up." in lines
    # Four a batch so far on a PC, and as many hoped for on mobile devices: 12 and 16 are missing.
    assert lines[-1] == "About 7 more batches are needed: 3 on pc, 4 on mobile."


def test_numbers(hardlook, working):
    found = json.loads(hardlook("collect", "status", working[0].path, "--json").out)
    assert (found["valid"], found["pending"], found["wanted"]) == (4, 4, 32)
    assert found["batches_needed"] == {"all": 7, "pc": 3, "mobile": 4}


def test_whose_a_code_is(hardlook, working):
    study, ids = working
    code = derive_completion_code(study.secret, ids[1])
    answer = hardlook("collect", "status", study.path, "--code", code.lower())
    assert answer.code == 0, answer.err
    found = json.loads(hardlook("collect", "status", study.path, "--code", code, "--json").out)
    assert f"The code is that of participant {found['number']} (mobile)." in answer.out
    assert "4 answers in 1 batch: 0 valid, 1 dropped, 0 given up, 0 open. There was more to do." in answer.out
    assert "50 % of the clicks lie inside." in answer.out and found["dropped_batches"] == 1
    assert ids[1] not in answer.out
    unknown = hardlook("collect", "status", study.path, "--code", "A" * 12)
    assert unknown.code == 1 and "no participant of this study" in unknown.err and unknown.out == ""


def test_a_study_that_was_never_served(hardlook, tmp_path):
    study = world_study(tmp_path, devices=("pc",))
    answer = hardlook("collect", "status", study.path)
    assert answer.code == 0 and "Scenes: 0 of 44 valid clicks" in answer.out
    assert "About 11 more batches are needed." in answer.out and "pc" not in answer.out


@pytest.mark.parametrize(("done", "wanted", "filled"), [(0, 0, 24), (0, 9, 0), (9, 9, 24), (8, 9, 21), (999, 1000, 23)])
def test_a_bar_is_full_when_all_is_done(done, wanted, filled):
    assert format_bar(done, wanted) == "━" * filled + "─" * (24 - filled)


def test_who_trained_is_counted_where_there_is_training(hardlook, tmp_path):
    study = world_study(tmp_path, training_tasks=1)
    with open_store(study) as store:
        for number in range(2):
            joined = store.join(None, "en", 10.0 + number)
        store.set_trained(joined.id, 20.0)
    assert "2 participants: 1 trained, 0 at work" in hardlook("collect", "status", study.path).out


class Answering:
    """Ratings over the wire, on one or several servers of a study."""

    def __init__(self, address):
        self.address = address
        page, text = ask(address, "GET", "/")
        token = re.search('name="csrf" value="([^"]+)"', text)[1]
        fields = urlencode({"csrf": token, "token": "", "agree": "yes", "language": "en"})
        form = {"Cookie": page.headers["set-cookie"].partition(";")[0], "Content_Type": FORM}
        joined, _ = ask(address, "POST", "/join", fields, **form)
        self.own = {"Cookie": joined.headers["set-cookie"].partition(";")[0], "Content_Type": "application/json"}
        self.own["X_CSRF_Token"] = json.loads(ask(address, "GET", "/api/state", **self.own)[1])["csrf"]

    def send(self, path, body, address=None):
        reply, text = ask(address or self.address, "POST", path, json.dumps(body), **self.own)
        assert reply.status == 200, text
        return json.loads(text)

    def answer(self, trial, address=None):
        self.send(f"/api/trials/{trial}/show", {}, address)
        return self.send("/api/answers", {"key": f"key-{trial}", "trial": trial, "value": 7}, address)

    def take_batch(self, address=None):
        return [trial["id"] for trial in self.send("/api/batch", {}, address)["batch"]["trials"]]


FORM = "application/x-www-form-urlencoded"


def start_server(folder, *words):
    command = [*hardlook_command(), "collect", "serve", str(folder), "--port", "0", "--json", *map(str, words)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return server, json.loads(server.stdout.readline())["address"]


@pytest.fixture
def open_ratings(serve_study):
    settings = json.loads((serve_study / "study.json").read_text())
    open_to_all = {"open_link": True, "training_tasks": 0, "least_answer_seconds": 0}
    (serve_study / "study.json").write_text(json.dumps({**settings, **open_to_all}))
    return serve_study


def test_after_sigterm_the_file_alone_has_all_answers(open_ratings, tmp_path):
    server, address = start_server(open_ratings)
    person = Answering(address)
    trials = person.take_batch()
    # Another program has the file open, as a backup or a status command may.
    with closing(sqlite3.connect(open_ratings / "answers.sqlite")) as other:
        other.execute("SELECT count(*) FROM answers").fetchone()
        assert person.answer(trials[0])["stored"]
        server.terminate()
        _, errors = server.communicate(timeout=30)
        assert server.returncode == 143 and errors == ""
        shutil.copy(open_ratings / "answers.sqlite", tmp_path / "alone.sqlite")
    with closing(sqlite3.connect(tmp_path / "alone.sqlite")) as alone:
        assert alone.execute("SELECT value FROM answers").fetchall() == [(7,)]


def test_a_backup_while_it_is_served(hardlook, open_ratings, tmp_path):
    server, address = start_server(open_ratings)
    try:
        person = Answering(address)
        trials = person.take_batch()
        person.answer(trials[0])
        done = hardlook("collect", "backup", open_ratings, "--out", tmp_path / "copy")
        assert (done.code, done.out) == (0, f"1 answer: {tmp_path / 'copy'}\n"), done.err
        person.answer(trials[1])
        again = hardlook("collect", "backup", open_ratings, "--out", tmp_path / "copy")
        assert again.code == 1 and "there is something already" in again.err
        named = hardlook("collect", "backup", open_ratings, "--no-pictures")
        assert named.code == 0 and re.search(r"2 answers: .*/study-backup-\d{8}-\d{6}\n", named.out)
    finally:
        server.kill()
        server.communicate()
    assert "1 answer came in" in hardlook("collect", "status", tmp_path / "copy").out


def test_two_servers_on_one_postgresql(open_ratings, postgres_url):
    """People change between servers, which know the same participants, batches and answers."""
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE two_servers")
    url = postgres_url.replace("/postgres?", "/two_servers?")
    servers = [start_server(open_ratings, "--database", url) for _ in range(2)]
    try:
        (first, one), (_, two) = servers
        ann, ben = Answering(one), Answering(two)
        trials = ann.take_batch()
        # The other server hands out the same open batch, and takes answers to it; each counts once.
        assert ann.take_batch(two) == trials
        assert ann.answer(trials[0], two)["stored"]
        repeated = ann.send("/api/answers", {"key": f"key-{trials[0]}", "trial": trials[0], "value": 7}, one)
        assert repeated["stored"] and repeated["answered"] == 1
        assert set(ben.take_batch()).isdisjoint(trials)
        # One server goes: its people go on at the other.
        first.terminate()
        first.communicate(timeout=30)
        assert ann.answer(trials[1], two)["batch_complete"]
        for trial in ben.take_batch(two):
            ben.answer(trial, two)
    finally:
        for server, _ in servers:
            server.kill()
            server.communicate()
    assert_counts_are_true(url, target=2)


@pytest.fixture
def leaving(tmp_path):
    """A study with three people, of whom the last only joined; the ids."""
    study = world_study(tmp_path, target_answers=2)
    rng = np.random.default_rng(0)
    with open_store(study) as store:
        ids = [take_part(study, store, Person("pc"), rng) for _ in range(2)]
        ids.append(store.join("their-invitation", "en", 1e9, {"PROLIFIC_PID": "5f1a"}).id)
    return study, ids


def test_deleting_by_what_people_know(hardlook, leaving, monkeypatch):
    study, ids = leaving
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n" * 5 + "y\n"))
    link = f"https://study.example/join/{sign_token(study.secret, 'invitation', {'i': 'their-invitation'}, 5.0)}"
    kept = hardlook("collect", "delete", study.path, "--link", link)
    assert kept.code == 1 and "0 answers in 0 batches" in kept.out and "is deleted" not in kept.out
    by_code = hardlook("collect", "delete", study.path, "--code", derive_completion_code(study.secret, ids[0]), "--yes")
    assert by_code.code == 0 and "is deleted" in by_code.out, by_code.err
    for words in (("--platform-id", "5f1a"), ("--link", link), ("--id", ids[2]), ("--number", "3")):
        found = hardlook("collect", "delete", study.path, *words)
        assert found.out.startswith("Participant 3:"), found.err
    assert "Participant 3 is deleted." in hardlook("collect", "delete", study.path, "--link", link).out
    assert "1 participant: " in hardlook("collect", "status", study.path).out
    assert ", 2 deleted on request." in hardlook("collect", "status", study.path).out
    status = json.loads(hardlook("collect", "status", study.path, "--json").out)
    assert status["participants"]["joined"] == 1 and status["participants"]["deleted"] == 2
    assert hardlook("collect", "export", study.path, "--out", study.path / "out", "-q").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no option names the participant"),
        (("--number", 1, "--id", "x"), "several options name the participant"),
        (("--number", 9), "no participant of this study has the number '9'"),
        (("--code", "A" * 12), "has the completion code"),
        (("--id", "0" * 32), "has the reference"),
        (("--link", "https://x/join/forged.token"), "has the invitation link"),
        (("--platform-id", "nobody"), "has the platform's id"),
    ],
)
def test_nobody_is_deleted_by_mistake(hardlook, leaving, words, message):
    answer = hardlook("collect", "delete", leaving[0].path, *words, "--yes")
    assert answer.code == 1 and message in answer.err and "remedy" in answer.err
    with open_store(leaving[0]) as store:
        assert store.participants().height == 3


def test_an_address_of_all_interfaces_can_be_opened(hardlook, serve_study, quiet):
    answer = hardlook("collect", "serve", serve_study, "--host", "0.0.0.0", "--port", 0, "--json")
    address = urlsplit(json.loads(answer.out)["address"])
    assert address.hostname != "0.0.0.0"
    socket.create_connection((address.hostname, address.port), timeout=5).close()
