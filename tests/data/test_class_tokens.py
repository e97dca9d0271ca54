from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.data.class_tokens import parse_named_token, parse_numbered_token
from hardlook.errors import DataError


@given(number=st.integers(1, 999), image=st.from_regex(r"[A-Za-z0-9_.-]{1,20}", fullmatch=True))
def test_a_numbered_token_gives_back_its_parts(number: int, image: str) -> None:
    assert parse_numbered_token(f"{number}_{image}") == (number, image)


@given(x=st.integers(0, 999), name=st.from_regex(r"[a-z0-9_']{1,20}", fullmatch=True), n=st.integers(1, 99))
def test_a_named_token_gives_back_its_parts(x: int, name: str, n: int) -> None:
    assert parse_named_token(f"{x}_{name}_{n}") == (name, n)


@pytest.mark.parametrize("token", ["", "7", "0_2007_000032", "x_2007", "3_", "aug/xf1_3_2007", "-1_2007", "3_a b"])
def test_what_is_no_numbered_token_is_named(token: str) -> None:
    with pytest.raises(DataError, match="class number") as caught:
        parse_numbered_token(token)
    assert caught.value.unit == token


@pytest.mark.parametrize("token", ["", "12", "12_coin", "coin_1", "12_coin_x", "12__"])
def test_what_is_no_named_token_is_named(token: str) -> None:
    with pytest.raises(DataError, match="class name"):
        parse_named_token(token)
