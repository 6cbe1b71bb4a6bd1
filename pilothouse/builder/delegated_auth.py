"""Delegated authentication and authorization: TokenReview and SubjectAccessReview of the cluster, as upstream.

Users come from front proxy headers, client certificates and bearer tokens.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from contextlib import suppress
from pathlib import Path

from pilothouse.apiserver.authn.bearer import BearerAuthenticator, WebSocketTokenAuthenticator
from pilothouse.apiserver.authn.interface import Authenticator, UnionAuthenticator
from pilothouse.apiserver.authn.token_cache import CachedTokens
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authn.webhook_tokens import WebhookTokens
from pilothouse.apiserver.authn.x509 import X509Authenticator
from pilothouse.apiserver.authz.always import AlwaysAllowPaths, PrivilegedGroup
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.authz.union import UnionAuthorizer
from pilothouse.apiserver.authz.webhook import WebhookAuthorizer, WebhookConfig
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.tallies import REGISTRY, CounterTally, HistogramTally
from pilothouse.apiserver.webhook.reviews import ReviewFailed, ReviewWebhook
from pilothouse.builder.front_proxy_trust import ClusterTrust
from pilothouse.client.cache.list_watch import SelectedListWatch
from pilothouse.client.cache.reflector import Reflector
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.webhook import GenericWebhook
from pilothouse.controlplane.delegation_roles import TRUST_READER, bind_trust_reader
from pilothouse.controlplane.errors import StartFailed
from pilothouse.controlplane.review_webhook import PostedReviews, may_help
from pilothouse.kube.bootstrap.cluster_authentication_trust import NAME, NAMESPACE
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden, NotFound
from pilothouse.machinery.objects import Json

_CACHE_TTL = 10.0
_log = logging.getLogger(__name__)


def delegated_authentication(client: Client, folder: Path) -> DelegatedAuthentication:
    """Return the authentication that the client's cluster does for this server. It rejects everybody before `start`.

    The trusted CAs are stored in `folder`. The client needs the Role extension-apiserver-authentication-reader in
    kube-system, and the ClusterRole system:auth-delegator.
    """
    return DelegatedAuthentication(client, folder)


class DelegatedAuthentication:
    """Authentication by the cluster.

    `authenticator` returns None for requests without credentials; the filter makes them anonymous, as upstream does.
    """

    def __init__(self, client: Client, folder: Path) -> None:
        self._config_maps = client.resource("v1", "configmaps", namespace=NAMESPACE)
        self._trust = ClusterTrust(folder)
        self._following: asyncio.Task[None] | None = None
        trust = self._trust
        reviewed = WebhookTokens(token_reviews(client))
        tokens = CachedTokens(reviewed, success_ttl=_CACHE_TTL, failure_ttl=_CACHE_TTL)
        users = X509Authenticator(trust.users)
        bearers = (BearerAuthenticator(tokens), WebSocketTokenAuthenticator(tokens))
        self.authenticator: Authenticator = _WithoutProxyHeaders(
            trust, UnionAuthenticator([_FrontProxies(trust), users, *bearers])
        )

    @property
    def client_cas(self) -> tuple[Path, ...]:
        """CA files for the server's TlsFiles, which reload them. The files exist after `start`."""
        return self._trust.files

    async def start(self) -> None:
        """Load the trusted CAs, then follow the ConfigMap.

        Raises StartFailed if a RoleBinding is missing, OSError if the folder is not writable, and the client's
        errors. A
        missing ConfigMap is followed as well.
        """
        self._trust.make_files()
        try:
            self._trust.take(await self._config_maps.get(NAME))
        except NotFound:
            _log.warning("ConfigMap %s/%s does not exist: client certificates are not trusted", NAMESPACE, NAME)
        except Forbidden as error:
            user = re.search(r'User "([^"]+)"', error.message)
            raise StartFailed(
                f"cannot read the trusted CAs of the cluster: {error.message}. "
                f"A RoleBinding to the Role {TRUST_READER} is missing: {bind_trust_reader(user[1] if user else '')}"
            ) from None
        source = SelectedListWatch(self._config_maps, field_selector=f"metadata.name={NAME}")
        reflector = Reflector(source, self._trust, name=NAME)
        self._following = asyncio.create_task(reflector.run(), name="cluster-trust")

    async def stop(self) -> None:
        """Stop following the ConfigMap. The loaded CAs stay trusted."""
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following


