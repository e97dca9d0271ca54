"""Strangers see nothing, forms from elsewhere do nothing, and no name runs as script."""

import re

import pytest
from research_crowd import Person

from hardlook.collect.research.dashboard import list_research_routes

from .conftest import KEY, crowd, dashboard

SCRIPT = "<script>window.hacked=1</script>"

QUOTE = '" autofocus onfocus=window.hacked=1 x="'

IMAGE = "<img src=x onerror=window.hacked=1>"

PAGES = ("", "/participants", "/participants/1/delete", "/images", "/images/t000001", "/rules", "/export", "/links")

FILES = ("/pictures/t000001/whole", "/pictures/t000001/small", "/export/files.zip", "/payments.csv")

FORMS = ("/rules", "/export", "/links", "/participants/1/delete")

OPEN = {"/research/login", "/research/style.css", "/research/research.js", "/research/icon.svg"}


@pytest.fixture
def stranger(gathered):
    study, store, _ = gathered
    return dashboard(study, store)


@pytest.mark.parametrize("page", (*PAGES, *FILES))
def test_nothing_is_shown_to_strangers(stranger, gathered, page):
    answer = stranger.get(f"/research{page}")
    assert answer.status_code == 403
    assert 'name="key"' in answer.text
    assert "scene-" not in answer.text
    assert "Participants" not in answer.text


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_strangers_are_refused(stranger, gathered, form):
    _, store, _ = gathered
    answer = stranger.client.post(f"/research{form}", data={"least_inside": "1", "token": "x"})
    assert answer.status_code == 403
    assert store.rules() == {}


def test_every_route_is_behind_the_gate(gathered):
    study, store, _ = gathered

    class Shut:
        def researcher(self, request):
            return False

    asked = {route.path for route in list_research_routes(study, store, Shut(), lambda: 0.0)}
    tested = {f"/research{page}" for page in (*PAGES, *FILES)}
    patterns = {path: re.compile(re.sub(r"\{\w+\}", "[^/]+", path)) for path in asked - OPEN - {"/research/logout"}}
    assert all(any(pattern.fullmatch(page) for page in tested) for pattern in patterns.values())


def test_a_wrong_key_and_a_participants_cookie_open_nothing(stranger, gathered):
    study, _, ids = gathered
    from hardlook.collect.web.sessions import Sessions

    assert stranger.client.post("/research/login", data={"key": KEY + "x"}).status_code == 403
    sessions = Sessions(study.secret)
    cookie = sessions.make_cookie(ids["slow"], stranger.clock())
    stranger.client.cookies.set(sessions.name, cookie)
    stranger.client.cookies.set(sessions.name.replace("session", "research"), cookie)
    assert stranger.get("/research").status_code == 403


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("token", ["", "x" * 32, None])
def test_a_form_without_its_token_changes_nothing(researcher, gathered, form, token):
    _, store, _ = gathered
    fields = {} if token is None else {"token": token}
    answer = researcher.client.post(f"/research{form}", data={**fields, "least_inside": "1"})
    assert answer.status_code == 403
    assert store.rules() == {}
    assert researcher.get("/research/export/files.zip").status_code == 404


def test_a_form_of_another_researcher_or_page_changes_nothing(researcher, gathered):
    study, store, _ = gathered
    other = dashboard(study, store).log_in()
    assert researcher.post("/research/rules", token=other.token(), least_inside="1").status_code == 403
    token = researcher.token()
    elsewhere = {"origin": "http://evil.example"}
    answer = researcher.client.post("/research/rules", data={"token": token, "least_inside": "1"}, headers=elsewhere)
    assert answer.status_code == 403
    assert store.rules() == {}


def test_logging_out_ends_it(researcher):
    assert researcher.client.post("/research/logout", data={"token": "x"}).status_code == 403
    assert researcher.get("/research").status_code == 200
    assert researcher.post("/research/logout").status_code == 303
    assert researcher.get("/research").status_code == 403


def test_reading_changes_nothing(researcher, gathered):
    study, store, _ = gathered
    before = (study.path / "answers.sqlite").read_bytes()
    for page in (*PAGES, "/rules?least_inside=0.9", "/rules?add=3", "/rules?saved=yes"):
        researcher.page(f"/research{page}")
    assert store.rules() == {}
    assert (study.path / "answers.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    "task", ["..%2f..%2fsecret.key", "%2fetc%2fpasswd", "%2e%2e", "t000001%00", "..%5csecret.key", "secret.key"]
)
def test_no_address_reaches_a_file(researcher, gathered, task):
    secret = gathered[0].secret.hex()
    for address in (f"/research/pictures/{task}/whole", f"/research/images/{task}"):
        answer = researcher.get(address)
        assert answer.status_code == 404
        assert secret not in answer.text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A study whose title, stems, words and participants' words are all written to break out of a page."""
    stems = [SCRIPT, QUOTE, IMAGE, "{{7*7}}", "javascript:window.hacked=1", "a&b", "\N{SNOWMAN}", "</title>"]
    study, store, _ = crowd(
        tmp_path_factory.mktemp("hostile") / "study",
        {"one": Person("pc", batches=2)},
        stems=stems,
        description=SCRIPT,
        title=f"{SCRIPT}{QUOTE}",
    )
    store.set_rules({"participants": [SCRIPT[:60], QUOTE]})
    yield study, store
    store.close()


def test_script_in_names_is_escaped(hostile):
    study, store = hostile
    someone = dashboard(study, store).log_in()
    pages = [f"/research{page}" for page in PAGES] + [f"/research/images/t{n:06d}" for n in range(1, 9)]
    from urllib.parse import quote

    asked = quote(SCRIPT + QUOTE)
    pages += [f"/research/{page}={asked}" for page in ("participants?q", "images?q", "rules?participants")]
    pages += [f"/research/rules?add={quote(SCRIPT)}"]
    shown = 0
    for page in pages:
        text = someone.page(page)
        assert SCRIPT not in text
        assert IMAGE not in text
        assert QUOTE not in text
        assert "49" not in re.findall('class="name">([^<]*)<', text)
        assert len(re.findall("<script", text)) == 1
        assert " style=" not in text
        shown += text.count("&lt;script&gt;")
    assert shown > len(pages)
    for address in (f"/research/images?sort={asked}", f"/research/rules?least_inside={asked}", f"/research?{asked}=1"):
        assert SCRIPT not in someone.get(address).text


def test_what_the_links_form_is_given_is_checked(researcher):
    for base in ("javascript:alert(1)", "https://user@evil.example", "https://a.example/path", "ftp://a.example"):
        answer = researcher.post("/research/links", base_url=base, count="1")
        assert answer.status_code == 400
        assert "textarea" not in answer.text
    assert researcher.post("/research/links", count="100000").status_code == 400
    assert researcher.post("/research/rules", least_inside="7").status_code == 400
    assert researcher.post("/research/rules", unknown="7").status_code == 400
    assert researcher.client.post("/research/rules", content=b"\xff\xfe").status_code in (400, 403)
