"""Publishing: the documents of a group version tell of its custom resources as they are now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.apiserver.openapi.route import Info, Route, RouteContainer
from pilothouse.apiserver.openapi.service import OpenAPIService
from pilothouse.extensions.customresourcedefinitions.conditions import ESTABLISHED, is_true
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.openapi.definitions import CustomDefinitions
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of

_INFO = Info("Kubernetes CRD Swagger", "v0.1.0")


class OpenAPIPublisher:
    def __init__(self, service: OpenAPIService) -> None:
        self._service = service
        self._published: dict[str, dict[str, list[Json]]] = {}
        """By group and version, what each document was made from."""

    def sync(self, group: str, definitions: Iterable[Json]) -> None:
        """`definitions` are all of the group. Documents that would say the same are left alone."""
        resources = [CustomResource(each) for each in definitions if is_true(each, ESTABLISHED)]
        wanted = {
            name: [r for r in resources if name in r.versions and r.versions[name].served]
            for name in sorted({v.name for r in resources for v in r.versions.values() if v.served})
        }
        known = self._published.pop(group, {})
        for version in known.keys() - wanted.keys():
            self._service.remove(f"apis/{group}/{version}")
        made_from = {version: [_said(each) for each in served] for version, served in wanted.items()}
        for version, served in wanted.items():
            if known.get(version) != made_from[version]:
                self._service.update(_container(GroupVersion(group, version), served))
        if made_from:
            self._published[group] = made_from


def _said(resource: CustomResource) -> Json:
    """All of a definition that shows in a document."""
    definition = resource.definition
    return {
        "name": name_of(definition),
        "spec": definition["spec"],
        "names": definition["status"]["acceptedNames"],
    }


def _container(group_version: GroupVersion, resources: list[CustomResource]) -> RouteContainer:
    def routes() -> Iterator[Route]:
        from pilothouse.extensions.openapi.routes import routes_of

        for resource in resources:
            yield from routes_of(resource, resource.versions[group_version.version])

    return RouteContainer(
        f"apis/{group_version}",
        routes,
        definitions=CustomDefinitions(resources, group_version),
        group_version=group_version,
        info=_INFO,
    )
