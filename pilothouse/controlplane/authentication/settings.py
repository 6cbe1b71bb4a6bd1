"""The settings of issuers of tokens and of anonymous users, from flags or from a file."""

from __future__ import annotations

from pilothouse.apiserver.authn.jwt.settings import IssuerSettings
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AnonymousSettings:
    enabled: bool
    paths: tuple[str, ...] = ()
    """All if there are none."""


@dataclass(frozen=True, slots=True)
class AuthenticationSettings:
    issuers: tuple[IssuerSettings, ...] = ()
    anonymous: AnonymousSettings | None = None
    """None where the file says nothing of it."""
