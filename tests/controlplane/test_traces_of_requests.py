"""Traces of requests as a collector gets them: upstream's spans, from the filters to the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

pytest.importorskip("opentelemetry.sdk")

from admission_webhooks import admission_webhooks, config_map
from aiohttp import web
from otlp_collector import CALLER, SAMPLED, UNSAMPLED, Collector, Seen, collector
from whole_server import CONFIG_MAPS, whole_server

from pilothouse.client import Json
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

INTERNAL, SERVER, CLIENT = 1, 2, 3
FILTERS = ["audit", "constrainedimpersonation", "priorityandfairness", "authorization"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def traces() -> AsyncIterator[Collector]:
    async with collector() as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(traces: Collector, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[API]:
    """Records only what a trusted client begins to record."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")  # milliseconds until spans are sent
        configuration = traces.configuration(tmp_path_factory.mktemp("traces"))
        async with whole_server(tracing_config_file=configuration, authorization_mode="RBAC") as server:
            yield server


def chain(spans: list[Seen], name: str) -> list[str]:
    """The names of the spans around the one of that name, outermost first."""
    by_id = {span.id: span for span in spans}
    span: Seen | None = next(span for span in spans if span.name == name)
    names: list[str] = []
    while span is not None:
        names.insert(0, span.name)
        span = by_id.get(span.parent)
    return names


async def test_a_get_is_traced_from_the_filters_to_the_cache(api: API, traces: Collector) -> None:
    await api.request("POST", CONFIG_MAPS, config_map("seen"))
    await api.request("GET", f"{CONFIG_MAPS}/seen?pretty=0", traceparent=SAMPLED.format(1), user_agent="sailor/1")
    root = "GET /api/v1/namespaces/{:namespace}/configmaps/{:name}"
    spans = await traces.until(root, trace=1)
    assert chain(spans, "cacher.Get") == [root, *FILTERS, "Get", "cacher.Get"]
    assert chain(spans, "SerializeObject") == [root, *FILTERS, "Get", "SerializeObject"]
    named = {span.name: span for span in spans}
    request, verb, cache = named[root], named["Get"], named["cacher.Get"]
    assert (request.parent, request.kind, verb.kind) == (CALLER, SERVER, INTERNAL)
    assert request.attributes["http.request.method"] == "GET"
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["http.target"] == f"{CONFIG_MAPS}/seen?pretty=0"
    assert request.resource["service.name"] == "apiserver"
    assert verb.attributes["audit-id"] == request.attributes["audit-id"] == cache.attributes["audit-id"]
    of = {"resource": "configmaps", "name": "seen", "namespace": "default", "verb": "GET", "scope": "resource"}
    assert verb.attributes.items() >= {**of, "user-agent": "sailor/1", "api-version": "v1"}.items()
    assert verb.events == ["About to Get from storage", "About to write a response", "Writing http response done"]


async def test_writes_show_what_they_did_in_the_store(api: API, traces: Collector) -> None:
    of = {"traceparent": SAMPLED.format(2)}
    await api.request("POST", CONFIG_MAPS, config_map("written"), **of)
    await api.request("PUT", f"{CONFIG_MAPS}/written", {**config_map("written"), "data": {"a": "c"}}, **of)
    merge = "application/merge-patch+json"
    await api.request("PATCH", f"{CONFIG_MAPS}/written", {"data": {"a": "d"}}, media=merge, **of)
    await api.request("DELETE", f"{CONFIG_MAPS}/written", **of)
    spans = await traces.until("DELETE /api/v1/namespaces/{:namespace}/configmaps/{:name}", trace=2)
    assert chain(spans, "Create etcd3")[-2:] == ["Create", "Create etcd3"]
    updates = [span for span in spans if span.name == "GuaranteedUpdate etcd3"]
    names = {span.id: span.name for span in spans}
    assert [names[span.parent] for span in updates] == ["Update", "Patch"]
    assert updates[0].attributes["resource"] == "configmaps"
    assert updates[0].attributes["key"].endswith("/configmaps/default/written")
    assert (updates[0].events[0], updates[0].events[-1]) == ("initial value restored", "Transaction committed")
    deleted = next(span for span in spans if span.name == "Delete")
    assert deleted.events[1:3] == ["About to delete object from database", "Object deleted from database"]


