"""Signed texts: nothing but what we signed is read back."""

import base64
import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.collect.web.codes import LENGTH, LETTERS, completion_code
from hardlook.collect.web.tokens import MOST_CHARACTERS, mac, read_token, sign

SECRET = bytes(range(32))
PAYLOADS = st.dictionaries(st.text(max_size=8), st.one_of(st.text(max_size=20), st.integers()), max_size=4)


@given(PAYLOADS, st.text(max_size=20), st.floats(1, 1e10))
def test_what_was_signed_is_read_until_its_end(payload, purpose, expires):
    token = sign(SECRET, purpose, payload, expires)
    assert read_token(SECRET, purpose, token, expires - 1e-3 * expires) == payload
    assert read_token(SECRET, purpose, token, expires) is None
    assert read_token(SECRET, purpose, sign(SECRET, purpose, payload), 1e300) == payload


@given(st.text(max_size=10), st.text(max_size=10), st.binary(min_size=32, max_size=32))
def test_another_purpose_or_secret_reads_nothing(purpose, other, secret):
    token = sign(SECRET, purpose, {"i": "x"})
    assert (read_token(SECRET, other, token, 0.0) is None) == (purpose != other)
    assert (read_token(secret, purpose, token, 0.0) is None) == (secret != SECRET)


@given(st.data())
def test_one_changed_character_is_enough(data):
    token = sign(SECRET, "p", {"i": "somebody"}, 1e9)
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.characters().filter(lambda one: one != token[place]))
    assert read_token(SECRET, "p", token[:place] + letter + token[place + 1 :], 0.0) is None


def test_cut_short_or_grown():
    token = sign(SECRET, "p", {"i": "somebody"}, 1e9)
    for changed in [*(token[:end] for end in range(len(token))), token + "=", token + "A", f" {token}", f"{token}\n"]:
        assert read_token(SECRET, "p", changed, 0.0) is None


@given(st.text(max_size=100))
def test_any_text_is_no_token_and_no_error(text):
    assert read_token(SECRET, "p", text, 0.0) is None


@pytest.mark.parametrize("key", [b"", b"secret", bytes(32), hashlib.sha256(b"hardlook").digest()])
def test_forged_with_a_guessed_key(key):
    body = base64.urlsafe_b64encode(json.dumps({"e": None, "p": {"p": "admin"}}).encode()).rstrip(b"=").decode()
    for said in (body, f"session{body}", f"session.{body}"):
        made = base64.urlsafe_b64encode(hmac.digest(key, said.encode(), "sha256")).rstrip(b"=").decode()
        assert read_token(SECRET, "session", f"{body}.{made}", 0.0) is None
    assert read_token(SECRET, "session", f"{body}.", 0.0) is None
    assert read_token(SECRET, "session", body, 0.0) is None


def test_no_token_grows_beyond_an_address():
    with pytest.raises(ValueError, match=f"{MOST_CHARACTERS} characters at most"):
        sign(SECRET, "p", {"i": "x" * 2000})


@given(st.lists(st.text(max_size=3), min_size=1, max_size=4), st.lists(st.text(max_size=3), min_size=1, max_size=4))
def test_no_two_lists_of_words_have_one_mac(one, other):
    assert (mac(SECRET, *one) == mac(SECRET, *other)) == (one == other)


def test_codes_differ_and_can_be_typed():
    codes = {completion_code(SECRET, f"participant-{number}") for number in range(2000)}
    assert len(codes) == 2000
    assert {letter for code in codes for letter in code} == set(LETTERS)
    assert {len(code) for code in codes} == {LENGTH}
    assert not set("ILOU") & set(LETTERS)
