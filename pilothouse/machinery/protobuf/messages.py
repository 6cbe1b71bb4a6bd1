"""Types of all built-in messages, created on first access and compiled on first use."""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from pilothouse.machinery.protobuf.reading import compile_reader
from pilothouse.machinery.protobuf.values import (
    BareList,
    Duration,
    IntOrString,
    MicroTime,
    Quantity,
    RawExtension,
    RawJson,
    SchemaOrBool,
    SchemaOrSchemas,
    SchemaOrStrings,
    Time,
)
from pilothouse.machinery.protobuf.writing import compile_writer
from pilothouse.machinery.wire_facts import FieldFacts, facts_of, is_list

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pilothouse.machinery.objects import Json
    from pilothouse.machinery.protobuf.message import MessageType

_META = "k8s.io.apimachinery.pkg.apis.meta.v1"
_EXTENSIONS = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions"
_VALUES: dict[str, Callable[[], MessageType]] = {
    f"{_META}.Time": Time,
    f"{_META}.MicroTime": MicroTime,
    f"{_META}.Duration": Duration,
    f"{_META}.FieldsV1": RawJson,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": Quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": IntOrString,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": RawExtension,
    f"{_EXTENSIONS}.v1.JSON": RawJson,
    f"{_EXTENSIONS}.v1beta1.JSON": RawJson,
}
_UNIONS: dict[str, Callable[[MessageType], MessageType]] = {
    "JSONSchemaPropsOrBool": SchemaOrBool,
    "JSONSchemaPropsOrArray": SchemaOrSchemas,
    "JSONSchemaPropsOrStringArray": SchemaOrStrings,
}


@cache
def message_type(name: str) -> MessageType:
    """Return the type by full message name. Raises KeyError for an unknown name."""
    if name in _VALUES:
        return _VALUES[name]()
    package, _, message = name.rpartition(".")
    if message in _UNIONS:
        return _UNIONS[message](message_type(f"{package}.JSONSchemaProps"))
    return BareList() if is_list(package, message) else ObjectMessage(facts_of(package, message))


class ObjectMessage:
    """A message that is an object in JSON."""

    nilable = False

    def __init__(self, facts: Mapping[str, FieldFacts]) -> None:
        self._facts = facts
        # The first call replaces the attribute by the compiled function.
        self.write: Callable[[Json], bytes] = self._first_write
        self.read: Callable[[bytes, int, int, Json | None, int], Json] = self._first_read

    @cached_property
    def empty(self) -> bytes:
        return self.write({})

    def zero(self) -> Json:
        return self.read(b"", 0, 0, None, 0)

    def _first_write(self, obj: Json) -> bytes:
        self.write = compile_writer(self._facts.values(), message_type)
        return self.write(obj)

    def _first_read(self, data: bytes, pos: int, end: int, into: Any, depth: int) -> Json:
        self.read = compile_reader(self._facts, message_type)
        return self.read(data, pos, end, into, depth)
