"""The settings of a token issuer."""

from __future__ import annotations

from dataclasses import field

from pilothouse.machinery.dataclass import dataclass

ALL_ALGORITHMS = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")


@dataclass(frozen=True, slots=True)
class ClaimOrExpression:
    """Source of a user field: a claim with a prefix, or an expression. Both empty = unset."""

    claim: str = ""
    prefix: str = ""
    expression: str = ""


@dataclass(frozen=True, slots=True)
class TokenValidationRule:
    """An expression that must be true, and the message of its violation."""

    expression: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class IssuerSettings:
    url: str
    audiences: tuple[str, ...]
    """Accepted audiences; tokens need at least one."""
    username: ClaimOrExpression
    groups: ClaimOrExpression = ClaimOrExpression()
    uid: ClaimOrExpression = ClaimOrExpression()
    extra: tuple[tuple[str, str], ...] = ()
    """Extra keys and the expressions of their values."""
    required_claims: tuple[tuple[str, str], ...] = ()
    claim_rules: tuple[TokenValidationRule, ...] = ()
    user_rules: tuple[TokenValidationRule, ...] = ()
    discovery_url: str = ""
    """URL of the discovery document; empty = the well-known URL."""
    certificate_authority: str = field(default="", repr=False)
    """PEM bundle; empty = the system's CAs."""
    algorithms: tuple[str, ...] = ALL_ALGORITHMS

    @property
    def configuration_url(self) -> str:
        return self.discovery_url or self.url.removesuffix("/") + "/.well-known/openid-configuration"
