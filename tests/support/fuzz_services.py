"""Run folders, studies and web servers: how to make a small valid one, and how to use it to the end."""

import functools
import hashlib
import json
from pathlib import Path
from urllib.parse import urlencode

import polars as pl
from fuzz_engine import Reader

# Run folders


@functools.cache
def _benchmark():
    from hardlook.harness.registry import find_benchmark

    return find_benchmark("closed-miou")


def make_run(folder):
    from small_runs import small_run

    run = folder / "runs" / "a"
    small_run(run, scenes=6, given={"resamples": 10})
    pl.concat([pl.read_parquet(part) for part in sorted((run / "records").glob("part-*.parquet"))]).write_parquet(
        folder / "part.parquet"
    )
    place_in_run(folder, "part.parquet", (folder / "part.parquet").read_bytes())
    from hardlook.harness.runs.folder import RunFolder
    from hardlook.harness.runs.record_store import Failure, RecordWriter

    writer = RecordWriter(
        RunFolder(run), _benchmark().schema, json.loads((run / "run.json").read_text())["answers"]["fingerprint"]
    )
    writer.add([], [Failure("scene-x", "evaluate", "ValueError: no", "Traceback")])
    writer.flush()
    (failed,) = (run / "failures").iterdir()
    failed.rename(folder / "failed.parquet")
    (session,) = (run / "sessions").iterdir()
    session.rename(run / "sessions" / "one.json")
    # Without checksums, as earlier versions and strangers write them: damage gets past the first look.
    for path in (run / "run.json", run / "scores.json", run / "sessions" / "one.json"):
        document = json.loads(path.read_text())
        document.pop("checksum", None)
        path.write_text(json.dumps(document))


RUN_FILES = (
    "runs/a/run.json",
    "runs/a/run.json",
    "runs/a/scores.json",
    "runs/a/sessions/one.json",
    "part.parquet",
    "failed.parquet",
)


def place_in_run(folder, name, data):
    """A part of the records is named by its content, as a stranger would name it too."""
    if name == "part.parquet" or name == "failed.parquet":
        target = folder / "runs" / "a" / ("records" if name == "part.parquet" else "failures")
        target.mkdir(exist_ok=True)
        name = f"part-{hashlib.blake2b(data, digest_size=12).hexdigest()}.parquet"
        for path in target.glob("part-*.parquet"):
            path.unlink()
        (target / name).write_bytes(data)
    else:
        (folder / name).write_bytes(data)


def read_run(folder):
    """What `score`, `compare`, `leaderboard` and the explorer do with a run folder."""
    from hardlook.harness.runs.folder import RunFolder
    from hardlook.harness.runs.scoring import score_run
    from hardlook.harness.runs.sessions import gather_sessions
    from hardlook.report.explorer.run_data import RunData
    from hardlook.report.explorer.run_records import build_record_frame, read_whole_record
    from hardlook.report.leaderboard.runs import collect_runs

    for listed in collect_runs(folder / "runs").runs.get("closed-miou", ()):
        assert listed.date is not None
    data = RunData(folder / "runs")
    for listed in data.index.runs():
        listed.benchmark, listed.method, listed.settings  # noqa: B018
        if not data.problem(listed):
            listed.units  # noqa: B018
            state = data._read_state(listed)
            frame = build_record_frame(state)
            for row in frame.head(2).iter_rows(named=True):
                read_whole_record(state, row)
    run = RunFolder(folder / "runs" / "a")
    scored = score_run(run, {"resamples": 0})
    scored.scorecard.to_json()
    scored.whole_records(scored.records["unit"].to_list()[:2])
    gather_sessions(run)


COMPARED_FILES = ("runs/a/run.json", "runs/a/scores.json", "part.parquet")


def read_compared(folder):
    from hardlook.api.several_models import read_scorecards
    from hardlook.report.compare.comparison import read_runs

    read_scorecards([folder / "runs" / "a"])
    read_runs([folder / "runs" / "a"])


# Studies


