"""The scale subresource of custom resources."""

from __future__ import annotations

from typing import Any

from pilothouse.apiserver.endpoints.decoding import DecodedObject
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.operations import Result
from pilothouse.apiserver.registry.options import GetOptions
from pilothouse.apiserver.registry.scale import SCALE, ScaleStore, Scaling
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.extensions.customresources.scale_paths import ScalePaths, WrongType, nested, set_nested
from pilothouse.machinery.apply.managed import set_entries
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.objects import Json, metadata, resource_version_of
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.status_error import StatusError


@dataclass(frozen=True, slots=True)
class _ValueAtPath:
    """Access to the value at a path of the definition. Raises a StatusError if the path does not fit."""

    path: str

    def replicas(self, obj: Json) -> int:
        found: int | None = self._read(obj, int)
        return found or 0

    def text(self, obj: Json) -> str:
        found: str | None = self._read(obj, str)
        return found or ""

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
