"""Installation of API groups in a server: resources and discovery documents (upstream's InstallAPIGroup)."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable

from pilothouse.apiserver.discovery.groups import ServerAddresses
from pilothouse.apiserver.discovery.handlers import group_handler, legacy_root_handler, root_handler, version_handler
from pilothouse.apiserver.discovery.manager import GroupDocuments
from pilothouse.apiserver.endpoints.groups import APIGroup
from pilothouse.apiserver.endpoints.install import Installer
from pilothouse.apiserver.endpoints.routes import VersionRoutes, resource_not_found
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.openapi.containers import group_container, group_list_container, version_container
from pilothouse.apiserver.server.server import GenericAPIServer


def install_api_group(server: GenericAPIServer, group: APIGroup, installer: Installer) -> None:
    """Serve /apis/GROUP and all paths below it. Unknown versions and resources of the group respond with a 404
    Status.

    >>> from pilothouse.apiserver import AdmissionChain, AlwaysAllow, APIGroup, APIVersion, GenericAPIServer
    >>> from pilothouse.apiserver import GroupVersion, Installer, Response, install_api_group
    >>> async def nobody(request):
    ...     return Response(404)
    >>> server = GenericAPIServer("wardle", nobody)
    >>> group = APIGroup("wardle.example.com", [APIVersion(GroupVersion("wardle.example.com", "v1"))])
    >>> install_api_group(server, group, Installer(AdmissionChain(), AlwaysAllow()))
    >>> server.listed_paths()
    ['/apis/wardle.example.com', '/apis/wardle.example.com/v1']
    """
    if installer.speaks_cbor:
        group = group.with_cbor()
    routes = {v.group_version.version: installer.install(v, group.versions) for v in group.versions}
    for version in group.versions:
        path = f"{group.root}/{version.group_version.version}"
        _with_or_without_slash(server, path, version_handler(version))
        server.openapi.update(version_container(group, version, server.definitions))
    if group.name:
        _with_or_without_slash(server, group.root, group_handler(group))
    server.mux.handle_prefix(f"{group.root}/", _by_version(routes), listed=False)
    server.openapi.update(group_container(group))


def install_legacy_api_group(
    server: GenericAPIServer, group: APIGroup, installer: Installer, addresses: ServerAddresses
) -> None:
    """Serve /api and all paths below it."""
    install_api_group(server, group, installer)
    _with_or_without_slash(server, group.root, legacy_root_handler(group, addresses))


def install_group_list(server: GenericAPIServer, groups: Iterable[APIGroup]) -> None:
    """Serve /apis: the groups of this server and of its delegates.

    >>> from pilothouse.apiserver import APIGroup, APIVersion, GenericAPIServer, GroupVersion, Response
    >>> from pilothouse.apiserver import install_group_list
    >>> async def nobody(request):
    ...     return Response(404)
    >>> server = GenericAPIServer("wardle", nobody)
    >>> group = APIGroup("wardle.example.com", [APIVersion(GroupVersion("wardle.example.com", "v1"))])
    >>> install_group_list(server, [group])
    >>> "/apis" in server.listed_paths()
    True
    """
    for group in groups:
        server.discovery.put(GroupDocuments.of(group))
    root = root_handler(server.discovery)
    server.mux.handle("/apis", root)
    server.mux.handle("/apis/", root)
    server.openapi.update(group_list_container())


def _with_or_without_slash(server: GenericAPIServer, path: str, handler: Handler) -> None:
    """Serve a document with and without a trailing slash: kr8s requests /api/."""
    server.mux.handle(path, handler)
    server.mux.handle(f"{path}/", handler, listed=False)


def _by_version(routes: dict[str, VersionRoutes]) -> Handler:
    def dispatch(request: Request) -> Awaitable[Response]:
        version = routes.get(request.info.version)
        if version is None or not request.info.is_resource:
            raise resource_not_found()
        return version(request)

    return dispatch
