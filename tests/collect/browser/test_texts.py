"""The words: every language has the same keys and the same values in them, and nothing is left in English."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest

from hardlook.collect.web.pages import list_languages, load_static_files, load_texts, render_page

PLACES = re.compile(r"\{(\w+)\}")

SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)|\bstyle=|\bon\w+=", re.IGNORECASE)

# The same word in both languages.
ALIKE = {"work.pause", "review.no.key"}


@pytest.mark.parametrize("language", [code for code in list_languages() if code != "en"])
def test_a_language_has_all_texts_and_all_their_values(language):
    english, other = load_texts("en"), load_texts(language)
    assert other.keys() == english.keys()
    for key, text in english.items():
        assert sorted(PLACES.findall(other[key])) == sorted(PLACES.findall(text)), key
        assert other[key].strip()
    assert {key for key in english if english[key] == other[key]} <= ALIKE


@pytest.mark.parametrize("language", list_languages())
def test_a_file_names_no_key_twice_and_says_its_own_code(language):
    pairs = json.loads(
        files("hardlook.collect.web").joinpath(f"texts/{language}.json").read_text(encoding="utf-8"),
        object_pairs_hook=list,
    )
    assert len({key for key, _ in pairs}) == len(pairs)
    assert dict(pairs)["language.code"] == language


def test_every_key_that_the_modules_name_exists():
    known = load_texts("en")
    for name, (content, _) in load_static_files().items():
        if name.endswith(".js"):
            named = re.findall(r'\bsay\("([\w.]+)"|hint\("([\w.]+)"\)', content.decode())
            assert {key for pair in named for key in pair if key} <= known.keys(), name


@pytest.mark.parametrize("language", list_languages())
def test_whoever_taps_is_never_told_to_click(language):
    """Every text of the work that speaks of clicking has a form for fingers, and that form does not."""
    texts = load_texts(language)
    click = re.compile(r"click|klick", re.IGNORECASE)
    # The first page does not know the device, and names both; the keys are not shown on a phone.
    both = {"welcome.clicks", "privacy.stored.answers", "privacy.stored.times"}
    unseen = {"instructions.clicks.keys"}
    for key, text in texts.items():
        if key in both:
            assert click.search(text) and re.search(r"\btap|tipp", text), key
        elif key.endswith(".touch"):
            assert not click.search(text), key
        elif key not in unseen and click.search(text):
            assert f"{key}.touch" in texts, key
    assert texts["phase.target"] == {"en": "This is the object", "de": "Das ist der Gegenstand"}[language]


VALUES = {
    "welcome.html": {"kind": "clicks", "languages": ("en", "de"), "pay": "<b>1</b>", "minutes": 2.0, "size": 10}
    | {"sets": 3, "only_device": "pc", "platform_ids": {"PROLIFIC_PID": "<b>"}, "preview": False}
    | dict.fromkeys(("consent", "contact", "token", "csrf"), ""),
    "full.html": {"wanted": True, "contact": "<b>me</b>"},
    "work.html": {},
    "done.html": {"code": "ABC", "code_for": "valid", "completion_url": "", "platform": "", "full": "full.wait"}
    | {"assignment": "<b>", "submit_url": "/<b>"},
    "window.html": {"link": "/?<b>", "assignment": "<b>", "submit_url": "/<b>", "platform": "<b>"},
    "privacy.html": {"contact": "<b>me</b>", "reference": "0a1b"},
    "refused.html": {"message": "<b>no</b>"},
}


@pytest.mark.parametrize("template", VALUES)
@pytest.mark.parametrize("language", list_languages())
def test_pages_are_escaped_and_hold_no_script_and_no_style_of_their_own(template, language):
    page = render_page(template, language, title="<i>Study</i>", **VALUES[template])
    assert f'<html lang="{language}">' in page
    assert "<i>" not in page and "<b>" not in page and "&lt;i&gt;Study" in page
    assert not SCRIPT.search(page)
    assert not re.search(r"https?://", page)


def test_the_study_speaks_its_own_words():
    page = render_page(
        "welcome.html", "de", title="T", **{**VALUES["welcome.html"], "consent": "Erstens.\n\nZweitens."}
    )
    assert "<p>Erstens.</p>" in page and "<p>Zweitens.</p>" in page and load_texts("de")["consent.text"] not in page


def test_modules_ask_nobody_else_and_make_no_markup_of_texts():
    for name, (content, media) in load_static_files().items():
        text = content.decode()
        assert media.startswith(("text/javascript", "text/css", "image/svg"))
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), name
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|\beval\(", text), name
