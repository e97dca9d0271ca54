"""Before the first task: full studies, platforms and their ids, what the welcome page says, the way back."""

import json
from urllib.parse import urlencode

import pytest
from web_visitors import FORM, HIDDEN

from hardlook.collect.results.payments import build_payments
from hardlook.collect.results.status import find_participant
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.web.tokens import derive_completion_code, make_invitation_links

PERSON = "5f1a2b3c4d5e6f7a8b9c0d1e"


@pytest.fixture
def small(make_study_app, clicks_study):
    """One batch of clicks is wanted on each device, and no more."""
    return make_study_app(clicks_study, modes=("cut-out",), target_answers=1, batch_size=6)


def test_a_full_study_says_so_before_consent(make_study_app, review_study):
    app = make_study_app(review_study, batch_size=3, target_answers=1)
    late = app.visitor()
    assert 'name="agree"' in late.get("/").text
    app.participant().do_batch(value=1)
    page = app.visitor().get("/")
    assert page.status == 200 and 'name="agree"' not in page.text
    assert "has all the answers that it needs" in page.text
    assert "alle Antworten" in app.visitor().get("/?lang=de").text
    # Who had the form open already is told as well, and is no participant.
    before = app.store.participants().height
    fields = {"agree": "yes", "token": "", "csrf": late.get("/privacy").text and form_token(late)}
    refused = late.form("/join", fields)
    assert refused.status == 409 and app.store.participants().height == before


def form_token(visitor):
    from hardlook.collect.web.sessions import Sessions

    sessions = Sessions(visitor.study_app.study.secret)
    return sessions.make_form_token(visitor.cookies[sessions.form_name])


def test_work_that_others_hold_is_said_to_be_free_later(make_study_app, review_study):
    app = make_study_app(review_study, batch_size=3, target_answers=1)
    app.participant().batch()
    assert "being worked on right now" in app.visitor().get("/").text
    app.now += 301
    assert 'name="agree"' in app.visitor().get("/").text


def test_who_has_begun_is_not_turned_away(make_study_app, review_study):
    app = make_study_app(review_study, batch_size=3, target_answers=1)
    [link] = make_invitation_links(app.study.secret, "http://x", count=1, expires=app.now + 1e6)
    link, visitor = link.removeprefix("http://x"), app.visitor()
    visitor.join(link)
    visitor.practise()
    visitor.do_batch(value=1)
    # Another browser, to see the code once more.
    again = app.visitor()
    assert again.join(link).status == 303
    assert again.get("/api/state").json["code"]


def test_the_device_that_is_still_wanted(small):
    small.participant("pc").do_batch()
    page = small.visitor().get("/")
    assert "a phone or a tablet is needed" in page.text
    visitor = small.visitor()
    visitor.join()
    refused = visitor.post("/api/device", {"device": "pc"})
    assert (refused.status, refused.error) == (409, "full-pc")
    assert visitor.post("/api/device", {"device": "mobile"}).status == 200
    small.participant("mobile").do_batch()
    # The study became full before the practice began: there is none.
    assert visitor.get("/api/state").json["full"]
    assert visitor.show("training-0").error == "full"


def test_the_last_page_says_why_nothing_is_left(small):
    waiting, worker = small.participant("pc"), small.participant("pc")
    worker.batch()
    assert "being worked on right now" in waiting.get("/done").text
    worker.do_batch()
    page = waiting.get("/done").text
    assert "No more answers from computers are needed" in page and "has all the answers" not in page
    small.participant("mobile").do_batch()
    assert "has all the answers that it needs" in waiting.get("/done").text


def test_pay_and_duration_are_said_before_consent(make_study_app, clicks_study):
    app = make_study_app(clicks_study, pay="2.50 <GBP> a set", minutes=1.5, most_batches=2, attention_checks=1)
    page = app.visitor().get("/").text
    terms = page[: page.index('name="agree"')]
    assert "Pay: 2.50 &lt;GBP&gt; a set" in terms
    assert "Time: about 1.5 minutes per set. Tasks per set: 4." in terms and "up to 2 sets" in terms
    assert "Bezahlung: 2.50" in app.visitor().get("/?lang=de").text
    short = make_study_app(clicks_study, minutes=1.0).visitor()
    assert "about one minute per set" in short.get("/").text and "etwa eine Minute" in short.get("/?lang=de").text
    plain = make_study_app(clicks_study, most_batches=1).visitor().get("/").text
    assert "Pay:" not in plain and "Time:" not in plain and "You do one set." in plain


