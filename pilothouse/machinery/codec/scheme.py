"""Which kinds a server can decode, under the name that its messages call it by.

Upstream has a scheme for each of the three servers and one for the options that come with deletions.
"""

from __future__ import annotations

from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.object_type import ObjectType

_UNVERSIONED = frozenset({"Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"})
_OPTIONS = frozenset({"DeleteOptions", "CreateOptions", "UpdateOptions"})
_META = "meta.k8s.io"
_EXTENSIONS, _AGGREGATOR = "apiextensions.k8s.io", "apiregistration.k8s.io"

_INTERNAL_PACKAGES = {
    "": "core",
    "events.k8s.io": "core",
    "internal.apiserver.k8s.io": "apiserverinternal",
    "meta.k8s.io": "v1",
}


@dataclass(frozen=True, eq=False)
class Scheme:
    """`only` names the groups it has; without, it has all groups that no other scheme names."""

    name: str
    only: frozenset[str] = frozenset()
    unversioned: frozenset[str] = _UNVERSIONED

    _claimed: ClassVar[frozenset[str]] = frozenset({_EXTENSIONS, _AGGREGATOR, _META})

    def type_of(self, gvk: GroupVersionKind) -> ObjectType | None:
        """None for a kind that is not registered here. An unversioned kind is, under whatever version."""
        if gvk.kind in self.unversioned:
            return types.of(GroupVersionKind("", "v1", gvk.kind))
        known = gvk.group in self.only if self.only else gvk.group not in self._claimed
        return types.of(gvk) if known else None

    def unknown_kind(self, gvk: GroupVersionKind) -> str:
        return f'no kind "{gvk.kind}" is registered for version "{gvk.api_version}" in scheme "{self.name}"'


def unknown_conversion(kind: ObjectType, wanted: GroupVersionKind) -> str:
    """Upstream's words when the body holds another kind than the resource has."""
    return f"converting ({kind.node.go_type}) to ({internal_name(wanted)}): unknown conversion"


def internal_name(kind: GroupVersionKind) -> str:
    """The Go type that upstream holds objects of a kind in, which some messages show."""
    package = _INTERNAL_PACKAGES.get(kind.group) or kind.group.partition(".")[0]
    return f"{package}.{kind.kind}"


KUBE = Scheme("pkg/api/legacyscheme/scheme.go:30")
EXTENSIONS = Scheme("k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55", frozenset({_EXTENSIONS}))
AGGREGATOR = Scheme("k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28", frozenset({_AGGREGATOR}))
OPTIONS = Scheme(
    "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27",
    only=frozenset({_META}),
    unversioned=_UNVERSIONED | _OPTIONS,
)
