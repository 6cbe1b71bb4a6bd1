"""Authentication: who may be asking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar
from urllib.parse import urlsplit

from pilothouse.controlplane.options.files import content, missing_files
from pilothouse.kube.serviceaccount.config import DEFAULT_ISSUER
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import BOOL, DURATION, STRING, STRING_ARRAY, STRINGS, flag
from pilothouse.machinery.gofmt import quote


@dataclass(frozen=True)
class AuthenticationOptions:
    title: ClassVar[str] = "authentication"

    anonymous_auth: bool = flag("anonymous-auth", BOOL, True, "Serve requests without credentials as system:anonymous.")
    api_audiences: tuple[str, ...] = flag(
        "api-audiences",
        STRINGS,
        (),
        "Whom tokens must be meant for, one of them, to be good here. Without it, the --service-account-issuer.",
    )
    config: str = flag(
        "authentication-config",
        STRING,
        "",
        "File with an AuthenticationConfiguration: issuers of tokens, and who may stay anonymous. "
        "It is read again when it changes.",
    )
    bootstrap_tokens: bool = flag(
        "enable-bootstrap-token-auth", BOOL, False, "Believe the bootstrap tokens in secrets of kube-system."
    )
    client_ca_file: str = flag(
        "client-ca-file", STRING, "", "The CA whose client certificates are users. Without it, the CA in --data-dir."
    )
    service_account_extend_token_expiration: bool = flag(
        "service-account-extend-token-expiration",
        BOOL,
        True,
        "Let the tokens that admission puts into pods live for a year, for clients that never read theirs again.",
    )
    service_account_issuer: tuple[str, ...] = flag(
        "service-account-issuer",
        STRING_ARRAY,
        (),
        "In whose name tokens are issued, best an https URL. May be repeated: the first issues, all are believed. "
        f"Without it, {DEFAULT_ISSUER}.",
    )
    service_account_jwks_uri: str = flag(
        "service-account-jwks-uri",
        STRING,
        "",
        "Where others find the keys of tokens, if not at this server's /openid/v1/jwks.",
    )
    service_account_key_file: tuple[str, ...] = flag(
        "service-account-key-file",
        STRING_ARRAY,
        (),
        "PEM files with the RSA or ECDSA keys, private or public, whose tokens are believed. May be repeated.",
    )
    service_account_lookup: bool = flag(
        "service-account-lookup", BOOL, True, "Believe tokens of secrets only as long as the secrets are there."
    )
    service_account_max_token_expiration: float = flag(
        "service-account-max-token-expiration", DURATION, 0.0, "The longest that a token may be asked for."
    )
    token_auth_file: str = flag("token-auth-file", STRING, "", 'A CSV file of tokens: token,user,uid[,"group,group"].')

    given_beside_config: frozenset[str] = frozenset()
    """Flags on the command line that the configuration file may speak of, too: anonymous-auth, oidc-*."""

    def validate(self) -> Iterator[str]:
        if self.config:
            yield from self._validate_config()
        yield from missing_files({"client-ca-file": self.client_ca_file, "token-auth-file": self.token_auth_file})
        for file in self.service_account_key_file:
            yield from missing_files({"service-account-key-file": file})
        seen: set[str] = set()
        for issuer in self.service_account_issuer:
            if not issuer:
                yield "service-account-issuer should not be an empty string"
            elif ":" in issuer and not urlsplit(issuer).scheme:
                yield f"service-account-issuer \"{issuer}\" contained a ':' but was not a valid URL"
            elif issuer in seen:
                yield f'service-account-issuer "{issuer}" is already specified'
            seen.add(issuer)
        if self.service_account_jwks_uri and urlsplit(self.service_account_jwks_uri).scheme != "https":
            yield f"service-account-jwks-uri requires https scheme, parsed as: {self.service_account_jwks_uri}"
        if self.service_account_max_token_expiration and not (
            3600 <= self.service_account_max_token_expiration <= 1 << 32
        ):
            yield "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"

    def _validate_config(self) -> Iterator[str]:
        if any(name.startswith("oidc-") for name in self.given_beside_config):
            yield "authentication-config file and oidc-* flags are mutually exclusive"
            return
        from pilothouse.controlplane.authentication.configuration import read_authentication_configuration

        try:
            issuers = self.service_account_issuer or (DEFAULT_ISSUER,)
            settings = read_authentication_configuration(content(self.config), disallowed_issuers=issuers)
        except ValueError as error:
            yield f"failed to load authentication configuration from file {quote(self.config)}: {error}"
            return
        if settings.anonymous is not None and "anonymous-auth" in self.given_beside_config:
            why = "flag cannot be set when anonymous field is configured in authentication configuration file"
            yield f"anonymous: Forbidden: --anonymous-auth {why}"
