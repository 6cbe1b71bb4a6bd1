"""Schemes: the kinds that each server can decode, and the kind of a body.

Upstream has one scheme per server and one for the options of deletions.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.codec.body_errors import BodyError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import NO_VERSION_OR_KIND, GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.examine import TypeProblem, word_for
from pilothouse.machinery.schema.object_type import ObjectType

_UNVERSIONED = frozenset({"Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"})
_OPTIONS = frozenset({"DeleteOptions", "CreateOptions", "UpdateOptions"})
_META = "meta.k8s.io"
INTERNAL_VERSION = "__internal"
"""Version of upstream's internal types, into which a patched object without apiVersion is decoded."""
_EXTENSIONS, _AGGREGATOR = "apiextensions.k8s.io", "apiregistration.k8s.io"

_INTERNAL_PACKAGES = {
    "": "core",
    "events.k8s.io": "core",
    "internal.apiserver.k8s.io": "apiserverinternal",
    "meta.k8s.io": "v1",
}


@dataclass(frozen=True, eq=False)
class Scheme:
    """Upstream's runtime.Scheme, as error messages name it."""

    name: str
    only: frozenset[str] = frozenset()
    """The groups of this scheme; empty for all groups that no other scheme claims."""
    unversioned: frozenset[str] = _UNVERSIONED

    _claimed: ClassVar[frozenset[str]] = frozenset({_EXTENSIONS, _AGGREGATOR, _META})

    def type_of(self, gvk: GroupVersionKind) -> ObjectType | None:
        """Return the type of a kind; None for an unregistered kind. Unversioned kinds are registered under any
        version."""
        if gvk.kind in self.unversioned:
            return types.of(GroupVersionKind("", "v1", gvk.kind))
        registered = gvk.group in self.only if self.only else gvk.group not in self._claimed
        return types.of(gvk) if registered else None

    def unknown_kind(self, gvk: GroupVersionKind) -> str:
        if gvk.version == INTERNAL_VERSION:
            version = f'the internal version of group "{gvk.group}"'
            return f'no kind "{gvk.kind}" is registered for {version} in scheme "{self.name}"'
        return f'no kind "{gvk.kind}" is registered for version "{gvk.api_version}" in scheme "{self.name}"'


def unknown_conversion(go_type: str, target: GroupVersionKind) -> str:
    """Return upstream's message for a body of another kind than the resource's."""
    return f"converting ({go_type}) to ({internal_name(target)}): unknown conversion"


def internal_name(kind: GroupVersionKind) -> str:
    """Return the Go type of upstream's internal version, which some messages contain."""
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


_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'

NO_TYPE = GroupVersionKind("", "", "")


def interpret_cbor(value: Any) -> GroupVersionKind:
    """Return the kind of a value decoded from CBOR. Raises BodyError."""
    from pilothouse.machinery.cbor.typed import named_by
    from pilothouse.machinery.cbor.wellformed import CborError

    try:
        return named_by(value)
    except CborError as error:
        raise cbor_type_error(error) from None


def cbor_type_error(error: ValueError) -> BodyError:
    return BodyError(f"unable to determine group/version/kind: {error}")


def interpret(value: Any) -> GroupVersionKind:
    """Return the kind of a value. Raises BodyError."""
    if value is None:
        return NO_TYPE
    if not isinstance(value, dict):
        raise _no_type(TypeProblem(word_for(value), _TYPE_META))
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if type(api_version) is not str or type(kind) is not str:
        names = _loosely_named(value)
        api_version, kind = names["apiVersion"], names["kind"]
    try:
        return _named(api_version, kind)
    except ValueError as error:
        raise BodyError(str(error)) from None


@bounded_cache(entries=1024, key_bytes=512)
def _named(api_version: str, kind: str) -> GroupVersionKind:
    return GroupVersion.parse(api_version).kind(kind)


def _loosely_named(value: Json) -> dict[str, str]:
    """Match the keys case-insensitively: Go reads the type that way, although decoding is case-sensitive."""
    type_meta = {"apiVersion": "", "kind": ""}
    names = {name.lower(): name for name in type_meta}
    for key, member in value.items():
        name = names.get(key.lower())
        if name is None or member is None:
            continue
        if not isinstance(member, str):
            raise _no_type(TypeProblem(word_for(member), "string", stack=(name,)))
        type_meta[name] = member
    return type_meta


def _no_type(problem: TypeProblem) -> BodyError:
    return BodyError(f"{NO_VERSION_OR_KIND}{problem}")


def with_defaults(gvk: GroupVersionKind, default: GroupVersionKind) -> GroupVersionKind:
    """Fill the empty parts of `gvk` from the default. The default version applies only to the default group."""
    group, version = gvk.group, gvk.version
    if version and gvk.kind:
        return gvk
    if not version and group in ("", default.group):
        group, version = default.group, default.version
    return GroupVersionKind(group, version, gvk.kind or default.kind)
