"""Who asks, and whether they may: both are left to the cluster that this server is part of.

Users come from the front proxy's headers, from client certificates, or from tokens, which the cluster reviews.
What they may do is the cluster's answer to a SubjectAccessReview, kept for some seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pilothouse.apiserver.authn.authorities import AuthorityFiles
from pilothouse.apiserver.authn.bearer import BearerAuthenticator
from pilothouse.apiserver.authn.interface import Authenticator, TokenIdentity
from pilothouse.apiserver.authn.request_header import RequestHeaderAuthenticator, RequestHeaders
from pilothouse.apiserver.authn.union import UnionAuthenticator
from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.authn.x509 import X509Authenticator
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision
from pilothouse.client.rest.client import Client
from pilothouse.machinery.objects import Json

_PUBLIC = ("/healthz", "/livez", "/readyz")
_KEPT_SECONDS = 10.0
_MOST_KEPT = 4096


@dataclass(frozen=True)
class ClusterTrust:
    """The ConfigMap that says whom the cluster believes, as files, which is what TLS reads. They are followed."""

    client: Client
    folder: Path
    headers: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def client_ca(self) -> Path:
        return self.folder / "client-ca.crt"

    @property
    def front_proxy_ca(self) -> Path:
        return self.folder / "front-proxy-ca.crt"

    async def refresh(self) -> None:
        maps = self.client.resource("v1", "configmaps", namespace="kube-system")
        data = (await maps.get("extension-apiserver-authentication"))["data"]
        self.folder.mkdir(parents=True, exist_ok=True)
        for file, key in ((self.client_ca, "client-ca-file"), (self.front_proxy_ca, "requestheader-client-ca-file")):
            if not file.exists() or file.read_text() != data[key]:
                file.write_text(data[key])
        for key in ("allowed-names", "username-headers", "uid-headers", "group-headers", "extra-headers-prefix"):
            self.headers[key] = tuple(json.loads(data.get(f"requestheader-{key}", "[]")))

    def authenticator(self) -> Authenticator:
        """By the headers and names that the cluster has now; CAs may change later."""
        known = self.headers
        headers = RequestHeaders(
            known["username-headers"], known["uid-headers"], known["group-headers"], known["extra-headers-prefix"]
        )
        proxies = RequestHeaderAuthenticator(headers, AuthorityFiles([self.front_proxy_ca]), known["allowed-names"])
        users = X509Authenticator(AuthorityFiles([self.client_ca]))
        return UnionAuthenticator([proxies, users, BearerAuthenticator(ReviewedTokens(self.client))])


@dataclass(frozen=True)
class ReviewedTokens:
    client: Client

    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        review = {"spec": {"token": token, "audiences": list(audiences or ())}}
        status = (await self.client.resource("authentication.k8s.io/v1", "tokenreviews").create(review))["status"]
        if not status.get("authenticated"):
            return None
        user = status["user"]
        extra = {key: tuple(values) for key, values in (user.get("extra") or {}).items()}
        known = User(user["username"], user.get("uid", ""), tuple(user.get("groups") or ()), extra)
        return TokenIdentity(known, tuple(status.get("audiences") or ()))


class SubjectAccessReviews:
    """Is an Authorizer. Masters may do everything, and everybody may see whether this server is well."""

    def __init__(self, client: Client) -> None:
        self._reviews = client.resource("authorization.k8s.io/v1", "subjectaccessreviews")
        self._kept: dict[str, tuple[float, Answer]] = {}

    async def authorize(self, attributes: Attributes) -> Answer:
        if SYSTEM_PRIVILEGED_GROUP in attributes.user.groups or attributes.path in _PUBLIC:
            return Answer(Decision.ALLOW)
        spec = _spec(attributes)
        key = json.dumps(spec)
        until, answer = self._kept.get(key, (0.0, None))
        if answer is None or until < time.monotonic():
            answer = await self._ask(spec)
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = (time.monotonic() + _KEPT_SECONDS, answer)
        return answer

    async def _ask(self, spec: Json) -> Answer:
        status = (await self._reviews.create({"spec": spec}))["status"]
        return Answer(Decision.ALLOW if status.get("allowed") else Decision.NO_OPINION, status.get("reason", ""))


def _spec(asked: Attributes) -> Json:
    user = asked.user
    extra = {key: list(values) for key, values in user.extra.items()}
    who: Json = {"user": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    if not asked.is_resource:
        return who | {"nonResourceAttributes": {"path": asked.path, "verb": asked.verb}}
    names = ("namespace", "verb", "group", "version", "resource", "subresource", "name")
    return who | {"resourceAttributes": {name: getattr(asked, name) for name in names}}
