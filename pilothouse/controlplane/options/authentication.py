"""Options of authentication: tokens, client certificates, front proxies, OpenID Connect, token webhook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar
from urllib.parse import urlsplit

from pilothouse.controlplane.options.files import content, missing_files
from pilothouse.kube.config import DEFAULT_ISSUER
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import BOOL, CONFIGURATION_MAP, DURATION, STRING, STRING_ARRAY, STRINGS, flag
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
    """Given flags that conflict with the configuration file: anonymous-auth, oidc-*."""

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
            reason = "flag cannot be set when anonymous field is configured in authentication configuration file"
            yield f"anonymous: Forbidden: --anonymous-auth {reason}"


@dataclass(frozen=True)
class RequestHeaderOptions:
    title: ClassVar[str] = "request headers"

    client_ca_file: str = flag(
        "requestheader-client-ca-file",
        STRING,
        "",
        "The CA whose client certificates are front proxies. The front proxy CA in --data-dir is one besides, "
        "unless --proxy-client-cert-file is given.",
    )
    allowed_names: tuple[str, ...] = flag(
        "requestheader-allowed-names",
        STRINGS,
        (),
        "The common names that a front proxy's certificate may have. Without it, whatever name.",
    )
    username_headers: tuple[str, ...] = flag(
        "requestheader-username-headers", STRINGS, (), "The headers with the user's name; X-Remote-User is common."
    )
    uid_headers: tuple[str, ...] = flag(
        "requestheader-uid-headers", STRINGS, (), "The headers with the user's uid; X-Remote-Uid is common."
    )
    group_headers: tuple[str, ...] = flag(
        "requestheader-group-headers", STRINGS, (), "The headers with the user's groups; X-Remote-Group is common."
    )
    extra_headers_prefix: tuple[str, ...] = flag(
        "requestheader-extra-headers-prefix",
        STRINGS,
        (),
        "What the names of headers with more about the user begin with; X-Remote-Extra- is common.",
    )

    def validate(self) -> Iterator[str]:
        yield from missing_files({"requestheader-client-ca-file": self.client_ca_file})
        for name, values in self._lists.items():
            if any(not value.strip() for value in values):
                yield f"empty value in {quote(name)}"
        if self.uid_headers and "x-remote-uid" not in map(str.lower, self.uid_headers):
            yield (
                "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - "
                "API aggregation will not work"
            )

    @property
    def _lists(self) -> dict[str, tuple[str, ...]]:
        return {
            "requestheader-username-headers": self.username_headers,
            "requestheader-group-headers": self.group_headers,
            "requestheader-extra-headers-prefix": self.extra_headers_prefix,
            "requestheader-allowed-names": self.allowed_names,
            "requestheader-uid-headers": self.uid_headers,
        }


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
    """Whether any of these flags is given."""

    @property
    def enabled(self) -> bool:
        return bool(self.issuer_url and self.client_id)

    def validate(self) -> Iterator[str]:
        yield from missing_files({"oidc-ca-file": self.ca_file})
        if self.given and not self.enabled:
            yield "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
        if self.enabled:
            from pilothouse.controlplane.authentication.validation import validate_authentication_configuration

            issuer = {"url": self.issuer_url, "audiences": [self.client_id]}
            mappings = {"username": {"claim": self.username_claim, "prefix": ""}}
            config = {"jwt": [{"issuer": issuer, "claimMappings": mappings}]}
            for error in validate_authentication_configuration(config, ()):
                yield f"invalid authentication configuration: {error}"
        for algorithm in self.signing_algs:
            if algorithm not in ALGORITHMS:
                yield f"oidc: unsupported signing alg: {quote(algorithm)}"


@dataclass(frozen=True)
class TokenWebhookOptions:
    title: ClassVar[str] = "authentication webhook"

    config_file: str = flag(
        "authentication-token-webhook-config-file", STRING, "", "A kubeconfig for the webhook that reviews tokens."
    )
    version: str = flag(
        "authentication-token-webhook-version",
        STRING,
        "v1beta1",
        "The version of TokenReview that the webhook is sent: v1 or v1beta1.",
    )
    cache_ttl: float = flag(
        "authentication-token-webhook-cache-ttl", DURATION, 120.0, "How long its answers are remembered."
    )

    def validate(self) -> Iterator[str]:
        yield from missing_files({"authentication-token-webhook-config-file": self.config_file})
        if self.version not in ("v1", "v1beta1"):
            version = f"unsupported authentication webhook version {quote(self.version)}"
            yield f'{version}, supported versions are "v1", "v1beta1"'
