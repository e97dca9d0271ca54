"""Signed tokens: nothing but what we signed is read back, and what earlier versions signed stays valid."""

import base64
import hashlib
import hmac
import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.collect.web.tokens import (
    CODE_ALPHABET,
    CODE_LENGTH,
    MAX_TOKEN_LENGTH,
    compute_mac,
    derive_completion_code,
    read_invitation,
    read_token,
    sign_token,
)

SECRET = bytes(range(32))

PAYLOADS = st.dictionaries(st.text(max_size=8), st.one_of(st.text(max_size=20), st.integers()), max_size=4)


@given(PAYLOADS, st.text(max_size=20), st.floats(1, 1e10))
def test_what_was_signed_is_read_until_its_end(payload, purpose, expires):
    token = sign_token(SECRET, purpose, payload, expires)
    assert read_token(SECRET, purpose, token, expires - 1e-3 * expires) == payload
    assert read_token(SECRET, purpose, token, expires) is None
    assert read_token(SECRET, purpose, sign_token(SECRET, purpose, payload), 1e300) == payload


@given(st.text(max_size=10), st.text(max_size=10), st.binary(min_size=32, max_size=32))
def test_another_purpose_or_secret_reads_nothing(purpose, other, secret):
    token = sign_token(SECRET, purpose, {"i": "x"})
    assert (read_token(SECRET, other, token, 0.0) is None) == (purpose != other)
    assert (read_token(secret, purpose, token, 0.0) is None) == (secret != SECRET)


@given(st.data())
def test_one_changed_character_is_enough(data):
    token = sign_token(SECRET, "p", {"i": "somebody"}, 1e9)
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.characters().filter(lambda one: one != token[place]))
    assert read_token(SECRET, "p", token[:place] + letter + token[place + 1 :], 0.0) is None


def test_cut_short_or_grown():
    token = sign_token(SECRET, "p", {"i": "somebody"}, 1e9)
    for changed in [*(token[:end] for end in range(len(token))), token + "=", token + "A", f" {token}", f"{token}\n"]:
        assert read_token(SECRET, "p", changed, 0.0) is None


@given(st.text(max_size=100))
def test_any_text_is_no_token_and_no_error(text):
    assert read_token(SECRET, "p", text, 0.0) is None


@pytest.mark.parametrize("key", [b"", b"secret", bytes(32), hashlib.sha256(b"hardlook").digest()])
def test_forged_with_a_guessed_key(key):
    body = base64.urlsafe_b64encode(json.dumps({"e": None, "p": {"p": "admin"}}).encode()).rstrip(b"=").decode()
    for signed in (body, f"session{body}", f"session.{body}"):
        made = base64.urlsafe_b64encode(hmac.digest(key, signed.encode(), "sha256")).rstrip(b"=").decode()
        assert read_token(SECRET, "session", f"{body}.{made}", 0.0) is None
    assert read_token(SECRET, "session", f"{body}.", 0.0) is None
    assert read_token(SECRET, "session", body, 0.0) is None


def test_no_token_grows_beyond_an_address():
    with pytest.raises(ValueError, match=f"{MAX_TOKEN_LENGTH} characters at most"):
        sign_token(SECRET, "p", {"i": "x" * 2000})


@given(st.lists(st.text(max_size=3), min_size=1, max_size=4), st.lists(st.text(max_size=3), min_size=1, max_size=4))
def test_no_two_lists_of_words_have_one_mac(one, other):
    assert (compute_mac(SECRET, *one) == compute_mac(SECRET, *other)) == (one == other)


def test_codes_differ_and_can_be_typed():
    codes = {derive_completion_code(SECRET, f"participant-{number}") for number in range(2000)}
    assert len(codes) == 2000
    assert {letter for code in codes for letter in code} == set(CODE_ALPHABET)
    assert {len(code) for code in codes} == {CODE_LENGTH}
    assert not set("ILOU") & set(CODE_ALPHABET)


# Made by the code before itsdangerous, for this secret: what participants and researchers hold must stay valid.
PARTICIPANT = "0123456789abcdef0123456789abcdef"

INVITATION_ID = "AAECAwQFBgcICQoLDA0ODw"

