"""Other views of a resource's objects: Table, PartialObjectMetadata and its list."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.registry.interface import Result
from pilothouse.apiserver.registry.table import partial_metadata, table_row
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
    obj = scope.served.view.object(result) if isinstance(result, StoredObject) else scope.from_stored(result)
    if target.kind == "Table":
        metadata = {"resourceVersion": resource_version_of(obj)} if resource_version_of(obj) else {}
        return table(scope, target, metadata) | {"rows": [row(scope, target, obj, include_object(request))]}
    if target.kind == "PartialObjectMetadata":
        return partial_metadata(obj, target.api_version)
    what = f"the requested object is not a list (*{scope.served.view.go_type})"
    raise NotAcceptable(f"you requested PartialObjectMetadataList, but {what}")


def table(scope: RequestScope, target: GroupVersionKind, metadata: Json, *, headers: bool = True) -> Json:
    """A table without rows; without `headers` it does not say what its columns are."""
    shown = [column.definition for column in scope.served.columns if column.headed] if headers else None
    return {
        "kind": "Table",
        "apiVersion": target.api_version,
        "metadata": metadata,
        "columnDefinitions": shown,
        "rows": [],
    }


def row(scope: RequestScope, target: GroupVersionKind, obj: Json, include: str) -> Json:
    made = table_row(scope.served.columns, obj, include, scope.to_stored(obj))
    if made["object"] is not None and include != "Object":
        made["object"]["apiVersion"] = target.api_version
    return made


def include_object(request: Request) -> str:
    """Raises BadRequest. The default is the object's metadata."""
    include = request.param("includeObject")
    if include not in _INCLUDE:
        error = invalid(root("includeObject"), include, "must be 'Metadata', 'Object', 'None', or empty")
        raise BadRequest(f"Unable to convert to Table as requested: {error}")
    return include or "Metadata"
