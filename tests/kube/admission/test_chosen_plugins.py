"""Only the admission plugins that were chosen look at writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from whole_server import whole_server

from pilothouse.machinery.objects import Json

POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "main", "image": "nginx"}]},
}


def _without(*names: str) -> dict[str, list[str]]:
    return {"disable_admission_plugins": ["ServiceAccount", *names]}


@pytest.mark.parametrize(("plugins", "status"), [(_without(), 404), (_without("NamespaceLifecycle"), 201)])
async def test_namespaces_need_to_exist_only_for_namespace_lifecycle(
    tmp_path: Path, plugins: dict[str, list[str]], status: int
) -> None:
    async with whole_server(tmp_path, **plugins) as api:
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        assert (await api.request("POST", "/api/v1/namespaces/missing/configmaps", obj)).status == status


@pytest.mark.parametrize(("plugins", "count"), [(_without(), 2), (_without("DefaultTolerationSeconds"), 0)])
async def test_pods_are_given_tolerations_only_by_default_toleration_seconds(
    tmp_path: Path, plugins: dict[str, list[str]], count: int
) -> None:
    async with whole_server(tmp_path, **plugins) as api:
        created = (await api.request("POST", "/api/v1/namespaces/default/pods", POD)).json
        assert len(created["spec"].get("tolerations", [])) == count


async def test_pods_get_no_priority_without_the_priority_plugin(tmp_path: Path) -> None:
    async with whole_server(tmp_path, **_without("Priority")) as api:
        created = (await api.request("POST", "/api/v1/namespaces/default/pods", POD)).json
        assert "priority" not in created["spec"]
