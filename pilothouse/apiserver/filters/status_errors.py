"""The only place where errors become responses: a StatusError is encoded in an accepted media type."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.negotiation import negotiate_output
from pilothouse.apiserver.endpoints.serializers.registry import BUILT_IN
from pilothouse.apiserver.http import Handler, Request, Response, raw_json
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.machinery.errors import NotAcceptable
from pilothouse.machinery.status_error import StatusError


def with_status_errors(handler: Handler) -> Handler:
    async def answer(request: Request) -> Response:
        try:
            response = await handler(request)
        except StatusError as error:
            # An error can name very many fields. The message contains them all, so its length is the weight.
            response = await offload_by_size(len(error.message), error_response, request, error)
            _forget_frames(error)
        if request.answer_headers:
            response.headers.extend(request.answer_headers)
        return response

    return answer


def _forget_frames(error: BaseException | None) -> None:
    """Break the reference cycle of an error with its traceback and the request. Otherwise both live until the next
    garbage collection."""
    while error is not None:
        error.__traceback__ = None
        error = error.__context__


def error_response(request: Request, error: StatusError) -> Response:
    response = _written(request, error)
    if error.retry_after_seconds:
        response.with_header(b"retry-after", str(error.retry_after_seconds).encode())
    return response


def _written(request: Request, error: StatusError) -> Response:
    """Encode the error. A client that accepts no supported media type gets JSON."""
    try:
        output = negotiate_output(request, request.spoken or BUILT_IN)
    except NotAcceptable:
        return raw_json(error.code, error.status)
    body = output.serializer.encode(error.status, pretty=output.pretty)
    return Response(error.code, body, [(b"content-type", output.serializer.media_type.encode())])
