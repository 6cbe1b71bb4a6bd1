"""OpenAPI routes of a custom resource in one version."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.apiserver.endpoints.negotiation import SCHEMALESS_PATCHES
from pilothouse.apiserver.openapi import route
from pilothouse.apiserver.openapi.definitions import definition_of
from pilothouse.apiserver.openapi.verbs import DELETE_BODY, PATCH, STATUS, with_article
from pilothouse.apiserver.registry.scale import SCALE
from pilothouse.extensions.customresources.model import CustomResource, Version
from pilothouse.machinery.dataclass import dataclass

_MEDIA_TYPES = ("application/json", "application/yaml")


@dataclass(frozen=True, slots=True)
class _Routes:
    resource: CustomResource
    version: Version

    @property
    def kind(self) -> str:
        return self.resource.names.kind

    @property
    def own(self) -> str:
        return definition_of(self.resource.kind(self.version.name))

    @property
    def listed(self) -> str:
        kind = self.resource.kind(self.version.name)
        return definition_of(kind.group_version.kind(self.resource.names.list_kind))

    @property
    def root(self) -> str:
        namespace = "namespaces/{namespace}/" if self.resource.namespaced else ""
        return f"/apis/{self.resource.group}/{self.version.name}/{namespace}{self.resource.names.plural}"

    def collection(self) -> Iterator[route.Route]:
        listing = route.parameters_of(route.LIST_OPTIONS)
        if self.resource.namespaced:
            everywhere = f"/apis/{self.resource.group}/{self.version.name}/{self.resource.names.plural}"
            yield self._list(everywhere, f"list{self.kind}ForAllNamespaces")
        yield self._list(self.root, f"list{self._prefix}{self.kind}")
        answers = {200: self.own, 201: self.own, 202: self.own}
        yield self._route(
            ("post", "post", "create"),
            f"create {with_article(self.kind)}",
            answers,
            parameters=route.parameters_of(route.CREATE_OPTIONS),
            body=route.Body(self.own),
        )
        yield self._route(
            ("delete", "deletecollection", "deletecollection"),
            f"delete collection of {self.kind}",
            {200: STATUS},
            parameters=listing,
        )

    def item(self) -> Iterator[route.Route]:
        yield from self._object("", self.own)
        yield self._route(
            ("delete", "delete", "delete"),
            f"delete {with_article(self.kind)}",
            {200: STATUS, 202: STATUS},
            below="/{name}",
            parameters=route.parameters_of(route.DELETE_OPTIONS),
            body=route.Body(DELETE_BODY, required=False),
        )
        if self.version.has_status:
            yield from self._object("status", self.own)
        if self.version.scale is not None:
            yield from self._object("scale", definition_of(SCALE))

    def _object(self, subresource: str, kind: str) -> Iterator[route.Route]:
        below = "/{name}" + (f"/{subresource}" if subresource else "")
        target = f"{f' {subresource} of' if subresource else ''} the specified {self.kind}"
        yield self._route(
            ("get", "get", "read"),
            f"read{target}",
            {200: kind},
            below=below,
            parameters=route.parameters_of(route.GET_OPTIONS),
        )
        yield self._route(
            ("put", "put", "replace"),
            f"replace{target}",
            {200: kind, 201: kind},
            below=below,
            parameters=route.parameters_of(route.UPDATE_OPTIONS),
            body=route.Body(kind),
        )
        yield self._route(
            ("patch", "patch", "patch"),
            f"partially update{target}",
            {200: kind},
            below=below,
            parameters=route.parameters_of(route.PATCH_OPTIONS),
            body=route.Body(PATCH),
        )

    @property
    def _prefix(self) -> str:
        return "Namespaced" if self.resource.namespaced else ""

    def _list(self, path: str, operation: str) -> route.Route:
        return route.Route(
            method="get",
            path=path,
            operation=operation,
            description=f"list objects of kind {self.kind}",
            responses={200: self.listed},
            produces=_MEDIA_TYPES,
            consumes=_MEDIA_TYPES,
            parameters=(route.PRETTY, *route.parameters_of(route.LIST_OPTIONS), *self._path_parameters(path)),
            action="list",
            kind=self.resource.kind(self.version.name),
        )

    def _route(
        self,
        verb: tuple[str, str, str],
        description: str,
        responses: route.Responses,
        *,
        below: str = "",
        parameters: tuple[route.Parameter, ...] = (),
        body: route.Body | None = None,
    ) -> route.Route:
        """`verb`: HTTP method, action, and verb of the operation id."""
        method, action, operation = verb
        path = self.root + below
        return route.Route(
            method=method,
            path=path,
            operation=f"{operation}{self._prefix}{self.kind}{below.removeprefix('/{name}').strip('/').capitalize()}",
            description=description,
            responses=responses,
            produces=_MEDIA_TYPES,
            consumes=SCHEMALESS_PATCHES if method == "patch" else _MEDIA_TYPES,
            parameters=(route.PRETTY, *parameters, *self._path_parameters(path)),
            body=body,
            action=action,
            kind=self.resource.kind(self.version.name),
        )

    def _path_parameters(self, path: str) -> tuple[route.Parameter, ...]:
        in_namespace = (route.NAMESPACE,) if "{namespace}" in path else ()
        return (*in_namespace, route.name_parameter(self.kind)) if "{name}" in path else in_namespace


def routes_of(resource: CustomResource, version: Version) -> Iterator[route.Route]:
    routes = _Routes(resource, version)
    yield from routes.collection()
    yield from routes.item()
