import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.collect.research.parameters import MOST_PARAMETERS, Asked, read_pairs
from hardlook.collect.research.refusals import Refused


@given(st.binary(max_size=200))
def test_any_bytes_are_pairs_or_refused(query):
    try:
        pairs = read_pairs(query)
    except Refused as refused:
        assert refused.status == 400
    else:
        assert all(isinstance(part, str) for pair in pairs for part in pair)


def test_too_many_parameters_are_refused():
    with pytest.raises(Refused, match="cannot be read"):
        read_pairs(b"&".join([b"a=1"] * (MOST_PARAMETERS + 1)))


@given(st.text(max_size=20))
def test_a_whole_number_is_one_or_is_refused(text):
    asked = Asked([("n", text)], ("n",))
    try:
        found = asked.whole("n", 5, 1, 100)
    except Refused:
        return
    assert (text.strip() == "" and found == 5) or (int(text) == found and 1 <= found <= 100)


@given(st.dictionaries(st.sampled_from(["q", "sort", "page"]), st.text(max_size=10)))
def test_an_address_says_the_same_again(values):
    asked = Asked(values.items(), ("q", "sort", "page"))
    address = asked.address("/here")
    again = read_pairs(address.partition("?")[2].encode())
    assert dict(again) == {name: value for name, value in values.items() if value}


def test_unknown_and_repeated_parameters_are_refused():
    with pytest.raises(Refused, match="no parameter x"):
        Asked([("x", "1")], ("q",))
    with pytest.raises(Refused, match="given twice"):
        Asked([("q", "1"), ("q", "1")], ("q",))
