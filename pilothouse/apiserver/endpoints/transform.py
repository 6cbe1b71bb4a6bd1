"""Other views of a resource's objects: Table, PartialObjectMetadata and its list."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.registry.interface import ListResult, Result
from pilothouse.apiserver.registry.table import partial_metadata, rows
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.errors import BadRequest, NotAcceptable
from pilothouse.machinery.field import invalid, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, resource_version_of

_INCLUDE = ("", "Metadata", "Object", "None")


def is_status(result: Result) -> bool:
    return isinstance(result, dict) and result.get("kind") == "Status" and result.get("apiVersion") == "v1"


def single(request: Request, scope: RequestScope, target: GroupVersionKind, result: Result) -> Json:
    """Raises NotAcceptable when a list view is asked of one object."""
    obj = scope.view.object(result) if isinstance(result, StoredObject) else scope.served(result)
    if target.kind == "Table":
        metadata = {"resourceVersion": resource_version_of(obj)} if resource_version_of(obj) else {}
        return table(request, scope, target, [obj], metadata)
    if target.kind == "PartialObjectMetadata":
        return partial_metadata(obj, target.api_version)
    what = f"the requested object is not a list (*{scope.view.go_type})"
    raise NotAcceptable(f"you requested PartialObjectMetadataList, but {what}")


def listed(request: Request, scope: RequestScope, target: GroupVersionKind, result: ListResult) -> Json:
    """Raises NotAcceptable when a single object's view is asked of a list."""
    from pilothouse.apiserver.endpoints.response import list_metadata

    objects = [scope.view.object(stored) for stored in result.objects]
    if target.kind == "Table":
        ordered = sorted(objects, key=scope.row_order) if scope.row_order else objects
        return table(request, scope, target, ordered, list_metadata(result))
    if target.kind != "PartialObjectMetadataList":
        what = f"the requested object is a list (*{scope.view.go_type}List)"
        raise NotAcceptable(f"you requested PartialObjectMetadata, but {what}")
    items = [partial_metadata(obj, target.api_version) for obj in objects]
    return {
        "kind": target.kind,
        "apiVersion": target.api_version,
        "metadata": list_metadata(result),
        "items": items,
    }


def table(
    request: Request,
    scope: RequestScope,
    target: GroupVersionKind,
    objects: list[Json],
    metadata: Json,
    *,
    headers: bool = True,
) -> Json:
    include = include_object(request)
    made = rows(scope.columns, objects, include, scope.stored)
    for row in made:
        if row["object"] is not None and include != "Object":
            row["object"]["apiVersion"] = target.api_version
    return {
        "kind": "Table",
        "apiVersion": target.api_version,
        "metadata": metadata,
        "columnDefinitions": [column.definition for column in scope.columns if column.headed] if headers else [],
        "rows": made,
    }


def include_object(request: Request) -> str:
    """Raises BadRequest. The default is the object's metadata."""
    include = request.param("includeObject")
    if include not in _INCLUDE:
        error = invalid(root("includeObject"), include, "must be 'Metadata', 'Object', 'None', or empty")
        raise BadRequest(f"Unable to convert to Table as requested: {error}")
    return include or "Metadata"
