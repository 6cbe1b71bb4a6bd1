"""Deprecated kinds say so on every answer."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from whole_server import whole_server

from pilothouse.apiserver.endpoints.routes import Deprecation
from pilothouse.machinery.names import GroupVersionKind

KIND = GroupVersionKind("apps", "v1beta1", "Deployment")


@pytest.mark.parametrize(
    ("deprecation", "warning"),
    [
        (Deprecation("1.8"), "apps/v1beta1 Deployment is deprecated in v1.8+"),
        (
            Deprecation("1.8", removed="1.16", replacement=GroupVersionKind("apps", "v1", "Deployment")),
            "apps/v1beta1 Deployment is deprecated in v1.8+, unavailable in v1.16+; use apps/v1 Deployment",
        ),
    ],
)
def test_a_warning_says_since_when_until_when_and_what_instead(deprecation: Deprecation, warning: str) -> None:
    assert deprecation.warning(KIND) == warning


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/api/v1/endpoints", 200),
        ("GET", "/api/v1/namespaces/default/endpoints/gone", 404),
        ("POST", "/api/v1/namespaces/default/endpoints", 400),
        ("GET", "/api/v1/watch/endpoints?timeoutSeconds=0", 200),
    ],
)
async def test_every_answer_about_endpoints_warns(tmp_path: Path, method: str, target: str, status: int) -> None:
    async with whole_server(tmp_path) as server:
        answer = await server.open(method, target, b"{" if method == "POST" else None)
        await answer.close()
    assert answer.status == status
    assert "v1 Endpoints is deprecated in v1.33+" in answer.headers["warning"]


async def test_what_is_deprecated_and_used_is_on_record(tmp_path: Path) -> None:
    policy, log = tmp_path / "policy.yaml", tmp_path / "audit.log"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    async with whole_server(audit_policy_file=str(policy), audit_log_path=str(log)) as server:
        await server.request("GET", "/api/v1/namespaces/default/endpoints")
        metrics = (await server.request("GET", "/metrics")).body.decode()
    labels = 'group="",removed_release="",resource="endpoints",subresource="",version="v1"'
    assert f"apiserver_requested_deprecated_apis{{{labels}}} 1" in metrics
    events = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    complete = [event for event in events if event["requestURI"].endswith("/default/endpoints")][-1]
    assert complete["annotations"]["k8s.io/deprecated"] == "true"
