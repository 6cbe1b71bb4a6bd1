"""Facts from Go's struct tags about the fields of built-in messages, loaded on first use.

A text describes one protobuf package, one message per line, with fields in Go's JSON order:

    use meta k8s.io.apimachinery.pkg.apis.meta.v1
    Pod!: metadata=1?:meta.ObjectMeta spec=2?:PodSpec          "!" has apiVersion and kind of its own
    Volume: name=1:string volumeSource=2<:VolumeSource          "<" inlined in JSON
    Probe: terminationGracePeriodSeconds=7*?:int64              "*" pointer, "?" omitempty, "~" omitzero
    Secret!: data=2?:{}bytes type=3?:string@v1.SecretType       "[]" repeated, "{}" string map, "@" Go's type name
    ExtraValue = []string                                       a message in protobuf, a bare list in JSON

A type without a package belongs to this package. Before a dot stands an alias of a `use` line or a full package name.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.generated import go_structs, packages

if TYPE_CHECKING:
    from collections.abc import Mapping
from pilothouse.machinery.names import GroupVersionKind

SCALARS = frozenset({"string", "bool", "int32", "int64", "double", "bytes"})

_FIELD = re.compile(r"([^=]+)=(\d+)([*?~<]*):(\[\]|\{\}|)([^@]+)(?:@(.+))?")
_GO_SCALARS = {"bytes": "[]uint8", "double": "float64"}


class Label(Enum):
    OPTIONAL = ""
    REPEATED = "[]"
    MAP = "{}"


_GO_PREFIX = {Label.OPTIONAL: "", Label.REPEATED: "[]", Label.MAP: "map[string]"}


@dataclass(frozen=True, slots=True)
class FieldFacts:
    """Field of a message. `name` is the JSON name; for an inlined field, the protobuf name.

    `type` is one of SCALARS or a full message name; for repeated fields and maps, the type of the element. `go_type` is
    the type printed by Go's reflect, without the pointer's star: `v1.PullPolicy`, `[]v1.EnvVar`.
    """

    name: str
    number: int
    type: str
    label: Label
    pointer: bool
    omitempty: bool
    omitzero: bool
    inline: bool
    go_type: str


@dataclass(frozen=True, slots=True)
class Package:
    """Messages of one package: `lines` has the JSON objects, `lists` the bare lists."""

    name: str
    lines: Mapping[str, str]
    uses: Mapping[str, str]
    kinds: frozenset[str]
    lists: frozenset[str]

    @classmethod
    def parse(cls, name: str, text: str) -> Package:
        lines: dict[str, str] = {}
        uses: dict[str, str] = {}
        kinds, lists = set[str](), set[str]()
        for line in text.splitlines():
            head, _, rest = line.partition(" ")
            if head == "use":
                alias, _, uses[alias] = rest.partition(" ")
            elif rest.startswith("= "):
                lists.add(head)
            else:
                message = head.rstrip("!:")
                lines[message] = rest
                if head.endswith("!:"):
                    kinds.add(message)
        return cls(name, lines, uses, frozenset(kinds), frozenset(lists))

    def fields(self, message: str) -> Mapping[str, FieldFacts]:
        """Return the message's fields by name in JSON order. Raises KeyError unless the message is a known JSON
        object."""
        fields = (_field(self, token) for token in self.lines[message].split())
        return MappingProxyType({field.name: field for field in fields})

    def full_name(self, type_name: str) -> str:
        if type_name in SCALARS:
            return type_name
        alias, dot, message = type_name.rpartition(".")
        return f"{self.uses.get(alias, alias)}.{message}" if dot else f"{self.name}.{type_name}"


@cache
def facts_of(package: str, message: str) -> Mapping[str, FieldFacts]:
    """Return the message's fields by name in JSON order. Raises KeyError unless the message is a known JSON object."""
    if package not in packages():
        raise KeyError(package)
    return _package(package).fields(message)


def is_kind(package: str, message: str) -> bool:
    """Report whether the message is known and its JSON form has apiVersion and kind."""
    return package in packages() and message in _package(package).kinds


def is_list(package: str, message: str) -> bool:
    """Report whether the message wraps a list of strings that is a bare list in JSON."""
    return package in packages() and message in _package(package).lists


def messages_of(package: str) -> frozenset[str]:
    """Return the messages with known fields."""
    return frozenset(_package(package).lines)


@cache
def _package(name: str) -> Package:
    return Package.parse(name, go_structs(name))


