"""The route of each verb, with parameters, body and responses. Routes of a subresource are named after its
resource's kind."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.endpoints.serializers.registry import media_types, stream_media_types
from pilothouse.apiserver.openapi import route
from pilothouse.apiserver.openapi.definitions import META, definition_of
from pilothouse.apiserver.registry.interface import GetterWithOptions, Watcher
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """A path of a resource. `prefix` and `suffix` are parts of its operation ids: `listNamespacedPod`."""

    path: str
    parameters: tuple[route.Parameter, ...] = ()
    prefix: str = ""
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class ResourcePaths:
    """The paths of one resource, or of one subresource, which has no collection."""

    group_version: GroupVersion
    served: ServedResource

    @property
    def root(self) -> str:
        group_version = self.group_version
        return f"/apis/{group_version}" if group_version.group else f"/api/{group_version.version}"

    @property
    def collection(self) -> ResourcePath:
        plural = self.served.names.plural
        if self.served.namespaced:
            return ResourcePath(f"{self.root}/namespaces/{{namespace}}/{plural}", (route.NAMESPACE,), "Namespaced")
        return ResourcePath(f"{self.root}/{plural}")

    @property
    def everywhere(self) -> ResourcePath:
        """The collection across all namespaces."""
        return ResourcePath(f"{self.root}/{self.served.names.plural}", suffix="ForAllNamespaces")

    @property
    def item(self) -> ResourcePath:
        collection, subresource = self.collection, self.served.subresource
        path = f"{collection.path}/{{name}}" + (f"/{subresource}" if subresource else "")
        parameters = (*collection.parameters, route.name_parameter(self.served.kind.kind))
        return replace(collection, path=path, parameters=parameters)

    def watched(self, place: ResourcePath) -> ResourcePath:
        """Return the deprecated watch path of another path."""
        return replace(place, path=f"{self.root}/watch{place.path.removeprefix(self.root)}")


STATUS, PATCH, WATCH_EVENT, DELETE_BODY = (
    f"{META}.{kind}" for kind in ("Status", "Patch", "WatchEvent", "DeleteOptions")
)

_INSTEAD = "deprecated: use the 'watch' parameter with a list operation instead"


def list_route(served: ServedResource, place: ResourcePath) -> route.Route:
    verb = "list or watch" if isinstance(served.storage, Watcher) else "list"
    return _route(
        ("get", "list", "list"),
        served,
        place,
        description=f"{verb} objects of kind {served.names.kind}",
        parameters=route.parameters_of(route.LIST_OPTIONS),
        responses={200: definition_of(served.kind.group_version.kind(served.names.list_kind))},
        produces=_with_streams(served),
    )


def create_route(served: ServedResource, place: ResourcePath) -> route.Route:
    kind = definition_of(served.kind)
    return _route(
        ("post", "post", "create"),
        served,
        place,
        description=f"create{_subresource_of(served)} {with_article(served.names.kind)}",
        parameters=route.parameters_of(route.CREATE_OPTIONS),
        body=route.Body(kind),
        responses={200: kind, 201: kind, 202: kind},
    )


def get_route(served: ServedResource, place: ResourcePath) -> route.Route:
    storage, description = served.storage, f"read{_subresource_of(served)} the specified {served.names.kind}"
    if isinstance(storage, GetterWithOptions):
        return _route(
            ("get", "get", "read"),
            served,
            place,
            description=description,
            parameters=route.parameters_of(storage.get_options),
            responses={200: route.STRING},
            produces=(*storage.media_types, *media_types(served.serializers)),
        )
    responses = {200: definition_of(served.kind)}
    return _route(("get", "get", "read"), served, place, description=description, responses=responses)


def update_route(served: ServedResource, place: ResourcePath) -> route.Route:
    kind = definition_of(served.kind)
    return _route(
        ("put", "put", "replace"),
        served,
        place,
        description=f"replace{_subresource_of(served)} the specified {served.names.kind}",
        parameters=route.parameters_of(route.UPDATE_OPTIONS),
        body=route.Body(kind),
        responses={200: kind, 201: kind},
    )


def patch_route(served: ServedResource, place: ResourcePath) -> route.Route:
    kind = definition_of(served.kind)
    return _route(
        ("patch", "patch", "patch"),
        served,
        place,
        description=f"partially update{_subresource_of(served)} the specified {served.names.kind}",
        parameters=route.parameters_of(route.PATCH_OPTIONS),
        body=route.Body(PATCH),
        consumes=served.patch_types,
        responses={200: kind, 201: kind},
    )


def delete_route(served: ServedResource, place: ResourcePath) -> route.Route:
    answer = definition_of(served.kind) if served.returns_deleted_object else STATUS
    return _route(
        ("delete", "delete", "delete"),
        served,
        place,
        description=f"delete{_subresource_of(served)} {with_article(served.names.kind)}",
        parameters=route.parameters_of(route.DELETE_OPTIONS),
        body=route.Body(DELETE_BODY, required=False),
        responses={200: answer, 202: answer},
    )


def delete_collection_route(served: ServedResource, place: ResourcePath) -> route.Route:
    selection = route.without(route.parameters_of(route.LIST_OPTIONS), "watch", "allowWatchBookmarks")
    return _route(
        ("delete", "deletecollection", "deletecollection"),
        served,
        place,
        description=f"delete collection of {served.names.kind}",
        parameters=(*route.parameters_of(route.DELETE_OPTIONS), *selection),
        body=route.Body(DELETE_BODY, required=False),
        responses={200: STATUS},
    )


def watch_route(served: ServedResource, place: ResourcePath) -> route.Route:
    what = f"watch changes to an object of kind {served.names.kind}"
    return _route(
        ("get", "watch", "watch"),
        served,
        place,
        description=f"{what}. {_INSTEAD}, filtered to a single item with the 'fieldSelector' parameter.",
        parameters=route.parameters_of(route.LIST_OPTIONS),
        responses={200: WATCH_EVENT},
        produces=_with_streams(served),
    )


def watch_list_route(served: ServedResource, place: ResourcePath) -> route.Route:
    return _route(
        ("get", "watchlist", "watch"),
        served,
        place,
        description=f"watch individual changes to a list of {served.names.kind}. {_INSTEAD}.",
        parameters=route.parameters_of(route.LIST_OPTIONS),
        responses={200: WATCH_EVENT},
        produces=_with_streams(served),
    )


def _route(
    verb: tuple[str, str, str],
    served: ServedResource,
    place: ResourcePath,
    *,
    description: str,
    responses: route.Responses,
    parameters: tuple[route.Parameter, ...] = (),
    produces: tuple[str, ...] = (),
    consumes: tuple[str, ...] = ("*/*",),
    body: route.Body | None = None,
) -> route.Route:
    """Return a route. `verb` is the HTTP method, the action and the verb of the operation id."""
    method, action, operation = verb
    is_list = "List" if action == "watchlist" else ""
    named = f"{place.prefix}{served.names.kind}{served.subresource.capitalize()}{is_list}{place.suffix}"
    return route.Route(
        method=method,
        path=place.path,
        operation=operation + named,
        description=description,
        responses=responses,
        produces=produces or tuple(media_types(served.serializers)),
        consumes=consumes,
        parameters=(route.PRETTY, *parameters, *place.parameters),
        body=body,
        action=action,
        kind=served.kind,
    )


def _with_streams(served: ServedResource) -> tuple[str, ...]:
    return (*media_types(served.serializers), *stream_media_types(served.serializers))


def _subresource_of(served: ServedResource) -> str:
    return f" {served.subresource} of" if served.subresource else ""


def with_article(noun: str) -> str:
    """Return the kind with its indefinite article; without one if the kind sounds like a plural."""
    if noun.endswith("s") and not noun.endswith("ss"):
        return noun
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"