@dataclass(frozen=True, slots=True)
class _FrontProxies:
    """Authenticates by the current front proxy configuration of the cluster."""

    trust: ClusterTrust

    async def authenticate(self, request: Request) -> User | None:
        return await self.trust.front_proxy.authenticate(request)


@dataclass(frozen=True, slots=True)
class _WithoutProxyHeaders:
    """Removes the front proxy headers after authentication, whoever sent them."""

    trust: ClusterTrust
    authenticator: Authenticator

    async def authenticate(self, request: Request) -> User | None:
        user = await self.authenticator.authenticate(request)
        self.trust.front_proxy.headers.strip(request)
        return user


_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
_CONFIG = WebhookConfig("", authorized_ttl=_CACHE_TTL, unauthorized_ttl=_CACHE_TTL)


def delegated_authorizer(client: Client) -> Authorizer:
    """Return an authorizer that sends SubjectAccessReviews and caches each answer for ten seconds.

    Members of system:masters and health paths are allowed without a review. If the cluster does not answer, the request
    fails with 500, and the next request asks again. The client needs the ClusterRole system:auth-delegator and should
    not be rate-limited, because every request waits for it.
    """
    cluster = WebhookAuthorizer(subject_access_reviews(client), _CONFIG)
    return UnionAuthorizer([PrivilegedGroup(), AlwaysAllowPaths(_HEALTH), cluster])


TIMEOUT = 10.0
_CREATED = "201"
_NO_ANSWER = "<error>"


class _Tally:
    def __init__(self, name: str) -> None:
        prefix, help = f"apiserver_delegated_{name}_request", "Reviews that the cluster was asked for, by status code."
        bounds = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
        self._total = CounterTally(prefix, help, ("code",), registry=REGISTRY)
        self._seconds = HistogramTally(f"{prefix}_duration_seconds", help, ("code",), bounds=bounds, registry=REGISTRY)

    def note(self, code: str, seconds: float) -> None:
        self._total.inc((code,))
        self._seconds.observe((code,), seconds)


_AUTHENTICATION, _AUTHORIZATION = _Tally("authn"), _Tally("authz")


@dataclass(frozen=True, slots=True)
class _CountedReviews:
    webhook: ReviewWebhook
    tally: _Tally

    async def review(self, review: Json) -> Json:
        """Send the review and count it by status code. Raises ReviewFailed."""
        began, code = time.perf_counter(), _NO_ANSWER
        try:
            answer = await self.webhook.review(review)
            code = _CREATED
            return answer
        except ReviewFailed as error:
            code = str(error.code) if error.code else _NO_ANSWER
            raise
        finally:
            self.tally.note(code, time.perf_counter() - began)


def token_reviews(client: Client) -> ReviewWebhook:
    """Return the TokenReview webhook. Ten seconds are the limit for all attempts together."""
    webhook = GenericWebhook(client, "/apis/authentication.k8s.io/v1/tokenreviews", may_help=may_help)
    return _CountedReviews(PostedReviews(webhook, patience=TIMEOUT), _AUTHENTICATION)


def subject_access_reviews(client: Client) -> ReviewWebhook:
    """Return the SubjectAccessReview webhook. Each attempt is limited to ten seconds, the total by the client's
    request.
    """
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    webhook = GenericWebhook(client, path, timeout=TIMEOUT, may_help=may_help)
    return _CountedReviews(PostedReviews(webhook), _AUTHORIZATION)
