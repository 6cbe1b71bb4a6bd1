"""Authorizers with a constant decision."""

from __future__ import annotations

from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.authz.interface import ALL_RULES, NO_RULES, Answer, Attributes, Decision, Rules
from pilothouse.machinery.dataclass import dataclass

_ALLOW = Answer(Decision.ALLOW)
_DENY = Answer(Decision.NO_OPINION, "Everything is forbidden.")
_NO_OPINION = Answer(Decision.NO_OPINION)


class AlwaysAllow:
    """Allows every request.

    >>> from pilothouse.apiserver import AlwaysAllow, Attributes, User
    >>> (await AlwaysAllow().authorize(Attributes(User("jane"), "delete"))).decision.value
    'allow'
    """

    async def authorize(self, attributes: Attributes) -> Answer:
        return _ALLOW

    async def rules_for(self, user: User, namespace: str) -> Rules:
        return ALL_RULES


class AlwaysDeny:
    async def authorize(self, attributes: Attributes) -> Answer:
        return _DENY

    async def rules_for(self, user: User, namespace: str) -> Rules:
        return NO_RULES


class PrivilegedGroup:
    """Allows all requests of system:masters; precedes every other authorizer."""

    async def authorize(self, attributes: Attributes) -> Answer:
        return _ALLOW if SYSTEM_PRIVILEGED_GROUP in attributes.user.groups else _NO_OPINION


@dataclass(frozen=True, slots=True)
class AlwaysAllowPaths:
    """Allows everybody to request these exact paths."""

    paths: frozenset[str]

    async def authorize(self, attributes: Attributes) -> Answer:
        return _ALLOW if not attributes.is_resource and attributes.path in self.paths else _NO_OPINION
