"""The options of each verb, decoded from the query (for deletes also from the body) and validated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pilothouse.apiserver.endpoints.body import decode_delete_options
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.registry.options import DeleteOptions, GetOptions, ListOptions, WriteOptions
from pilothouse.apiserver.server.features import enabled
from pilothouse.machinery.errors import BadRequest, Invalid
from pilothouse.machinery.field import Errors, FieldError, forbidden, not_supported, root
from pilothouse.machinery.gofmt import parse_int64, quote
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors import fields, labels
from pilothouse.machinery.selectors.requirement import InvalidSelector
from pilothouse.machinery.validation.options import (
    validate_create_options,
    validate_delete_options,
    validate_patch_options,
    validate_update_options,
)

_FALSE = ("false", "0")


def integer(request: Request, name: str) -> int | None:
    """Raises BadRequest."""
    values = request.query.get(name)
    if not values or values[0] == "":
        return None
    try:
        return parse_int64(values[0])
    except ValueError as error:
        raise BadRequest(str(error)) from None


def boolean(request: Request, name: str) -> bool | None:
    """Return whether a parameter is true. Everything except false and 0 is true, even an empty value: `?watch`,
    `?watch=`."""
    values = request.query.get(name)
    if not values:
        return None
    return values[0].lower() not in _FALSE


_EXACT, _NOT_OLDER_THAN = "Exact", "NotOlderThan"


def get_options(request: Request) -> GetOptions:
    if not request.query_string:
        return GetOptions()
    if boolean(request, "export"):
        raise BadRequest("the export parameter, deprecated since v1.14, is no longer supported")
    return GetOptions(request.param("resourceVersion"))


def create_options(request: Request) -> WriteOptions:
    if not request.query_string:
        return WriteOptions()
    return _write_options(request, "CreateOptions", validate_create_options)


def update_options(request: Request) -> WriteOptions:
    if not request.query_string:
        return WriteOptions()
    return _write_options(request, "UpdateOptions", validate_update_options)


def patch_options(request: Request, patch_type: str) -> WriteOptions:
    return _write_options(request, "PatchOptions", lambda raw: validate_patch_options(raw, patch_type))


def _write_options(request: Request, kind: str, validate: Callable[[Json], Errors]) -> WriteOptions:
    if not request.query_string:
        _refuse(kind, validate({}))
        return WriteOptions()
    raw: Json = {
        "dryRun": request.query.get("dryRun"),
        "fieldManager": request.param("fieldManager"),
        "fieldValidation": request.param("fieldValidation"),
    }
    if "force" in request.query:
        raw["force"] = boolean(request, "force")
    _refuse(kind, validate(raw))
    return WriteOptions(
        dry_run=bool(raw["dryRun"]),
        field_manager=raw["fieldManager"],
        field_validation=raw["fieldValidation"] or "Warn",
        force=bool(raw.get("force")),
        raw=raw,
    )


def admission_options(kind: str, raw: Json) -> Json:
    """Return the options of a write for admission. A patch has the options of its update or create."""
    sent = {key: value for key, value in raw.items() if value and key not in ("kind", "apiVersion", "force")}
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1", **sent}


def delete_options(request: Request, scope: RequestScope, body: bytes) -> DeleteOptions:
    """Return the options from the body if there is one, else from the query; never from both, as upstream."""
    raw = decode_delete_options(request, scope, body) if body else _delete_query(request)
    raw.pop(
        "ignoreStoreReadErrorWithClusterBreakingPotential", None
    )  # the gate AllowUnsafeMalformedObjectDeletion is off
    check_delete_options(raw)
    return DeleteOptions.of(raw)


def check_delete_options(raw: Json) -> None:
    """Raises Invalid."""
    _refuse("DeleteOptions", validate_delete_options(raw))


def _delete_query(request: Request) -> Json:
    raw: Json = {
        "gracePeriodSeconds": integer(request, "gracePeriodSeconds"),
        "orphanDependents": boolean(request, "orphanDependents"),
        "propagationPolicy": request.param("propagationPolicy") if "propagationPolicy" in request.query else None,
        "dryRun": request.query.get("dryRun"),
    }
    return {key: value for key, value in raw.items() if value is not None}


def list_options(request: Request, scope: RequestScope) -> ListOptions:
    """Return the options of a list, watch or deletecollection. Raises BadRequest, Invalid."""
    try:
        label_selector = labels.parse(request.whole_param("labelSelector"))
        field_selector = fields.parse(request.whole_param("fieldSelector"))
    except InvalidSelector as error:
        raise BadRequest(str(error)) from None
    options = _with_defaults(
        ListOptions(
            label_selector=label_selector,
            field_selector=field_selector,
            watch=bool(boolean(request, "watch")),
            allow_watch_bookmarks=bool(boolean(request, "allowWatchBookmarks")),
            resource_version=request.param("resourceVersion"),
            resource_version_match=request.param("resourceVersionMatch"),
            timeout_seconds=integer(request, "timeoutSeconds"),
            limit=max(0, integer(request, "limit") or 0),  # a negative limit means no limit, as upstream
            continue_token=request.param("continue"),
            send_initial_events=boolean(request, "sendInitialEvents"),
        )
    )
    _refuse("ListOptions", _validate_watch(options) if options.watch else _validate_list(options))
    return _select_name(_convert_fields(options, scope), request)


def _with_defaults(options: ListOptions) -> ListOptions:
    """Set the defaults: a watch without a resourceVersion starts with the current state."""
    if options.send_initial_events is not None or options.resource_version_match or not options.watch:
        return options
    if options.resource_version not in ("", "0"):
        return options
    return replace(options, send_initial_events=True, resource_version_match=_NOT_OLDER_THAN)


def _validate_list(options: ListOptions) -> Errors:
    match, path = options.resource_version_match, root("resourceVersionMatch")
    if match:
        if not options.resource_version:
            yield forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided")
        if options.continue_token:
            yield forbidden(path, "resourceVersionMatch is forbidden when continue is provided")
        if match not in (_EXACT, _NOT_OLDER_THAN):
            yield not_supported(path, match, (_EXACT, _NOT_OLDER_THAN, ""))
        if match == _EXACT and options.resource_version == "0":
            yield forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if options.send_initial_events is not None:
        yield forbidden(root("sendInitialEvents"), "sendInitialEvents is forbidden for list")


def _validate_watch(options: ListOptions) -> Errors:
    match, path = options.resource_version_match, root("resourceVersionMatch")
    if options.send_initial_events is not None and match != _NOT_OLDER_THAN:
        yield forbidden(path, f"sendInitialEvents requires setting resourceVersionMatch to {_NOT_OLDER_THAN}")
    if options.send_initial_events is not None and not enabled("WatchList"):
        reason = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        yield forbidden(root("sendInitialEvents"), reason)
    if match:
        if options.send_initial_events is None:
            yield forbidden(path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        if match != _NOT_OLDER_THAN:
            yield not_supported(path, match, (_NOT_OLDER_THAN,))
        if options.continue_token:
            yield forbidden(path, "resourceVersionMatch is forbidden when continue is provided")


def _convert_fields(options: ListOptions, scope: RequestScope) -> ListOptions:
    if options.field_selector.empty or scope.served.convert_field is None:
        return options
    try:
        return replace(options, field_selector=options.field_selector.transform(scope.served.convert_field))
    except ValueError as error:
        raise BadRequest(str(error)) from None


def _select_name(options: ListOptions, request: Request) -> ListOptions:
    """Add a selector for the name in the path: a watch of one object is a watch with a name selector."""
    name = request.info.name
    if not name:
        return options
    if options.field_selector.empty:
        return replace(options, field_selector=fields.from_set({"metadata.name": name}))
    if options.field_selector.requires_exact_match("metadata.name") != name:
        raise BadRequest("fieldSelector metadata.name doesn't match requested name")
    return options


def supported_fields(known: Iterable[str]) -> fields.Transform:
    """Return a conversion that accepts the known field labels and rejects all others."""
    names = frozenset(known)

    def convert(requirement: fields.Requirement) -> fields.Requirement:
        if requirement.field not in names:
            raise ValueError(fields.label_not_supported(requirement.field))
        return requirement

    return convert


def metadata_fields_only(requirement: fields.Requirement) -> fields.Requirement:
    """Accept only metadata fields: the conversion of kinds without selectable fields."""
    if requirement.field not in ("metadata.name", "metadata.namespace"):
        only = 'only "metadata.name", "metadata.namespace"'
        raise ValueError(f"{quote(requirement.field)} is not a known field selector: {only}")
    return requirement


def _refuse(kind: str, errors: Iterable[FieldError]) -> None:
    found = list(errors)
    if found:
        raise Invalid.of(GroupKind("meta.k8s.io", kind), "", found)
