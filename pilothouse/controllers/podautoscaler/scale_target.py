"""The target of an autoscaler: any kind with a scale subresource."""

from __future__ import annotations

from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse, has_no_status
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.client.rest_mapper import NoMatch, RESTMapper
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.names import GroupKind, GroupVersion
from pilothouse.machinery.objects import Json, name_of, namespace_of, number, text
from pilothouse.machinery.status_error import PilothouseError, StatusError

_TRIES = 5
_FAILURES = (StatusError, ConnectionFailed, InvalidResponse)


class ScaleUnavailable(PilothouseError):
    """The target's scale cannot be read or written."""


@dataclass(slots=True)
class ScaleTarget:
    """The scale as last read."""

    _resource: ResourceClient
    _scale: Json

    @property
    def wanted(self) -> int:
        return number(self._scale, "spec", "replicas")

    @property
    def there(self) -> int:
        return number(self._scale, "status", "replicas")

    @property
    def selector(self) -> str:
        return text(self._scale, "status", "selector")

    async def scale(self, replicas: int) -> None:
        """Write the replicas, overriding concurrent changes. Raises ScaleUnavailable."""
        for tries_left in reversed(range(_TRIES)):
            spec = {**(self._scale.get("spec") or {}), "replicas": replicas}
            try:
                await self._resource.update({**self._scale, "spec": spec}, subresource="scale")
                return
            except Conflict as error:
                if not tries_left:
                    raise ScaleUnavailable(str(error)) from None
                await self._read_again()
            except _FAILURES as error:
                raise ScaleUnavailable(str(error)) from None

    async def _read_again(self) -> None:
        try:
            self._scale = await self._resource.get(name_of(self._scale), subresource="scale")
        except _FAILURES as error:
            raise ScaleUnavailable(str(error)) from None


@dataclass(frozen=True, slots=True)
class ScaleTargets:
    client: Client
    mapper: RESTMapper

    async def of(self, autoscaler: Json) -> ScaleTarget:
        """Return the autoscaler's target. Raises ScaleUnavailable."""
        reference = autoscaler["spec"]["scaleTargetRef"]
        try:
            group = GroupVersion.parse(reference.get("apiVersion") or "").group
            mapping = await self.mapper.mapping(GroupKind(group, reference["kind"]))
        except NoMatch:
            raise ScaleUnavailable(f'no matches for kind "{reference["kind"]}" in group "{group}"') from None
        except (*_FAILURES, ValueError) as error:
            raise ScaleUnavailable(str(error)) from None
        resource = self.client.for_resource(mapping.resource, namespace=namespace_of(autoscaler))
        try:
            return ScaleTarget(resource, await resource.get(reference["name"], subresource="scale"))
        except _FAILURES as error:
            if isinstance(error, NotFound) and has_no_status(error):
                self.mapper.reset()  # the API that serves the kind has changed
            raise ScaleUnavailable(str(error)) from None
