"""Everybody's rights, indexed from those who have them.

    bindings  →  grants, by (namespace, user or group)        a check looks up its user and the user's groups
    roles     →  their rules, by resource                     and asks only the roles that those are granted

What was found for a user in a namespace, and for each verb on each resource, is kept until any role or binding
changes: asking again costs the same however many roles the user has. Anybody can ask for any number of resources and
paths that do not exist, so what is kept is bounded in bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
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
    """Empty and not ready at first; whoever knows the roles and bindings puts them in."""

    _roles: dict[Scoped, Role]  # cluster roles are those without a namespace
    _bindings: dict[Scoped, tuple[Grant, ...]]
    _granted: dict[GrantSubject, dict[Scoped, Grant]]  # of each binding the first grant to that subject
    _access: BoundedCache[_Key, UserAccess]
    _permits: BoundedCache[Hashable, Permits]  # by who asks, and for which verb on what

    def __init__(self) -> None:
        self.ready = False
        self._roles, self._bindings, self._granted = {}, {}, {}
        self._access = BoundedCache(entries=4096, total_bytes=4 << 20)
        self._permits = BoundedCache(entries=16384, total_bytes=8 << 20)

    def decide(self, asked: Attributes) -> Answer:
        user, verb, namespace = asked.user, asked.verb, asked.namespace
        key: tuple[Any, ...]
        if asked.is_resource:
            key = (user.name, user.groups, namespace, verb, asked.group, asked.resource, asked.subresource)
        else:
            key = (user.name, user.groups, namespace, verb, asked.path)
        permits = self._permits.get(key)
        if permits is None:
            permits = self.access(user, namespace).permits(asked)
            self._permits.put(
                key, permits, size=_size((user.name, user.groups, namespace)) + sum(map(len, key[3:])) + permits.size
            )
        return permits.all or permits.named.get(asked.name) or permits.refusal

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
            self._granted.setdefault(grant.subject, {}).setdefault(key, grant)

    def drop_binding(self, key: Scoped) -> None:
        for grant in self._bindings.pop(key, ()):
            left = self._granted.get(grant.subject, {})
            left.pop(key, None)
            if not left:
                self._granted.pop(grant.subject, None)
        self._forget()

    def _forget(self) -> None:
        self._access.clear()
        self._permits.clear()

    def _find_access(self, key: _Key) -> UserAccess:
        name, groups, namespace = key
        grants = self._grants(name, groups, "")
        if namespace:
            grants += self._grants(name, groups, namespace)
        roles = [(grant, self.role(grant.role)) for grant in grants]
        granted = [(grant, role) for grant, role in roles if role is not None]
        return UserAccess(granted, [grant.role for grant, role in roles if role is None])

    def _grants(self, name: str, groups: Iterable[str], namespace: str) -> list[Grant]:
        """Return one grant of each binding that gives the user something, in the order of the bindings' names."""
        found: dict[Scoped, Grant] = {}
        subjects = [GrantSubject(namespace, False, name), *(GrantSubject(namespace, True, group) for group in groups)]
        for subject in subjects:
            for binding, grant in self._granted.get(subject, {}).items():
                if binding not in found or grant.position < found[binding].position:
                    found[binding] = grant
        return [found[binding] for binding in sorted(found, key=lambda key: key.name)]


def _size(key: _Key) -> int:
    """About how many bytes it takes."""
    name, groups, namespace = key
    return 256 + len(name) + len(namespace) + sum(64 + len(group) for group in groups)


def _key(obj: Json) -> Scoped:
    return Scoped(namespace_of(obj), name_of(obj))


class Scoped(NamedTuple):
    """The name of a role or a binding. What is for the whole cluster has no namespace."""

    namespace: str
    name: str


class GrantSubject(NamedTuple):
    """A user or a group, as bindings in one namespace name it; without a namespace, as cluster role bindings do."""

    namespace: str
    is_group: bool
    name: str


