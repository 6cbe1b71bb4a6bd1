"""The scale subresource of custom resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.interface import Result
from pilothouse.apiserver.registry.options import GetOptions
from pilothouse.apiserver.registry.scale import ScaleStore, Scaling
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.extensions.customresources.scaling import ScalePaths, WrongType, nested, set_nested
from pilothouse.machinery.errors import InternalError, StatusError
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class _At:
    """What stands at a path of the definition. Raises a StatusError where it cannot be read."""

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
    spec, status = _At(paths.spec_replicas), _At(paths.status_replicas)
    selector = _At(paths.selector).text if paths.selector else lambda _: ""
    return Scaling(
        replicas=spec.replicas,
        set_replicas=spec.set_replicas,
        status_replicas=status.replicas,
        selector=selector,
    )


class CustomResourceScaleStore(ScaleStore):
    """An object that does not say its replicas has no scale to be read."""

    def __init__(self, registry: RegistryStore, paths: ScalePaths) -> None:
        super().__init__(registry, scaling_of(paths))
        self._paths = paths

    async def get(self, ctx: RequestContext, name: str, options: GetOptions) -> Result:
        result = await self._registry.get(ctx, name, options)
        obj = result.parse() if isinstance(result, StoredObject) else result
        scale = self._scaling.scale_of(obj)
        if nested(obj, self._paths.spec_replicas, int) is None:
            raise InternalError.of(f'the spec replicas field "{self._paths.spec_replicas}" does not exist')
        return scale
