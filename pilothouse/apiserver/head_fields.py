"""Validation of HTTP heads. Every head is validated before it is written: responses to clients and requests to other
servers, over HTTP/1.1 and HTTP/2.

A line break in a field would start a forged field, which could name another user or end the body. Rules and messages
are those of Go's net/http (httpguts.ValidHeaderFieldName and ValidHeaderFieldValue).
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import Final

from pilothouse.apiserver.http import Headers
from pilothouse.machinery.gofmt import quote

FIELD_OVERHEAD: Final = 32
"""Overhead of a header field in HTTP/2, in bytes: RFC 7541, section 4.1."""

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_TARGET = re.compile(rb"[!-~\x80-\xff]+").fullmatch
_IN_VALUES: Final = bytes(byte for byte in range(256) if byte == 0x09 or (byte >= 0x20 and byte != 0x7F))
_KNOWN_NAMES: Final = 1024

_known: set[bytes] = set()  # valid names, so that one set operation checks all names of a head
_name, _value = itemgetter(0), itemgetter(1)


class InvalidHead(ValueError):
    """A head that must not be written; the message is net/http's."""


def check_fields(headers: Headers) -> None:
    """Raises InvalidHead for a name that is not a token, or a value with a control character other than a tab."""
    if not _known.issuperset(map(_name, headers)):
        _check_names(headers)
    if b"".join(map(_value, headers)).translate(None, _IN_VALUES):
        wrong = next(name for name, value in headers if value.translate(None, _IN_VALUES))
        raise InvalidHead(f"net/http: invalid header field value for {_shown(wrong.title())}")


def check_request(method: bytes, target: bytes, headers: Headers) -> None:
    """Like `check_fields`, and also for an invalid method or target."""
    if not _TOKEN(method):
        raise InvalidHead(f"net/http: invalid method {_shown(method)}")
    if not _TARGET(target):
        raise InvalidHead("net/http: can't write control character in Request.URL")
    check_fields(headers)


def _check_names(headers: Headers) -> None:
    for name, _ in headers:
        if not _TOKEN(name):
            raise InvalidHead(f"net/http: invalid header field name {_shown(name)}")
        if len(_known) < _KNOWN_NAMES and len(name) <= 64:
            _known.add(name)


def _shown(text: bytes) -> str:
    return quote(text.decode("utf-8", "replace"))
