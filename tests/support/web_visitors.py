"""A served study without a socket, and browsers that visit it: what they send is as bytes on the wire."""

import asyncio
import html
import json
import logging
import re
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes, urlencode

import cv2
import numpy as np

from hardlook.collect.store.store import Store
from hardlook.collect.web.app import make_app

KEY = "a-key-that-only-researchers-have"

HOST = "127.0.0.1:8000"

JSON, FORM = "application/json", "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict = field(default_factory=dict)
    content: bytes = b""
    cookies: tuple = ()

    @property
    def text(self):
        return self.content.decode()

    @property
    def json(self):
        return json.loads(self.content)

    @property
    def error(self):
        return self.json["error"]


class StudyApp:
    """A study, its store, a clock that is turned by hand, and the application over them."""

    def __init__(self, study, database, **options):
        self.study, self.now = study, 1_000_000.0
        self.database = database
        self.store = Store.open(database)
        self.store.prepare(study.stored_items, study.settings.devices, study.fingerprint)
        self.app = make_app(study, self.store, research_key=KEY, clock=lambda: self.now, **options)

    def close(self):
        self.store.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def visitor(self, **options):
        return Visitor(self, **options)

    def right_click(self, trial):
        """A point inside of the region of a trial, whoever has it."""
        for who in self.store.participants()["id"]:
            if found := self.store.trial(who, trial):
                x, y = middle_of(self.study, self.study.by_id[found.item.task])
                return {"x": x, "y": y}
        raise AssertionError(f"nobody has the trial {trial}")

    def participant(self, device="pc", **options):
        """A visitor who has joined, and in a study of clicks chosen a device and done the training."""
        visitor = Visitor(self, **options)
        assert visitor.join().status == 303
        if self.study.settings.kind == "clicks":
            assert visitor.post("/api/device", {"device": device, "pointer": "mouse"}).status == 200
        visitor.practise()
        return visitor


def ask(app, method, address, headers, body=b"", *, client="127.0.0.1", scheme="http", chunks=None, patient=True):
    """One request to the application; `chunks` come one after another, and without `patient` the last never does."""
    path, _, query = address.partition("?")
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": scheme}
    # As uvicorn does: percents are undone, and what is no UTF-8 is replaced.
    decoded = unquote_to_bytes(path).decode("utf-8", "replace")
    scope |= {"path": decoded, "raw_path": path.encode(), "query_string": query.encode("latin-1"), "headers": headers}
    scope |= {"root_path": "", "server": ("127.0.0.1", 8000), "client": (client, 50_000)}
    parts = list(chunks) if chunks is not None else [body]
    sent = []

    async def receive():
        if not parts:
            await asyncio.sleep(3600)
        last = len(parts) == 1 and patient
        return {"type": "http.request", "body": parts.pop(0), "more_body": not last}

    async def send(message):
        sent.append(message)

    try:
        # A server that waits for ever is to fail a test, not to hold it up.
        asyncio.run(asyncio.wait_for(app(scope, receive, send), 30))
    except Exception:
        # As a server does: what is raised once the answer is sent goes to the log.
        if not sent:
            raise
        logging.getLogger("server").exception("after the answer")
    pairs = [(name.decode().lower(), value.decode("latin-1")) for name, value in sent[0]["headers"]]
    content = b"".join(message.get("body", b"") for message in sent[1:])
    cookies = tuple(value for name, value in pairs if name == "set-cookie")
    return Reply(sent[0]["status"], dict(pairs), content, cookies)


class Visitor:
    """A browser: it keeps cookies, says its origin, and sends the token that it was given."""

    def __init__(self, study_app, *, client="127.0.0.1", host=HOST, origin=f"http://{HOST}"):
        self.study_app, self.client, self.host, self.origin = study_app, client, host, origin
        self.cookies, self.csrf = {}, ""

    def send(self, method, address, body=b"", *, kind=None, headers=(), **options):
        named = [(b"host", self.host.encode())]
        if self.cookies:
            named.append((b"cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()).encode()))
        if kind:
            named.append((b"content-type", kind.encode()))
        named += [(name.encode(), value.encode("latin-1")) for name, value in headers]
        reply = ask(self.study_app.app, method, address, named, body, client=self.client, **options)
        for cookie in reply.cookies:
            name, _, rest = cookie.partition("=")
            self.cookies[name] = rest.partition(";")[0]
        return reply

    def get(self, address, **options):
        return self.send("GET", address, **options)

    def post(self, address, body, *, csrf=None, origin=None, kind=JSON, headers=(), **options):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        own = [("origin", self.origin if origin is None else origin)]
        own.append(("x-csrf-token", self.csrf if csrf is None else csrf))
        return self.send("POST", address, content, kind=kind, headers=[*own, *headers], **options)

    def form(self, address, fields, *, origin=None):
        own = [("origin", self.origin if origin is None else origin)]
        return self.send("POST", address, urlencode(fields).encode(), kind=FORM, headers=own)

    def join(self, address="/", **changes):
        """Open a link, agree, and read the state."""
        page = self.get(address)
        if page.status != 200:
            return page
        fields = {name: html.unescape(value) for name, value in HIDDEN.findall(page.text)}
        reply = self.form("/join", {**fields, "agree": "yes", **changes})
        if reply.status == 303:
            self.csrf = self.get("/api/state").json["csrf"]
        return reply

    def practise(self):
        """Answer each trial of the training round twice, after which one may go on, right or not."""
        clicks = self.study_app.study.settings.kind == "clicks"
        for trial in self.get("/api/state").json["training"]:
            for _ in range(2):
                assert self.show(trial).status == 200
                self.study_app.now += 6 if clicks else 0
                answer = {"x": 0.0, "y": 0.0} if clicks else {"value": 1}
                assert self.post("/api/training", {"trial": trial, **answer}).status == 200
        assert self.post("/api/trained", {}).status == 200

    def batch(self):
        return self.post("/api/batch", {}).json

    def show(self, trial):
        return self.post(f"/api/trials/{trial}/show", {})

    def do_batch(self, seconds=5.5, value=None):
        """Take a batch and answer all of it, rightly in a study of clicks, one task after another; the last reply."""
        app, reply = self.study_app, None
        for trial in self.batch()["batch"]["trials"]:
            self.show(trial["id"])
            app.now += seconds
            reply = self.answer(trial["id"], **(app.right_click(trial["id"]) if value is None else {"value": value}))
            assert reply.status == 200
        return reply

    def answer(self, trial, **fields):
        body = {"key": f"key-{trial}", "trial": trial, **fields}
        return self.post("/api/answers", body)


HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


def session_cookie(visitor):
    """Name and value of a visitor's session cookie."""
    return next((name, value) for name, value in visitor.cookies.items() if "session" in name)


def middle_of(study, task):
    """A point well inside of a task's mask, (x, y)."""
    mask = cv2.imread(str(study.file(task.mask)), cv2.IMREAD_GRAYSCALE) > 0
    distance = cv2.distanceTransform(np.pad(mask.astype(np.uint8), 1), cv2.DIST_L2, 5)[1:-1, 1:-1]
    row, column = np.unravel_index(distance.argmax(), mask.shape)
    assert mask[row, column]
    return float(column) + 0.25, float(row) + 0.75
