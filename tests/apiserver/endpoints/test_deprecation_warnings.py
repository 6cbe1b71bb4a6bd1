"""Deprecated kinds say so on every answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from whole_server import whole_server

from pilothouse.apiserver.endpoints.deprecation import Deprecation
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
