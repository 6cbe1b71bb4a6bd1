"""--runtime-config: what is turned off is not served, not discovered and not documented; the rest is as it was."""

from __future__ import annotations

from pathlib import Path

from whole_server import whole_server

from pilothouse.machinery.objects import Json
from pilothouse.testing import API


async def _resources(api: API, path: str) -> set[str]:
    return {each["name"] for each in (await api.request("GET", path)).json["resources"]}


async def _versions(api: API) -> set[str]:
    groups: list[Json] = (await api.request("GET", "/apis")).json["groups"]
    return {version["groupVersion"] for group in groups for version in group["versions"]}


async def test_a_version_that_is_turned_off_is_gone_and_the_other_is_preferred(tmp_path: Path) -> None:
    async with whole_server(tmp_path, runtime_config="autoscaling/v2=false") as api:
        assert (await api.request("GET", "/apis/autoscaling/v2")).status == 404
        assert (await api.request("GET", "/apis/autoscaling/v2/horizontalpodautoscalers")).status == 404
        assert (await api.request("GET", "/apis/autoscaling/v1/horizontalpodautoscalers")).status == 200
        group = (await api.request("GET", "/apis/autoscaling")).json
        assert group["preferredVersion"]["version"] == "v1"
        assert [each["version"] for each in group["versions"]] == ["v1"]


async def test_a_group_without_versions_is_no_group(tmp_path: Path) -> None:
    async with whole_server(tmp_path, runtime_config="batch/v1=false") as api:
        assert (await api.request("GET", "/apis/batch")).status == 404
        versions = await _versions(api)
        assert "batch/v1" not in versions
        assert "apps/v1" in versions
        documented = (await api.request("GET", "/openapi/v3")).json["paths"]
        assert "apis/apps/v1" in documented
        assert not any(path.startswith("apis/batch") for path in documented)


async def test_a_resource_is_turned_off_with_its_subresources(tmp_path: Path) -> None:
    async with whole_server(tmp_path, runtime_config="apps/v1/deployments=false") as api:
        assert (await api.request("GET", "/apis/apps/v1/deployments")).status == 404
        served = await _resources(api, "/apis/apps/v1")
        assert not any(name.startswith("deployments") for name in served)
        assert {"statefulsets", "statefulsets/scale", "statefulsets/status"} <= served


async def test_a_resource_of_the_core_group_is_turned_off(tmp_path: Path) -> None:
    async with whole_server(tmp_path, runtime_config="/v1/secrets=false") as api:
        assert (await api.request("GET", "/api/v1/secrets")).status == 404
        served = await _resources(api, "/api/v1")
        assert "secrets" not in served
        assert "configmaps" in served


async def test_one_resource_stays_of_a_version_that_is_turned_off(tmp_path: Path) -> None:
    settings = "apps/v1=false,apps/v1/replicasets=true"
    async with whole_server(tmp_path, runtime_config=settings) as api:
        assert await _resources(api, "/apis/apps/v1") == {"replicasets", "replicasets/scale", "replicasets/status"}


async def test_everything_but_what_is_named_can_be_turned_off(tmp_path: Path) -> None:
    settings = "api/all=false,v1=true,apps/v1=true,apiregistration.k8s.io/v1=true"
    async with whole_server(tmp_path, runtime_config=settings) as api:
        assert await _versions(api) == {"apps/v1", "apiregistration.k8s.io/v1"}
        assert (await api.request("GET", "/api/v1/namespaces/kube-system")).status == 200
        assert (await api.request("GET", "/api/v1/namespaces/default/services/kubernetes")).status == 200


async def test_what_was_written_before_is_there_when_it_is_turned_on_again(tmp_path: Path) -> None:
    path = "/apis/networking.k8s.io/v1/ingressclasses"
    async with whole_server(tmp_path) as api:
        obj = {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "kept"}}
        assert (await api.request("POST", path, obj | {"spec": {"controller": "example.com/one"}})).status == 201
    async with whole_server(tmp_path, runtime_config="networking.k8s.io/v1=false") as api:
        assert (await api.request("GET", f"{path}/kept")).status == 404
    async with whole_server(tmp_path) as api:
        assert (await api.request("GET", f"{path}/kept")).status == 200
