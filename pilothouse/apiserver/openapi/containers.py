"""The route containers of a generic server: groups, versions and discovery paths.

Servers create the containers at start, so the code that builds routes is imported later, on first use.
"""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.endpoints.serializers.registry import BUILT_IN, Serializers, media_types
from pilothouse.apiserver.openapi.definitions import META, OpenAPIDefinitions
from pilothouse.apiserver.openapi.route import Route, RouteContainer


def version_container(
    group: APIGroup, version: APIVersion, definitions: OpenAPIDefinitions | None = None
) -> RouteContainer:
    """Return the container of one group version: its resources and their discovery. `definitions` describe kinds
    that are not built in."""
    path = f"{group.root}/{version.group_version.version}"

    def routes() -> Iterator[Route]:
        from pilothouse.apiserver.openapi.resource_routes import resource_routes

        spoken = version.serializers
        yield _discovery(path, "getAPIResources", "get available resources", "APIResourceList", spoken)
        for served in version.resources:
            yield from resource_routes(version, served)

    return RouteContainer(path[1:], routes, definitions=definitions, group_version=version.group_version)


def group_container(group: APIGroup) -> RouteContainer:
    """Return the container of a group's discovery document. The legacy group has another format."""
    if not group.name:
        return _single(_discovery(group.root, "getAPIVersions", "get available API versions", "APIVersions"))
    return _single(_discovery(group.root, "getAPIGroup", "get information of a group", "APIGroup"))


def group_list_container() -> RouteContainer:
    return _single(_discovery("/apis", "getAPIVersions", "get available API versions", "APIGroupList"))


def server_version_container() -> RouteContainer:
    return _single(
        Route(
            method="get",
            path="/version/",
            operation="getCodeVersion",
            description="get the version information for this server",
            responses={200: "io.k8s.apimachinery.pkg.version.Info"},
            produces=("application/json",),
            consumes=("application/json",),
        )
    )


def _single(route: Route) -> RouteContainer:
    return RouteContainer(route.path.strip("/"), lambda: (route,))


def _discovery(path: str, operation: str, description: str, kind: str, serializers: Serializers = BUILT_IN) -> Route:
    spoken = tuple(media_types(serializers))
    return Route(
        method="get",
        path=f"{path}/",
        operation=operation,
        description=description,
        responses={200: f"{META}.{kind}"},
        produces=spoken,
        consumes=spoken,
    )
