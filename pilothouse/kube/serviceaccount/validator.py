"""Validation of a signed token: time bounds and existence of bound objects.

A leeway of one minute tolerates clock skew and recent deletions.
"""

from __future__ import annotations

from datetime import timedelta

from pilothouse.apiserver.authn.identity import identity
from pilothouse.apiserver.authn.interface import NO_REMARKS, InvalidToken, TokenRemarks
from pilothouse.apiserver.authn.service_accounts import group_names, user_name
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.kube.serviceaccount.authenticator import STALE_TOKENS, VALID_TOKENS
from pilothouse.kube.serviceaccount.claims import PRIVATE
from pilothouse.kube.serviceaccount.getter import TokenGetter
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, part, text, uid_of
from pilothouse.machinery.times import Clock, parse_time, system_clock

LEEWAY = timedelta(minutes=1)
INVALIDATED = "service account token has been invalidated"

_ATTRIBUTE = "authentication.kubernetes.io"


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
        await self._check_bound(namespace, private)
        return self._staleness(claims) if private.get("warnafter") else NO_REMARKS

    def _staleness(self, claims: Json) -> TokenRemarks:
        now, warn_after = self.clock().timestamp(), claims[PRIVATE]["warnafter"]
        if now <= warn_after:
            VALID_TOKENS.inc()
            return NO_REMARKS
        STALE_TOKENS.inc()
        told = f"subject: {text(claims, 'sub')}, seconds after warning threshold: {int(now) - warn_after}"
        return TokenRemarks(annotations=(("authentication.k8s.io/stale-token", told),))

    async def _check_bound(self, namespace: str, private: Json) -> None:
        """A pod's token names the pod's node, too, but lives and dies with the pod."""
        if secret := private.get("secret"):
            self._check_reference("secret", secret, await self.getter.secret(namespace, text(secret, "name")))
        if pod := private.get("pod"):
            self._check_reference("pod", pod, await self.getter.pod(namespace, text(pod, "name")))
        elif node := private.get("node"):
            self._check_reference("node", node, await self.getter.node(text(node, "name")))

    def _check_reference(self, kind: str, claimed: Json, found: Json | None) -> None:
        if found is None:
            raise InvalidToken(INVALIDATED)
        if uid_of(found) != text(claimed, "uid"):
            claim = f"service account {kind} ref claim ({text(claimed, 'uid')})"
            raise InvalidToken(f"{kind} UID ({uid_of(found)}) does not match {claim}")
        if self._is_deleted(found):
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
