"""Users come from the front proxy's headers, from client certificates, or from tokens, which the cluster reviews."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import suppress
from pathlib import Path

from pilothouse.apiserver.authn.bearer import BearerAuthenticator
from pilothouse.apiserver.authn.interface import Authenticator
from pilothouse.apiserver.authn.token_cache import CachedTokens
from pilothouse.apiserver.authn.union import UnionAuthenticator
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authn.webhook_tokens import WebhookTokens
from pilothouse.apiserver.authn.websocket_token import WebSocketTokenAuthenticator
from pilothouse.apiserver.authn.x509 import X509Authenticator
from pilothouse.apiserver.http import Request
from pilothouse.builder.delegation.reviews import token_reviews
from pilothouse.builder.delegation.trust import ClusterTrust
from pilothouse.client.cache.list_watch import SelectedListWatch
from pilothouse.client.cache.reflector import Reflector
from pilothouse.client.rest.client import Client
from pilothouse.controlplane.delegation_roles import TRUST_READER, bind_trust_reader
from pilothouse.controlplane.errors import StartFailed
from pilothouse.kube.bootstrap.cluster_authentication_trust import NAME, NAMESPACE
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden, NotFound

_REMEMBERED_SECONDS = 10.0
_log = logging.getLogger(__name__)


def delegated_authentication(client: Client, folder: Path) -> DelegatedAuthentication:
    """Return the authentication that the client's cluster does for this server. It knows nobody before it is started.

    The CAs that the cluster trusts are kept in `folder`. The client needs the Role
    extension-apiserver-authentication-reader in kube-system, and the ClusterRole system:auth-delegator.
    """
    return DelegatedAuthentication(client, folder)


class DelegatedAuthentication:
    """`authenticator` returns None for requests without credentials: the filter makes them anonymous, as upstream does
    by default."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._config_maps = client.resource("v1", "configmaps", namespace=NAMESPACE)
        self._trust = ClusterTrust(folder)
        self._following: asyncio.Task[None] | None = None
        trust = self._trust
        reviewed = WebhookTokens(token_reviews(client))
        tokens = CachedTokens(reviewed, success_ttl=_REMEMBERED_SECONDS, failure_ttl=_REMEMBERED_SECONDS)
        users = X509Authenticator(trust.users)
        bearers = (BearerAuthenticator(tokens), WebSocketTokenAuthenticator(tokens))
        self.authenticator: Authenticator = _WithoutProxyHeaders(
            trust, UnionAuthenticator([_FrontProxies(trust), users, *bearers])
        )

    @property
    def client_cas(self) -> tuple[Path, ...]:
        """For the server's TlsFiles, which follow them. They are there when `start` has returned."""
        return self._trust.files

    async def start(self) -> None:
        """Return when it is known whom the cluster believes; from then on follow what it says.

        Raises StartFailed where that cannot be read for want of a RoleBinding, OSError where the folder cannot be
        written, and what the client raises. A cluster that has said nothing yet is followed, too.
        """
        self._trust.make_files()
        try:
            self._trust.take(await self._config_maps.get(NAME))
        except NotFound:
            _log.warning("there is no ConfigMap %s/%s: certificates are nobody's", NAMESPACE, NAME)
        except Forbidden as error:
            user = re.search(r'User "([^"]+)"', error.message)
            raise StartFailed(
                f"cannot read whom the cluster believes: {error.message}. "
                f"A RoleBinding to the Role {TRUST_READER} is missing: {bind_trust_reader(user[1] if user else '')}"
            ) from None
        source = SelectedListWatch(self._config_maps, field_selector=f"metadata.name={NAME}")
        reflector = Reflector(source, self._trust, name=NAME)
        self._following = asyncio.create_task(reflector.run(), name="cluster-trust")

    async def stop(self) -> None:
        """Follow no longer. What is known stays known."""
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following


@dataclass(frozen=True, slots=True)
class _FrontProxies:
    """What the cluster says of its front proxies at the moment of each request."""

    trust: ClusterTrust

    async def authenticate(self, request: Request) -> User | None:
        return await self.trust.front_proxy.authenticate(request)


@dataclass(frozen=True, slots=True)
class _WithoutProxyHeaders:
    """The headers in which front proxies name users go no further, whoever sent them."""

    trust: ClusterTrust
    authenticator: Authenticator

    async def authenticate(self, request: Request) -> User | None:
        user = await self.authenticator.authenticate(request)
        self.trust.front_proxy.headers.strip(request)
        return user
