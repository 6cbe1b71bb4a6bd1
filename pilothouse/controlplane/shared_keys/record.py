"""The record of the shared keys in the store, and join tokens.

    {"token": {"id": …, "sealed": cluster key}, "sealed": shared keys and token}

The cluster key seals the shared keys, and the join token seals the cluster key. A joined server stores the cluster key,
so that a new token affects only later joins. The record contains the token, so that every server can print the token.
Changes without the cluster key are detected. The generation counts changes and detects a rollback of the record.

A join token has a public id and a secret, like a bootstrap token. The secret is longer, because readers of the store
can attack the seal offline.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from base64 import b64decode, b64encode
from dataclasses import field
from typing import Final

import orjson

from pilothouse.controlplane.certificates.paths import CertificateError
from pilothouse.controlplane.shared_keys.directory import SharedKeys
from pilothouse.machinery.dataclass import dataclass

_KEY_BYTES: Final = 32
_PURPOSE: Final = b"pilothouse-join"
_FRAME: Final = {"kind": "SharedKeys", "apiVersion": "pilothouse.dev/v1", "metadata": {"name": "cluster"}}
"""Kubernetes-style header, which identifies the record in a listing of the store."""
_NOT_THE_TOKEN: Final = "the join token does not open the keys of this cluster"
_SOMETHING_ELSE: Final = "the store has something else where the keys of the cluster should be"
_OTHER_CLUSTER: Final = "the store has the keys of another cluster than the data directory"


@dataclass(frozen=True, slots=True)
class Opened:
    """Decrypted content of a record."""

    cluster_key: bytes = field(repr=False)
    token: JoinToken
    keys: SharedKeys = field(repr=False)
    generation: int = 0

    @property
    def sealed(self) -> bytes:
        """The encrypted record. Encryption is randomized, so equal content yields different records."""
        files = {name: pem.decode() for name, pem in self.keys.items()}
        inner = {"token": self.token.text, "files": files, "generation": self.generation}
        token = {"id": self.token.id, "sealed": _seal(_key_of(self.token), self.cluster_key)}
        return orjson.dumps({**_FRAME, "token": token, "sealed": _seal(self.cluster_key, orjson.dumps(inner))})


def new_cluster_key() -> bytes:
    return secrets.token_bytes(_KEY_BYTES)


def open_with_key(record: bytes, cluster_key: bytes) -> Opened:
    """Decrypt a record. Raises JoinRefused for the key of another cluster."""
    inner = orjson.loads(_open(cluster_key, _Record.parse(record).sealed, _OTHER_CLUSTER))
    files = {name: pem.encode() for name, pem in inner["files"].items()}
    return Opened(cluster_key, JoinToken.parse(inner["token"]), files, inner.get("generation", 0))


def open_with_token(record: bytes, token: JoinToken) -> Opened:
    """Decrypt a record. Raises JoinRefused for a wrong or replaced token."""
    parsed = _Record.parse(record)
    if parsed.token_id != token.id:
        raise JoinRefused(f"{_NOT_THE_TOKEN}: it is {token.id}.…, and the cluster's is {parsed.token_id}.…")
    return open_with_key(record, _open(_key_of(token), parsed.sealed_key, f"{_NOT_THE_TOKEN}: its secret is another"))


@dataclass(frozen=True, slots=True)
class _Record:
    token_id: str
    sealed_key: str
    sealed: str

    @classmethod
    def parse(cls, record: bytes) -> _Record:
        """Raises JoinRefused."""
        try:
            parsed = orjson.loads(record)
            texts = parsed["token"]["id"], parsed["token"]["sealed"], parsed["sealed"]
        except (ValueError, KeyError, TypeError):
            raise JoinRefused(_SOMETHING_ELSE) from None
        if not all(isinstance(text, str) for text in texts) or not TOKEN_ID.fullmatch(texts[0]):
            raise JoinRefused(_SOMETHING_ELSE)
        return cls(*texts)


def _key_of(token: JoinToken) -> bytes:
    """Derive the sealing key. A fast hash suffices, because the secret is long and random."""
    secret, salt = token.secret.encode(), token.id.encode()
    return hashlib.blake2b(secret, digest_size=_KEY_BYTES, person=_PURPOSE, salt=salt).digest()


def _seal(key: bytes, content: bytes) -> str:
    from nacl.secret import SecretBox

    return b64encode(SecretBox(key).encrypt(content)).decode()


def _open(key: bytes, sealed: str, otherwise: str) -> bytes:
    from nacl.exceptions import CryptoError
    from nacl.secret import SecretBox

    try:
        opened: bytes = SecretBox(key).decrypt(b64decode(sealed))
    except (CryptoError, ValueError):
        raise JoinRefused(otherwise) from None
    return opened


_ALPHABET: Final = string.ascii_lowercase + string.digits
TOKEN_ID: Final = re.compile(r"[a-z0-9]{6}")
_FORM: Final = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{32}")


class JoinRefused(CertificateError):
    """The server cannot obtain the keys of the cluster. The message names the missing input, and never a secret."""


@dataclass(frozen=True, slots=True)
class JoinToken:
    id: str
    secret: str = field(repr=False)

    @classmethod
    def new(cls) -> JoinToken:
        id, secret = ("".join(secrets.choice(_ALPHABET) for _ in range(length)) for length in (6, 32))
        return cls(id, secret)

    @classmethod
    def parse(cls, text: str) -> JoinToken:
        """Parse a token. Raises JoinRefused."""
        if not _FORM.fullmatch(text):
            raise JoinRefused("the join token is not of the form [a-z0-9]{6}.[a-z0-9]{32}")
        id, _, secret = text.partition(".")
        return cls(id, secret)

    @property
    def text(self) -> str:
        return f"{self.id}.{self.secret}"
