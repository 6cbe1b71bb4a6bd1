"""The facts that Go's struct tags hold about each field of the built-in messages, read when first asked for.

A text is one protobuf package, a line a message, the fields in the order in which Go writes them as JSON:

    use meta k8s.io.apimachinery.pkg.apis.meta.v1
    Pod!: metadata=1?:meta.ObjectMeta spec=2?:PodSpec          "!" has apiVersion and kind of its own
    Volume: name=1:string volumeSource=2<:VolumeSource          "<" inlined in JSON
    Probe: terminationGracePeriodSeconds=7*?:int64              "*" pointer, "?" omitempty, "~" omitzero
    Secret!: data=2?:{}bytes type=3?:string@v1.SecretType       "[]" repeated, "{}" string map, "@" Go's type name
    ExtraValue = []string                                       a message in protobuf, a bare list in JSON

A type without a package is of this one; before a dot stands an alias of a `use` line, or a whole package.
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
    """One field. `name` is its JSON name; an inlined field has none there and goes by its protobuf name.

    `type` is one of SCALARS or a full message name, of the element where the label is repeated or map.
    `go_type` is what reflect prints for the field's type, without the pointer's star: `v1.PullPolicy`, `[]v1.EnvVar`.
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
    """The messages of one package: `lines` has those that are objects in JSON, `lists` those that are bare lists."""

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
        """The message's fields by name, in JSON order. KeyError for one that is unknown or is no JSON object."""
        fields = (_field(self, token) for token in self.lines[message].split())
        return MappingProxyType({field.name: field for field in fields})

    def full_name(self, type_name: str) -> str:
        if type_name in SCALARS:
            return type_name
        alias, dot, message = type_name.rpartition(".")
        return f"{self.uses.get(alias, alias)}.{message}" if dot else f"{self.name}.{type_name}"


@cache
def facts_of(package: str, message: str) -> Mapping[str, FieldFacts]:
    """The message's fields by name, in JSON order. KeyError for a message that is unknown or is no JSON object."""
    if package not in packages():
        raise KeyError(package)
    return _package(package).fields(message)


def is_kind(package: str, message: str) -> bool:
    """Whether the message is known and its JSON form begins with its own apiVersion and kind."""
    return package in packages() and message in _package(package).kinds


def is_list(package: str, message: str) -> bool:
    """Whether the message wraps a list of strings that JSON shows bare."""
    return package in packages() and message in _package(package).lists


def messages_of(package: str) -> frozenset[str]:
    """The messages with facts."""
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
    """A message goes by its Go package's last part and its name: `v1.Container`."""
    if type_name in SCALARS:
        return _GO_SCALARS.get(type_name, type_name)
    return ".".join(type_name.split(".")[-2:])
