"""Refusals, and with them the audit log, never show what is in a Secret: whoever may patch one need not read it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from whole_server import whole_server

from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRETS = "/api/v1/namespaces/default/secrets"
STORED = "c3VwZXJzZWNyZXQ="
JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
HEAD = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "known"}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[API, Path]]:
    folder: Path = tmp_path_factory.mktemp("audited")
    policy, log = folder / "policy.yaml", folder / "audit.log"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    async with whole_server(audit_policy_file=str(policy), audit_log_path=str(log)) as api:
        await api.request("POST", SECRETS, HEAD | {"data": {"password": STORED}, "type": "Opaque"})
        yield api, log


@pytest.mark.parametrize(
    ("media", "patch"),
    [
        (MERGE, {"data": {"sent-value": "%%%"}}),
        (MERGE, {"data": {"other": {"a": "sent-value"}}}),
        (MERGE, {"stringData": {"other": ["sent-value"]}}),
        (MERGE, {"data": {"other": "c2VudA=="}, "unknown": "sent-value"}),
        (STRATEGIC, {"data": {"other": "%%%sent-value"}}),
        (STRATEGIC, {"stringData": {"other": ["sent-value"]}}),
        (JSON_PATCH, [{"op": "add", "path": "/data/other", "value": "%%%sent-value"}]),
        (JSON_PATCH, [{"op": "add", "path": "/data/other", "value": {"a": "sent-value"}}]),
        (APPLY, HEAD | {"data": {"other": "%%%sent-value"}}),
    ],
)
async def test_a_refused_patch_shows_no_secret(server: tuple[API, Path], media: str, patch: Any) -> None:
    api, log = server
    target = f"{SECRETS}/known?fieldManager=m&fieldValidation=Strict"
    answer = await api.request("PATCH", target, patch, media=media)
    assert answer.status in (400, 422, 500)
    for text in (answer.body.decode(), log.read_text()):
        assert STORED not in text
        assert "sent-value" not in text


async def test_a_refused_patch_of_another_kind_shows_it(server: tuple[API, Path]) -> None:
    api, _ = server
    config_maps = "/api/v1/namespaces/default/configmaps"
    await api.request("POST", config_maps, {"metadata": {"name": "known"}, "data": {"a": "stored-value"}})
    answer = await api.request("PATCH", f"{config_maps}/known", {"data": {"b": {}}}, media=MERGE)
    assert "stored-value" in answer.json["message"]
