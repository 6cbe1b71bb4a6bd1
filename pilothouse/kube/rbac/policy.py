"""RBAC policy, indexed by subject.

    bindings  →  grants, by (namespace, user or group)        a check looks up the user and its groups
    roles     →  rules, by resource                           and evaluates the granted roles only

Decisions are cached per user, namespace, verb and resource until a role or binding changes; a hit costs the same for
any number of roles. Clients choose resources and paths freely, so the cache is bounded in bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field
from typing import Any, NamedTuple, TypeAlias

from pilothouse.apiserver.authn.service_accounts import user_name
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision
from pilothouse.kube.rbac.rules import PolicyRule, Role
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.status_error import aggregate

_Key: TypeAlias = tuple[str, tuple[str, ...], str]
"""User name, groups and namespace."""

_ROLE_KINDS = ("Role", "ClusterRole")


class RBACPolicy:
    """Initially empty and not ready; PolicyFeed fills it."""

    _roles: dict[Scoped, Role]  # cluster roles have no namespace
    _bindings: dict[Scoped, tuple[Grant, ...]]
    _granted: dict[GrantScope, dict[str, dict[Scoped, Grant]]]  # first grant to each name, per binding
    _access: BoundedCache[_Key, UserAccess]
    _permits: BoundedCache[Hashable, Permits]  # by user, verb and resource

    def __init__(self) -> None:
        self.ready = False
        self._roles, self._bindings, self._granted = {}, {}, {}
        self._access = BoundedCache(entries=4096, total_bytes=4 << 20)
        self._permits = BoundedCache(entries=16384, total_bytes=8 << 20)

    def decide(self, attributes: Attributes) -> Answer:
        user, verb, namespace = attributes.user, attributes.verb, attributes.namespace
        key: tuple[Any, ...]
        if attributes.is_resource:
            key = (
                user.name,
                user.groups,
                namespace,
                verb,
                attributes.group,
                attributes.resource,
                attributes.subresource,
            )
        else:
            key = (user.name, user.groups, namespace, verb, attributes.path)
        permits = self._permits.get(key)
        if permits is None:
            permits = self.access(user, namespace).permits(attributes)
            self._permits.put(
                key, permits, size=_size((user.name, user.groups, namespace)) + sum(map(len, key[3:])) + permits.size
            )
        return permits.all or permits.named.get(attributes.name) or permits.refusal

    def access(self, user: User, namespace: str) -> UserAccess:
        key = (user.name, user.groups, namespace)
        access = self._access.get(key)
        if access is None:
            access = self._find_access(key)
            self._access.put(key, access, size=_size(key) + access.size)
        return access

    def role(self, reference: RoleRef) -> Role | None:
        key = reference.key
        return None if key is None else self._roles.get(key)

    def put_role(self, role: Json) -> None:
        self._roles[_key(role)] = Role.of(role)
        self._forget()

    def drop_role(self, key: Scoped) -> None:
        self._roles.pop(key, None)
        self._forget()

    def put_binding(self, binding: Json) -> None:
        key = _key(binding)
        self.drop_binding(key)
        self._bindings[key] = tuple(grants_of(binding))
        for grant in self._bindings[key]:
            names = self._granted.setdefault(grant.subject.scope, {})
            names.setdefault(grant.subject.name, {}).setdefault(key, grant)

    def drop_binding(self, key: Scoped) -> None:
        for grant in self._bindings.pop(key, ()):
            names = self._granted.get(grant.subject.scope, {})
            remaining = names.get(grant.subject.name, {})
            remaining.pop(key, None)
            if not remaining:
                names.pop(grant.subject.name, None)
            if not names:
                self._granted.pop(grant.subject.scope, None)
        self._forget()

    def _forget(self) -> None:
        self._access.clear()
        self._permits.clear()

    def _find_access(self, key: _Key) -> UserAccess:
        name, groups, namespace = key
        distinct = set(groups)
        grants = self._grants(name, distinct, "")
        if namespace:
            grants += self._grants(name, distinct, namespace)
        roles = [(grant, self.role(grant.role)) for grant in grants]
        granted = [(grant, role) for grant, role in roles if role is not None]
        return UserAccess(granted, [grant.role for grant, role in roles if role is None])

    def _grants(self, name: str, groups: set[str], namespace: str) -> list[Grant]:
        """Return one grant per binding of the user, ordered by binding name.

        Only groups with grants are looped over: a token can name 100,000 groups.
        """
        result: dict[Scoped, Grant] = {}
        to_users = self._granted.get(GrantScope(namespace, is_group=False), {})
        to_groups = self._granted.get(GrantScope(namespace, is_group=True), {})
        for grants in (to_users.get(name, {}), *(to_groups[group] for group in groups & to_groups.keys())):
            for binding, grant in grants.items():
                if binding not in result or grant.position < result[binding].position:
                    result[binding] = grant
        return [result[binding] for binding in sorted(result, key=lambda key: key.name)]


def _size(key: _Key) -> int:
    """Return the approximate size in bytes."""
    name, groups, namespace = key
    return 256 + len(name) + len(namespace) + 64 * len(groups) + sum(map(len, groups))


def _key(obj: Json) -> Scoped:
    return Scoped(namespace_of(obj), name_of(obj))


class Scoped(NamedTuple):
    """Name of a role or binding; cluster-scoped names have no namespace."""

    namespace: str
    name: str


class GrantScope(NamedTuple):
    """Users or groups in the bindings of a namespace, or in cluster role bindings without a namespace."""

    namespace: str
    is_group: bool


class GrantSubject(NamedTuple):
    scope: GrantScope
    name: str


@dataclass(frozen=True, slots=True)
class RoleRef:
    kind: str
    name: str
    namespace: str
    """Namespace of the binding, for references to Roles."""

    @property
    def key(self) -> Scoped | None:
        """Return the key of the role, or None for an invalid reference."""
        if self.kind not in _ROLE_KINDS:
            return None
        return Scoped(self.namespace if self.kind == "Role" else "", self.name)

    @property
    def missing(self) -> str:
        """Return the error message for a missing role."""
        if self.kind not in _ROLE_KINDS:
            return f"unsupported role reference kind: {quote(self.kind)}"
        return f"{self.kind.lower()}.rbac.authorization.k8s.io {quote(self.name)} not found"


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant. `position` is the subject's index in the binding; messages name the first matching subject."""

    binding: Scoped
    position: int
    role: RoleRef
    subject: GrantSubject
    source: str


