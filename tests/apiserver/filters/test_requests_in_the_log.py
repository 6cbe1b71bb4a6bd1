"""Requests in the log: each of them from -v=3 on, slow ones always, and all with their audit id."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest
from filter_requests import make_request

from pilothouse.apiserver.filters import request_metrics
from pilothouse.apiserver.filters.request_info import with_request_info
from pilothouse.apiserver.filters.request_log import EACH
from pilothouse.apiserver.filters.request_metrics import with_request_metrics
from pilothouse.apiserver.http import Handler, Request, Response

LOGGER = "pilothouse.apiserver.filters.request_log"
REQUEST = make_request()
POD = "/api/v1/namespaces/default/pods/a"


def logging_chain(api: Handler) -> Handler:
    return with_request_info(with_request_metrics(api))


async def answer(asked: Request) -> Response:
    return Response(200, b"{}")


async def test_from_verbosity_3_on_each_request_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    asked = REQUEST(POD, query="pretty=0", headers={"user-agent": "sailor"})
    asked.audit_id = "a-1"
    with caplog.at_level(EACH, LOGGER):
        await logging_chain(answer)(asked)
    (record,) = caplog.records
    pairs = record.__dict__["pairs"]
    assert record.message == "HTTP"
    assert pairs.items() >= {"verb": "GET", "URI": f"{POD}?pretty=0", "userAgent": "sailor", "resp": 200}.items()
    assert pairs["audit-ID"] == "a-1"


async def test_below_it_there_is_none(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        await logging_chain(answer)(REQUEST(POD))
    assert not caplog.records


async def test_a_watch_is_logged_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield b"event"

    async def watch(asked: Request) -> Response:
        return Response(200, stream())

    with caplog.at_level(EACH, LOGGER):
        response = await logging_chain(watch)(REQUEST("/api/v1/pods", query="watch=1"))
        assert not caplog.records
        assert not isinstance(response.body, bytes)
        assert [part async for part in response.body] == [b"event"]
    assert [record.__dict__["pairs"]["verb"] for record in caplog.records] == ["WATCH"]


async def test_a_slow_request_is_a_trace_in_upstreams_words(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_metrics, "SLOW", -1.0)
    monkeypatch.setattr("pilothouse.apiserver.filters.request_log.SLOW", -1.0)
    asked = REQUEST(POD)
    asked.audit_id = "a-2"
    with caplog.at_level(logging.INFO, LOGGER):
        await logging_chain(answer)(asked)
    first, last = caplog.text.splitlines()[-2:]
    assert '"Get" accept:' in first
    assert ",audit-id:a-2,client:" in first
    assert f",resource:pods,scope:resource,url:{POD}," in first
    assert first.endswith("ms):")
    assert last.endswith("END")
