"""Construction of authentication: front proxies, then client certificates, then tokens.

Without --service-account-signing-key-file, service account tokens are signed with the key in the data directory, and
every public key beside the signing key is trusted. During a rotation the directory holds two keys.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from pilothouse.apiserver.authn.authorities import AuthorityFiles
from pilothouse.apiserver.authn.bearer import BearerAuthenticator, UnionTokenAuthenticator, WebSocketTokenAuthenticator
from pilothouse.apiserver.authn.interface import Authenticator, TokenAuthenticator, UnionAuthenticator
from pilothouse.apiserver.authn.jwt.settings import ClaimOrExpression as ClaimMapping
from pilothouse.apiserver.authn.jwt.settings import IssuerSettings
from pilothouse.apiserver.authn.tokens import StaticTokens, read_token_file
from pilothouse.apiserver.authn.x509 import X509Authenticator
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.controllers.serviceaccount.token_secrets import LEGACY_ISSUER
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.controlplane.options.authentication import AuthenticationOptions, OIDCOptions
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.options.files import content
from pilothouse.controlplane.serving import FrontProxy, client_cas
from pilothouse.kube.authentication.bootstrap_tokens import BootstrapTokens
from pilothouse.kube.config import DEFAULT_ISSUER, ServiceAccountConfig
from pilothouse.kube.core.secrets import SECRETS
from pilothouse.kube.registries import Registries
from pilothouse.kube.serviceaccount.authenticator import ServiceAccountTokenAuthenticator
from pilothouse.kube.serviceaccount.keys import SigningKey, read_verifying_keys
from pilothouse.kube.serviceaccount.legacy import LegacyValidator, SecretUses
from pilothouse.kube.serviceaccount.validator import BoundTokenValidator, StoredTokenObjects
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Authentication:
    authenticator: Authenticator
    tokens: TokenAuthenticator
    """The token authenticators within `authenticator`."""
    anonymous: AnonymousSettings
    background: Mapping[str, Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=dict)


def set_up_authentication(
    options: CompletedOptions, service_accounts: ServiceAccountConfig, registries: Registries, proxy: FrontProxy
) -> Authentication:
    """Build the authenticators. Raises ValueError, OSError for an invalid file."""
    data = content(options.authentication.config) if options.authentication.config else b""
    settings = AuthenticationSettings()
    if data:
        from pilothouse.controlplane.authentication.configuration import read_authentication_configuration

        egress = options.egress_selector.selections
        settings = read_authentication_configuration(data, disallowed_issuers=service_accounts.issuers, egress=egress)
    elif options.oidc.enabled:
        settings = AuthenticationSettings((issuer_of_flags(options.oidc),))
    tokens = _built_in_tokens(options.authentication, service_accounts, registries)
    background: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {}
    if settings.issuers or data:
        # Lazy import: JWT verification and CEL are slow to import.
        from pilothouse.controlplane.authentication.reload import ConfiguredIssuers

        issuers = ConfiguredIssuers(settings.issuers, service_accounts.audiences)
        tokens.append(issuers)
        background["keys of issuers"] = issuers.run
        if data:
            from pilothouse.controlplane.authentication.reload import ConfigurationFile

            configuration = ConfigurationFile(issuers, settings.anonymous, service_accounts.issuers, egress)
            background["authentication configuration"] = configuration.follow(
                Path(options.authentication.config), data
            ).run
    if options.token_webhook.config_file:
        from pilothouse.apiserver.authn.token_cache import CachedTokens
        from pilothouse.apiserver.authn.webhook_tokens import WebhookTokens
        from pilothouse.controlplane.review_webhook import KubeconfigReviews

        webhook, ttl = KubeconfigReviews(Path(options.token_webhook.config_file)), options.token_webhook.cache_ttl
        background["authentication webhook"] = webhook.run
        reviews = WebhookTokens(webhook, version=options.token_webhook.version, audiences=service_accounts.audiences)
        tokens.append(CachedTokens(reviews, success_ttl=ttl, failure_ttl=ttl))
    union = UnionTokenAuthenticator(tokens)
    anonymous = settings.anonymous or AnonymousSettings(options.authentication.anonymous_auth)
    users = X509Authenticator(AuthorityFiles(client_cas(options)))
    authenticator = UnionAuthenticator(
        [proxy.authenticator, users, BearerAuthenticator(union), WebSocketTokenAuthenticator(union)]
    )
    return Authentication(authenticator, union, anonymous, background)


def issuer_of_flags(options: OIDCOptions) -> IssuerSettings:
    prefix = options.username_prefix
    if not prefix and options.username_claim != "email":
        prefix = f"{options.issuer_url}#"
    return IssuerSettings(
        options.issuer_url,
        (options.client_id,),
        username=ClaimMapping(options.username_claim, "" if prefix == "-" else prefix),
        groups=ClaimMapping(options.groups_claim, options.groups_prefix),
        required_claims=tuple(options.required_claims.items()),
        certificate_authority=content(options.ca_file).decode() if options.ca_file else "",
        algorithms=options.signing_algs,
    )


def _built_in_tokens(
    options: AuthenticationOptions, service_accounts: ServiceAccountConfig, registries: Registries
) -> list[TokenAuthenticator]:
    """Return the in-process token authenticators, in order. Raises ValueError, OSError for the token file."""
    users = read_token_file(Path(options.token_auth_file)) if options.token_auth_file else {}
    objects = StoredTokenObjects(registries)
    uses = SecretUses(OwnAccess(registries.open(SECRETS)))
    legacy = LegacyValidator(objects, uses, lookup=options.service_account_lookup)
    tokens: list[TokenAuthenticator] = [
        StaticTokens(users, service_accounts.audiences),
        ServiceAccountTokenAuthenticator(service_accounts, BoundTokenValidator(objects)),
        ServiceAccountTokenAuthenticator(service_accounts, legacy, issuers=(LEGACY_ISSUER,)),
    ]
    if options.bootstrap_tokens:
        tokens.append(BootstrapTokens(objects.secret, service_accounts.audiences))
    return tokens


@dataclass(frozen=True, slots=True)
class AnonymousSettings:
    enabled: bool
    paths: tuple[str, ...] = ()
    """Paths open to anonymous users; empty = all paths."""


@dataclass(frozen=True, slots=True)
class AuthenticationSettings:
    issuers: tuple[IssuerSettings, ...] = ()
    anonymous: AnonymousSettings | None = None
    """None if the file has no anonymous section."""


def service_account_config(options: CompletedOptions) -> ServiceAccountConfig:
    """Return the configuration of service account tokens. Key files from flags are checked at once; the generated key
    is read on use. Raises ValueError, OSError."""
    signing_key_file, authentication = options.misc.service_account_signing_key_file, options.authentication
    own = CertificatePaths.under(Path(options.pilothouse.data_dir))
    believed = [Path(file) for file in authentication.service_account_key_file]
    if signing_key_file:
        _ = SigningKey(Path(signing_key_file)).private
    for key_file in believed:
        read_verifying_keys(key_file)
    return ServiceAccountConfig(
        signing_key_file=Path(signing_key_file) if signing_key_file else own.service_account_key,
        key_files=tuple(believed) if signing_key_file else (*believed, own.service_account_public_key),
        issuers=authentication.service_account_issuer or (DEFAULT_ISSUER,),
        api_audiences=authentication.api_audiences,
        jwks_uri=authentication.service_account_jwks_uri,
        max_expiration=int(authentication.service_account_max_token_expiration),
        extend_expiration=authentication.service_account_extend_token_expiration,
    )
