"""The authenticators that the options ask for: front proxies, then client certificates, then tokens."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pilothouse.apiserver.authn.authorities import AuthorityFiles
from pilothouse.apiserver.authn.bearer import BearerAuthenticator
from pilothouse.apiserver.authn.interface import Authenticator, TokenAuthenticator
from pilothouse.apiserver.authn.tokens import StaticTokens, read_token_file
from pilothouse.apiserver.authn.union import UnionAuthenticator
from pilothouse.apiserver.authn.websocket_token import WebSocketTokenAuthenticator
from pilothouse.apiserver.authn.x509 import X509Authenticator
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.controllers.serviceaccount.token_secrets import LEGACY_ISSUER
from pilothouse.controlplane.front_proxy import FrontProxy
from pilothouse.controlplane.options.authentication import AuthenticationOptions
from pilothouse.kube.authentication.bootstrap_tokens import BootstrapTokens
from pilothouse.kube.core.secrets import SECRETS
from pilothouse.kube.served import Registries
from pilothouse.kube.serviceaccount.authenticator import ServiceAccountTokenAuthenticator
from pilothouse.kube.serviceaccount.config import ServiceAccountConfig
from pilothouse.kube.serviceaccount.getter import StoredTokenObjects
from pilothouse.kube.serviceaccount.legacy import LegacyValidator, SecretUses
from pilothouse.kube.serviceaccount.validator import BoundTokenValidator


def built_in_tokens(
    options: AuthenticationOptions, service_accounts: ServiceAccountConfig, registries: Registries
) -> list[TokenAuthenticator]:
    """For tokens that are known without asking anybody else, in their order.

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


def build_authenticator(proxy: FrontProxy, client_cas: Iterable[Path], tokens: TokenAuthenticator) -> Authenticator:
    """Raises OSError, ValueError when a CA file makes no sense."""
    users = X509Authenticator(AuthorityFiles(client_cas))
    return UnionAuthenticator(
        [proxy.authenticator, users, BearerAuthenticator(tokens), WebSocketTokenAuthenticator(tokens)]
    )
