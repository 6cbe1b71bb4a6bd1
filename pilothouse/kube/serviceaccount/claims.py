"""The claims of service account tokens: those of every JWT, and the objects that the token is bound to.

{"aud": ["…"], "exp": …, "iat": …, "iss": "…", "jti": "…", "nbf": …, "sub": "system:serviceaccount:ns:robot",
 "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "robot", "uid": "…"},
                   "pod": {"name": "…", "uid": "…"}, "node": {…}, "warnafter": …}}
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import field
from datetime import datetime

from pilothouse.apiserver.authn.service_accounts import user_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of, uid_of

PRIVATE = "kubernetes.io"
WARN_ONLY_EXPIRATION = 60 * 60 + 7
"""Lifetime in seconds that admission requests for injected tokens; only injected tokens are extended."""
EXTENDED_EXPIRATION = 365 * 24 * 60 * 60


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