def make_study_files(folder):
    from played_studies import make_click_study, make_rating_study, make_review_study

    make_click_study(folder / "clicks", count=2, training=1)
    make_review_study(folder / "review", count=2)
    make_rating_study(folder / "ratings", count=2)
    (folder / "rules.json").write_text(json.dumps({"least_inside": 0.6, "most_early_share": 0.2}))
    (folder / "words.csv").write_text("full_stem,description\nllama,the llama on the left\nowl,an owl\n")
    mask = next((folder / "clicks" / "masks").iterdir())
    mask.rename(folder / "mask.png")
    (folder / "clicks" / "masks" / mask.name).write_bytes((folder / "mask.png").read_bytes())


STUDY_FILES = (
    "clicks/study.json", "clicks/tasks.jsonl", "clicks/made.json", "clicks/secret.key", "review/study.json",
    "review/tasks.jsonl", "ratings/tasks.jsonl", "rules.json", "words.csv", "mask.png",
)  # fmt: skip


def read_studies(folder):
    from hardlook.collect.results.exclusion_rules import read_rules
    from hardlook.collect.study.folder import check_complete, open_study
    from hardlook.collect.study.instances import read_descriptions
    from hardlook.collect.study.pictures import read_mask

    for name in ("clicks", "review", "ratings"):
        study = open_study(folder / name)
        check_complete(study)
        study.fingerprint, study.items  # noqa: B018
    read_rules(folder / "rules.json")
    read_descriptions(folder / "words.csv")
    read_mask(folder / "mask.png")


# Web servers: a request is a file with a line for method and address, lines for headers, an empty line and a body


def make_requests(*texts):
    def make(folder):
        for number, text in enumerate(texts):
            (folder / f"request-{number}").write_text(text)

    return make


def send_request(app, data):
    """Send the bytes of a request as a server would; the status."""
    from web_visitors import ask

    head, _, body = data.partition(b"\n\n")
    line, *rest = head.split(b"\n")
    method, _, address = line.partition(b" ")
    headers = [(b"host", b"127.0.0.1:8000")]
    for one in rest:
        name, _, value = one.partition(b":")
        headers.append((name.strip().lower(), value.strip()))
    reply = ask(
        app, method.decode("latin-1"), address.decode("latin-1").encode("ascii", "replace").decode(), headers, body
    )
    return reply


def list_changed_requests(folder, texts):
    """The requests that are damaged; all of them where none is."""
    stored = [(folder / name).read_bytes() for name in list_requests(texts)]
    return [data for data, text in zip(stored, texts, strict=True) if data != text.encode()] or stored


def check_reply(reply):
    assert 200 <= reply.status < 500, f"status {reply.status}: {reply.content[:300]!r}"


@functools.cache
def explorer_app():
    import tempfile

    from small_runs import small_run

    from hardlook.report.explorer.app import make_app

    root = Path(tempfile.mkdtemp(prefix="hardlook-fuzz-runs-"))
    small_run(root / "a", scenes=4, given={"resamples": 10})
    small_run(root / "b", scenes=4, args={}, given={"resamples": 10})
    return make_app(root)


KEYS = tuple(hashlib.blake2b(name, digest_size=6).hexdigest() for name in (b"a", b"b"))
EXPLORER = (
    f"GET /run/{KEYS[0]}?q=scene&sort=image-miou&order=down&page=1&size=20&min.labels=0&is.context==x\naccept: */*\n\n",
    f"GET /run/{KEYS[0]}/unit?id=scene-0001&sort=unit&order=up\ncookie: a=b\n\n",
    f"GET /run/{KEYS[0]}/picture?id=scene-0001&number=0&overlay=on\n\n",
    f"GET /compare?first={KEYS[0]}&second={KEYS[1]}&quality=image-miou\n\n",
    "HEAD /\n\n",
)


def read_explorer_requests(folder):
    for data in list_changed_requests(folder, EXPLORER):
        check_reply(send_request(explorer_app(), data))


