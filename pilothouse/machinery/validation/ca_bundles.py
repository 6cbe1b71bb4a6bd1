"""CA bundles: PEM data with at least one certificate in it, as Go reads it."""

from __future__ import annotations

import base64

from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.pem import pem_blocks

_CERTIFICATE = "CERTIFICATE"
_FAILED = "unable to load root certificates: "
_NO_PEM = "unable to parse bytes as PEM block"

UNREADABLE_ROOTS = _FAILED + _NO_PEM


def validate_ca_bundle(bundle: str, path: Path) -> Errors:
    """`bundle` is base64, as in a body. An empty one is valid: the system's authorities are used."""
    if bundle and (problem := ca_bundle_problem(base64.b64decode(bundle))):
        yield invalid(path, bundle, problem)


def ca_bundle_problem(pem: bytes) -> str:
    """Return why there are no authorities in it. Empty when there is any: what else there is does not count."""
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
