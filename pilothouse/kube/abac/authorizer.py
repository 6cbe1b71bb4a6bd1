"""The ABAC authorizer: allows requests that match a policy. It returns no opinion otherwise and never denies."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision
from pilothouse.apiserver.authz.rules import NonResourceRule, ResourceRule, Rules
from pilothouse.machinery.dataclass import dataclass

ALL = "*"
_READ = ("get", "list", "watch")
_ALLOW = Answer(Decision.ALLOW)
_NO_OPINION = Answer(Decision.NO_OPINION, "No policy matched.")


@dataclass(frozen=True, slots=True)
class ABACPolicy:
    """A policy line. `*` matches everything. The subject is a user, a group, or both; a policy without a subject
    matches nobody.
    """

    user: str = ""
    group: str = ""
    readonly: bool = False
    api_group: str = ""
    resource: str = ""
    namespace: str = ""
    non_resource_path: str = ""

    @property
    def verbs(self) -> tuple[str, ...]:
        return _READ if self.readonly else (ALL,)

    def is_about(self, user: User) -> bool:
        named = not self.user or self.user in (ALL, user.name)
        grouped = not self.group or self.group == ALL or self.group in user.groups
        return bool(self.user or self.group) and named and grouped

    def allows(self, asked: Attributes) -> bool:
        if not self.is_about(asked.user) or (self.readonly and asked.verb not in _READ):
            return False
        return self._allows_resource(asked) if asked.is_resource else self._allows_path(asked.path)

    def _allows_resource(self, asked: Attributes) -> bool:
        pairs = (
            (self.namespace, asked.namespace),
            (self.resource, asked.resource),
            (self.api_group, asked.group),
        )
        return all(own in (ALL, wanted) for own, wanted in pairs)

    def _allows_path(self, path: str) -> bool:
        own = self.non_resource_path
        return own in (ALL, path) or (own.endswith(ALL) and path.startswith(own.rstrip(ALL)))


class ABACAuthorizer:
    def __init__(self, policies: Sequence[ABACPolicy]) -> None:
        self._policies = tuple(policies)

    async def authorize(self, attributes: Attributes) -> Answer:
        return _ALLOW if any(policy.allows(attributes) for policy in self._policies) else _NO_OPINION

    async def rules_for(self, user: User, namespace: str) -> Rules:
        mine = [policy for policy in self._policies if policy.is_about(user) and policy.namespace in (ALL, namespace)]
        return Rules(
            resources=tuple(
                ResourceRule(item.verbs, (item.api_group,), (item.resource,)) for item in mine if item.resource
            ),
            paths=tuple(
                NonResourceRule(item.verbs, (item.non_resource_path,)) for item in mine if item.non_resource_path
            ),
        )
