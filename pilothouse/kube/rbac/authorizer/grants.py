"""Grants: a binding gives one to each of its subjects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pilothouse.apiserver.authn.service_accounts import user_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, name_of, namespace_of

_ROLE_KINDS = ("Role", "ClusterRole")


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
