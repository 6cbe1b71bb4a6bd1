"""Objects that were stored in another version, or with another key, are written anew when somebody asks for it."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from awaiting import until
from custom_resources import DEFINITIONS, WIDGETS, definition, eventually, install, widget
from whole_server import whole_server

from pilothouse.client import Json
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIGRATIONS = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations"
SECRETS = "/api/v1/namespaces/default/secrets"
FLAGS: dict[str, Any] = {
    "controllers": "storage-version-migrator-controller",
    "feature_gates": "StorageVersionMigrator=true",
    "runtime_config": "storagemigration.k8s.io/v1beta1=true",
}


def encryption(file: Path, *keys: str) -> str:
    written = ", ".join(f"{{name: {key}, secret: {base64.b64encode(key.encode() * 32).decode()}}}" for key in keys)
    file.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n"
        f"  providers: [{{secretbox: {{keys: [{written}]}}}}]\n"
    )
    return str(file)


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="api")
async def _api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[API]:
    folder = tmp_path_factory.mktemp("migrations")
    config = folder / "encryption.yaml"
    async with whole_server(folder / "data", encryption_provider_config=encryption(config, "a")) as first:
        await first.request("POST", SECRETS, {"metadata": {"name": "old"}, "stringData": {"x": "y"}})
    async with whole_server(folder / "data", encryption_provider_config=encryption(config, "b", "a"), **FLAGS) as api:
        yield api


async def stored(api: API, prefix: str) -> dict[str, bytes]:
    page = (await api.request("GET", f"/maintenance/store?prefix={prefix}")).json
    return {line["key"]: line.get("text", "").encode() or base64.b64decode(line["bytes"]) for line in page["entries"]}


async def migrated(api: API, name: str, resource: str, group: str = "") -> Json:
    spec = {"resource": {"resource": resource, "group": group}}
    created = await api.request("POST", MIGRATIONS, {"metadata": {"name": name}, "spec": spec})
    assert created.status == 201, created.json
    migrations = api.client().resource("storagemigration.k8s.io/v1beta1", "storageversionmigrations")
    return _conditions(await until(migrations, name, _has_ended))


def _has_ended(migration: Json) -> bool:
    return _conditions(migration).get("Running", {}).get("status") == "False"


def _conditions(obj: Json) -> dict[str, Json]:
    return {each["type"]: each for each in obj.get("status", {}).get("conditions", ())}


async def test_secrets_are_encrypted_with_the_new_key(api: API) -> None:
    before = (await api.request("GET", f"{SECRETS}/old")).json
    (value,) = (await stored(api, "/secrets/default/old")).values()
    assert value.startswith(b"k8s:enc:secretbox:v1:a:")
    conditions = await migrated(api, "secrets", "secrets")
    assert conditions["Succeeded"]["status"] == "True"
    (value,) = (await stored(api, "/secrets/default/old")).values()
    assert value.startswith(b"k8s:enc:secretbox:v1:b:")
    after = (await api.request("GET", f"{SECRETS}/old")).json
    assert after["metadata"].pop("resourceVersion") != before["metadata"].pop("resourceVersion")
    assert after == before


async def test_custom_resources_are_stored_in_the_new_version_and_the_old_one_is_forgotten(api: API) -> None:
    both = definition(_version("v1", storage=True), _version("v2", storage=False))
    await install(api, both)
    await eventually(api, 201, "POST", WIDGETS, widget(spec={"size": 7}))
    path = f"{DEFINITIONS}/{both['metadata']['name']}"
    changed = (await api.request("GET", path)).json
    changed["spec"]["versions"] = [_version("v1", storage=False), _version("v2", storage=True)]
    assert (await api.request("PUT", path, changed)).status == 200
    definitions = api.client().resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    await until(definitions, both["metadata"]["name"], lambda found: found["status"]["storedVersions"] == ["v1", "v2"])
    conditions = await migrated(api, "widgets", "widgets", "example.com")
    assert conditions["Succeeded"]["status"] == "True"
    (value,) = (await stored(api, "/example.com/widgets/")).values()
    assert b'"apiVersion":"example.com/v2"' in value
    status = (await api.request("GET", path)).json["status"]
    assert status["storedVersions"] == ["v2"]
    migrating = _conditions({"status": status})["StorageMigrating"]
    assert (migrating["status"], migrating["reason"]) == ("False", "MigrationSucceeded")


async def test_a_resource_that_can_not_be_written_fails(api: API) -> None:
    conditions = await migrated(api, "reviews", "componentstatuses")
    assert conditions["Failed"]["status"] == "True"
    assert "does not support discovery operations: [update patch list]" in conditions["Failed"]["message"]


def _version(name: str, *, storage: bool) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {"name": name, "served": True, "storage": storage, "schema": schema}
