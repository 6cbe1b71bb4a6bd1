"""Preconditions and ranges, as a real server answers them."""

from __future__ import annotations

import re

import pytest

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serve_content import Content, serve_content

BODY = bytes(range(100))
MADE = 1_700_000_000.5
LATER, THEN, EARLIER = (f"Tue, 14 Nov {year} 22:13:20 GMT" for year in (2030, 2023, 2020))


def answer(method: str = "GET", etag: str = "X", **headers: str) -> Response:
    async def no_body(limit: int) -> bytes:
        return b""

    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    request = Request(method, "/", "", sent, no_body)
    return serve_content(request, Content(BODY, "application/json", etag, MADE, [(b"vary", b"Accept")]))


@pytest.mark.parametrize(
    ("wanted", "status", "part", "content_range"),
    [
        ("bytes=0-9", 206, BODY[:10], "bytes 0-9/100"),
        ("bytes=90-", 206, BODY[90:], "bytes 90-99/100"),
        ("bytes=90-999", 206, BODY[90:], "bytes 90-99/100"),
        ("bytes=-5", 206, BODY[95:], "bytes 95-99/100"),
        ("bytes=-500", 206, BODY, "bytes 0-99/100"),
        ("bytes=-0", 206, b"", "bytes 100-99/100"),
        ("bytes=0-1,200-", 206, BODY[:2], "bytes 0-1/100"),
        ("bytes=200-", 416, b"invalid range: failed to overlap\n", "bytes */100"),
        ("bytes=5-2", 416, b"invalid range\n", ""),
        ("bytes=a-b", 416, b"invalid range\n", ""),
        ("bytes=5", 416, b"invalid range\n", ""),
        ("lines=1-2", 416, b"invalid range\n", ""),
        ("bytes=", 200, BODY, ""),
        ("bytes=0-80,0-80", 200, BODY, ""),
        ("bytes=" + ",".join(["0-0"] * 65), 200, BODY, ""),
    ],
)
def test_a_range_is_answered_with_a_part(wanted: str, status: int, part: bytes, content_range: str) -> None:
    found = answer(range=wanted)
    assert (found.status, found.body) == (status, part)
    assert dict(found.headers).get(b"content-range", b"").decode() == content_range


def test_several_ranges_come_in_parts() -> None:
    found = answer(range="bytes= 0-1 , 4-5")
    kind = dict(found.headers)[b"content-type"].decode()
    matched = re.fullmatch(r"multipart/byteranges; boundary=([0-9a-f]{60})", kind)
    assert matched is not None
    start = f"--{matched[1]}\r\nContent-Range: bytes {{}}/100\r\nContent-Type: application/json\r\n\r\n"
    parts = [start.format("0-1").encode(), BODY[:2], b"\r\n", start.format("4-5").encode(), BODY[4:6], b"\r\n"]
    assert found.body == b"".join(parts) + f"--{matched[1]}--\r\n".encode()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"if_match": '"X"'}, 200),
        ({"if_match": "*"}, 200),
        ({"if_match": 'W/"X"'}, 412),
        ({"if_match": '"Y"'}, 412),
        ({"if_unmodified_since": EARLIER}, 412),
        ({"if_unmodified_since": THEN}, 200),
        ({"if_none_match": '"Y", W/"X"'}, 304),
        ({"if_none_match": '"Y"', "if_modified_since": LATER}, 200),
        ({"if_modified_since": THEN}, 304),
        ({"if_modified_since": EARLIER}, 200),
        ({"if_modified_since": "yesterday"}, 200),
        ({"if_none_match": "*", "method": "POST"}, 412),
        ({"if_range": '"X"', "range": "bytes=0-1"}, 206),
        ({"if_range": '"Y"', "range": "bytes=0-1"}, 200),
        ({"if_range": THEN, "range": "bytes=0-1"}, 206),
        ({"if_range": LATER, "range": "bytes=0-1"}, 200),
    ],
)
def test_preconditions_are_kept(headers: dict[str, str], status: int) -> None:
    assert answer(**headers).status == status


def test_a_client_that_has_it_is_told_when_it_was_made_only_where_there_is_no_tag() -> None:
    assert [name for name, _ in answer(if_none_match="*").headers] == [b"vary", b"etag"]
    assert [name for name, _ in answer(etag="", if_none_match="*").headers] == [b"vary", b"last-modified"]
