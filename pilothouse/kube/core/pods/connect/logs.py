"""Container logs, streamed from the kubelet, over HTTP or a WebSocket."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Iterator

from pilothouse.apiserver.endpoints.options import boolean, integer
from pilothouse.apiserver.http import Request, Response, Stream
from pilothouse.apiserver.registry.operations import RequestContext
from pilothouse.apiserver.server.features import enabled
from pilothouse.apiserver.serving.websocket import (
    BINARY,
    TEXT,
    accepted,
    handshake_refusal,
    is_websocket_request,
    negotiated_subprotocol,
)
from pilothouse.apiserver.streams import close_stream
from pilothouse.kube.core.pods.connect.locations import PodLocations
from pilothouse.kube.core.pods.validation.claims import NO_FIELD
from pilothouse.kube.validation.fields import one_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest, Invalid
from pilothouse.machinery.field import Errors, forbidden, invalid, root
from pilothouse.machinery.names import GroupKind, GroupResource, GroupVersionKind
from pilothouse.machinery.times import format_time, parse_time
from pilothouse.machinery.validation.pattern_format import IS_NEGATIVE_ERROR

_POD_LOG = GroupResource("", "pods/log")
_OPTIONS = GroupVersionKind("", "v1", "PodLogOptions")
_SPLIT_STREAMS = "PodLogsQuerySplitStreams"
_ALL = "All"
_TEXT = [(b"content-type", b"text/plain")]
_BASE64 = "base64.binary.k8s.io"
_SUBPROTOCOLS = ("", "binary.k8s.io", _BASE64)


@dataclass(frozen=True, slots=True)
class LogOptions:
    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_seconds: int | None = None
    since_time: str | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str | None = None
    skip_verify: bool = False

    @classmethod
    def of(cls, request: Request) -> LogOptions:
        """Raises BadRequest."""
        return cls(
            container=request.param("container"),
            follow=bool(boolean(request, "follow")),
            previous=bool(boolean(request, "previous")),
            timestamps=bool(boolean(request, "timestamps")),
            since_seconds=integer(request, "sinceSeconds"),
            since_time=_time(request.param("sinceTime")),
            tail_lines=integer(request, "tailLines"),
            limit_bytes=integer(request, "limitBytes"),
            stream=request.param("stream") or None,
            skip_verify=bool(boolean(request, "insecureSkipTLSVerifyBackend")),
        )

    def parameters(self) -> Iterator[tuple[str, str]]:
        """Yield the options as query parameters for the kubelet."""
        for name in ("follow", "previous", "timestamps"):
            if getattr(self, name):
                yield name, "true"
        numbers = {"sinceSeconds": self.since_seconds, "tailLines": self.tail_lines, "limitBytes": self.limit_bytes}
        yield from ((name, str(number)) for name, number in numbers.items() if number is not None)
        if self.since_time is not None:
            yield "sinceTime", self.since_time
        if enabled(_SPLIT_STREAMS):
            yield "stream", self.stream or _ALL

    def validate(self) -> Errors:
        if self.tail_lines is not None and self.tail_lines < 0:
            yield invalid(root("tailLines"), self.tail_lines, IS_NEGATIVE_ERROR)
        if self.limit_bytes is not None and self.limit_bytes < 1:
            yield invalid(root("limitBytes"), self.limit_bytes, "must be greater than 0")
        if self.since_seconds is not None and self.since_time is not None:
            yield forbidden(NO_FIELD, "at most one of `sinceTime` or `sinceSeconds` may be specified")
        elif self.since_seconds is not None and self.since_seconds < 1:
            yield invalid(root("sinceSeconds"), self.since_seconds, "must be greater than 0")
        if enabled(_SPLIT_STREAMS):
            stream = self.stream or _ALL
            yield from one_of(stream, root("stream"), ("Stdout", "Stderr", _ALL), plain=True)
            if stream != _ALL and self.tail_lines is not None:
                yield forbidden(NO_FIELD, "`tailLines` and specific `stream` are mutually exclusive for now")
        elif self.stream is not None:
            yield forbidden(root("stream"), "may not be specified")


@dataclass(frozen=True, slots=True)
class LogStorage:
    locations: PodLocations
    methods: frozenset[str] = frozenset({"GET"})
    get_options: GroupVersionKind = _OPTIONS
    media_types: tuple[str, ...] = ("text/plain",)

    async def connect(self, ctx: RequestContext, name: str, request: Request) -> Response:
        options = LogOptions.of(request)
        errors = list(options.validate())
        if errors:
            raise Invalid.of(GroupKind("", "PodLogOptions"), name, errors)
        pod = await self.locations.pod(ctx, name)
        parameters = list(options.parameters())
        target = await self.locations.log(pod, options.container, parameters, verify=not options.skip_verify)
        if target is None:
            return Response(204)
        # Import the HTTP client on first use.
        from pilothouse.kube.core.pods.connect.forwarding import download

        log = await download(target, _POD_LOG, name)
        if is_websocket_request(request):
            return await _over_websocket(request, log)
        return Response(200, log, list(_TEXT))


async def _over_websocket(request: Request, log: Stream) -> Response:
    refused, protocol = handshake_refusal(request), negotiated_subprotocol(request, _SUBPROTOCOLS)
    if refused is not None or protocol is None:
        await close_stream(log)
        return refused or Response(403, headers=[(b"connection", b"close")])
    is_base64 = protocol == _BASE64
    return accepted(request, TEXT if is_base64 else BINARY, _messages(log, is_base64=is_base64), protocol=protocol)


async def _messages(log: Stream, *, is_base64: bool) -> AsyncIterator[list[bytes]]:
    """Yield an empty message, which tells the client that the stream is open, then the log."""
    try:
        yield [b""]
        async for piece in log:
            yield [b64encode(piece) if is_base64 else piece]
    finally:
        await close_stream(log)


def _time(text: str) -> str | None:
    if not text:
        return None
    try:
        moment = parse_time(text)
    except ValueError as error:
        raise BadRequest(str(error)) from None
    return None if moment is None else format_time(moment)