@pytest.mark.parametrize(
    ("size", "most", "said"), [(4, 20, ("4.", "up to 2")), (10, 20, ("6.", "one set")), (1, 5, ("1.", "up to 5"))]
)
def test_no_more_work_is_promised_than_there_are_images(make_study_app, clicks_study, size, most, said):
    # Six images, and nobody sees one twice.
    page = make_study_app(clicks_study, batch_size=size, most_batches=most, minutes=3).visitor().get("/").text
    assert f"Tasks per set: {said[0]}" in page and f"{said[1]}" in page


PLATFORMS = {
    "prolific": ({"PROLIFIC_PID": PERSON, "STUDY_ID": "s1", "SESSION_ID": "x9"}, "https://app.prolific.com/submissions/complete?cc=C123"),
    "mturk": ({"workerId": "A1WORKER", "assignmentId": "3ASSIGN", "hitId": "3HIT"}, "https://mturk.example/done?a={assignmentId}&c={code}"),
    "sona": ({"survey_code": "4711"}, "https://lab.sona-systems.com/webstudy_credit.aspx?experiment_id=1&survey_code={survey_code}"),
}  # fmt: skip


@pytest.mark.parametrize("platform", PLATFORMS)
def test_platform_ids_are_stored_returned_and_exported(make_study_app, ratings_study, platform):
    ids, url = PLATFORMS[platform]
    app = make_study_app(ratings_study, open_link=False, platform=platform, completion_url=url)
    query = "&".join(f"{name}={value}" for name, value in ids.items())
    visitor = app.visitor()
    assert f"?lang=de&amp;{query}".replace("&", "&amp;").replace("amp;amp;", "amp;") in visitor.get(f"/?{query}").text
    assert visitor.join(f"/?{query}").status == 303
    [row] = app.store.platform_ids().iter_rows(named=True)
    assert json.loads(row["parameters"]) == ids
    assert 'id="finish"' not in visitor.get("/done").text
    visitor.do_batch(value=5)
    code = derive_completion_code(app.study.secret, row["participant"])
    page = visitor.get("/done").text
    filled = url.replace("{code}", code)
    for name, value in ids.items():
        filled = filled.replace(f"{{{name}}}", value)
    assert f'href="{filled.replace("&", "&amp;")}"' in page and code in page
    [paid] = build_payments(app.study, app.store).iter_rows(named=True)
    assert {name: paid[name] for name in ids} == ids
    assert (paid["code"], paid["valid"], paid["valid_batches"], paid["answers"]) == (code, True, 1, 2)
    assert paid["minutes"] == pytest.approx(11 / 60, abs=0.01) == paid["batch_minutes"]


def test_one_id_is_one_participant_and_other_ids_are_others(make_study_app, clicks_study):
    app = make_study_app(clicks_study, open_link=False, platform="prolific")
    first = app.visitor()
    for visitor in (first, app.visitor()):
        assert visitor.join(f"/?PROLIFIC_PID={PERSON}").status == 303
    assert app.store.participants().height == 1
    # Two people at one computer: the cookie is the first one's, the id is not.
    assert first.join("/?PROLIFIC_PID=another").status == 303
    assert app.store.participants().height == 2
    assert first.get("/?PROLIFIC_PID=another").headers["location"] == "/work"
    assert first.get("/").headers["location"] == "/work"


@pytest.mark.parametrize(
    ("platform", "query", "code"),
    [
        ("prolific", "", "platform-needed"),
        ("prolific", "STUDY_ID=s1", "platform-needed"),
        ("prolific", "workerId=A1", "platform-needed"),
        ("prolific", "PROLIFIC_PID={{%25PROLIFIC_PID%25}}", "platform-id"),
        ("prolific", f"PROLIFIC_PID={'a' * 129}", "platform-id"),
        ("prolific", f"PROLIFIC_PID={PERSON}&STUDY_ID=%3Cscript%3E", "platform-id"),
        ("sona", "survey_code=%25SURVEY_CODE%25", "platform-id"),
        ("sona", "survey_code==HYPERLINK()", "platform-id"),
        ("sona", "survey_code=17&survey_code=18", "platform-id"),
        ("prolific", "PROLIFIC_PID=5f1a&PROLIFIC_PID={{%PROLIFIC_PID%}}", "platform-id"),
        ("prolific", "PROLIFIC_PID=5f1a&STUDY_ID=a&STUDY_ID=b", "platform-id"),
    ],
)
def test_links_that_name_nobody_are_refused(make_study_app, clicks_study, platform, query, code):
    from hardlook.collect.web.pages import load_texts

    app = make_study_app(clicks_study, open_link=False, platform=platform)
    reply = app.visitor().get(f"/?{query}")
    assert reply.status in (403, 422) and load_texts("en")[f"refused.{code}"].replace("'", "&#39;") in reply.text
    assert app.store.participants().height == 0


