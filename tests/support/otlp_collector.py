"""A collector of traces that speaks OTLP over gRPC, and keeps what it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from patience import PATIENCE

SAMPLED = "00-{:032x}-00f067aa0ba902b7-01"
"""The header of a client that records its trace."""
UNSAMPLED = "00-{:032x}-00f067aa0ba902b7-00"
CALLER = "00f067aa0ba902b7"


@dataclass(frozen=True)
class Seen:
    """One span as it came."""

    name: str
    kind: int
    trace: int
    id: str
    parent: str
    attributes: dict[str, Any]
    events: list[str]
    links: list[int]
    """The traces that it mentions."""
    failed: bool
    resource: dict[str, Any] = field(repr=False)


class Collector:
    def __init__(self) -> None:
        self.spans: list[Seen] = []
        self._came = asyncio.Condition()
        self._server = grpc.aio.server()
        handler = grpc.unary_unary_rpc_method_handler(
            self._export,
            request_deserializer=ExportTraceServiceRequest.FromString,
            response_serializer=ExportTraceServiceResponse.SerializeToString,
        )
        service = "opentelemetry.proto.collector.trace.v1.TraceService"
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {"Export": handler})])
        self.endpoint = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(None)

    def configuration(self, folder: Path, rate: int = 0) -> str:
        """The path of a TracingConfiguration that names it."""
        file = folder / f"tracing-{rate}.yaml"
        kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration"}
        file.write_text(yaml.safe_dump({**kind, "endpoint": self.endpoint, "samplingRatePerMillion": rate}))
        return str(file)

    async def until(self, name: str, trace: int = 0) -> list[Seen]:
        """All spans of the trace, or of all traces, once one of that name has come."""
        async with self._came, asyncio.timeout(PATIENCE):
            await self._came.wait_for(lambda: any(span.name == name for span in self._of(trace)))
        return self._of(trace)

    def _of(self, trace: int) -> list[Seen]:
        return [span for span in self.spans if trace in (0, span.trace)]

    async def _export(self, request: Any, context: Any) -> Any:
        async with self._came:
            for sent in request.resource_spans:
                resource = _attributes(sent.resource.attributes)
                self.spans += [_seen(span, resource) for scope in sent.scope_spans for span in scope.spans]
            self._came.notify_all()
        return ExportTraceServiceResponse()


def _seen(span: Any, resource: dict[str, Any]) -> Seen:
    return Seen(
        name=span.name,
        kind=span.kind,
        trace=int.from_bytes(span.trace_id),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        attributes=_attributes(span.attributes),
        events=[event.name for event in span.events],
        links=[int.from_bytes(link.trace_id) for link in span.links],
        failed=span.status.code == 2,
        resource=resource,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@asynccontextmanager
async def collector() -> AsyncIterator[Collector]:
    found = Collector()
    await found.start()
    try:
        yield found
    finally:
        await found.stop()
