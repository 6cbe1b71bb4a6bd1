"""The compiler's view of declared types: objects are protobuf messages, since it knows structs in no other form.

Lists of lists and maps of lists cannot be fields of messages: what is inside of them is not checked by type.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pilothouse.machinery.cel.declared import Declared
from pilothouse.machinery.cel.signatures import OPAQUE_TYPES

_PACKAGE = "schema"
_ANYTHING = ".google.protobuf.Value"
_WELL_KNOWN = {
    "dyn": _ANYTHING,
    "timestamp": ".google.protobuf.Timestamp",
    "duration": ".google.protobuf.Duration",
}


class TypedPool:
    """A descriptor pool for some types, and the names by which variables of those types are declared."""

    def __init__(self, *types: Declared, base: Any = None) -> None:
        """`base` is a pool that knows Kubernetes' types; it is added to."""
        from google.protobuf import descriptor_pb2

        self._file = descriptor_pb2.FileDescriptorProto(
            name="schema.proto",
            package=_PACKAGE,
            syntax="proto2",
            dependency=[f"google/protobuf/{name}.proto" for name in ("struct", "timestamp", "duration")],
        )
        self.type_names = [self._name(declared) for declared in types]
        self.pool = base or _base_pool()
        self.pool.AddSerializedFile(self._file.SerializeToString())

    def _name(self, declared: Declared) -> str:
        """Return the type's name as a variable is declared with it: list<string>, map<string, schema.T1>."""
        if declared.kind == "object":
            return self._message(declared)
        if declared.kind in ("list", "map"):
            assert declared.element is not None
            inner = self._name(declared.element)
            return f"list<{inner}>" if declared.kind == "list" else f"map<string, {inner}>"
        return declared.kind

    def _message(self, declared: Declared) -> str:
        message = self._file.message_type.add(name=f"T{len(self._file.message_type)}")
        for number, (name, child) in enumerate(declared.fields.items(), start=1):
            self._add_field(message, name, number, child)
        return f"{_PACKAGE}.{message.name}"

    def _add_field(self, message: Any, name: str, number: int, declared: Declared) -> None:
        from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

        field = message.field.add(name=name, number=number, label=Field.LABEL_OPTIONAL)
        if declared.kind == "list":
            assert declared.element is not None
            field.label = Field.LABEL_REPEATED
            self._set_type(field, declared.element)
        elif declared.kind == "map":
            assert declared.element is not None
            field.label = Field.LABEL_REPEATED
            entry = message.nested_type.add(name=_entry_name(name))
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, label=Field.LABEL_OPTIONAL, type=Field.TYPE_STRING)
            self._set_type(entry.field.add(name="value", number=2, label=Field.LABEL_OPTIONAL), declared.element)
            field.type, field.type_name = Field.TYPE_MESSAGE, f".{_PACKAGE}.{message.name}.{entry.name}"
        else:
            self._set_type(field, declared)

    def _set_type(self, field: Any, declared: Declared) -> None:
        from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

        plain = {
            "string": Field.TYPE_STRING,
            "bytes": Field.TYPE_BYTES,
            "bool": Field.TYPE_BOOL,
            "int": Field.TYPE_INT64,
            "double": Field.TYPE_DOUBLE,
        }
        if declared.kind in plain:
            field.type = plain[declared.kind]
            return
        field.type = Field.TYPE_MESSAGE
        if declared.kind == "object":
            field.type_name = f".{self._message(declared)}"
        else:
            field.type_name = _WELL_KNOWN.get(declared.kind, _ANYTHING)


def _entry_name(field: str) -> str:
    """The name that protobuf asks of a map's entries: `FooBarEntry` for `foo_bar`."""
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"


def _base_pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    for file in _well_known_files():
        pool.AddSerializedFile(file.serialized_pb)
    packages: dict[str, Any] = {}
    for full_name in OPAQUE_TYPES:
        package, _, name = full_name.rpartition(".")
        empty = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package)
        packages.setdefault(package, empty).message_type.add(name=name)
    for file in packages.values():
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def _well_known_files() -> Iterable[Any]:
    from google.protobuf import any_pb2, duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2

    return [module.DESCRIPTOR for module in (any_pb2, duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)]
