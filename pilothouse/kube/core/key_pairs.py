"""Whether a certificate and a private key belong together, said as Go's crypto/tls says it."""

from __future__ import annotations

from pilothouse.machinery.pem import pem_blocks


def key_pair_problem(certificate: bytes, key: bytes) -> str:
    """Return what is wrong with the pair, empty when nothing is."""
    certificates, keys = _blocks(certificate), _blocks(key)
    if "CERTIFICATE" not in certificates:
        return _missing("certificate", certificates, "CERTIFICATE")
    if not any(kind == "PRIVATE KEY" or kind.endswith(" PRIVATE KEY") for kind in keys):
        return _missing("key", keys, "PRIVATE KEY")
    return _mismatch(certificate, key)


def _blocks(pem: bytes) -> list[str]:
    return [block.type for block in pem_blocks(pem)]


def _missing(what: str, found: list[str], wanted: str) -> str:
    if not found:
        return f"tls: failed to find any PEM data in {what} input"
    kinds = " ".join(found)
    skipped = f"in {what} input after skipping PEM blocks of the following types: [{kinds}]"
    if what == "key":
        if found == ["CERTIFICATE"]:
            return "tls: found a certificate rather than a key in the PEM for the private key"
        return f'tls: failed to find PEM block with type ending in "{wanted}" {skipped}'
    if len(found) == 1 and kinds.endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    return f'tls: failed to find "{wanted}" PEM block {skipped}'


def _mismatch(certificate: bytes, key: bytes) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        public = x509.load_pem_x509_certificate(certificate).public_key()
    except ValueError:
        return "x509: malformed certificate"
    try:
        private = load_pem_private_key(key, password=None)
    except (ValueError, TypeError):
        return "tls: failed to parse private key"
    if type(public) is not type(private.public_key()):
        return "tls: private key type does not match public key type"
    return "" if private.public_key() == public else "tls: private key does not match public key"
