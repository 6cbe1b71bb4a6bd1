"""The static table of RFC 7541, appendix A. Index 0 is never used."""

from __future__ import annotations

from typing import Final

_PSEUDO: Final = (
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
)

_NAMES: Final = b"""
    accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age allow
    authorization cache-control content-disposition content-encoding content-language content-length content-location
    content-range content-type cookie date etag expect expires from host if-match if-modified-since if-none-match
    if-range if-unmodified-since last-modified link location max-forwards proxy-authenticate proxy-authorization range
    referer refresh retry-after server set-cookie strict-transport-security transfer-encoding user-agent vary via
    www-authenticate
""".split()

_VALUES: Final = {b"accept-encoding": b"gzip, deflate"}

STATIC_TABLE: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"", b""),
    *_PSEUDO,
    *((name, _VALUES.get(name, b"")) for name in _NAMES),
)

NAME_INDEX: Final = {name: len(_PSEUDO) + place for place, name in enumerate(_NAMES, 1)}

STATUS_INDEX: Final = {int(value): index for index, (name, value) in enumerate(STATIC_TABLE) if name == b":status"}
