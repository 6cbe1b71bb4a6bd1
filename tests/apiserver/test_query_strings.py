"""Queries are read like net/url's, and cost little however long they are."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apiserver.http import Request, parse_query
from pilothouse.apiserver.request_info import request_info
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.percent import BadEscape, unescape

ESCAPED = st.lists(st.sampled_from([b"%", b"%4", b"%41", b"%fF", b"=", b"a", b"3D", b"_", b"\xe9", b" "])).map(b"".join)
PARTS = st.lists(st.sampled_from(["a", "b", "=", "&", "%3D", "%26", "+", "%C3%A9", "%E9", "watch"])).map("".join)


@given(ESCAPED)
def test_escapes_are_taken_off_or_refused(text: bytes) -> None:
    if re.search(rb"%(?![0-9A-Fa-f]{2})", text):
        with pytest.raises(BadEscape):
            unescape(text)
    else:
        assert unescape(text) == unquote_to_bytes(text)


@given(PARTS)
def test_parameters_have_the_values_that_forms_have(query: str) -> None:
    assert parse_query(query) == parse_qs(query, keep_blank_values=True)


def test_bytes_beyond_ascii_are_utf_8() -> None:
    assert parse_query("a=é".encode().decode("latin-1")) == {"a": ["é"]}


def test_a_part_that_is_badly_escaped_stands_for_itself() -> None:
    assert parse_query("a=%zz&b=%41") == {"a": ["%zz"], "b": ["A"]}


def test_more_than_ten_thousand_parameters_are_refused() -> None:
    assert len(parse_query("a=b&" * 9_999 + "a=b")["a"]) == 10_000
    with pytest.raises(BadRequest, match="number of URL query parameters exceeded limit"):
        parse_query("a=b&" * 10_000 + "a=b")


def test_a_selector_that_is_longer_than_any_name_is_not_read_for_one() -> None:
    async def no_body(limit: int) -> bytes:
        return b""

    selector = "metadata.name=a," + "b=c," * 1100 + "metadata.name=a"
    info = request_info(Request("GET", "/api/v1/pods", f"fieldSelector={selector}", [], no_body))
    assert (info.verb, info.name, info.field_selector) == ("list", "", selector)
