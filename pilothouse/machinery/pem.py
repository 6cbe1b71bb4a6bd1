"""PEM parser with Go's rules, in linear time, and validation of CA bundles.

Text between blocks and damaged blocks are ignored. Each end line is examined once, with the last preceding begin line.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, invalid

_BEGIN: Final = b"-----BEGIN "
_END = re.compile(rb"(?:\A|(?<=\n))-----END ([^\r\n]*?)-----[ \t]*+(?:\r?\n|\Z)")
_DASHES: Final = b"-----"


@dataclass(frozen=True, slots=True)
class PemBlock:
    type: str
    has_headers: bool
    body: bytes
    end: int
    """Offset of the block's end in the data."""


def pem_blocks(data: bytes) -> Iterator[PemBlock]:
    start = 0
    for end in _END.finditer(data):
        begin = data.rfind(_BEGIN, start, end.start())
        start = end.end()
        if begin == 0 or (begin > 0 and data[begin - 1] == ord("\n")):
            label, _, rest = data[begin + len(_BEGIN) : end.start()].partition(b"\n")
            if label.rstrip(b" \t\r") == end[1] + _DASHES and (block := _block(end[1], rest, end.end())):
                yield block


def _block(label: bytes, rest: bytes, end: int) -> PemBlock | None:
    lines = rest.split(b"\n")
    headers = next((number for number, line in enumerate(lines) if b":" not in line), len(lines))
    try:
        body = base64.b64decode(b"".join(b"".join(lines[headers:]).split()), validate=True)
    except binascii.Error:
        return None
    return PemBlock(label.decode("utf-8", "replace"), headers > 0, body, end)


_CERTIFICATE = "CERTIFICATE"
_FAILED = "unable to load root certificates: "
_NO_PEM = "unable to parse bytes as PEM block"

UNREADABLE_ROOTS = _FAILED + _NO_PEM


def validate_ca_bundle(bundle: str, path: Path) -> Errors:
    """Validate a base64-encoded bundle. An empty bundle is valid: the system's authorities apply."""
    if bundle and (problem := ca_bundle_problem(base64.b64decode(bundle))):
        yield invalid(path, bundle, problem)


def ca_bundle_problem(pem: bytes) -> str:
    """Return the reason why the bundle has no certificate; "" for a bundle with at least one certificate."""
    problem = _problem(pem)
    return _FAILED + problem if problem else ""


def _problem(pem: bytes) -> str:
    first, end = "", 0
    for block in pem_blocks(pem):
        end = block.end
        if block.type != _CERTIFICATE or block.has_headers:
            continue
        if _is_certificate(block.body):
            return ""
        first = first or "failed to parse certificate: x509: malformed certificate"
    if first:
        return first
    return _NO_PEM if pem[end:] else "no valid certificate authority data seen"


def _is_certificate(der: bytes) -> bool:
    from cryptography.x509 import load_der_x509_certificate

    try:
        load_der_x509_certificate(der)
    except ValueError:
        return False
    return True
