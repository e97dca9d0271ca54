"""The researchers' door: one key, few tries, forms that are ours."""

import pytest
from starlette.requests import Request

from hardlook.collect.web.gate import HOURS, TRIES_A_MINUTE, Gate, research_key
from hardlook.collect.web.refusals import Refused
from hardlook.collect.web.sessions import Sessions

KEY = "the-key-of-the-researchers"
SECRET = bytes(range(32))


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def gate(clock):
    return Gate(Sessions(SECRET), KEY, address_of=lambda request: request.client.host, clock=clock)


def request(cookie="", *, client="127.0.0.1", **headers):
    named = {"host": "127.0.0.1:8000", **({"cookie": cookie} if cookie else {}), **headers}
    pairs = [(name.encode(), value.encode()) for name, value in named.items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": pairs, "client": (client, 1)})


def cookie_of(response):
    return response.headers["set-cookie"].partition(";")[0]


def test_the_key_opens_until_evening(gate, clock):
    response = gate.log_in(request(), KEY)
    assert (response.status_code, response.headers["location"]) == (303, "/research")
    assert {"httponly", "samesite=strict"} <= {
        part.strip().lower() for part in response.headers["set-cookie"].split(";")
    }
    inside = request(cookie_of(response))
    assert gate.researcher(inside) and not gate.researcher(request())
    clock.now += HOURS * 3600
    assert not gate.researcher(inside)


@pytest.mark.parametrize("key", ["", KEY[:-1], KEY + "x", KEY.upper(), "é", "\0", "' OR 1=1 --", "x" * 2000])
def test_another_key_opens_nothing(gate, key):
    with pytest.raises(Refused) as refused:
        gate.log_in(request(), key)
    assert refused.value.status == 403 and (not key or key not in refused.value.message)


def test_tries_are_few(gate, clock):
    def tried(client, key="wrong"):
        with pytest.raises(Refused) as refused:
            gate.log_in(request(client=client), key)
        return refused.value.status

    assert [tried("1.1.1.1") for _ in range(TRIES_A_MINUTE)] == [403] * TRIES_A_MINUTE
    # The right key as well: else a thief would know by the answer.
    assert tried("1.1.1.1", KEY) == 429
    clock.now += 60
    assert gate.log_in(request(client="1.1.1.1"), KEY).status_code == 303


def test_one_stranger_does_not_lock_the_researchers_out(gate):
    for _ in range(20 * TRIES_A_MINUTE):
        with pytest.raises(Refused):
            gate.log_in(request(client="1.1.1.1"), "wrong")
    assert gate.log_in(request(client="2.2.2.2"), KEY).status_code == 303


def test_forms_belong_to_one_researcher_and_our_own_page(gate):
    one, two = (request(cookie_of(gate.log_in(request(), KEY))) for _ in range(2))
    token = gate.form_token(one)
    assert gate.form_ok(one, token) and not gate.form_ok(two, token)
    assert not gate.form_ok(one, "") and not gate.form_ok(one, "é") and not gate.form_ok(request(), token)
    assert not gate.form_ok(request(), gate.form_token(request()))
    cookie = one.headers["cookie"]
    assert gate.form_ok(request(cookie, origin="http://127.0.0.1:8000"), token)
    assert not gate.form_ok(request(cookie, origin="https://evil.example"), token)
    assert not gate.form_ok(request(cookie, **{"sec-fetch-site": "cross-site"}), token)


def test_another_key_or_study_ends_all_sessions(gate, clock):
    inside = request(cookie_of(gate.log_in(request(), KEY)))
    for sessions, key in ((Sessions(SECRET), KEY + "!"), (Sessions(bytes(32)), KEY)):
        assert not Gate(sessions, key, clock=clock).researcher(inside)


def test_logging_out_forgets_the_cookie(gate):
    response = gate.log_out(request(cookie_of(gate.log_in(request(), KEY))))
    assert "max-age=0" in response.headers["set-cookie"].lower()


def test_keys_are_long(clock):
    with pytest.raises(ValueError, match="at least 16"):
        Gate(Sessions(SECRET), "short", clock=clock)
    assert len(research_key(SECRET)) == 32


def test_the_printed_link_opens_the_dashboard_and_a_wrong_one_does_not(hall):
    from .visitors import KEY as OURS

    visitor = hall.visitor()
    assert visitor.get("/research").status == 403
    assert visitor.get("/research/key/wrong-wrong-wrong-wrong").status == 403
    assert visitor.get(f"/research/key/{OURS}").headers["location"] == "/research"
    assert visitor.get("/research").status == 200
