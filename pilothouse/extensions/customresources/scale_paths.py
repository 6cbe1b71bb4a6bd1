"""Paths of the scale subresource, as declared in the definition."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.govalue import go_value
from pilothouse.machinery.objects import Json

_MAX_INT32 = 2**31 - 1
_GO_TYPES: dict[type, str] = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


class WrongType(ValueError):
    """The value at a path has the wrong type."""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Dotted paths with a leading dot, as in the definition."""

    spec_replicas: str
    status_replicas: str
    selector: str | None = None

    @classmethod
    def of(cls, scale: Json) -> ScalePaths:
        return cls(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath"))

    def validate_spec(self, obj: Json) -> Errors:
        yield from _validate_replicas(obj, self.spec_replicas)

    def validate_status(self, obj: Json) -> Errors:
        yield from _validate_replicas(obj, self.status_replicas)
        if self.selector is not None:
            try:
                nested(obj, self.selector, str)
            except WrongType as error:
                yield invalid(Path(self.selector), "", str(error))


def _validate_replicas(obj: Json, path: str) -> Errors:
    try:
        replicas = nested(obj, path, int) or 0
    except WrongType as error:
        yield invalid(Path(path), 0, str(error))
        return
    if replicas < 0:
        yield invalid(Path(path), replicas, "should be a non-negative integer")
    elif replicas > _MAX_INT32:
        yield invalid(Path(path), replicas, f"should be less than or equal to {_MAX_INT32}")


def nested(obj: Json, path: str, wanted: type) -> Any:
    """Return the value at a dotted path, or None. Raises WrongType with Go's message."""
    value: Any = obj
    fields = path.removeprefix(".").split(".")
    for position, name in enumerate(fields):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise WrongType(_accessor_error(fields[: position + 1], value, "map[string]interface{}"))
        if name not in value:
            return None
        value = value[name]
    if type(value) is not wanted:
        raise WrongType(_accessor_error(fields, value, _GO_TYPES[wanted]))
    return value


def set_nested(obj: Json, path: str, value: Any) -> None:
    """Set the value at a dotted path. Raises WrongType if the path leads through a non-object."""
    *parents, last = path.removeprefix(".").split(".")
    for position, name in enumerate(parents):
        child = obj.setdefault(name, {})
        if not isinstance(child, dict):
            where = ".".join(parents[: position + 1])
            raise WrongType(f"value cannot be set because .{where} is not a map[string]interface{{}}")
        obj = child
    obj[last] = value


def _accessor_error(fields: list[str], value: Any, wanted: str) -> str:
    found = "<nil>" if value is None else _GO_TYPES[type(value)]
    return f".{'.'.join(fields)} accessor error: {go_value(value)} is of the type {found}, expected {wanted}"