@dataclass(frozen=True, slots=True)
class RoleRef:
    kind: str
    name: str
    namespace: str
    """The namespace of the binding, in which a Role is looked for."""

    @property
    def key(self) -> Scoped | None:
        """The key of the role; None where the reference is to nothing that could be one."""
        if self.kind not in _ROLE_KINDS:
            return None
        return Scoped(self.namespace if self.kind == "Role" else "", self.name)

    @property
    def missing(self) -> str:
        """The message for a role that is not known."""
        if self.kind not in _ROLE_KINDS:
            return f"unsupported role reference kind: {quote(self.kind)}"
        return f"{self.kind.lower()}.rbac.authorization.k8s.io {quote(self.name)} not found"


@dataclass(frozen=True, slots=True)
class Grant:
    """`position` is the subject's in its binding: the first that applies to a user is the one that messages name."""

    binding: Scoped
    position: int
    role: RoleRef
    subject: GrantSubject
    source: str


def grants_of(binding: Json) -> Iterator[Grant]:
    """Yield the grants of a RoleBinding or, where it has no namespace, of a ClusterRoleBinding."""
    key = Scoped(namespace_of(binding), name_of(binding))
    reference = binding.get("roleRef") or {}
    role = RoleRef(reference.get("kind", ""), reference.get("name", ""), key.namespace)
    shown = (
        f"RoleBinding {quote(f'{key.name}/{key.namespace}')}"
        if key.namespace
        else (f"ClusterRoleBinding {quote(key.name)}")
    )
    for position, subject in enumerate(binding.get("subjects") or ()):
        known = _subject(subject, key.namespace)
        if known is not None:
            source = f"{shown} of {role.kind} {quote(role.name)} to {_described(subject, key.namespace)}"
            yield Grant(key, position, role, known, source)


def _subject(subject: Json, namespace: str) -> GrantSubject | None:
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind in ("User", "Group"):
        return GrantSubject(namespace, kind == "Group", name)
    home = subject.get("namespace") or namespace
    if kind == "ServiceAccount" and home:
        return GrantSubject(namespace, False, user_name(home, name))
    return None


def _described(subject: Json, namespace: str) -> str:
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind == "ServiceAccount":
        name = f"{name}/{subject.get('namespace') or namespace}"
    return f"{kind} {quote(name)}"


@dataclass(slots=True)
class Permits:
    """The answers for one verb: for all objects of a resource or for a path, for certain names, and else."""

    refusal: Answer
    all: Answer | None = None
    named: dict[str, Answer] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 256 + 320 * len(self.named)


class UserAccess:
    def __init__(self, granted: Sequence[tuple[Grant, Role]], missing: Sequence[RoleRef]) -> None:
        """`missing` are roles that are granted, too, but not there."""
        self.missing = missing
        self._granted = granted
        self._refusal = Answer(Decision.NO_OPINION, f"RBAC: {self.problem}" if missing else "")

    @property
    def problem(self) -> str:
        """The roles that are missing, as words: with them the user might do more. Empty where none is."""
        return aggregate(reference.missing for reference in self.missing) if self.missing else ""

    @property
    def size(self) -> int:
        """About how many bytes it takes, without the roles and grants, which others have too."""
        return 256 + 128 * (len(self._granted) + len(self.missing)) + len(self._refusal.reason)

    @property
    def rules(self) -> list[PolicyRule]:
        return [rule for _, role in self._granted for rule in role.rules]

    def permits(self, asked: Attributes) -> Permits:
        """Return the answers for the verb and the resource or path that are asked about, whatever object it is."""
        found = Permits(self._refusal)
        if not asked.is_resource:
            matching = (grant for grant, role in self._granted if role.allows_path(asked.verb, asked.path))
            grant = next(matching, None)
            found.all = None if grant is None else _allowed_by(grant)
            return found
        for grant, role in self._granted:
            for rule in role.matching(asked.verb, asked.group, asked.resource, asked.subresource):
                if not rule.names:
                    found.all = found.all or _allowed_by(grant)
                for name in rule.names:
                    found.named.setdefault(name, _allowed_by(grant))
        return found


def _allowed_by(grant: Grant) -> Answer:
    return Answer(Decision.ALLOW, f"RBAC: allowed by {grant.source}")
