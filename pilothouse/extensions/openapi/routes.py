"""OpenAPI routes of a custom resource in one version."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.apiserver.endpoints.negotiation import SCHEMALESS_PATCHES
from pilothouse.apiserver.openapi.definitions import definition_of
from pilothouse.apiserver.openapi.route import (
    CREATE_OPTIONS,
    DELETE_OPTIONS,
    GET_OPTIONS,
    LIST_OPTIONS,
    NAMESPACE,
    PATCH_OPTIONS,
    PRETTY,
    UPDATE_OPTIONS,
    Body,
    Parameter,
    Responses,
    Route,
    name_parameter,
    parameters_of,
)
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

    def collection(self) -> Iterator[Route]:
        listing = parameters_of(LIST_OPTIONS)
        if self.resource.namespaced:
            everywhere = f"/apis/{self.resource.group}/{self.version.name}/{self.resource.names.plural}"
            yield self._list(everywhere, f"list{self.kind}ForAllNamespaces")
        yield self._list(self.root, f"list{self._prefix}{self.kind}")
        answers = {200: self.own, 201: self.own, 202: self.own}
        yield self._route(
            ("post", "post", "create"),
            f"create {with_article(self.kind)}",
            answers,
            parameters=parameters_of(CREATE_OPTIONS),
            body=Body(self.own),
        )
        yield self._route(
            ("delete", "deletecollection", "deletecollection"),
            f"delete collection of {self.kind}",
            {200: STATUS},
            parameters=listing,
        )

    def item(self) -> Iterator[Route]:
        yield from self._object("", self.own)
        yield self._route(
            ("delete", "delete", "delete"),
            f"delete {with_article(self.kind)}",
            {200: STATUS, 202: STATUS},
            below="/{name}",
            parameters=parameters_of(DELETE_OPTIONS),
            body=Body(DELETE_BODY, required=False),
        )
        if self.version.has_status:
            yield from self._object("status", self.own)
        if self.version.scale is not None:
            yield from self._object("scale", definition_of(SCALE))

    def _object(self, subresource: str, kind: str) -> Iterator[Route]:
        below = "/{name}" + (f"/{subresource}" if subresource else "")
        target = f"{f' {subresource} of' if subresource else ''} the specified {self.kind}"
        yield self._route(
            ("get", "get", "read"), f"read{target}", {200: kind}, below=below, parameters=parameters_of(GET_OPTIONS)
        )
        yield self._route(
            ("put", "put", "replace"),
            f"replace{target}",
            {200: kind, 201: kind},
            below=below,
            parameters=parameters_of(UPDATE_OPTIONS),
            body=Body(kind),
        )
        yield self._route(
            ("patch", "patch", "patch"),
            f"partially update{target}",
            {200: kind},
            below=below,
            parameters=parameters_of(PATCH_OPTIONS),
            body=Body(PATCH),
        )

    @property
    def _prefix(self) -> str:
        return "Namespaced" if self.resource.namespaced else ""

    def _list(self, path: str, operation: str) -> Route:
        return Route(
            method="get",
            path=path,
            operation=operation,
            description=f"list objects of kind {self.kind}",
            responses={200: self.listed},
            produces=_MEDIA_TYPES,
            consumes=_MEDIA_TYPES,
            parameters=(PRETTY, *parameters_of(LIST_OPTIONS), *self._path_parameters(path)),
            action="list",
            kind=self.resource.kind(self.version.name),
        )

    def _route(
        self,
        verb: tuple[str, str, str],
        description: str,
        responses: Responses,
        *,
        below: str = "",
        parameters: tuple[Parameter, ...] = (),
        body: Body | None = None,
    ) -> Route:
        """`verb`: HTTP method, action, and verb of the operation id."""
        method, action, operation = verb
        path = self.root + below
        return Route(
            method=method,
            path=path,
            operation=f"{operation}{self._prefix}{self.kind}{below.removeprefix('/{name}').strip('/').capitalize()}",
            description=description,
            responses=responses,
            produces=_MEDIA_TYPES,
            consumes=SCHEMALESS_PATCHES if method == "patch" else _MEDIA_TYPES,
            parameters=(PRETTY, *parameters, *self._path_parameters(path)),
            body=body,
            action=action,
            kind=self.resource.kind(self.version.name),
        )

    def _path_parameters(self, path: str) -> tuple[Parameter, ...]:
        in_namespace = (NAMESPACE,) if "{namespace}" in path else ()
        return (*in_namespace, name_parameter(self.kind)) if "{name}" in path else in_namespace


def routes_of(resource: CustomResource, version: Version) -> Iterator[Route]:
    routes = _Routes(resource, version)
    yield from routes.collection()
    yield from routes.item()