def _field(source: Package, token: str) -> FieldFacts:
    match = _FIELD.fullmatch(token)
    assert match is not None, token
    name, number, flags, prefix, type_name, go_type = match.groups()
    label, full = Label(prefix), source.full_name(type_name)
    return FieldFacts(
        name=name,
        number=int(number),
        type=full,
        label=label,
        pointer="*" in flags,
        omitempty="?" in flags,
        omitzero="~" in flags,
        inline="<" in flags,
        go_type=go_type or _GO_PREFIX[label] + _go_name(full),
    )


def _go_name(type_name: str) -> str:
    """Return the last component of the Go package and the message name: `v1.Container`."""
    if type_name in SCALARS:
        return _GO_SCALARS.get(type_name, type_name)
    return ".".join(type_name.split(".")[-2:])


META = "k8s.io.apimachinery.pkg.apis.meta.v1"

_PACKAGES = {
    "": "k8s.io.api.core",
    "admission.k8s.io": "k8s.io.api.admission",
    "admissionregistration.k8s.io": "k8s.io.api.admissionregistration",
    "apidiscovery.k8s.io": "k8s.io.api.apidiscovery",
    "apiextensions.k8s.io": "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "k8s.io.kube_aggregator.pkg.apis.apiregistration",
    "apps": "k8s.io.api.apps",
    "authentication.k8s.io": "k8s.io.api.authentication",
    "authorization.k8s.io": "k8s.io.api.authorization",
    "autoscaling": "k8s.io.api.autoscaling",
    "batch": "k8s.io.api.batch",
    "certificates.k8s.io": "k8s.io.api.certificates",
    "coordination.k8s.io": "k8s.io.api.coordination",
    "discovery.k8s.io": "k8s.io.api.discovery",
    "events.k8s.io": "k8s.io.api.events",
    "extensions": "k8s.io.api.extensions",
    "flowcontrol.apiserver.k8s.io": "k8s.io.api.flowcontrol",
    "imagepolicy.k8s.io": "k8s.io.api.imagepolicy",
    "internal.apiserver.k8s.io": "k8s.io.api.apiserverinternal",
    "lifecycle.k8s.io": "k8s.io.api.lifecycle",
    "meta.k8s.io": "k8s.io.apimachinery.pkg.apis.meta",
    "networking.k8s.io": "k8s.io.api.networking",
    "node.k8s.io": "k8s.io.api.node",
    "policy": "k8s.io.api.policy",
    "rbac.authorization.k8s.io": "k8s.io.api.rbac",
    "resource.k8s.io": "k8s.io.api.resource",
    "scheduling.k8s.io": "k8s.io.api.scheduling",
    "storage.k8s.io": "k8s.io.api.storage",
    "storagemigration.k8s.io": "k8s.io.api.storagemigration",
}
_IN_EVERY_VERSION = frozenset(
    {"WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"}
)
_UNVERSIONED = frozenset({"Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"})


@dataclass(frozen=True, slots=True)
class MessageName:
    package: str
    message: str

    def __str__(self) -> str:
        return f"{self.package}.{self.message}"


def definition_name(package: str, message: str) -> str:
    """Return the OpenAPI name of a message: `k8s.io.api.core.v1`, `Pod` → `io.k8s.api.core.v1.Pod`."""
    return f"io.k8s.{package.removeprefix('k8s.io.')}.{message}".replace("_", "-")


def message_named(definition: str) -> MessageName:
    """Return the message of an OpenAPI name: the inverse of `definition_name`."""
    package, _, message = definition.rpartition(".")
    return MessageName("k8s.io." + package.removeprefix("io.k8s.").replace("-", "_"), message)


def message_of(gvk: GroupVersionKind) -> MessageName | None:
    """Return the message of a built-in kind, or None. Every built-in version also has the options and WatchEvent."""
    if gvk.kind in _IN_EVERY_VERSION or (gvk.kind in _UNVERSIONED and gvk.api_version == "v1"):
        return MessageName(META, gvk.kind)
    stem = _PACKAGES.get(gvk.group)
    if stem is None:
        return None
    package = f"{stem}.{gvk.version}"
    if gvk.api_version == "meta.k8s.io/v1beta1" and gvk.kind == "PartialObjectMetadata":
        package = META  # upstream's v1beta1 type is an alias of v1's
    return MessageName(package, gvk.kind) if is_kind(package, gvk.kind) else None