@pytest.mark.parametrize(
    "url",
    [
        "http://app.prolific.com/?cc=1", "javascript:alert(1)", "//evil", "https://",
        "https://a.example/?x={other}", "https://{code}.example/", "https://a.example/{survey_code}",
    ],
)  # fmt: skip
def test_a_completion_url_must_be_one(url):
    with pytest.raises(ValueError, match="completion_url"):
        StudySettings(kind="clicks", title="T", platform="prolific", completion_url=url)


def test_people_without_a_code_find_what_they_can_be_deleted_by(make_study_app, clicks_study):
    app = make_study_app(clicks_study)
    visitor = app.visitor()
    assert "reference, if you have no" not in visitor.get("/privacy").text
    visitor.join()
    [who] = app.store.participants()["id"]
    assert f"reference, if you have no completion code: {who}" in visitor.get("/privacy").text
    assert find_participant(app.study, app.store, "id", who)["participant"] == who
    app.store.delete_participant(who)
    # The cookie of somebody who was deleted is nobody's; they may join anew.
    assert visitor.get("/api/state").status == 401 and who not in visitor.get("/privacy").text
    assert visitor.join().status == 303


def test_who_consents_by_invitation_has_a_place_until_the_practice_is_done(make_study_app, review_study):
    app = make_study_app(review_study, batch_size=3, target_answers=1)
    links = make_invitation_links(app.study.secret, "http://x", count=2, expires=app.now + 1e6)
    first, second = (link.removeprefix("http://x") for link in links)
    visitor = app.visitor()
    visitor.join(first)
    # The only batch is promised: nobody else is asked for consent, and the first one is not sent away.
    assert "being worked on right now" in app.visitor().get(second).text
    visitor.practise()
    visitor.do_batch(value=1)
    assert "has all the answers that it needs" in app.visitor().get(second).text


def test_a_place_goes_to_others_when_nobody_comes_back_for_it(make_study_app, review_study):
    app = make_study_app(review_study, batch_size=3, target_answers=1)
    links = make_invitation_links(app.study.secret, "http://x", count=2, expires=app.now + 1e6)
    first, second = (link.removeprefix("http://x") for link in links)
    app.visitor().join(first)
    app.now += 301
    late = app.visitor()
    assert 'name="agree"' in late.get(second).text
    late.join(second)
    late.practise()
    late.do_batch(value=1)


MTURK = {
    "platform": "mturk",
    "open_link": False,
    "frame_origins": ("https://worker.mturk.com", "https://workersandbox.mturk.com"),
    "completion_url": "https://www.mturk.com/mturk/externalSubmit",
}
WORKER = "/?workerId=A1WORKER&assignmentId=3ASSIGN&hitId=3HIT&turkSubmitTo=https%3A%2F%2Fwww.mturk.com"
IN_FRAME, IN_WINDOW = [("sec-fetch-dest", "iframe")], [("sec-fetch-dest", "document")]


