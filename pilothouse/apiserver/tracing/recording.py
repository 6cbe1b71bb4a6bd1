"""Span recording with the OpenTelemetry SDK, and export by OTLP over gRPC.

Export never blocks: spans are queued, sent in batches by a thread, and dropped when the queue is full. This module
needs the packages of the extra `tracing`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from random import random
from threading import Thread

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace import Span as SdkSpan
from opentelemetry.trace import Tracer as SdkTracer

import pilothouse
from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.tracing.spans import INTERNAL, Span, SpanAttributes
from pilothouse.apiserver.tracing.trace_context import PARENT, Beginning, RemoteParent, written
from pilothouse.machinery.event_loop import RunUntilCancelled

_SERVICE = "apiserver"
_SCOPE = "pilothouse"
_SECONDS_TO_SEND = 10
_SECONDS_TO_STOP = 3.0
_NOBODY = Context()
_COMPLAINING = ("opentelemetry.sdk._shared_internal", "opentelemetry.exporter.otlp.proto.grpc.exporter")
"""SDK loggers with a message per dropped span."""
_SECONDS_OF_SILENCE = 60.0


class OnceAMinute(logging.Filter):
    """Rate-limits each message template to once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._last.get(record.msg, -_SECONDS_OF_SILENCE) < _SECONDS_OF_SILENCE:
            return False
        self._last[record.msg] = now
        return True


class RecordedSpan:
    """An SDK span, with the state shared by its children."""

    __slots__ = ("_companions", "_span", "_tracer", "audit_id", "ended")

    def __init__(self, tracer: SdkTracer, span: SdkSpan, audit_id: str, companions: Headers) -> None:
        self._tracer = tracer
        self._span = span
        self._companions = companions
        self.audit_id = audit_id
        self.ended = False

    def child(self, name: str, attributes: SpanAttributes | None = None, *, kind: str = INTERNAL) -> Span:
        context = set_span_in_context(self._span, _NOBODY)
        span = self._tracer.start_span(name, context, SpanKind[kind], attributes)
        return RecordedSpan(self._tracer, span, self.audit_id, self._companions)

    def event(self, name: str, attributes: SpanAttributes) -> None:
        self._span.add_event(name, attributes)

    def set(self, attributes: SpanAttributes) -> None:
        self._span.set_attributes(attributes)

    def fail(self, reason: str) -> None:
        self._span.set_status(Status(StatusCode.ERROR, reason))

    def end(self) -> None:
        self.ended = True
        self._span.end()

    def carried(self) -> Headers:
        own = self._span.get_span_context()
        return [(PARENT, written(own.trace_id, own.span_id, sampled=True)), *self._companions]


class RecordingTracer(RunUntilCancelled):
    """Records a share of new traces, and all sampled incoming traces."""

    def __init__(self, endpoint: str | None, share: float, *, instance: str) -> None:
        """`endpoint`: gRPC target of the collector; None = localhost:4317."""
        self._share = share
        seldom = OnceAMinute()
        for name in _COMPLAINING:
            logging.getLogger(name).addFilter(seldom)
        resource = Resource({"service.name": _SERVICE, "service.instance.id": instance})
        self._exporter = OTLPSpanExporter(endpoint=endpoint, insecure=True, timeout=_SECONDS_TO_SEND)
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer(_SCOPE, pilothouse.__version__)

    def samples(self) -> bool:
        return random() < self._share

    def begin(self, beginning: Beginning) -> Span:
        context = _NOBODY
        if beginning.parent is not None:
            context = set_span_in_context(NonRecordingSpan(_context_of(beginning.parent)), _NOBODY)
        links = [Link(_context_of(beginning.link))] if beginning.link is not None else ()
        span = self._tracer.start_span(beginning.name, context, SpanKind[beginning.kind], links=links)
        return RecordedSpan(self._tracer, span, beginning.audit_id, [*beginning.companions])

    async def close(self) -> None:
        """Flush the queue within a time limit."""
        closing = Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, _SECONDS_TO_STOP)
        if closing.is_alive():
            self._exporter.shutdown()  # stops the retries


def _context_of(parent: RemoteParent) -> SpanContext:
    return SpanContext(parent.trace_id, parent.span_id, is_remote=True, trace_flags=TraceFlags(int(parent.sampled)))
