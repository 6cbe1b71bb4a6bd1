"""An operator written with kopf, as its users write them: it reacts to objects and reviews them by webhooks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from awaiting import until
from certificates_fixture import TestCA
from custom_resources import definition, install, version, widget
from whole_server import whole_server

from pilothouse.testing import API

kopf = pytest.importorskip("kopf")

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SCHEMA = {"type": "object", "properties": {"spec": _ANYTHING, "status": _ANYTHING}}
_CONFIGURATION = "auto.kopf.dev"
_WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


@pytest.fixture
def settings(tmp_path: Path) -> Any:
    ca = TestCA()
    pair = ca.issue("kopf")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    found = kopf.OperatorSettings()
    found.posting.enabled = False
    found.admission.managed = _CONFIGURATION
    found.admission.server = kopf.WebhookServer(
        addr="127.0.0.1", host="127.0.0.1", certfile=certificate, pkeyfile=key, cadata=ca.certificate
    )
    return found


def _created(spec: Any, **_: Any) -> dict[str, Any]:
    return {"seen": spec["size"]}


def _small(spec: Any, warnings: list[str], **_: Any) -> None:
    warnings.append("reviewed by kopf")
    if spec.get("size", 0) > 10:
        raise kopf.AdmissionError("too large", code=422)


def _injected(patch: Any, **_: Any) -> None:
    patch.spec["injected"] = 123


@pytest.fixture
def registry() -> Any:
    handlers = kopf.OperatorRegistry()
    kopf.on.login(registry=handlers)(kopf.login_with_kubeconfig)
    kopf.on.create("widgets", id="created", registry=handlers)(_created)
    kopf.on.validate("widgets", id="small", registry=handlers)(_small)
    kopf.on.mutate("widgets", id="injected", labels={"inject": "yes"}, registry=handlers)(_injected)
    return handlers


@asynccontextmanager
async def _operator(**known: Any) -> AsyncIterator[None]:
    """In a thread with a loop of its own: kopf waits for every task of its loop, and the server's do not end."""
    stop, ready = threading.Event(), threading.Event()
    flags = {"clusterwide": True, "stop_flag": stop, "ready_flag": ready}
    running = asyncio.create_task(asyncio.to_thread(kopf.run, **flags, **known))
    try:
        assert await asyncio.to_thread(ready.wait, 20)
        yield
    finally:
        stop.set()
        await running


async def _until_reviewed(api: API) -> None:
    async with api.client() as client:
        for resource in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
            configurations = client.resource("admissionregistration.k8s.io/v1", resource)
            await until(configurations, _CONFIGURATION, lambda obj: obj.get("webhooks"))


async def test_a_kopf_operator_reacts_to_objects_and_reviews_them(
    settings: Any, registry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with whole_server() as api:
        monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))
        await install(api, definition(version(schema=_SCHEMA, subresources={"status": {}})))
        async with _operator(settings=settings, registry=registry), api.client() as client:
            await _until_reviewed(api)
            refused = await api.request("POST", _WIDGETS, widget("large", spec={"size": 11}))
            labelled = {"name": "small", "labels": {"inject": "yes"}}
            created = await api.request("POST", _WIDGETS, widget(spec={"size": 3}, metadata=labelled))
            widgets = client.resource("example.com/v1", "widgets", namespace="default")
            reacted = await until(widgets, "small", lambda obj: obj.get("status", {}).get("created"))
    assert refused.status == 422
    assert refused.json["message"] == 'admission webhook "small.auto.kopf.dev" denied the request: too large'
    assert (created.status, created.json["spec"]) == (201, {"size": 3, "injected": 123})
    assert created.headers["warning"] == '299 - "reviewed by kopf"'
    assert reacted["status"]["created"] == {"seen": 3}
