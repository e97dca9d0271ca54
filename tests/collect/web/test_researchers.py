"""The dashboard as the whole server serves it: whatever is asked of it, it answers in words and gives away nothing."""

import logging
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from web_visitors import KEY

from .conftest import SCRIPT
from .test_injection import no_foreign_script

PAGES = ("", "/participants", "/images", "/rules", "/export", "/links")

FIELDS = ("q", "flagged", "sort", "order", "page", "below", "show", "measure", "device", "mode", "outline", "add")

FIELDS += ("saved", "least_inside", "least_reaction_ms", "most_late_ms", "participants", "count", "days", "base_url")

STRANGE = ("", "-1", "0", "1e9", "9" * 30, "\0", "\ud800", "nan", "inf", "\N{ARABIC-INDIC DIGIT THREE}", "x" * 400)

STRANGE += ("' OR 1=1 --", SCRIPT, "=1+1", "http://[", "http://[::1", "https://\N{ACCOUNT OF}.example", "http://a\r\nb")


@pytest.fixture
def researcher(study_app):
    visitor = study_app.visitor()
    assert visitor.get(f"/research/key/{KEY}").status == 200
    return visitor


def form_token(visitor):
    return visitor.get("/research/links").text.partition('name="token" value="')[2].partition('"')[0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(
    page=st.sampled_from(PAGES),
    pairs=st.lists(st.tuples(st.sampled_from(FIELDS), st.sampled_from(STRANGE) | st.text(max_size=20)), max_size=3),
)
def test_any_parameter_gets_a_page_or_a_refusal(study_app, researcher, page, pairs):
    study_app.now += 60
    reply = researcher.get(f"/research{page}?{urlencode(pairs, errors='surrogatepass')}")
    assert reply.status in (200, 400, 404, 503), reply.text
    assert no_foreign_script(reply.text) and SCRIPT not in reply.text


FORMS = {
    "rules": ("least_inside", "most_dropped_batches", "participants", "unknown"),
    "export": ("mode", "all_clicks"),
    "links": ("count", "days", "base_url"),
}


@pytest.mark.parametrize("form", FORMS)
def test_any_field_of_a_form_is_taken_or_refused(study_app, researcher, form):
    token = form_token(researcher)
    for name in FORMS[form]:
        for value in STRANGE:
            study_app.now += 1
            body = {"token": token, name: value.encode("utf-8", "surrogatepass")}
            reply = researcher.form(f"/research/{form}", body)
            assert reply.status in (200, 303, 400, 404), (name, value)
            assert no_foreign_script(reply.text) and SCRIPT not in reply.text


def test_a_fault_of_the_dashboard_is_logged_and_not_shown(study_app, researcher, monkeypatch, caplog):
    def fail():
        raise RuntimeError(f"at {study_app.study.path}")

    monkeypatch.setattr(study_app.store, "rules", fail)
    reply = researcher.get("/research/rules")
    assert reply.status == 500 and reply.text.startswith("<!doctype html>")
    assert "RuntimeError" not in reply.text and str(study_app.study.path) not in reply.text
    assert "RuntimeError" in caplog.text


@pytest.mark.parametrize("kind", ["review", "ratings"])
def test_scripts_in_concepts_and_labels_are_text_for_researchers_too(make_study_app, request, kind):
    study_app = make_study_app(request.getfixturevalue(f"{kind}_study"), title=SCRIPT)
    person = study_app.participant()
    for trial in person.batch()["batch"]["trials"]:
        person.show(trial["id"])
        assert person.answer(trial["id"], value=1).status == 200
    visitor = study_app.visitor()
    visitor.get(f"/research/key/{KEY}")
    for page in PAGES:
        reply = visitor.get(f"/research{page}")
        assert no_foreign_script(reply.text) and SCRIPT not in reply.text and "<script>alert" not in reply.text
    assert "&lt;script&gt;" in visitor.get("/research/images").text
    assert SCRIPT not in visitor.get(f"/research/images?q={quote(SCRIPT)}").text


def test_the_key_does_not_travel_on(study_app, caplog):
    """Not to the next page, not to another site, not into a log, not into what is kept."""
    visitor = study_app.visitor()
    with caplog.at_level(logging.DEBUG):
        opened = visitor.get(f"/research/key/{KEY}")
        wrong = visitor.get(f"/research/key/{KEY}x")
    # The page that leads on tells no one, our own server included, where it was opened.
    assert opened.text.index('name="referrer" content="no-referrer"') < opened.text.index("<link")
    assert opened.headers["referrer-policy"] == "same-origin" and opened.headers["cache-control"] == "no-store"
    for reply in (opened, wrong, visitor.get("/research"), visitor.get("/research/links")):
        assert KEY not in reply.text and KEY not in "".join(reply.cookies)
    assert KEY not in caplog.text
