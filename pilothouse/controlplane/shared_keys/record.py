"""The shared keys as they are in the store: sealed with the cluster's key, and that sealed with the join token.

    {"token": {"id": …, "sealed": the cluster's key}, "sealed": the shared keys and the token}

A server that has joined keeps the cluster's key, so that a new token concerns only those who come later; the token is
among what is sealed, so that every server can tell it to them. What was changed by somebody without the key does not
open. The generation counts changes: a record that somebody puts back in place of a newer one is recognised by it.
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
"""So that whoever lists the store can tell what it is."""
_NOT_THE_TOKEN: Final = "the join token does not open the keys of this cluster"
_SOMETHING_ELSE: Final = "the store has something else where the keys of the cluster should be"
_OTHER_CLUSTER: Final = "the store has the keys of another cluster than the data directory"


@dataclass(frozen=True, slots=True)
class Opened:
    """What a record holds for those who can open it."""

    cluster_key: bytes = field(repr=False)
    token: JoinToken
    keys: SharedKeys = field(repr=False)
    generation: int = 0

    @property
    def sealed(self) -> bytes:
        """The record, for the store. It differs each time."""
        files = {name: pem.decode() for name, pem in self.keys.items()}
        inner = {"token": self.token.text, "files": files, "generation": self.generation}
        token = {"id": self.token.id, "sealed": _seal(_key_of(self.token), self.cluster_key)}
        return orjson.dumps({**_FRAME, "token": token, "sealed": _seal(self.cluster_key, orjson.dumps(inner))})


def new_cluster_key() -> bytes:
    return secrets.token_bytes(_KEY_BYTES)


def open_with_key(record: bytes, cluster_key: bytes) -> Opened:
    """Raises JoinRefused where it is another cluster's key."""
    inner = orjson.loads(_open(cluster_key, _Record.parse(record).sealed, _OTHER_CLUSTER))
    files = {name: pem.encode() for name, pem in inner["files"].items()}
    return Opened(cluster_key, JoinToken.parse(inner["token"]), files, inner.get("generation", 0))


def open_with_token(record: bytes, token: JoinToken) -> Opened:
    """Raises JoinRefused where it is not the token, or no longer."""
    found = _Record.parse(record)
    if found.token_id != token.id:
        raise JoinRefused(f"{_NOT_THE_TOKEN}: it is {token.id}.…, and the cluster's is {found.token_id}.…")
    return open_with_key(record, _open(_key_of(token), found.sealed_key, f"{_NOT_THE_TOKEN}: its secret is another"))


@dataclass(frozen=True, slots=True)
class _Record:
    token_id: str
    sealed_key: str
    sealed: str

    @classmethod
    def parse(cls, record: bytes) -> _Record:
        """Raises JoinRefused."""
        try:
            found = orjson.loads(record)
            texts = found["token"]["id"], found["token"]["sealed"], found["sealed"]
        except (ValueError, KeyError, TypeError):
            raise JoinRefused(_SOMETHING_ELSE) from None
        if not all(isinstance(text, str) for text in texts) or not TOKEN_ID.fullmatch(texts[0]):
            raise JoinRefused(_SOMETHING_ELSE)
        return cls(*texts)


def _key_of(token: JoinToken) -> bytes:
    """The secret is random and long, so that it need not be made hard to guess."""
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
    """The server can not have the keys of this cluster. The message says what it needs, and no secret."""


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
        """Raises JoinRefused."""
        if not _FORM.fullmatch(text):
            raise JoinRefused("the join token is not of the form [a-z0-9]{6}.[a-z0-9]{32}")
        id, _, secret = text.partition(".")
        return cls(id, secret)

    @property
    def text(self) -> str:
        return f"{self.id}.{self.secret}"