def test_a_preview_is_the_welcome_page_and_begins_nothing(make_study_app, clicks_study):
    app = make_study_app(clicks_study, **MTURK, pay="1.20 USD a set")
    preview = "/?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=3HIT"
    for query in (preview, f"{preview}&workerId=A1WORKER"):
        page = app.visitor().get(query)
        assert page.status == 200 and page.cookies == () and "1.20 USD a set" in page.text
        assert "This is a preview. Accept the task" in page.text and "<form" not in page.text
        # The other language is a preview too.
        assert "?lang=de&amp;assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE" in page.text
    assert "Das ist eine Vorschau" in app.visitor().get(f"{preview}&lang=de").text
    # Who has begun sees a preview of another task as a preview; and no form of one is accepted.
    visitor = app.visitor()
    assert visitor.join(WORKER).status == 303
    assert "This is a preview" in visitor.get(preview).text
    fields = {"agree": "yes", "csrf": form_token(visitor), "assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}
    assert app.visitor().form("/join", {**fields, "workerId": "A2"}).status == 403
    assert visitor.form("/join", {**fields, "workerId": "A2"}).status == 403
    assert app.store.participants().height == 1 and app.store.batches().height == 0


def test_mturk_gets_its_assignment_posted_from_its_frame(make_study_app, ratings_study):
    app = make_study_app(ratings_study, **MTURK)
    visitor = app.visitor()
    visitor.join(WORKER)
    assert "externalSubmit" not in visitor.get("/done", headers=IN_FRAME).text
    visitor.do_batch(value=5)
    page = visitor.get("/done", headers=IN_FRAME).text
    [who] = app.store.participants()["id"]
    code = derive_completion_code(app.study.secret, who)
    assert '<form method="post" action="https://www.mturk.com/mturk/externalSubmit">' in page
    assert '<input type="hidden" name="assignmentId" value="3ASSIGN"/>' in page
    assert f'<input type="hidden" name="code" value="{code}"/>' in page and "You may close this page" not in page
    # In a window of its own there is the code alone: it is entered in the frame.
    window = visitor.get("/done", headers=IN_WINDOW).text
    assert code in window and "externalSubmit" not in window and "You may close this page" in window


def test_a_task_that_is_accepted_again_has_its_new_id_posted(make_study_app, ratings_study):
    app = make_study_app(ratings_study, **MTURK)
    visitor = app.visitor()
    visitor.join(WORKER)
    # By the cookie, and by the worker's id alone in another browser.
    assert visitor.get(WORKER.replace("3ASSIGN", "3AGAIN")).headers["location"] == "/work"
    [row] = app.store.platform_ids().iter_rows(named=True)
    assert json.loads(row["parameters"])["assignmentId"] == "3AGAIN"
    other = app.visitor()
    other.join(WORKER.replace("3ASSIGN", "3THIRD"))
    visitor.do_batch(value=5)
    assert 'value="3THIRD"' in visitor.get("/done", headers=IN_FRAME).text
    assert app.store.participants().height == 1
    # Somebody else's ids change nothing of this participant's.
    app.store.update_platform_ids(row["participant"], {"workerId": "A2", "assignmentId": "3OTHER"})
    assert app.store.platform_ids_of(row["participant"])["assignmentId"] == "3THIRD"


def test_a_browser_that_keeps_no_cookies_in_frames_is_led_to_a_window(make_study_app, ratings_study):
    app = make_study_app(ratings_study, **MTURK)
    visitor = app.visitor()
    page = visitor.get(WORKER, headers=IN_FRAME)
    fields = dict(HIDDEN.findall(page.text)) | {"agree": "yes"}
    visitor.cookies.clear()
    own = [("origin", visitor.origin), *IN_FRAME]
    reply = visitor.send("POST", "/join", urlencode(fields).encode(), kind=FORM, headers=own)
    assert reply.status == 200 and reply.cookies == () and app.store.participants().height == 0
    link = "/?lang=en&amp;workerId=A1WORKER&amp;assignmentId=3ASSIGN&amp;hitId=3HIT"
    assert f'href="{link}" target="_blank"' in reply.text
    assert 'action="https://www.mturk.com/mturk/externalSubmit"' in reply.text and 'name="code" required' in reply.text
    assert '<input type="hidden" name="assignmentId" value="3ASSIGN"/>' in reply.text
    # In a window of its own, and in a study that nobody frames, it is a form that is too old.
    in_window = [("origin", visitor.origin), *IN_WINDOW]
    for other, headers in ((visitor, in_window), (make_study_app(ratings_study).visitor(), own)):
        refused = other.send("POST", "/join", urlencode(fields).encode(), kind=FORM, headers=headers)
        assert refused.status == 403 and "target=" not in refused.text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"frame_origins": ("https://*.mturk.com",)}, "frame_origins"),
        ({"frame_origins": ("http://worker.mturk.com",)}, "frame_origins"),
        ({"frame_origins": ("https://worker.mturk.com/",)}, "frame_origins"),
        ({"frame_origins": ("https://worker.mturk.com; script-src *",)}, "frame_origins"),
        ({"frame_origins": ("*",)}, "frame_origins"),
        ({"frame_origins": ("https://a.example", "https://a.example")}, "twice"),
        ({"frame_origins": ()}, "externalSubmit"),
        ({"platform": "prolific"}, "externalSubmit"),
        ({"completion_url": "https://www.mturk.com;x/mturk/externalSubmit"}, "externalSubmit"),
        ({"completion_url": "https://www.mturk.com/mturk/externalSubmit?a=b"}, "externalSubmit"),
    ],
)
def test_frames_are_for_origins_and_externalsubmit_for_mturk(changes, message):
    with pytest.raises(ValueError, match=message):
        StudySettings(kind="clicks", title="T", **{**MTURK, **changes})
