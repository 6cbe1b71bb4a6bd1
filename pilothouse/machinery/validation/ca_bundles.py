"""CA bundles: PEM data with at least one certificate in it, as Go reads it."""

from __future__ import annotations

import base64
import binascii
import re

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, invalid

_BLOCK = re.compile(
    rb"(?:\A|(?<=\n))-----BEGIN ([^\n]*?)-----[ \t]*\r?\n(.*?)-----END \1-----[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
_CERTIFICATE = b"CERTIFICATE"
_FAILED = "unable to load root certificates: "


@dataclass(frozen=True, slots=True)
class _Block:
    label: bytes
    der: bytes
    has_headers: bool


def validate_ca_bundle(bundle: str, path: Path) -> Errors:
    """`bundle` is base64, as in a body. An empty one is valid: the system's authorities are used."""
    if bundle and (problem := _problem(base64.b64decode(bundle))):
        yield invalid(path, bundle, _FAILED + problem)


def _problem(pem: bytes) -> str:
    """Empty when any certificate is found: what else there is does not count."""
    first, end = "", 0
    for match in _BLOCK.finditer(pem):
        block, end = _decoded(match), match.end()
        if block is None or block.label != _CERTIFICATE or block.has_headers:
            continue
        if _is_certificate(block.der):
            return ""
        first = first or "failed to parse certificate: x509: malformed certificate"
    if first:
        return first
    return "unable to parse bytes as PEM block" if pem[end:] else "no valid certificate authority data seen"


def _decoded(match: re.Match[bytes]) -> _Block | None:
    headers, separator, body = match[2].replace(b"\r\n", b"\n").partition(b"\n\n")
    if not (separator and b":" in headers):
        headers, body = b"", match[2]
    try:
        return _Block(match[1], base64.b64decode(b"".join(body.split()), validate=True), bool(headers))
    except binascii.Error:
        return None


def _is_certificate(der: bytes) -> bool:
    from cryptography.x509 import load_der_x509_certificate

    try:
        load_der_x509_certificate(der)
    except ValueError:
        return False
    return True
