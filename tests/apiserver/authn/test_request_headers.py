"""The headers in which front proxies name users, and which files say whose certificates are believed."""

from __future__ import annotations

from pathlib import Path

from certificates_fixture import TestCA

from pilothouse.apiserver.authn.authorities import AuthorityFiles
from pilothouse.apiserver.authn.request_header import STANDARD, RequestHeaders
from pilothouse.apiserver.http import Request


async def _no_body(limit: int) -> bytes:
    return b""


def _request(*headers: tuple[bytes, bytes]) -> Request:
    return Request("GET", "/", "", list(headers), _no_body)


def test_the_first_header_with_a_value_names_the_user_and_all_name_groups() -> None:
    headers = RequestHeaders(username=("X-One", "X-Two"), group=("X-Group", "X-More"), uid=(), extra_prefix=("X-E-",))
    sent = [(b"x-one", b""), (b"x-two", "bob-é".encode()), (b"x-more", b"c"), (b"x-group", b"a"), (b"x-group", b"b")]
    user = headers.user(sent)
    assert user is not None
    assert (user.name, user.uid, user.groups) == ("bob-é", "", ("a", "b", "c", "system:authenticated"))


def test_keys_of_extra_values_are_decoded() -> None:
    sent = [(b"x-remote-user", b"bob"), (b"x-remote-extra-a%2fb", b"1"), (b"x-remote-extra-a%2fb", b"2")]
    user = STANDARD.user(sent)
    assert user is not None
    assert user.extra == {"a/b": ("1", "2")}


def test_the_anonymous_user_stays_unauthenticated() -> None:
    user = STANDARD.user([(b"x-remote-user", b"system:anonymous"), (b"x-remote-group", b"system:unauthenticated")])
    assert user is not None
    assert user.groups == ("system:unauthenticated",)


def test_the_headers_are_taken_from_a_request_and_nothing_else_is() -> None:
    request = _request((b"x-remote-user", b"a"), (b"accept", b"b"), (b"x-remote-extra-k", b"c"), (b"x-remote-x", b"d"))
    assert request.header(b"x-remote-user") == "a"
    STANDARD.strip(request)
    assert request.headers == [(b"accept", b"b"), (b"x-remote-x", b"d")]
    assert request.header(b"x-remote-user") == ""


def test_authorities_follow_their_files(tmp_path: Path) -> None:
    file, other = tmp_path / "ca.crt", tmp_path / "other.crt"
    file.write_bytes(TestCA().certificate)
    other.write_bytes(TestCA().certificate)
    authorities = AuthorityFiles([file], poll_seconds=0)
    before = authorities()
    file.write_bytes(file.read_bytes() + other.read_bytes())
    assert authorities() > before
    both = authorities()
    file.unlink()
    assert authorities() == both
