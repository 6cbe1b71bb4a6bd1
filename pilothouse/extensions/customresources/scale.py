"""The scale subresource of custom resources: paths declared in the definition, and the storage."""

from __future__ import annotations

from typing import Any

from pilothouse.apiserver.endpoints.decoding import DecodedObject
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.registry.operations import RequestContext, Result
from pilothouse.apiserver.registry.options import GetOptions
from pilothouse.apiserver.registry.scale import SCALE, ScaleStore, Scaling
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.machinery.apply.managed import set_entries
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.gofmt import go_value
from pilothouse.machinery.objects import Json, metadata, resource_version_of
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.status_error import StatusError

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


def nested(obj: Json, path: str, expected: type) -> Any:
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
    if type(value) is not expected:
        raise WrongType(_accessor_error(fields, value, _GO_TYPES[expected]))
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


def _accessor_error(fields: list[str], value: Any, expected: str) -> str:
    found = "<nil>" if value is None else _GO_TYPES[type(value)]
    return f".{'.'.join(fields)} accessor error: {go_value(value)} is of the type {found}, expected {expected}"


@dataclass(frozen=True, slots=True)
class _ValueAtPath:
    """Access to the value at a path of the definition. Raises a StatusError if the path does not fit."""

    path: str

    def replicas(self, obj: Json) -> int:
        value: int | None = self._read(obj, int)
        return value or 0

    def text(self, obj: Json) -> str:
        value: str | None = self._read(obj, str)
        return value or ""

    def set_replicas(self, obj: Json, replicas: int) -> None:
        try:
            set_nested(obj, self.path, replicas)
        except WrongType as error:
            raise StatusError(str(error)) from None

    def _read(self, obj: Json, kind: type) -> Any:
        try:
            return nested(obj, self.path, kind)
        except WrongType as error:
            raise StatusError(str(error)) from None


def scaling_of(paths: ScalePaths) -> Scaling:
    spec, status = _ValueAtPath(paths.spec_replicas), _ValueAtPath(paths.status_replicas)
    selector = _ValueAtPath(paths.selector).text if paths.selector else lambda _: ""
    return Scaling(
        replicas=spec.replicas,
        set_replicas=spec.set_replicas,
        status_replicas=status.replicas,
        selector=selector,
        replicas_path=tuple(f"f:{name}" for name in paths.spec_replicas.removeprefix(".").split(".")),
    )


class CustomResourceScaleStore(ScaleStore):
    """Objects without replicas have no readable scale. Validation of the object rejects an invalid scale. A scale
    without a resourceVersion is written unconditionally."""

    def __init__(self, registry: RegistryStore, paths: ScalePaths) -> None:
        super().__init__(registry, scaling_of(paths))
        self._paths = paths

    async def get(self, ctx: RequestContext, name: str, options: GetOptions) -> Result:
        obj = (await self._registry.get(ctx, name, options)).parse()
        scale = self._scaling.scale_of(obj)
        if nested(obj, self._paths.spec_replicas, int) is None:
            raise InternalError.of(f'the spec replicas field "{self._paths.spec_replicas}" does not exist')
        return scale

    def _with_scale(self, ctx: RequestContext, obj: Json, scale: Json) -> Json:
        self._scaling.set_replicas(obj, (scale.get("spec") or {}).get("replicas") or 0)
        if resource_version_of(scale):
            metadata(obj)["resourceVersion"] = resource_version_of(scale)
        set_entries(obj, self._parent_entries(obj, scale))
        return obj


class ScaleDecoder(TypedDecoder):
    """Reports no details of a malformed scale, as upstream, which looks up the kind among custom resources."""

    def __init__(self) -> None:
        super().__init__(SCALE)

    def decode(self, serializer: Serializer, data: bytes, *, strict: bool) -> DecodedObject:
        try:
            return super().decode(serializer, data, strict=strict)
        except BadRequest:
            raise BadRequest(f'no kind is registered for the type v1.Scale in scheme "{_SCHEME}"') from None


_SCHEME = "k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781"