@functools.cache
def study_visitors():
    """An application over a study of each kind, and a participant who has joined, seen a trial, and is a researcher."""
    import tempfile

    from played_studies import make_click_study, make_rating_study, make_review_study
    from web_visitors import HIDDEN, KEY, StudyApp

    made = []
    root = Path(tempfile.mkdtemp(prefix="hardlook-fuzz-studies-"))
    limits = {"limits": {"per_participant": 1_000_000, "per_address": 1_000_000}}
    for name, make in (("clicks", make_click_study), ("review", make_review_study), ("ratings", make_rating_study)):
        study = make(root / name, count=2, **limits, **({"training": 1} if name == "clicks" else {}))
        study = study[0] if isinstance(study, tuple) else study
        app = StudyApp(study, f"sqlite:///{root / name / 'answers.sqlite'}")
        visitor = app.visitor()
        assert visitor.join().status == 303
        if name == "clicks":
            visitor.post("/api/device", {"device": "pc", "pointer": "mouse"})
        training = visitor.get("/api/state").json["training"]
        visitor.practise()
        trials = [one["id"] for one in visitor.batch()["batch"]["trials"]]
        visitor.show(trials[0])
        visitor.show(trials[1])
        app.now += 10.0
        assert visitor.form("/research/login", {"key": KEY}).status == 303
        token = dict(HIDDEN.findall(visitor.get("/research/rules").text))["token"]
        fields = dict(HIDDEN.findall(app.visitor().get("/").text))
        words = {
            b"FIELDS": urlencode(fields),
            b"TOKEN": token,
            b"TRIAL": trials[0],
            b"OTHER": trials[1],
            b"PRACTICE": (training or trials)[0],
            b"TASK": study.tasks[0].id,
        }
        made.append((app, visitor, {name: value.encode() for name, value in words.items()}))
    return made


AS_JSON = "content-type: application/json\n\n"
AS_FORM = "content-type: application/x-www-form-urlencoded\n\n"
ANSWER = {
    "key": "k" * 16, "trial": "TRIAL", "x": 3.5, "y": 4.0, "early": 0, "reaction_ms": 120.5,
    "durations": {"image": 1500.0}, "circumstances": {"pointer": "mouse", "ratio": 1.0},
}  # fmt: skip
COLLECT = (
    f"POST /api/answers\n{AS_JSON}{json.dumps(ANSWER)}",
    f'POST /api/answers\n{AS_JSON}{{"key": "kkkkkkkkkkkkkkkk", "trial": "TRIAL", "value": 1}}',
    f"POST /api/trials/OTHER/show\n{AS_JSON}{{}}",
    f'POST /api/language\n{AS_JSON}{{"language": "de"}}',
    f'POST /api/device\n{AS_JSON}{{"device": "pc", "pointer": "mouse"}}',
    f'POST /api/training\n{AS_JSON}{{"trial": "PRACTICE", "x": 1.0, "y": 2.0}}',
    "GET /pictures/OTHER/image?a=b\n\n",
    "GET /api/state\naccept-language: de\n\n",
    "GET /?invitation=abc&language=de\n\n",
    f"POST /join\n{AS_FORM}agree=yes&FIELDS",
    "GET /research/images?page=1&sort=most&below=9\n\n",
    "GET /research/images/TASK?mode=cut-out\n\n",
    "GET /research/pictures/TASK/small\n\n",
    "GET /research/participants?page=1&sort=answers&order=down\n\n",
    f"POST /research/rules\n{AS_FORM}least_inside=0.5&token=TOKEN",
    f"POST /research/login\n{AS_FORM}key=abc",
)


def read_collect_requests(folder):
    for app, visitor, words in study_visitors():
        cookie = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items()).encode()
        own = b"\norigin: http://127.0.0.1:8000\nx-csrf-token: " + visitor.csrf.encode() + b"\ncookie: " + cookie
        for data in list_changed_requests(folder, COLLECT):
            for word, value in words.items():
                data = data.replace(word, value)
            head, _, body = data.partition(b"\n\n")
            check_reply(send_request(app.app, head + own + b"\n\n" + body))
        app.now += 1.0


def list_requests(texts):
    return tuple(f"request-{number}" for number in range(len(texts)))


SERVICE_READERS = (
    Reader("run", make_run, RUN_FILES, read_run, 0.2, place_in_run),
    Reader("run-compared", make_run, COMPARED_FILES, read_compared, 0.2, place_in_run),
    Reader("studies", make_study_files, STUDY_FILES, read_studies),
    Reader("explorer-requests", make_requests(*EXPLORER), list_requests(EXPLORER), read_explorer_requests, 0.4),
    Reader("collect-requests", make_requests(*COLLECT), list_requests(COLLECT), read_collect_requests, 0.4),
)  # fmt: skip
