"""Claims of a service account token, and their validation: time bounds and existence of bound objects.

  {"aud": ["…"], "exp": …, "iat": …, "iss": "…", "jti": "…", "nbf": …, "sub": "system:serviceaccount:ns:robot",
   "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "robot", "uid": "…"},
                     "pod": {"name": "…", "uid": "…"}, "node": {…}, "warnafter": …}}

A leeway of one minute tolerates clock skew and recent deletions. Bound objects are read from the watch caches with a
fallback to the store.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Protocol

from pilothouse.apiserver.authn.interface import NO_REMARKS, InvalidToken, TokenRemarks, identity
from pilothouse.apiserver.authn.service_accounts import group_names, user_name
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kube.core.nodes.resource import NODES
from pilothouse.kube.core.pods.resource import PODS
from pilothouse.kube.core.secrets import SECRETS
from pilothouse.kube.core.serviceaccounts import SERVICE_ACCOUNTS
from pilothouse.kube.registries import Registries
from pilothouse.kube.serviceaccount.authenticator import STALE_TOKENS, VALID_TOKENS
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest, NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, name_of, namespace_of, part, text, uid_of
from pilothouse.machinery.times import Clock, parse_time, system_clock

LEEWAY = timedelta(minutes=1)
INVALIDATED = "service account token has been invalidated"
_ATTRIBUTE = "authentication.kubernetes.io"

PRIVATE = "kubernetes.io"
WARN_ONLY_EXPIRATION = 60 * 60 + 7
"""Lifetime in seconds that admission requests for injected tokens; only injected tokens are extended."""
EXTENDED_EXPIRATION = 365 * 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class BoundTokenValidator:
    getter: TokenGetter
    clock: Clock = system_clock

    def user_of(self, claims: Json) -> User:
        return user_of(claims)

    async def validate(self, claims: Json, token: str = "") -> TokenRemarks:
        """Raises InvalidToken."""
        now, leeway = self.clock().timestamp(), LEEWAY.total_seconds()
        if "nbf" in claims and now + leeway < claims["nbf"]:
            raise InvalidToken("service account token is not valid yet")
        if "exp" in claims and now - leeway > claims["exp"]:
            raise InvalidToken("service account token has expired")
        if "iat" in claims and now + leeway < claims["iat"]:
            raise InvalidToken("service account token is issued in the future")
        private = part(claims, PRIVATE)
        namespace = text(private, "namespace")
        claimed = part(private, "serviceaccount")
        name = text(claimed, "name")
        result = await self.getter.service_account(namespace, name)
        if result is None:
            raise InvalidToken(NotFound.of(GroupResource("", "serviceaccounts"), name).message)
        if uid_of(result) != text(claimed, "uid"):
            raise InvalidToken(f"service account UID ({uid_of(result)}) does not match claim ({text(claimed, 'uid')})")
        if self._is_deleted(result):
            raise InvalidToken(f"service account {namespace}/{name} has been deleted")
        if secret := private.get("secret"):
            self._check_reference("secret", secret, await self.getter.secret(namespace, text(secret, "name")))
        if pod := private.get("pod"):
            self._check_reference("pod", pod, await self.getter.pod(namespace, text(pod, "name")))
        elif node := private.get("node"):
            self._check_reference("node", node, await self.getter.node(text(node, "name")))
        return self._staleness(claims) if private.get("warnafter") else NO_REMARKS

    def _staleness(self, claims: Json) -> TokenRemarks:
        now, warn_after = self.clock().timestamp(), claims[PRIVATE]["warnafter"]
        if now <= warn_after:
            VALID_TOKENS.inc()
            return NO_REMARKS
        STALE_TOKENS.inc()
        message = f"subject: {text(claims, 'sub')}, seconds after warning threshold: {int(now) - warn_after}"
        return TokenRemarks(annotations=(("authentication.k8s.io/stale-token", message),))

    def _check_reference(self, kind: str, claimed: Json, existing: Json | None) -> None:
        if existing is None:
            raise InvalidToken(INVALIDATED)
        if uid_of(existing) != text(claimed, "uid"):
            claim = f"service account {kind} ref claim ({text(claimed, 'uid')})"
            raise InvalidToken(f"{kind} UID ({uid_of(existing)}) does not match {claim}")
        if self._is_deleted(existing):
            raise InvalidToken(INVALIDATED)

    def _is_deleted(self, obj: Json) -> bool:
        deleted = text(obj, "metadata", "deletionTimestamp")
        moment = parse_time(deleted) if deleted else None
        return moment is not None and moment < self.clock() - LEEWAY


def user_of(claims: Json) -> User:
    """Raises InvalidToken."""
    private = part(claims, PRIVATE)
    namespace, account = text(private, "namespace"), part(private, "serviceaccount")
    return identity(
        user_name(namespace, text(account, "name")),
        uid=text(account, "uid"),
        groups=(*group_names(namespace), ALL_AUTHENTICATED),
        extra=_extra(claims),
    )


def _extra(claims: Json) -> dict[str, tuple[str, ...]]:
    pod, node = part(claims, PRIVATE, "pod"), part(claims, PRIVATE, "node")
    result: dict[str, str] = {}
    if claims.get("jti"):
        result["credential-id"] = f"JTI={claims['jti']}"
    if text(node, "name"):
        result |= {"node-name": node["name"], "node-uid": text(node, "uid")}
    if text(pod, "name") and text(pod, "uid"):
        result |= {"pod-name": pod["name"], "pod-uid": pod["uid"]}
    return {f"{_ATTRIBUTE}/{name}": (value,) for name, value in result.items() if value}


@dataclass(frozen=True, slots=True)
class TokenBinding:
    """The object that a token is bound to, and the node of a bound pod."""

    pod: Json | None = None
    secret: Json | None = field(default=None, repr=False)
    node: Json | None = None

    @property
    def claims(self) -> Json:
        bound = {"node": self.node, "pod": self.pod, "secret": self.secret}
        return {kind: reference(obj) for kind, obj in bound.items() if obj is not None}


UNBOUND = TokenBinding()


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Lifetime in seconds; `warn_after` is 0 for tokens without an extension."""

    expires: int
    warn_after: int = 0


