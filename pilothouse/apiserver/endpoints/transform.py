"""Alternative views of objects: Table, PartialObjectMetadata and PartialObjectMetadataList."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.registry.operations import Result
from pilothouse.apiserver.registry.table import table_row
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.errors import BadRequest, NotAcceptable
from pilothouse.machinery.field import invalid, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, resource_version_of

_INCLUDE = ("", "Metadata", "Object", "None")


def is_status(result: Result) -> bool:
    return isinstance(result, dict) and result.get("kind") == "Status" and result.get("apiVersion") == "v1"


def single(request: Request, scope: RequestScope, target: GroupVersionKind, result: Result) -> Json:
    """Return the view of one object. Raises NotAcceptable for the view of a list."""
    if isinstance(result, StoredObject):
        stored = result.parse()
    else:
        stored = scope.shown(result) if scope.served.from_stored is None else result
    if target.kind == "Table":
        metadata = {"resourceVersion": resource_version_of(stored)} if resource_version_of(stored) else {}
        return table(scope, target, metadata) | {"rows": [row(scope, target, stored, include_object(request))]}
    if target.kind == "PartialObjectMetadata":
        return partial_metadata(scope, target, stored)
    what = f"the requested object is not a list (*{scope.served.view.go_type})"
    raise NotAcceptable(f"you requested PartialObjectMetadataList, but {what}")


def table(scope: RequestScope, target: GroupVersionKind, metadata: Json, *, headers: bool = True) -> Json:
    """Return a table without rows; column definitions only with `headers`."""
    shown = [column.definition for column in scope.served.columns if column.headed] if headers else None
    return {
        "kind": "Table",
        "apiVersion": target.api_version,
        "metadata": metadata,
        "columnDefinitions": shown,
        "rows": [],
    }


def row(scope: RequestScope, target: GroupVersionKind, stored: Json, include: str) -> Json:
    """Return the row of an object in its stored form, which is consumed."""
    obj = scope.shown(stored) if scope.served.columns_of_version else stored
    shown = table_row(scope.served.columns, obj)
    if include == "Metadata":
        return shown | {"object": _metadata(scope, target, obj)}
    if include == "None":
        return shown | {"object": None}
    return shown | {"object": obj if scope.served.columns_of_version else scope.shown(obj)}


def partial_metadata(scope: RequestScope, target: GroupVersionKind, stored: Json) -> Json:
    """Return the metadata of an object in its stored form, which is consumed.

    Upstream takes metadata of built-in kinds from the internal version: annotations that represent fields are absent,
    whatever the version of the request.
    """
    return _metadata(scope, target, scope.shown(stored) if scope.served.columns_of_version else stored)


def _metadata(scope: RequestScope, target: GroupVersionKind, obj: Json) -> Json:
    meta, hidden = obj.get("metadata") or {}, scope.served.field_annotations
    if not hidden.isdisjoint(meta.get("annotations") or ()):
        kept = {key: value for key, value in meta["annotations"].items() if key not in hidden}
        others = {name: value for name, value in meta.items() if name != "annotations"}
        meta = {**others, "annotations": kept} if kept else others
    return {"kind": "PartialObjectMetadata", "apiVersion": target.api_version, "metadata": meta}


def include_object(request: Request) -> str:
    """Return the includeObject option; the default is Metadata. Raises BadRequest."""
    include = request.param("includeObject")
    if include not in _INCLUDE:
        error = invalid(root("includeObject"), include, "must be 'Metadata', 'Object', 'None', or empty")
        raise BadRequest(f"Unable to convert to Table as requested: {error}")
    return include or "Metadata"
