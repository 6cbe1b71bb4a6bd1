"""Everybody's rights, indexed from those who have them.

    bindings  →  grants, by (namespace, user or group)        a check looks up its user and the user's groups
    roles     →  their rules, by resource                     and asks only the roles that those are granted

What was found for a user in a namespace, and for each verb on each resource, is kept until any role or binding
changes: asking again costs the same however many roles the user has. Anybody can ask for any number of resources and
paths that do not exist, so what is kept is bounded in bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes
from pilothouse.kube.rbac.authorizer.access import Permits, UserAccess
from pilothouse.kube.rbac.authorizer.grants import Grant, GrantSubject, RoleRef, Scoped, grants_of
from pilothouse.kube.rbac.rules import Role
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.objects import Json, name_of, namespace_of

_Key: TypeAlias = tuple[str, tuple[str, ...], str]
"""User name, groups and namespace."""


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