def make_claims(
    account: Json, binding: TokenBinding, *, audiences: Sequence[str], lifetime: Lifetime, now: datetime
) -> Json:
    """Return all claims except the issuer."""
    moment = int(now.timestamp())
    private: Json = {"namespace": namespace_of(account), "serviceaccount": reference(account), **binding.claims}
    if lifetime.warn_after:
        private["warnafter"] = moment + lifetime.warn_after
    return {
        "aud": list(audiences),
        "exp": moment + lifetime.expires,
        "iat": moment,
        "jti": str(uuid.uuid4()),
        PRIVATE: private,
        "nbf": moment,
        "sub": user_name(namespace_of(account), name_of(account)),
    }


def reference(obj: Json) -> Json:
    parts = {"name": name_of(obj), "uid": uid_of(obj)}
    return {name: value for name, value in parts.items() if value}


class TokenGetter(Protocol):
    """Returns None for a missing object."""

    async def service_account(self, namespace: str, name: str) -> Json | None: ...
    async def pod(self, namespace: str, name: str) -> Json | None: ...
    async def secret(self, namespace: str, name: str) -> Json | None: ...
    async def node(self, name: str) -> Json | None: ...


class StoredTokenObjects:
    def __init__(self, registries: Registries) -> None:
        self._registries = registries

    async def service_account(self, namespace: str, name: str) -> Json | None:
        return await _read(self._registries.open(SERVICE_ACCOUNTS), namespace, name)

    async def pod(self, namespace: str, name: str) -> Json | None:
        return await _read(self._registries.open(PODS), namespace, name)

    async def secret(self, namespace: str, name: str) -> Json | None:
        return await _read(self._registries.open(SECRETS), namespace, name)

    async def node(self, name: str) -> Json | None:
        return await _read(self._registries.open(NODES), "", name)


async def _read(registry: RegistryStore, namespace: str, name: str) -> Json | None:
    try:
        existing = await registry.known_or_newest(namespace, name)
    except BadRequest:
        return None  # invalid name
    return None if existing is None else existing.parse()
