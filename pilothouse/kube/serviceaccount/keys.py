"""Keys of service account tokens, loaded on demand from PEM files: RSA, or ECDSA on a NIST curve; and the issuer.

`load` reads files and imports libraries in a thread, because both would block the event loop. Changed files are
reloaded; a failed reload keeps the loaded keys. A key id is a hash of the public key.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from pilothouse.apiserver.file_watch import FileWatch
from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

    PrivateKey: TypeAlias = RSAPrivateKey | EllipticCurvePrivateKey
    PublicKey: TypeAlias = RSAPublicKey | EllipticCurvePublicKey

    from pilothouse.machinery.objects import Json
import orjson

from pilothouse.machinery.objects import Json

log = logging.getLogger(__name__)
T = TypeVar("T")
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
        """Return the signature algorithm; signatures by other algorithms are rejected."""
        curve = getattr(self.public, "curve", None)
        return "RS256" if curve is None else _ECDSA[curve.name]

    @property
    def jwk(self) -> Json:
        """Return the JSON web key, in the field order of upstream's library."""
        import jwt

        result = json.loads(jwt.get_algorithm_by_name(self.algorithm).to_jwk(self.public))
        own = {"use": "sig", "kty": result["kty"], "kid": self.id, "crv": result.get("crv"), "alg": self.algorithm}
        whole = own | {name: result.get(name) for name in ("x", "y", "n", "e")}
        return {name: value for name, value in whole.items() if value}


class _ChangingKeys(Generic[T]):
    """The contents of files, reloaded within seconds after a change."""

    def __init__(self, files: Sequence[Path], *, poll_seconds: float = 5.0) -> None:
        self._files = tuple(files)
        self._poll_seconds = poll_seconds
        self._next_look = 0.0
        self._watch: FileWatch | None = None
        self._found: T | None = None

    async def load(self) -> None:
        """Raise OSError or ValueError before the first successful load."""
        if self._found is None or time.monotonic() >= self._next_look:
            await asyncio.to_thread(self._look)

    @property
    def _current(self) -> T:
        """Raises OSError, ValueError."""
        if self._found is None:
            self._look()
        assert self._found is not None
        return self._found

    def _look(self) -> None:
        self._next_look = time.monotonic() + self._poll_seconds
        if self._watch is None:
            import jwt  # noqa: F401  # for whoever uses the keys

            self._watch, self._found = FileWatch(self._files), self._read()
        elif self._found is None or self._watch.changed():
            try:
                self._found = self._read()
            except (OSError, ValueError) as error:
                if self._found is None:
                    raise
                log.error("The new service account keys cannot be used, the old ones stay: %s", error)

    def _read(self) -> T:
        raise NotImplementedError


class VerifyingKeys(_ChangingKeys[list[VerifyingKey]]):
    """The trusted keys. A file may contain several keys, private or public."""

    @property
    def all(self) -> list[VerifyingKey]:
        """Return the keys; a new list for each version of the files. Raise OSError, ValueError."""
        return self._current

    def with_id(self, id: str) -> list[VerifyingKey]:
        """Return the candidate keys of a token with the key id; all keys for a token without a key id."""
        return [key for key in self.all if not id or key.id == id]

    def _read(self) -> list[VerifyingKey]:
        return [key for file in self._files for key in read_verifying_keys(file)]


@dataclass(frozen=True, slots=True)
class _Pair:
    private: PrivateKey
    verifying: VerifyingKey


class SigningKey(_ChangingKeys[_Pair]):
    def __init__(self, file: Path, *, poll_seconds: float = 5.0) -> None:
        super().__init__((file,), poll_seconds=poll_seconds)

    @property
    def private(self) -> PrivateKey:
        """Raises OSError, ValueError."""
        return self._current.private

    @property
    def verifying(self) -> VerifyingKey:
        """Raises OSError, ValueError."""
        return self._current.verifying

    def _read(self) -> _Pair:
        (file,) = self._files
        for block in _blocks(file):
            if result := _private(block):
                return _Pair(result, VerifyingKey(result.public_key()))
        raise ValueError(f"{file} does not contain a valid private key")


def read_verifying_keys(file: Path) -> list[VerifyingKey]:
    """Raise OSError, or ValueError for a file without keys."""
    result = [key for block in _blocks(file) if (key := _public(block))]
    if not result:
        raise ValueError(f"{file} does not contain any valid RSA or ECDSA public keys")
    return [VerifyingKey(key) for key in result]


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
    """Return the public key of a PEM block: a public key, a certificate or a private key."""
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


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    name: str
    key: SigningKey

    async def sign(self, claims: Json) -> str:
        """Raise OSError or ValueError for an unreadable key."""
        await self.key.load()
        import jwt

        verifying = self.key.verifying
        payload = orjson.dumps(claims | {"iss": self.name}, option=orjson.OPT_SORT_KEYS)
        # Upstream's tokens have no `typ` header.
        headers = {"kid": verifying.id, "typ": None}
        return jwt.PyJWS().encode(payload, self.key.private, algorithm=verifying.algorithm, headers=headers)
