"""Continue tokens survive the round trip and never lead out of their collection."""

from __future__ import annotations

import base64

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apiserver.registry.listing import Position, decode_continue_token, encode_continue_token
from pilothouse.machinery.errors import BadRequest

PREFIX = "/registry/configmaps/"
names = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?", fullmatch=True).filter(lambda n: n not in (".", ".."))


@given(names, names, st.integers(1, 2**62))
def test_a_token_says_where_the_next_page_starts(namespace: str, name: str, revision: int) -> None:
    position = Position(f"{PREFIX}{namespace}/{name}", revision)
    assert decode_continue_token(encode_continue_token(position, PREFIX), PREFIX) == position


def test_a_token_without_a_revision_goes_on_with_what_is_current() -> None:
    position = Position(f"{PREFIX}ns/a", None)
    assert decode_continue_token(encode_continue_token(position, PREFIX), PREFIX) == position


@given(st.text(max_size=30))
def test_made_up_tokens_are_refused_and_nothing_else(token: str) -> None:
    with pytest.raises(BadRequest, match="invalid continue token"):
        decode_continue_token(token, PREFIX)


@pytest.mark.parametrize("start", ["../secrets/ns/a", "ns/../../secrets", "/..", "a//b", "//zteam/a", "./a", "a/"])
def test_a_token_cannot_reach_another_collection(start: str) -> None:
    raw = orjson.dumps({"v": "meta.k8s.io/v1", "rv": 5, "start": start})
    with pytest.raises(BadRequest):
        decode_continue_token(base64.urlsafe_b64encode(raw).rstrip(b"=").decode(), PREFIX)


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ({"v": 1}, "number 1 into Go struct field continueToken.v of type string"),
        (
            {"v": "meta.k8s.io/v1", "rv": "1", "start": "a"},
            "string into Go struct field continueToken.rv of type int64",
        ),
        (
            {"v": "meta.k8s.io/v1", "rv": 1, "start": {}},
            "object into Go struct field continueToken.start of type string",
        ),
        ({"v": "meta.k8s.io/v1", "rv": 1 << 63}, "number 9223372036854775808 into Go struct field continueToken.rv"),
        ([], "array into Go value of type storage.continueToken"),
    ],
)
def test_a_token_with_something_else_in_it_is_refused(token: object, why: str) -> None:
    with pytest.raises(BadRequest, match="continue key is not valid: json: cannot unmarshal " + why):
        decode_continue_token(base64.urlsafe_b64encode(orjson.dumps(token)).decode().rstrip("="), PREFIX)
