"""A study with a crowd of known ways, its dashboard behind the real application, and a clock that tests turn."""

from __future__ import annotations

import html
import re

import pytest
from research_crowd import Person, clicks_study, open_store, take_part
from research_recount import clicks, qualities

from hardlook.collect.research import snapshot

pytest.importorskip("starlette", reason="the extra web is not installed")

pytest.importorskip("sqlalchemy", reason="the extra web is not installed")

KEY = "the researchers' own key"

BASE = "http://127.0.0.1:8000"

PEOPLE = {
    "left": Person("pc", batches=2, leaves=1),
    "careless": Person("pc", "oooi", reaction=120.0, early=2, batches=2),
    "slow": Person("mobile", late=190.0),
    **{f"pc-{i}": Person("pc", "iiinio", batches=2) for i in range(4)},
    **{f"mobile-{i}": Person("mobile", "iiiin", reaction=1400.0, batches=2) for i in range(4)},
    "absent": Person("pc", batches=0),
}


@pytest.fixture(scope="session", autouse=True)
def patience():
    """On a busy machine a reading may take long; pages wait for it here."""
    patch = pytest.MonkeyPatch()
    patch.setattr(snapshot, "WAIT_SECONDS", 60.0)
    yield
    patch.undo()


class Clock:
    """Seconds that stand still until a test turns them on."""

    def __init__(self, now: float = 10_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Researcher:
    """A browser without scripts that keeps cookies."""

    def __init__(self, app, clock) -> None:
        from starlette.testclient import TestClient

        self.clock = clock
        self.client = TestClient(app, base_url=BASE, follow_redirects=False)

    def log_in(self) -> Researcher:
        answer = self.client.post("/research/login", data={"key": KEY})
        assert answer.status_code == 303
        return self

    def get(self, address: str):
        return self.client.get(address)

    def page(self, address: str) -> str:
        answer = self.client.get(address)
        assert answer.status_code == 200, answer.text
        return answer.text

    def words(self, address: str) -> str:
        return words(self.page(address))

    def token(self, address: str = "/research/links") -> str:
        return re.search(r'name="token" value="([^"]+)"', self.page(address))[1]

    def post(self, address: str, token: str | None = None, **fields):
        own = self.token() if token is None else token
        return self.client.post(address, data={"token": own, **fields})


def words(page: str) -> str:
    """The page without markup, as a reader sees it."""
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page)).split())


def tables(page: str) -> dict[str, list[list[str]]]:
    """The rows of each table, header first, by the table's label or its place."""
    found = {}
    for number, match in enumerate(re.finditer("<table([^>]*)>(.*?)</table>", page, re.DOTALL)):
        label = re.search('aria-label="([^"]*)"', match[1])
        rows = re.findall("<tr[^>]*>(.*?)</tr>", match[2], re.DOTALL)
        cells = [[words(cell) for cell in re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)] for row in rows]
        found[html.unescape(label[1]) if label else str(number)] = cells
    return found


def crowd(folder, people=PEOPLE, **settings):
    """A study in which these people took part, with its open store: (study, store, ids by name)."""
    study = clicks_study(folder, **settings)
    store, ids = open_store(study), {}
    for name, person in people.items():
        ids[name] = take_part(study, store, person, now=1000.0 + 700 * len(ids))
    return study, store, ids


def dashboard(study, store, clock=None):
    from hardlook.collect.web.app import make_app

    clock = clock or Clock()
    return Researcher(make_app(study, store, research_key=KEY, clock=clock), clock)


@pytest.fixture(scope="session")
def gathered(tmp_path_factory):
    study, store, ids = crowd(tmp_path_factory.mktemp("gathered") / "study")
    yield study, store, ids
    store.close()


@pytest.fixture(scope="session")
def recounted(gathered):
    """The study's participants and clicks, counted row by row."""
    return qualities(gathered[0]), clicks(gathered[0])


@pytest.fixture
def researcher(gathered):
    """A logged-in researcher; rules that a test saves are deleted at its end."""
    study, store, _ = gathered
    yield dashboard(study, store).log_in()
    store.set_rules({})
