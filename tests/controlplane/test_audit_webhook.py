"""Audit events that are sent to a webhook over TLS, in batches, and again when it was not there."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from patience import PATIENCE
from tls_backends import Pki, backend
from whole_server import whole_server

from pilothouse.apiserver.http import Request, Response
from pilothouse.controlplane.audit import build_audit
from pilothouse.controlplane.options.audit import AuditOptions
from pilothouse.machinery.objects import Json
from pilothouse.testing import Answer

NAME = "audit.example.com"


class Receiver:
    """Fails as often as it is told to, and then keeps what it gets."""

    def __init__(self, *, failures: int = 0) -> None:
        self.failures = failures
        self.lists: list[Json] = []
        self.received = asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        body = await request.read_body(1 << 20)
        if self.failures:
            self.failures -= 1
            return Response(500, b"no")
        self.lists.append(orjson.loads(body))
        self.received.set()
        return Response(200)


def options(tmp_path: Path, pki: Pki, port: int) -> AuditOptions:
    (tmp_path / "policy.yaml").write_text(
        '{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}'
    )
    cluster = {
        "server": f"https://127.0.0.1:{port}/events",
        "certificate-authority": str(pki.ca_file),
        "tls-server-name": NAME,
    }
    config: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "webhook.json").write_bytes(orjson.dumps(config))
    return AuditOptions(
        policy_file=str(tmp_path / "policy.yaml"),
        webhook_config_file=str(tmp_path / "webhook.json"),
        webhook_batch_max_size=3,
        webhook_initial_backoff=0.01,
    )


@pytest.mark.parametrize("failures", [0, 2])
async def test_events_arrive_in_batches_also_when_the_webhook_failed_at_first(tmp_path: Path, failures: int) -> None:
    pki, receiver = Pki.make(tmp_path / "pki"), Receiver(failures=failures)
    async with backend(receiver, pki, names=(NAME,)) as server:
        audit = build_audit(options(tmp_path, pki, server.port))
        assert audit is not None
        running = asyncio.ensure_future(audit.run())
        for number in range(3):
            assert await audit.auditing.sink.process({"auditID": str(number), "stage": "ResponseComplete"})
        async with asyncio.timeout(PATIENCE):
            await receiver.received.wait()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    (sent,) = receiver.lists
    assert (sent["kind"], sent["apiVersion"]) == ("EventList", "audit.k8s.io/v1")
    assert [event["auditID"] for event in sent["items"]] == ["0", "1", "2"]


async def test_what_is_still_waiting_is_sent_when_the_server_ends(tmp_path: Path) -> None:
    pki, receiver = Pki.make(tmp_path / "pki"), Receiver()
    async with backend(receiver, pki, names=(NAME,)) as server:
        audit = build_audit(options(tmp_path, pki, server.port))
        assert audit is not None
        running = asyncio.ensure_future(audit.run())
        await asyncio.sleep(0)
        await audit.auditing.sink.process({"auditID": "last", "stage": "ResponseComplete"})
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    assert [event["auditID"] for sent in receiver.lists for event in sent["items"]] == ["last"]


async def _asked(tmp_path: Path, mode: str, *, failures: int) -> tuple[Answer, list[str]]:
    """The answer to a request, and the stages that the webhook had been told of when it came."""
    pki, receiver = Pki.make(tmp_path / "pki"), Receiver()
    async with backend(receiver, pki, names=(NAME,)) as hook:
        given = options(tmp_path, pki, hook.port)
        flags: Any = {
            "audit_policy_file": given.policy_file,
            "audit_webhook_config_file": given.webhook_config_file,
            "audit_webhook_initial_backoff": "1ms",
            "audit_webhook_mode": mode,
        }
        async with whole_server(**flags) as api:
            receiver.failures = failures
            answer = await api.request("GET", "/api/v1/namespaces/default")
            events = [event for sent in receiver.lists for event in sent["items"]]
            asked = [event["stage"] for event in events if event["requestURI"] == "/api/v1/namespaces/default"]
            receiver.failures = 0
    return answer, asked


async def test_in_blocking_mode_a_request_waits_until_the_webhook_has_its_events(tmp_path: Path) -> None:
    answer, stages = await _asked(tmp_path, "blocking", failures=2)
    assert (answer.status, stages[-2:]) == (200, ["RequestReceived", "ResponseComplete"])


@pytest.mark.parametrize(("mode", "status"), [("blocking", 200), ("blocking-strict", 500)])
async def test_only_in_strict_mode_is_a_request_refused_whose_event_can_not_be_sent(
    tmp_path: Path, mode: str, status: int
) -> None:
    answer, stages = await _asked(tmp_path, mode, failures=1_000_000)
    assert (answer.status, stages) == (status, [])
    if status == 500:
        assert answer.json["message"] == "Internal error occurred: failed to store audit event"
