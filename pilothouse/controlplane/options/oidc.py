"""OpenID Connect: one issuer whose ID tokens are users, without a configuration file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.controlplane.options.files import missing_files
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import CONFIGURATION_MAP, STRING, STRINGS, flag
from pilothouse.machinery.gofmt import quote

ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")


@dataclass(frozen=True)
class OIDCOptions:
    title: ClassVar[str] = "openid connect"

    issuer_url: str = flag("oidc-issuer-url", STRING, "", "The https URL of the issuer.")
    client_id: str = flag("oidc-client-id", STRING, "", "The client that its tokens must be meant for.")
    ca_file: str = flag("oidc-ca-file", STRING, "", "The CA of the issuer. Without it, the host's own are trusted.")
    username_claim: str = flag("oidc-username-claim", STRING, "sub", "The claim with the user's name.")
    username_prefix: str = flag(
        "oidc-username-prefix",
        STRING,
        "",
        "What is put before names, '-' for nothing. Without it, the issuer and '#', unless names are email addresses.",
    )
    groups_claim: str = flag("oidc-groups-claim", STRING, "", "The claim with the user's groups: a string or several.")
    groups_prefix: str = flag("oidc-groups-prefix", STRING, "", "What is put before groups.")
    signing_algs: tuple[str, ...] = flag(
        "oidc-signing-algs", STRINGS, ("RS256",), f"How tokens may be signed: {', '.join(ALGORITHMS)}."
    )
    required_claims: dict[str, str] = flag(
        "oidc-required-claim", CONFIGURATION_MAP, {}, "A claim that must have a value: claim=value. May be repeated."
    )
    given: bool = False
    """Whether any of these flags is on the command line."""

    @property
    def enabled(self) -> bool:
        return bool(self.issuer_url and self.client_id)

    def validate(self) -> Iterator[str]:
        yield from missing_files({"oidc-ca-file": self.ca_file})
        if self.given and not self.enabled:
            yield "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
        if self.enabled:
            yield from self._validate_issuer()
        for algorithm in self.signing_algs:
            if algorithm not in ALGORITHMS:
                yield f"oidc: unsupported signing alg: {quote(algorithm)}"

    def _validate_issuer(self) -> Iterator[str]:
        """Validate the issuer as if it stood in a configuration file."""
        from pilothouse.controlplane.authentication.validation import validate_authentication_configuration

        issuer = {"url": self.issuer_url, "audiences": [self.client_id]}
        mappings = {"username": {"claim": self.username_claim, "prefix": ""}}
        config = {"jwt": [{"issuer": issuer, "claimMappings": mappings}]}
        for error in validate_authentication_configuration(config, ()):
            yield f"invalid authentication configuration: {error}"
