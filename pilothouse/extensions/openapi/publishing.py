"""Publication of OpenAPI documents for group versions with custom resources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from pilothouse.apiserver.openapi.route import Info, Route, RouteContainer
from pilothouse.apiserver.openapi.service import OpenAPIService
from pilothouse.apiserver.tallies import REGISTRY, CounterTally
from pilothouse.extensions.customresourcedefinitions.conditions import ESTABLISHED
from pilothouse.extensions.customresourcedefinitions.strategy import GROUP_VERSION
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.openapi.definitions import CustomDefinitions
from pilothouse.kinds.conditions import is_true
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json

_REGENERATIONS = CounterTally(
    "apiextensions_openapi_v2_regeneration_count",
    "[ALPHA] Counter of OpenAPI v2 spec regeneration count broken down by causing CRD name and reason.",
    ("crd", "reason"),
    registry=REGISTRY,
    total=False,
)
_INFO = Info("Kubernetes CRD Swagger", "v0.1.0")


class OpenAPIPublisher:
    """Builds documents on request, because definitions often arrive in bulk."""

    def __init__(self, service: OpenAPIService, of_group: Callable[[str], Iterable[Json]]) -> None:
        """`of_group` returns the definitions of a group; must be thread-safe."""
        self._service = service
        self._of_group = of_group
        self._published: dict[str, _PublishedParts] = {}
        """Definition name → published parts."""
        self._served: Counter[GroupVersion] = Counter()
        """Number of definitions per document."""

    def update(self, name: str, definition: Json | None) -> None:
        """Publish a definition; None removes it. Documents that would not change are kept."""
        parts = (
            _PublishedParts.of(definition) if definition is not None and is_true(definition, ESTABLISHED) else _NOTHING
        )
        before = self._published.pop(name, _NOTHING)
        if parts is not _NOTHING:
            self._published[name] = parts
        if parts == before:
            return
        reason = "add" if before is _NOTHING else "remove" if parts is _NOTHING else "update"
        _REGENERATIONS.inc((name, reason))
        self._served.update(parts.group_versions)
        self._served.subtract(before.group_versions)
        for group_version in parts.group_versions | before.group_versions:
            self._publish(group_version)

    def _publish(self, group_version: GroupVersion) -> None:
        if self._served[group_version]:
            self._service.update(_container(group_version, lambda: self._shown(group_version)))
        else:
            del self._served[group_version]
            self._service.remove(f"apis/{group_version}")

    def _shown(self, group_version: GroupVersion) -> list[CustomResource]:
        definitions = self._of_group(group_version.group)
        resources = [CustomResource(definition) for definition in definitions if is_true(definition, ESTABLISHED)]
        return [resource for resource in resources if _serves(resource, group_version.version)]


@dataclass(frozen=True, slots=True)
class _PublishedParts:
    """The parts of a definition that appear in a document."""

    spec: Json
    names: Json

    @classmethod
    def of(cls, definition: Json) -> _PublishedParts:
        return cls(definition["spec"], definition["status"]["acceptedNames"])

    @property
    def group_versions(self) -> set[GroupVersion]:
        served = (version["name"] for version in self.spec.get("versions") or () if version.get("served"))
        # The server itself publishes the document of apiextensions.k8s.io/v1.
        return {GroupVersion(self.spec["group"], name) for name in served} - {GROUP_VERSION}


_NOTHING = _PublishedParts({}, {})


def _serves(resource: CustomResource, version: str) -> bool:
    return version in resource.versions and resource.versions[version].served


def _container(group_version: GroupVersion, shown: Callable[[], list[CustomResource]]) -> RouteContainer:
    resources = cache(shown)

    def routes() -> Iterator[Route]:
        from pilothouse.extensions.openapi.routes import routes_of

        for resource in resources():
            yield from routes_of(resource, resource.versions[group_version.version])

    return RouteContainer(
        f"apis/{group_version}",
        routes,
        definitions=CustomDefinitions(resources, group_version),
        info=_INFO,
        secured=False,
    )