ISSUED = [
    (
        "session",
        "eyJlIjoxNzY1MTg0MDAwLjAsInAiOnsicCI6IjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmIn19"
        ".HRGT06oI_l0RcFvsU5gcMEzv5CuyHAAU5ktDzDGRbL4",
        {"p": PARTICIPANT},
        1_765_184_000.0,
    ),
    (
        "invitation",
        "eyJlIjoxNzYyNTkyMDAwLjAsInAiOnsiaSI6IkFBRUNBd1FGQmdjSUNRb0xEQTBPRHcifX0"
        ".vw7KhJymN49si-6o6GXynwhcPfQ_KUjyXpoMRE8UHns",
        {"i": INVITATION_ID},
        1_762_592_000.0,
    ),
    (
        "invitation",
        "eyJlIjpudWxsLCJwIjp7ImkiOiJBQUVDQXdRRkJnY0lDUW9MREEwT0R3In19.xdRAwgK4-k4mra4RJkjwWAXyJFjip1DnFh-TODdAAGc",
        {"i": INVITATION_ID},
        None,
    ),
    (
        "form",
        "eyJlIjoxNzYwMDQzMjAwLjAsInAiOnsibiI6IjAwMTEyMjMzNDQ1NTY2Nzc4ODk5YWFiYmNjZGRlZWZmIn19"
        ".jivzZVEWqg-OINKmVED20lT_wHrH0LWyFiwNX_STUgE",
        {"n": "00112233445566778899aabbccddeeff"},
        1_760_043_200.0,
    ),
    (
        "\u00fc p",
        "eyJlIjowLjUsInAiOnsibiI6LTMsIlx1MDBlNCI6Ilx1ZDgzZFx1ZGUwMCJ9fQ.T-P4KjmathoMMMF3VKMETexBgp3IokIbs8mqG3Sqchs",
        {"\u00e4": "\U0001f600", "n": -3},
        0.5,
    ),
]


@pytest.mark.parametrize(("purpose", "token", "payload", "expires"), ISSUED)
def test_tokens_of_earlier_versions_stay_valid(purpose, token, payload, expires):
    assert read_token(SECRET, purpose, token, 0.0) == payload
    assert sign_token(SECRET, purpose, payload, expires) == token
    if expires is None:
        assert read_token(SECRET, purpose, token, 1e300) == payload
    else:
        assert read_token(SECRET, purpose, token, expires - 0.1) == payload
        assert read_token(SECRET, purpose, token, expires) is None


@pytest.mark.parametrize(("purpose", "token", "payload", "expires"), ISSUED)
def test_tokens_of_earlier_versions_that_were_changed_are_refused(purpose, token, payload, expires):
    body, _, signature = token.partition(".")
    assert read_token(SECRET, f"{purpose}s", token, 0.0) is None
    assert read_token(bytes(32), purpose, token, 0.0) is None
    later = json.dumps({"e": 9e9, "p": payload}, separators=(",", ":"), sort_keys=True).encode()
    longer = base64.urlsafe_b64encode(later).rstrip(b"=").decode()
    for changed in (
        f"{longer}.{signature}",
        f"{body}.{signature[:-1]}",
        f"{body}{signature}",
        f"{body}.",
        f".{signature}",
    ):
        assert read_token(SECRET, purpose, changed, 0.0) is None
    for place in range(len(token)):
        letter = "A" if token[place] != "A" else "B"
        assert read_token(SECRET, purpose, token[:place] + letter + token[place + 1 :], 0.0) is None


def test_links_and_codes_of_earlier_versions_stay_valid():
    assert read_invitation(SECRET, ISSUED[1][1], 1_760_000_000.0) == INVITATION_ID
    assert read_invitation(SECRET, ISSUED[1][1], 1_762_592_000.0) is None
    assert read_invitation(SECRET, ISSUED[0][1], 0.0) is None
    assert derive_completion_code(SECRET, PARTICIPANT) == "5CHDWC6N6N6W"


def test_every_spelling_of_a_signature_but_ours_is_refused():
    """Base64 without its check takes blanks, padding and other last characters for the same bytes."""
    for purpose, token, _, _ in ISSUED:
        others = [token[:-1] + letter for letter in string.ascii_letters + string.digits + "-_" if letter != token[-1]]
        others += [f"{token}=", f"{token}==", f"{token}\n", token.replace(".", ". "), token.replace(".", ".=")]
        others += [token.replace("-", "+").replace("_", "/")] if set(token) & set("-_") else []
        assert not [other for other in others if read_token(SECRET, purpose, other, 0.0) is not None]
