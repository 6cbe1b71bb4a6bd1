"""What other servers learn of a trace: aggregated ones and etcd; and what happens when the collector is away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("opentelemetry.sdk")

from filter_requests import make_request
from newer_etcd import NewerEtcd
from otlp_collector import SAMPLED, Collector, collector
from tls_backends import FixedServices, Pki, api_service, backend

from pilothouse.aggregator.proxy.handler import ProxyConfig, ProxyHandler
from pilothouse.aggregator.proxy.transport import ProxyClientCertificate, Transports
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.filters.tracing import with_tracing
from pilothouse.apiserver.http import Request, Response, text
from pilothouse.apiserver.storage.etcd.store import EtcdStore
from pilothouse.apiserver.tracing import recording
from pilothouse.apiserver.tracing.recording import RecordingTracer
from pilothouse.apiserver.tracing.spans import within
from pilothouse.apiserver.tracing.trace_context import Beginning, remote_parent

MASTER = User("root", groups=("system:masters",))
REQUEST = make_request()


@pytest_asyncio.fixture
async def traces() -> AsyncIterator[Collector]:
    async with collector() as found:
        yield found


async def test_an_aggregated_server_gets_the_trace_as_it_has_come(traces: Collector, tmp_path: Path) -> None:
    told: list[str] = []

    async def things(request: Request) -> Response:
        told.extend(value.decode() for name, value in request.headers if name == b"traceparent")
        return text(200, "things")

    pki = Pki.make(tmp_path)
    tracer = RecordingTracer(traces.endpoint, 0, instance="here")
    async with backend(things, pki) as server:
        transports = Transports(ProxyClientCertificate(pki.client()))
        proxy = ProxyHandler(things, ProxyConfig(FixedServices(server.port), transports))
        proxy.update(api_service(caBundle=pki.ca_bundle))
        asked = REQUEST("/apis/example.com/v1/things", headers={"traceparent": SAMPLED.format(1)}, user=MASTER)
        assert (await with_tracing(tracer)(proxy)(asked)).status == 200
        # What is not recorded here is passed on as it is.
        asked = REQUEST("/apis/example.com/v1/things", headers={"traceparent": SAMPLED.format(2)}, user=MASTER)
        assert (await with_tracing(None)(proxy)(asked)).status == 200
        proxy.close()
    await tracer.close()
    sent = next(span for span in traces.spans if span.name == "HTTP GET")
    assert told == [f"00-{1:032x}-{sent.id}-01", SAMPLED.format(2)]
    assert sent.attributes["url.full"].startswith("https://127.0.0.1:")


class ListeningEtcd(NewerEtcd):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    async def Range(self, request: Any, context: Any) -> Any:
        self.told += [value for name, value in context.invocation_metadata() if name == "traceparent"]
        return await super().Range(request, context)


async def test_etcd_gets_it_too_and_each_of_its_calls_is_a_span(traces: Collector) -> None:
    etcd = ListeningEtcd()
    store = await EtcdStore.connect([await etcd.start()], compaction_interval=0)
    tracer = RecordingTracer(traces.endpoint, 0, instance="here")
    try:
        await store.get("/untraced")
        await within(tracer.begin(Beginning("work")), store.get("/a"))
    finally:
        await store.close()
        await etcd.stop()
        await tracer.close()
    call = next(span for span in traces.spans if span.name == "etcdserverpb.KV/Range")
    assert call.attributes.items() >= {"rpc.system.name": "grpc", "rpc.response.status_code": "OK"}.items()
    assert etcd.told == [f"00-{call.trace:032x}-{call.id}-01"]


async def test_a_collector_that_is_away_costs_spans_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "64")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "32")
    monkeypatch.setattr(recording, "_SECONDS_TO_STOP", 0.1)
    away = Collector()  # never started: its port refuses
    tracer = RecordingTracer(away.endpoint, 1, instance="here")

    async def api(request: Request) -> Response:
        return text(200, "served all the same")

    handler = with_tracing(tracer)(api)
    for _ in range(200):  # more than are queued
        assert (await handler(REQUEST())).status == 200
    await tracer.close()
    assert [record.message for record in caplog.records].count("Queue full, dropping Span.") <= 1


@pytest.mark.parametrize(
    "value",
    [
        "",
        "00",
        f"ff-{1:032x}-{1:016x}-01",
        f"00-{0:032x}-{1:016x}-01",
        f"00-{1:032x}-{0:016x}-01",
        f"00-{1:032x}-{1:016x}-01-more",
        f"00-{1:032X}G-{1:016x}-01",
    ],
)
def test_a_parent_that_makes_no_sense_is_none(value: str) -> None:
    assert remote_parent(REQUEST(headers={"traceparent": value})) is None


def test_a_parent_of_a_version_to_come_is_read_as_far_as_it_is_known() -> None:
    parent = remote_parent(REQUEST(headers={"traceparent": f"01-{7:032x}-{8:016x}-03-more"}))
    assert parent is not None
    assert (parent.trace_id, parent.span_id, parent.sampled) == (7, 8, True)
