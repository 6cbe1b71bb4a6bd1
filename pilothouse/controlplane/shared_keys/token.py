"""Join tokens: an id that everybody may see, and a secret that opens the shared keys in the store.

They look like bootstrap tokens, with a longer secret: whoever can read the store may try as many as they like.
"""

from __future__ import annotations

import re
import secrets
import string
from dataclasses import field
from typing import Final

from pilothouse.controlplane.certificates.errors import CertificateError
from pilothouse.machinery.dataclass import dataclass

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
