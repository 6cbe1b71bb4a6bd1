"""Reading the group, version and kind of a body from its apiVersion and kind fields."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.codec.body_errors import BodyError
from pilothouse.machinery.names import NO_VERSION_OR_KIND, GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.examine import TypeProblem, word_for

_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'

NO_TYPE = GroupVersionKind("", "", "")


def interpret_cbor(value: Any) -> GroupVersionKind:
    """Return the kind that a value decoded from CBOR names. Raises BodyError."""
    from pilothouse.machinery.cbor.typed import named_by
    from pilothouse.machinery.cbor.wellformed import CborError

    try:
        return named_by(value)
    except CborError as error:
        raise cbor_type_error(error) from None


def cbor_type_error(error: ValueError) -> BodyError:
    return BodyError(f"unable to determine group/version/kind: {error}")


def interpret(value: Any) -> GroupVersionKind:
    """Return the kind that the value names. Raises BodyError."""
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
    """Match keys in any case: Go reads the type case-insensitively, though it decodes case-sensitively."""
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
