"""RoleBindings and ClusterRoleBindings. The roleRef is immutable."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.rbac.roles import GROUP
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery.field import Errors, Path, declared, invalid, not_supported, required, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import name_is_dns_subdomain, name_is_path_segment

_SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


class RoleBindingStrategy(KubeStrategy):
    allow_create_on_update = True
    role_kinds: ClassVar[tuple[str, ...]] = ("Role", "ClusterRole")

    def name_rule(self, name: str, prefix: bool) -> list[str]:
        return name_is_path_segment(name)

    def default(self, obj: Json) -> None:
        reference = obj.setdefault("roleRef", {})
        reference["apiGroup"] = reference.get("apiGroup") or GROUP
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = GROUP

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        reference = obj.get("roleRef") or {}
        kinds = self.role_kinds
        path = root("roleRef")
        group, kind, name = (reference.get(key) or "" for key in ("apiGroup", "kind", "name"))
        if group != GROUP:
            yield not_supported(path.child("apiGroup"), group, (GROUP,), plain=True)
        if kind not in kinds:
            yield not_supported(path.child("kind"), kind, kinds, plain=True)
        if not name:
            yield declared(required(path.child("name")), place=2)
        for problem in name_is_path_segment(name) if name else ():
            yield invalid(path.child("name"), name, problem)
        for position, subject in enumerate(obj.get("subjects") or ()):
            yield from validate_subject(subject, self.namespaced, root("subjects").index(position))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_again(obj, old)
        if obj.get("roleRef") != old.get("roleRef"):
            error = invalid(root("roleRef"), _as_messages_show(obj.get("roleRef") or {}), "cannot change roleRef")
            yield declared(error, "field is immutable")


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    namespaced = False
    role_kinds = ("ClusterRole",)


def _as_messages_show(reference: Json) -> Json:
    """Return the reference as upstream's messages print it."""
    return {name: reference.get(name[0].lower() + name[1:], "") for name in ("APIGroup", "Kind", "Name")} | {
        "APIGroup": reference.get("apiGroup", "")
    }


def validate_subject(subject: Json, namespaced: bool, path: Path) -> Errors:
    group, kind, name = (subject.get(key) or "" for key in ("apiGroup", "kind", "name"))
    if not name:
        yield declared(required(path.child("name")))
    if kind == "ServiceAccount":
        for problem in name_is_dns_subdomain(name) if name else ():
            yield invalid(path.child("name"), name, problem)
        if group:
            yield not_supported(path.child("apiGroup"), group, ("",), plain=True)
        if not namespaced and not subject.get("namespace"):
            yield required(path.child("namespace"))
    elif kind not in _SUBJECT_KINDS:
        yield not_supported(path.child("kind"), kind, _SUBJECT_KINDS, plain=True)
    elif group != GROUP:
        yield not_supported(path.child("apiGroup"), group, (GROUP,), plain=True)


def _subjects(kind: str) -> Callable[[Json], str]:
    def cell(obj: Json) -> str:
        result = [s for s in obj.get("subjects") or () if s.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{s.get('namespace', '')}/{s.get('name', '')}" for s in result)
        return ", ".join(s.get("name", "") for s in result)

    return cell


def _role(obj: Json) -> str:
    reference = obj.get("roleRef") or {}
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


class _RoleColumn(Column):
    """Has the documentation of v1beta1, where the field was mutable."""

    __slots__ = ()

    @property
    def definition(self) -> Json:
        definition = super().definition
        return definition | {"description": definition["description"].removesuffix(" This field is immutable.")}


def _columns(kind: str) -> list[Column]:
    where = kind[0].lower() + kind[1:]
    return [
        NAME,
        _RoleColumn("Role", _role, documented=(f"io.k8s.api.rbac.v1.{kind}", "roleRef")),
        AGE,
        Column("Users", _subjects("User"), priority=1, description=f"Users in the {where}"),
        Column("Groups", _subjects("Group"), priority=1, description=f"Groups in the {where}"),
        Column(
            "ServiceAccounts", _subjects("ServiceAccount"), priority=1, description=f"ServiceAccounts in the {where}"
        ),
    ]


ROLE_BINDINGS = Resource(
    names=Names("rolebindings", kind="RoleBinding"),
    strategy=RoleBindingStrategy(),
    group=GROUP,
    columns=_columns("RoleBinding"),
)
CLUSTER_ROLE_BINDINGS = Resource(
    names=Names("clusterrolebindings", kind="ClusterRoleBinding"),
    strategy=ClusterRoleBindingStrategy(),
    group=GROUP,
    columns=_columns("ClusterRoleBinding"),
)
