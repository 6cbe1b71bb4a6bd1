"""Everybody's rights, indexed from those who have them.

    bindings  →  grants, by (namespace, user or group)        a check looks up its user and the user's groups
    roles     →  their rules, by resource                     and asks only the roles that those are granted

What was found for a user in a namespace is kept until any role or binding changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.authn.user import User
from pilothouse.kube.rbac.authorizer.access import Access
from pilothouse.kube.rbac.authorizer.grants import Grant, RoleRef, Scoped, Subject, grants_of
from pilothouse.kube.rbac.rules import Role
from pilothouse.machinery.objects import Json, name_of, namespace_of

_MOST_REMEMBERED = 4096


class Policy:
    """Empty and not ready at first; whoever knows the roles and bindings puts them in."""

    _roles: dict[Scoped, Role]  # cluster roles are those without a namespace
    _bindings: dict[Scoped, tuple[Grant, ...]]
    _granted: dict[Subject, dict[Scoped, Grant]]  # of each binding the first grant to that subject
    _access: dict[tuple[str, tuple[str, ...], str], Access]  # by user name, groups and namespace

    def __init__(self) -> None:
        self.ready = False
        self._roles, self._bindings, self._granted, self._access = {}, {}, {}, {}

    def access(self, user: User, namespace: str) -> Access:
        key = (user.name, user.groups, namespace)
        return self._access.get(key) or self._find_access(key)

    def role(self, reference: RoleRef) -> Role | None:
        key = reference.key
        return None if key is None else self._roles.get(key)

    def put_role(self, role: Json) -> None:
        self._roles[_key(role)] = Role.of(role)
        self._access.clear()

    def drop_role(self, key: Scoped) -> None:
        self._roles.pop(key, None)
        self._access.clear()

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
        self._access.clear()

    def _find_access(self, key: tuple[str, tuple[str, ...], str]) -> Access:
        name, groups, namespace = key
        grants = self._grants(name, groups, "")
        if namespace:
            grants += self._grants(name, groups, namespace)
        roles = [(grant, self.role(grant.role)) for grant in grants]
        granted = [(grant, role) for grant, role in roles if role is not None]
        access = Access(granted, [grant.role for grant, role in roles if role is None])
        if len(self._access) >= _MOST_REMEMBERED:
            self._access.clear()
        self._access[key] = access
        return access

    def _grants(self, name: str, groups: Iterable[str], namespace: str) -> list[Grant]:
        """One of each binding, in the order of their names."""
        found: dict[Scoped, Grant] = {}
        subjects = [Subject(namespace, False, name), *(Subject(namespace, True, group) for group in groups)]
        for subject in subjects:
            for binding, grant in self._granted.get(subject, {}).items():
                if binding not in found or grant.position < found[binding].position:
                    found[binding] = grant
        return [found[binding] for binding in sorted(found, key=lambda key: key.name)]


def _key(obj: Json) -> Scoped:
    return Scoped(namespace_of(obj), name_of(obj))