async def test_a_list_and_a_refusal_say_so(api: API, traces: Collector) -> None:
    await api.request("GET", CONFIG_MAPS, traceparent=SAMPLED.format(3))
    spans = await traces.until("GET /api/v1/namespaces/{:namespace}/configmaps", trace=3)
    assert chain(spans, "cacher.GetList")[-2:] == ["List", "cacher.GetList"]
    await api.request("GET", f"{CONFIG_MAPS}/none", traceparent=SAMPLED.format(4))
    spans = await traces.until("GET /api/v1/namespaces/{:namespace}/configmaps/{:name}", trace=4)
    refused = next(span for span in spans if span.kind == SERVER)
    assert (refused.attributes["http.response.status_code"], refused.failed) == (404, False)


async def test_nothing_is_recorded_that_the_client_does_not_record(api: API, traces: Collector) -> None:
    await api.request("GET", CONFIG_MAPS, traceparent=UNSAMPLED.format(5))
    await api.request("GET", CONFIG_MAPS)
    await api.request("GET", "/version", traceparent=SAMPLED.format(6))
    spans = await traces.until("GET", trace=6)
    assert [span.name for span in spans if not span.parent or span.parent == CALLER] == ["GET"]
    assert not [span for span in traces.spans if span.trace == 5]


async def test_who_is_not_trusted_cannot_have_a_request_recorded(api: API, traces: Collector) -> None:
    anybody = await api.service_account("default/anybody")
    assert (await anybody.request("GET", "/version", traceparent=SAMPLED.format(7))).status == 200
    monitoring = api.as_user("prometheus", groups=["system:monitoring"])
    assert (await monitoring.request("GET", "/version", traceparent=SAMPLED.format(8))).status == 200
    await traces.until("GET", trace=8)
    assert not [span for span in traces.spans if 7 in (span.trace, *span.links)]


async def test_a_webhook_joins_the_trace_of_the_write_that_it_is_asked_about(api: API, traces: Collector) -> None:
    told: list[tuple[str, str]] = []

    async with admission_webhooks(api) as hooks:
        answer = hooks.server.answer

        async def note(request: web.Request) -> web.StreamResponse:
            told.append((request.headers.get("traceparent", ""), request.headers.get("tracestate", "")))
            found: web.StreamResponse = await answer(request)
            return found

        hooks.server.answer = note
        async with hooks.configured("validating", hooks.webhook("watching")):
            parent = {"traceparent": SAMPLED.format(9), "tracestate": "vendor=1"}
            assert (await api.request("POST", CONFIG_MAPS, config_map("asked"), **parent)).status == 201
            # Not recorded here, but the webhook may know what to make of it.
            await api.request("PUT", f"{CONFIG_MAPS}/asked", config_map("asked"), traceparent=UNSAMPLED.format(10))
    spans = await traces.until("POST /api/v1/namespaces/{:namespace}/configmaps", trace=9)
    assert chain(spans, "HTTP POST")[-3:] == ["Create", "Call validating webhook", "HTTP POST"]
    called, sent = (next(span for span in spans if span.name == n) for n in ("Call validating webhook", "HTTP POST"))
    assert called.attributes.items() >= {"webhook": "watching.example.com", "operation": "CREATE"}.items()
    assert (sent.kind, sent.attributes["http.response.status_code"]) == (CLIENT, 200)
    assert told == [(f"00-{9:032x}-{sent.id}-01", "vendor=1"), (UNSAMPLED.format(10), "")]


async def test_with_a_rate_traces_begin_here_and_mention_those_that_they_are_not_part_of(
    traces: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    flags: Json = {"tracing_config_file": traces.configuration(tmp_path, 1_000_000), "authorization_mode": "RBAC"}
    async with whole_server(**flags) as api:
        before = len(traces.spans)
        anybody = await api.service_account("default/anybody")
        await anybody.request("GET", "/version", traceparent=SAMPLED.format(11))
        await api.request("GET", "/livez")
    spans = [span for span in traces.spans[before:] if span.attributes.get("url.path") in ("/version", "/livez")]
    foreign, own = sorted(spans, key=lambda span: str(span.attributes["url.path"]), reverse=True)
    assert (foreign.parent, foreign.links) == ("", [11])
    named = {span.id: span.name for span in traces.spans}
    assert named[own.parent] == "authentication"
