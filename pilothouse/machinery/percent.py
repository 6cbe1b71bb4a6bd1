"""Percent-encoding, taken off in some nanoseconds a byte: clients send up to a megabyte of it before they are known."""

from __future__ import annotations

from binascii import a2b_qp


class BadEscape(ValueError):
    """A percent sign is not followed by two hexadecimal digits."""


def unescape(text: bytes) -> bytes:
    """The bytes that a part of a URL, which has no line breaks, stands for. Raises BadEscape."""
    # Quoted-printable is the same but for its sign, and the standard library decodes it in C. A bad escape stays.
    plain = a2b_qp(text.replace(b"=", b"=3D").replace(b"%", b"="))
    if len(plain) != len(text) - 2 * text.count(b"%"):
        raise BadEscape("invalid URL escape")
    return plain
