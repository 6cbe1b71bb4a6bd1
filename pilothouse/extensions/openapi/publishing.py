"""Publishing: the documents of a group version tell of its custom resources as they are now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pilothouse.apiserver.openapi.route import Info, Route, RouteContainer
from pilothouse.apiserver.openapi.service import OpenAPIService
from pilothouse.extensions.customresourcedefinitions.conditions import ESTABLISHED
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.openapi.definitions import CustomDefinitions
from pilothouse.machinery.conditions import is_true
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json

_INFO = Info("Kubernetes CRD Swagger", "v0.1.0")


class OpenAPIPublisher:
    def __init__(self, service: OpenAPIService, of_group: Callable[[str], Iterable[Json]]) -> None:
        """`of_group` answers the definitions of a group."""
        self._service = service
        self._of_group = of_group
        self._published: dict[str, Json] = {}
        """By the definitions' names, what their documents were made from."""

    def update(self, name: str, definition: Json | None) -> None:
        """None for one that is gone. Documents that would say the same are left alone."""
        said = _said(definition) if definition is not None and is_true(definition, ESTABLISHED) else None
        before = self._published.pop(name, None)
        if said is not None:
            self._published[name] = said
        if said == before:
            return
        for group_version in _group_versions(said) | _group_versions(before):
            self._publish(group_version)

    def _publish(self, group_version: GroupVersion) -> None:
        resources = [CustomResource(each) for each in self._of_group(group_version.group) if is_true(each, ESTABLISHED)]
        shown = [each for each in resources if _serves(each, group_version.version)]
        if shown:
            self._service.update(_container(group_version, shown))
        else:
            self._service.remove(f"apis/{group_version}")


def _serves(resource: CustomResource, version: str) -> bool:
    return version in resource.versions and resource.versions[version].served


def _said(definition: Json) -> Json:
    """All of a definition that shows in a document."""
    return {"spec": definition["spec"], "names": definition["status"]["acceptedNames"]}


def _group_versions(said: Json | None) -> set[GroupVersion]:
    spec = (said or {}).get("spec") or {}
    return {GroupVersion(spec["group"], each["name"]) for each in spec.get("versions") or () if each.get("served")}


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
