"""The settings of one issuer of tokens."""

from __future__ import annotations

from dataclasses import field

from pilothouse.machinery.dataclass import dataclass

ALL_ALGORITHMS = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")


@dataclass(frozen=True, slots=True)
class ClaimOrExpression:
    """Where something about a user comes from: a claim with a prefix, or an expression. Nowhere if both are empty."""

    claim: str = ""
    prefix: str = ""
    expression: str = ""


@dataclass(frozen=True, slots=True)
class TokenValidationRule:
    """An expression that must be true, and what is said if it is not."""

    expression: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class IssuerSettings:
    url: str
    audiences: tuple[str, ...]
    """A token must be meant for one of them."""
    username: ClaimOrExpression
    groups: ClaimOrExpression = ClaimOrExpression()
    uid: ClaimOrExpression = ClaimOrExpression()
    extra: tuple[tuple[str, str], ...] = ()
    """Keys, with the expressions for their values."""
    required_claims: tuple[tuple[str, str], ...] = ()
    claim_rules: tuple[TokenValidationRule, ...] = ()
    user_rules: tuple[TokenValidationRule, ...] = ()
    discovery_url: str = ""
    """Where the issuer's configuration is, if not at its well-known place."""
    certificate_authority: str = field(default="", repr=False)
    """PEM. Without it the system's are trusted."""
    algorithms: tuple[str, ...] = ALL_ALGORITHMS

    @property
    def configuration_url(self) -> str:
        return self.discovery_url or self.url.removesuffix("/") + "/.well-known/openid-configuration"