def grants_of(binding: Json) -> Iterator[Grant]:
    """Yield the grants of a RoleBinding or, without a namespace, of a ClusterRoleBinding."""
    key = Scoped(namespace_of(binding), name_of(binding))
    reference = binding.get("roleRef") or {}
    role = RoleRef(reference.get("kind", ""), reference.get("name", ""), key.namespace)
    rendered = (
        f"RoleBinding {quote(f'{key.name}/{key.namespace}')}"
        if key.namespace
        else (f"ClusterRoleBinding {quote(key.name)}")
    )
    for position, subject in enumerate(binding.get("subjects") or ()):
        kind, name = subject.get("kind"), subject.get("name", "")
        home = subject.get("namespace") or key.namespace
        if kind in ("User", "Group"):
            grantee = GrantSubject(GrantScope(key.namespace, kind == "Group"), name)
        elif kind == "ServiceAccount" and home:
            grantee = GrantSubject(GrantScope(key.namespace, is_group=False), user_name(home, name))
        else:
            continue
        described = f"{kind} {quote(f'{name}/{home}' if kind == 'ServiceAccount' else name)}"
        yield Grant(key, position, role, grantee, f"{rendered} of {role.kind} {quote(role.name)} to {described}")


@dataclass(slots=True)
class Permits:
    """Answers for a verb: for all objects of a resource or a path, by name, and the default."""

    refusal: Answer
    all: Answer | None = None
    named: dict[str, Answer] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return the approximate size in bytes."""
        return 256 + 320 * len(self.named)


class UserAccess:
    def __init__(self, granted: Sequence[tuple[Grant, Role]], missing: Sequence[RoleRef]) -> None:
        """`missing` are granted roles that do not exist."""
        self.missing = missing
        self._granted = granted
        self._refusal = Answer(Decision.NO_OPINION, f"RBAC: {self.problem}" if missing else "")

    @property
    def problem(self) -> str:
        """Return the missing roles as an error message, or an empty string."""
        return aggregate(reference.missing for reference in self.missing) if self.missing else ""

    @property
    def size(self) -> int:
        """Return the approximate size in bytes, without shared roles and grants."""
        return 256 + 128 * (len(self._granted) + len(self.missing)) + len(self._refusal.reason)

    @property
    def rules(self) -> list[PolicyRule]:
        return [rule for _, role in self._granted for rule in role.rules]

    def permits(self, attributes: Attributes) -> Permits:
        """Return the answers for a verb and a resource or path, for any object name."""
        result = Permits(self._refusal)
        if not attributes.is_resource:
            matching = (grant for grant, role in self._granted if role.allows_path(attributes.verb, attributes.path))
            grant = next(matching, None)
            result.all = None if grant is None else _allowed_by(grant)
            return result
        for grant, role in self._granted:
            for rule in role.matching(attributes.verb, attributes.group, attributes.resource, attributes.subresource):
                if not rule.names:
                    result.all = result.all or _allowed_by(grant)
                for name in rule.names:
                    result.named.setdefault(name, _allowed_by(grant))
        return result


def _allowed_by(grant: Grant) -> Answer:
    return Answer(Decision.ALLOW, f"RBAC: allowed by {grant.source}")
