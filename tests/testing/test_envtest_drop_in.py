"""`pilothouse envtest path`: what starts envtest's programs, step by step as envtest does, gets Pilothouse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from awaiting import until, until_gone
from envtest_steps import Etcd, KubeAPIServer, envtest_folder

from pilothouse.client import Client, Json, connect, load_kubeconfig
from pilothouse.errors import Forbidden
from pilothouse.testing.envtest.store_place import SECRET_FILE

EVERYTHING = "system:masters"


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return envtest_folder(tmp_path_factory.mktemp("assets") / "with space's")


@pytest.fixture(scope="module")
def etcd(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    etcd = Etcd(assets, tmp_path_factory.mktemp("etcd"))
    program = etcd.start()
    yield etcd
    assert program.stop() == 0


@pytest.fixture(scope="module")
def plane(assets: Path, etcd: Etcd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeAPIServer]:
    """One control plane for all tests that leave it as it is."""
    server = KubeAPIServer(assets, tmp_path_factory.mktemp("server"), etcd.url)
    program = server.start("--advertise-address=127.0.0.1", "--feature-gates=AllAlpha=false", "-v=1")
    yield server
    assert program.stop() == 0
    assert {path.name for path in (etcd.data_dir / "pilothouse").iterdir()} == {SECRET_FILE, "registry"}


@pytest.fixture
async def admin(plane: KubeAPIServer) -> AsyncIterator[Client]:
    async with connect(load_kubeconfig(plane.add_user("default", EVERYTHING))) as client:
        yield client


async def test_a_user_is_whom_the_client_certificate_names(plane: KubeAPIServer, admin: Client) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    own = await admin.resource("authentication.k8s.io/v1", "selfsubjectreviews").create(review)
    assert own["status"]["userInfo"]["username"] == "default"
    assert own["status"]["userInfo"]["groups"] == [EVERYTHING, "system:authenticated"]
    async with connect(load_kubeconfig(plane.add_user("ann"))) as ann:
        with pytest.raises(Forbidden):
            await ann.resource("v1", "configmaps", namespace="default").list()


async def test_deployments_make_no_replica_sets_and_nobody_schedules(admin: Client) -> None:
    """The garbage collector has seen the deployment when what it owns is gone; by then its controller would have."""
    deployment = await admin.resource("apps/v1", "deployments", namespace="default").create(_deployment("web"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "11111111-1111-1111-1111-111111111111"}
    config_maps = admin.resource("v1", "configmaps", namespace="default")
    await config_maps.create({"metadata": {"name": "orphan", "ownerReferences": [owner]}})
    await until_gone(config_maps, "orphan")
    assert (await admin.resource("apps/v1", "replicasets", namespace="default").list())["items"] == []
    assert "observedGeneration" not in deployment["status"]


def _deployment(name: str) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


async def test_namespaces_get_an_account_and_end_with_all_that_is_in_them(admin: Client) -> None:
    namespaces = admin.resource("v1", "namespaces")
    await namespaces.create({"metadata": {"name": "short-lived"}})
    await until(admin.resource("v1", "serviceaccounts", namespace="short-lived"), "default")
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = admin.resource("v1", "persistentvolumeclaims", namespace="short-lived")
    await claims.create({"metadata": {"name": "protected"}, "spec": claim})
    await namespaces.delete("short-lived")
    await until_gone(namespaces, "short-lived")


async def test_a_token_of_an_account_is_known_by_envtests_signing_key(plane: KubeAPIServer, admin: Client) -> None:
    accounts = admin.resource("v1", "serviceaccounts", namespace="default")
    await until(accounts, "default")
    asked = await accounts.create({"spec": {}}, name="default", subresource="token")
    token = asked["status"]["token"]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    found = await admin.resource("authentication.k8s.io/v1", "tokenreviews").create(review)
    assert found["status"]["user"]["username"] == "system:serviceaccount:default:default"


async def test_a_custom_resource_is_served_when_it_is_established(admin: Client) -> None:
    definitions = admin.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "names": {"plural": "boats", "kind": "Boat"}, "scope": "Namespaced"}
    await definitions.create({"metadata": {"name": "boats.example.com"}, "spec": {**spec, "versions": [version]}})
    await until(definitions, "boats.example.com", _is_established)
    boats = admin.resource("example.com/v1", "boats", namespace="default")
    made = await boats.create({"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "ship"}})
    assert made["metadata"]["name"] == "ship"


def _is_established(definition: Json) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
