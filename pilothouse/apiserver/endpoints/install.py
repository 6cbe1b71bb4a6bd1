"""The installer of routes (upstream's APIInstaller): the protocols of a storage determine its verbs.

storage       routes
get           GET name           update        PUT name          delete             DELETE name
list, watch   GET collection     get + update  PATCH name        delete_collection  DELETE collection
create        POST collection    create_named  POST name         connect            its methods, name and below
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.admission.interface import Conversion, EquivalentResources, ServedForm
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.endpoints.connect import connect_handler
from pilothouse.apiserver.endpoints.create import create_handler
from pilothouse.apiserver.endpoints.delete import delete_collection_handler, delete_handler
from pilothouse.apiserver.endpoints.fieldmanager.manager import FieldManager
from pilothouse.apiserver.endpoints.fieldmanager.structured_merge import StructuredMerge, VersionForm, copy_of
from pilothouse.apiserver.endpoints.get import get_handler
from pilothouse.apiserver.endpoints.groups import APIVersion, ServedResource
from pilothouse.apiserver.endpoints.list import list_handler
from pilothouse.apiserver.endpoints.patch import patch_handler
from pilothouse.apiserver.endpoints.routes import ANYTHING, Methods, ResourceRoutes, VersionRoutes, with_warning
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.serializers.registry import media_types, stream_media_types
from pilothouse.apiserver.endpoints.update import update_handler
from pilothouse.apiserver.endpoints.watch import watch_handler
from pilothouse.apiserver.registry.interface import (
    CollectionDeleter,
    Connecter,
    Creator,
    Getter,
    GetterWithOptions,
    GracefulDeleter,
    Lister,
    NamedCreator,
    Patcher,
    Updater,
    Watcher,
    abilities_of,
)
from pilothouse.apiserver.request_info import verb_of
from pilothouse.apiserver.server.run_options import ServerRunOptions
from pilothouse.machinery.apply.fieldset import of_fields
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json

_LIST, _WATCH, _CREATE = ("GET", "list"), ("GET", "watch"), ("POST", "create")

Waiting: TypeAlias = Callable[[Callable[[Json], Json]], Conversion]


def at_once(convert: Callable[[Json], Json]) -> Conversion:
    """Return an asynchronous conversion that never waits."""

    async def conversion(obj: Json) -> Json:
        return convert(copy_of(obj))

    return conversion


@dataclass(frozen=True, slots=True)
class Installer:
    """Installs the endpoints of group versions with common dependencies.

    >>> from pilothouse.apiserver import AdmissionChain, AlwaysAllow, Installer
    >>> installer = Installer(AdmissionChain(), AlwaysAllow())
    """

    admission: AdmissionChain
    authorizer: Authorizer
    run_options: ServerRunOptions = field(default_factory=ServerRunOptions)
    equivalents: EquivalentResources = field(default_factory=EquivalentResources)
    """All installed and registered resources."""
    speaks_cbor: bool = False
    """Whether CBOR is supported: the gate CBORServingAndStorage."""

    def install(self, version: APIVersion, versions: Sequence[APIVersion]) -> VersionRoutes:
        """Return the routes of a version. `versions` are all versions of the group, which represent the same
        objects."""
        routes = VersionRoutes()
        self.register(version)
        for resource in version.resources:
            routes.add(resource.names.plural, resource.subresource, self.routes(version, resource, versions))
        return routes

    def register(self, version: APIVersion, waiting: Waiting = at_once) -> None:
        """Register the resources as views of their objects. `waiting` wraps the conversions of a resource."""
        for served in version.resources:
            resource = version.group_version.resource(served.names.plural)
            storage = served.storage_path or str(resource.group_resource)
            self.equivalents.register(storage, served.subresource, _form(served, resource, waiting))

    def routes(self, version: APIVersion, served: ServedResource, versions: Sequence[APIVersion]) -> ResourceRoutes:
        """Return the routes of one resource of the version."""
        scope = RequestScope(
            served=served,
            resource=version.group_version.resource(served.names.plural),
            field_manager=field_manager(served, versions),
            admission=self.admission,
            authorizer=self.authorizer,
            equivalents=self.equivalents,
            run_options=self.run_options,
        )
        storage: Any = served.storage
        collection = with_warning(_collection_methods(storage, scope), served.warning, served.removed_release)
        can = abilities_of(storage)
        return ResourceRoutes(
            namespaced=served.namespaced,
            produces=_produced(served),
            produces_lists=(*media_types(served.serializers), *stream_media_types(served.serializers)),
            collection=collection,
            item=with_warning(_item_methods(storage, scope), served.warning, served.removed_release),
            everywhere=_picked(collection, _LIST, _WATCH),
            watched=_picked(collection, _WATCH) if Watcher in can else {},
            patch_types=served.patch_types if Patcher in can else (),
            subpaths=Connecter in can,
            errors_in=served.options_serializers,
        )


def _produced(served: ServedResource) -> tuple[str, ...]:
    """Return the media types of the responses. Storages that take over the connection may use any media type."""
    spoken = tuple(media_types(served.serializers))
    if isinstance(served.storage, GetterWithOptions):
        return (*served.storage.media_types, *spoken)
    return ANYTHING if Connecter in abilities_of(served.storage) else spoken


def _form(served: ServedResource, resource: GroupVersionResource, waiting: Waiting) -> ServedForm:
    def read(value: Any) -> Json:
        # The options of a CONNECT have no schema: they come from the query.
        obj: Json = value if Connecter in abilities_of(served.storage) else served.decoder.read_changed(value).obj
        served.default(obj)
        return obj

    def unknown_fields(value: Any) -> Sequence[str]:
        reads_strictly = served.decoder.patch_schema is not None
        return served.decoder.normalise(value).strict_errors if reads_strictly else ()

    return ServedForm(
        resource,
        served.kind,
        read,
        unknown_fields=unknown_fields,
        atom=lambda: served.decoder.atom,
        printed=served.decoder.printed,
        from_stored=waiting(served.from_stored) if served.from_stored else None,
        to_stored=waiting(served.to_stored) if served.to_stored else None,
    )


def field_manager(served: ServedResource, versions: Sequence[APIVersion]) -> FieldManager:
    forms = {
        other.kind.api_version: VersionForm(
            other.kind.api_version,
            other.decoder,
            to_stored=other.to_stored,
            from_stored=other.from_stored,
            whole_from_stored=other.whole_from_stored,
        )
        for version in versions
        for other in version.resources
        if other.path == served.path
    }
    form = forms[served.kind.api_version]
    return FieldManager(StructuredMerge(served.kind, form, forms, of_fields(*served.reset_fields)), served.subresource)


def _collection_methods(storage: Any, scope: RequestScope) -> Methods:
    methods: Methods = {}
    can = abilities_of(storage)
    if scope.served.subresource:
        return methods
    if Lister in can:
        methods[_LIST] = list_handler(storage, scope)
        methods[_WATCH] = watch_handler(storage, scope)
    if Creator in can:
        methods[_CREATE] = create_handler(storage, scope)
    if CollectionDeleter in can:
        methods["DELETE", "deletecollection"] = delete_collection_handler(storage, scope)
    return methods


def _picked(methods: Methods, *wanted: tuple[str, str]) -> Methods:
    return {key: methods[key] for key in wanted if key in methods}


def _item_methods(storage: Any, scope: RequestScope) -> Methods:
    methods: Methods = {}
    can = abilities_of(storage)
    if Connecter in can:
        return {(method, verb_of(method)): connect_handler(storage, scope) for method in storage.methods}
    if Getter in can:
        methods["GET", "get"] = get_handler(storage, scope)
    if NamedCreator in can:
        methods[_CREATE] = create_handler(storage, scope)
    if Updater in can:
        methods["PUT", "update"] = update_handler(storage, scope)
    if Patcher in can:
        methods["PATCH", "patch"] = patch_handler(storage, scope)
    if GracefulDeleter in can:
        methods["DELETE", "delete"] = delete_handler(storage, scope)
    return methods


def verbs_of(storage: Any, *, subresource: bool) -> list[str]:
    """Return the verbs in discovery, in order."""
    can = abilities_of(storage)
    if Connecter in can:
        shown = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
        return sorted({verb for method, verb in shown.items() if method in storage.methods})
    verbs = {
        "create": NamedCreator in can or (Creator in can and not subresource),
        "delete": GracefulDeleter in can,
        "deletecollection": CollectionDeleter in can and not subresource,
        "get": Getter in can,
        "list": Lister in can and not subresource,
        "patch": Patcher in can,
        "update": Updater in can,
        "watch": Watcher in can and not subresource,
    }
    return [verb for verb, able in verbs.items() if able]
