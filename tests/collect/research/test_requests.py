"""Parameters of an address: read as they are meant, or refused with 400."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.collect.research.requests import MAX_PARAMETERS, Parameters, parse_pairs
from hardlook.collect.web.refusals import RequestRefused


@given(st.binary(max_size=200))
def test_any_bytes_are_pairs_or_refused(query):
    try:
        pairs = parse_pairs(query)
    except RequestRefused as refused:
        assert refused.status == 400
    else:
        assert all(isinstance(part, str) for pair in pairs for part in pair)


def test_too_many_parameters_are_refused():
    with pytest.raises(RequestRefused, match="cannot be read"):
        parse_pairs(b"&".join([b"a=1"] * (MAX_PARAMETERS + 1)))


@given(st.text(max_size=20))
def test_a_whole_number_is_one_or_is_refused(text):
    asked = Parameters([("n", text)], ("n",))
    try:
        found = asked.get_integer("n", 5, 1, 100)
    except RequestRefused:
        return
    assert (text.strip() == "" and found == 5) or (int(text.strip()) == found and 1 <= found <= 100)


@given(st.dictionaries(st.sampled_from(["q", "sort", "page"]), st.text(max_size=10)))
def test_an_address_says_the_same_again(values):
    asked = Parameters(values.items(), ("q", "sort", "page"))
    address = asked.build_address("/here")
    again = parse_pairs(address.partition("?")[2].encode())
    assert dict(again) == {name: value for name, value in values.items() if value}


def test_unknown_and_repeated_parameters_are_refused():
    with pytest.raises(RequestRefused, match="no parameter x"):
        Parameters([("x", "1")], ("q",))
    with pytest.raises(RequestRefused, match="given twice"):
        Parameters([("q", "1"), ("q", "1")], ("q",))
