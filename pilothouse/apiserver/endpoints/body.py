"""Request bodies: an object of the endpoint's kind, or delete options."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.negotiation import negotiate_input
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.typed import decode_meta_options
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.tallies import REGISTRY, HistogramTally
from pilothouse.apiserver.tracing.spans import event
from pilothouse.machinery.codec.body_errors import strict_warnings
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of

_MAX_BODY = 3 * 1024 * 1024
_SIZES = HistogramTally(
    "apiserver_request_body_size_bytes",
    "[ALPHA] Apiserver request body size in bytes broken out by resource and verb.",
    ("group", "resource", "verb"),
    bounds=range(50_000, 3_100_000, 100_000),
    registry=REGISTRY,
)


async def read_body(request: Request) -> bytes:
    """Read the whole body and set the weight of the request. Raises RequestEntityTooLarge."""
    body = await request.read_body(_MAX_BODY)
    request.weight.at_least(len(body))
    event("limitedReadBody succeeded", {"len": len(body)})
    _SIZES.observe((request.info.group, request.info.resource, request.info.verb), len(body))
    return body


def decode_object_body(
    request: Request, scope: RequestScope, serializer: Serializer, body: bytes, field_validation: str
) -> Json:
    """Return the object in the stored form, with defaults. Field validation decides whether unknown fields are
    rejected, warned of or ignored."""
    decoded = scope.served.decoder.decode(serializer, body, strict=field_validation == "Strict")
    if field_validation == "Warn":
        for error in decoded.strict_errors:
            request.warnings.extend(strict_warnings(error))
    if decoded.kind.group_version != scope.served.view.kind.group_version:
        raise BadRequest(
            f"the API version in the data ({decoded.kind.group_version}) does not match the expected API version "
            f"({scope.served.view.kind.group_version})"
        )
    metadata(decoded.obj)
    scope.served.default(decoded.obj)
    if request.audit is not None:
        request.audit.log_request_object(scope.served.decoder.printed(decoded.obj))
    return scope.to_stored(decoded.obj)


def decode_delete_options(request: Request, scope: RequestScope, body: bytes) -> Json:
    spoken = scope.served.options_serializers
    options = decode_meta_options(negotiate_input(request, spoken), body, "DeleteOptions")
    if request.audit is not None:
        request.audit.log_request_object(options)
    return options


def check_name(obj: Json, request: Request) -> None:
    """Raises BadRequest if the body names another object than the path."""
    name, namespace = request.info.name, request.info.namespace
    if not name_of(obj):
        raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if name_of(obj) != name:
        raise BadRequest(f"the name of the object ({name_of(obj)}) does not match the name on the URL ({name})")
    if namespace and namespace_of(obj) not in ("", namespace):
        raise BadRequest(
            f"the namespace of the object ({namespace_of(obj)}) does not match "
            f"the namespace on the request ({namespace})"
        )
