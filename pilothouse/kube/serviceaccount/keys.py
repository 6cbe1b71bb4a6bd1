"""The keys of service account tokens, read from PEM files when first needed: RSA, or ECDSA on a NIST curve.

`load` reads them, and the libraries that they need, in another thread: that takes too long for the event loop.
A key's id is a hash of its public half, so that it says which key it is and nothing else.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

    PrivateKey: TypeAlias = RSAPrivateKey | EllipticCurvePrivateKey
    PublicKey: TypeAlias = RSAPublicKey | EllipticCurvePublicKey

    from pilothouse.machinery.objects import Json

_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.+?-----END \1-----", re.DOTALL)
_ECDSA = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}


@dataclass(frozen=True)
class VerifyingKey:
    public: PublicKey

    @cached_property
    def id(self) -> str:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        der = self.public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return urlsafe_b64encode(hashlib.sha256(der).digest()).rstrip(b"=").decode()

    @cached_property
    def algorithm(self) -> str:
        """The one that its signatures are made with; no other is believed."""
        curve = getattr(self.public, "curve", None)
        return "RS256" if curve is None else _ECDSA[curve.name]

    @property
    def jwk(self) -> Json:
        """The key as a JSON web key, its fields in the order of upstream's library."""
        import jwt

        found = json.loads(jwt.get_algorithm_by_name(self.algorithm).to_jwk(self.public))
        own = {"use": "sig", "kty": found["kty"], "kid": self.id, "crv": found.get("crv"), "alg": self.algorithm}
        whole = own | {name: found.get(name) for name in ("x", "y", "n", "e")}
        return {name: value for name, value in whole.items() if value}


class VerifyingKeys:
    """The keys whose tokens are believed. A file may hold several, private or public."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)

    @cached_property
    def all(self) -> list[VerifyingKey]:
        """Raises OSError, ValueError."""
        return [key for file in self._files for key in read_verifying_keys(file)]

    async def load(self) -> None:
        """Raises OSError, ValueError."""
        if "all" not in self.__dict__:
            await asyncio.to_thread(_load, self, "all")

    def with_id(self, id: str) -> list[VerifyingKey]:
        """Return the keys that may have signed a token which names this id; all for one that names none."""
        return [key for key in self.all if not id or key.id == id]


class SigningKey:
    def __init__(self, file: Path) -> None:
        self._file = file

    @cached_property
    def private(self) -> PrivateKey:
        """Raises OSError, ValueError."""
        for block in _blocks(self._file):
            if found := _private(block):
                return found
        raise ValueError(f"{self._file} does not contain a valid private key")

    @cached_property
    def verifying(self) -> VerifyingKey:
        return VerifyingKey(self.private.public_key())

    async def load(self) -> None:
        """Raises OSError, ValueError."""
        if "verifying" not in self.__dict__:
            await asyncio.to_thread(_load, self, "verifying")


def _load(keys: object, name: str) -> None:
    import jwt  # noqa: F401  # for whoever uses the keys

    getattr(keys, name)


def read_verifying_keys(file: Path) -> list[VerifyingKey]:
    """Raises OSError, ValueError for a file with no keys in it."""
    found = [key for block in _blocks(file) if (key := _public(block))]
    if not found:
        raise ValueError(f"{file} does not contain any valid RSA or ECDSA public keys")
    return [VerifyingKey(key) for key in found]


def _blocks(file: Path) -> list[bytes]:
    return [match[0] for match in _BLOCK.finditer(file.read_bytes())]


def _private(block: bytes) -> PrivateKey | None:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(block, password=None)
    except (ValueError, TypeError):
        return None
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key if key.curve.name in _ECDSA else None
    return key if isinstance(key, rsa.RSAPrivateKey) else None


def _public(block: bytes) -> PublicKey | None:
    """Return the public key of a PEM block: a public key, a certificate, or the private key that is there instead."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if private := _private(block):
        return private.public_key()
    try:
        certified = b"BEGIN CERTIFICATE" in block
        key = x509.load_pem_x509_certificate(block).public_key() if certified else load_pem_public_key(block)
    except ValueError:
        return None
    if isinstance(key, ec.EllipticCurvePublicKey):
        return key if key.curve.name in _ECDSA else None
    return key if isinstance(key, rsa.RSAPublicKey) else None
