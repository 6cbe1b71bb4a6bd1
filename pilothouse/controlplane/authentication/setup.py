"""Authentication as the options ask for it: front proxies, then client certificates, then tokens."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pilothouse.apiserver.authn.authorities import AuthorityFiles
from pilothouse.apiserver.authn.bearer import BearerAuthenticator, UnionTokenAuthenticator
from pilothouse.apiserver.authn.interface import Authenticator, TokenAuthenticator
from pilothouse.apiserver.authn.tokens import StaticTokens, read_token_file
from pilothouse.apiserver.authn.union import UnionAuthenticator
from pilothouse.apiserver.authn.websocket_token import WebSocketTokenAuthenticator
from pilothouse.apiserver.authn.x509 import X509Authenticator
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.controllers.serviceaccount.token_secrets import LEGACY_ISSUER
from pilothouse.controlplane.options.authentication import AuthenticationOptions, OIDCOptions
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.options.files import content
from pilothouse.controlplane.serving import FrontProxy, client_cas
from pilothouse.kube.authentication.bootstrap_tokens import BootstrapTokens
from pilothouse.kube.config import ServiceAccountConfig
from pilothouse.kube.core.secrets import SECRETS
from pilothouse.kube.registries import Registries
from pilothouse.kube.serviceaccount.authenticator import ServiceAccountTokenAuthenticator
from pilothouse.kube.serviceaccount.legacy import LegacyValidator, SecretUses
from pilothouse.kube.serviceaccount.validator import BoundTokenValidator, StoredTokenObjects
from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from pilothouse.apiserver.authn.jwt.settings import IssuerSettings
    from pilothouse.controlplane.options.authentication import TokenWebhookOptions
    from pilothouse.controlplane.review_webhook import KubeconfigReviews
from pilothouse.apiserver.authn.jwt.settings import IssuerSettings
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.kube.config import DEFAULT_ISSUER
from pilothouse.kube.serviceaccount.keys import SigningKey, read_verifying_keys


@dataclass(frozen=True, slots=True)
class Authentication:
    authenticator: Authenticator
    tokens: TokenAuthenticator
    """Those that `authenticator` reads."""
    anonymous: AnonymousSettings
    background: Mapping[str, Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=dict)


def set_up_authentication(
    options: CompletedOptions, service_accounts: ServiceAccountConfig, registries: Registries, proxy: FrontProxy
) -> Authentication:
    """Raises ValueError, OSError when a file that an option names makes no sense."""
    data = content(options.authentication.config) if options.authentication.config else b""
    settings = _settings(options, service_accounts, data)
    tokens = _built_in_tokens(options.authentication, service_accounts, registries)
    background: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {}
    if settings.issuers or data:
        # Verifying and expressions are much to load for servers that know no other issuer.
        from pilothouse.controlplane.authentication.reload import ConfiguredIssuers

        issuers = ConfiguredIssuers(settings.issuers, service_accounts.audiences)
        tokens.append(issuers)
        background["keys of issuers"] = issuers.run
        if data:
            from pilothouse.controlplane.authentication.reload import ConfigurationFile

            egress = options.egress_selector.selections
            configuration = ConfigurationFile(issuers, settings.anonymous, service_accounts.issuers, egress)
            background["authentication configuration"] = configuration.follow(
                Path(options.authentication.config), data
            ).run
    if options.token_webhook.config_file:
        from pilothouse.controlplane.review_webhook import KubeconfigReviews

        webhook = KubeconfigReviews(Path(options.token_webhook.config_file))
        background["authentication webhook"] = webhook.run
        tokens.append(_webhook_tokens(webhook, options.token_webhook, service_accounts))
    union = UnionTokenAuthenticator(tokens)
    anonymous = settings.anonymous or AnonymousSettings(options.authentication.anonymous_auth)
    return Authentication(_authenticator(proxy, client_cas(options), union), union, anonymous, background)


def _settings(options: CompletedOptions, service_accounts: ServiceAccountConfig, data: bytes) -> AuthenticationSettings:
    if data:
        from pilothouse.controlplane.authentication.configuration import read_authentication_configuration

        egress = options.egress_selector.selections
        return read_authentication_configuration(data, disallowed_issuers=service_accounts.issuers, egress=egress)
    return (
        AuthenticationSettings((issuer_of_flags(options.oidc),)) if options.oidc.enabled else AuthenticationSettings()
    )


def issuer_of_flags(options: OIDCOptions) -> IssuerSettings:
    from pilothouse.apiserver.authn.jwt.settings import ClaimOrExpression as ClaimMapping
    from pilothouse.apiserver.authn.jwt.settings import IssuerSettings

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


def _webhook_tokens(
    webhook: KubeconfigReviews, given: TokenWebhookOptions, service_accounts: ServiceAccountConfig
) -> TokenAuthenticator:
    from pilothouse.apiserver.authn.token_cache import CachedTokens
    from pilothouse.apiserver.authn.webhook_tokens import WebhookTokens

    tokens = WebhookTokens(webhook, version=given.version, audiences=service_accounts.audiences)
    return CachedTokens(tokens, success_ttl=given.cache_ttl, failure_ttl=given.cache_ttl)


def _built_in_tokens(
    options: AuthenticationOptions, service_accounts: ServiceAccountConfig, registries: Registries
) -> list[TokenAuthenticator]:
    """Return the authenticators of tokens that are known without asking anybody else, in their order.

    Raises ValueError when the token file makes no sense, OSError when it can not be read.
    """
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


def _authenticator(proxy: FrontProxy, client_cas: Iterable[Path], tokens: TokenAuthenticator) -> Authenticator:
    """Raises OSError, ValueError when a CA file makes no sense."""
    users = X509Authenticator(AuthorityFiles(client_cas))
    return UnionAuthenticator(
        [proxy.authenticator, users, BearerAuthenticator(tokens), WebSocketTokenAuthenticator(tokens)]
    )


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


def service_account_config(options: CompletedOptions) -> ServiceAccountConfig:
    """Raises ValueError, OSError for a key file that was given and makes no sense; our own is read when needed."""
    given, authentication = options.misc.service_account_signing_key_file, options.authentication
    own = CertificatePaths.under(Path(options.pilothouse.data_dir))
    believed = [Path(file) for file in authentication.service_account_key_file]
    _check(Path(given) if given else None, believed)
    return ServiceAccountConfig(
        signing_key_file=Path(given) if given else own.service_account_key,
        key_files=tuple(believed) if given else (*believed, own.service_account_public_key),
        issuers=authentication.service_account_issuer or (DEFAULT_ISSUER,),
        api_audiences=authentication.api_audiences,
        jwks_uri=authentication.service_account_jwks_uri,
        max_expiration=int(authentication.service_account_max_token_expiration),
        extend_expiration=authentication.service_account_extend_token_expiration,
    )


def _check(signing: Path | None, believed: list[Path]) -> None:
    if signing:
        _ = SigningKey(signing).private
    for file in believed:
        read_verifying_keys(file)
