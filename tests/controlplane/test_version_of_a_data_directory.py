"""A data directory of another Kubernetes version: a newer one opens it, an older one if it can read every object."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
import pytest_asyncio

from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.controlplane.errors import StartFailed
from pilothouse.controlplane.stored_version import FILE, settle_version
from pilothouse.testing import Server

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "store", fsync=False)
    yield opened
    await opened.close()


async def put(store: SqliteStore, key: str, api_version: str, kind: str, name: str, **fields: object) -> None:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **fields}
    await store.create(f"/registry/{key}/{name}", orjson.dumps(obj))


def written_by(data_dir: Path, version: str) -> None:
    (data_dir / FILE).write_text(f"{version}\n", encoding="utf-8")


async def test_a_new_directory_has_the_version_of_the_server(tmp_path: Path, store: SqliteStore) -> None:
    await settle_version(tmp_path, store, "/registry")
    assert (tmp_path / FILE).read_text(encoding="utf-8") == "1.36\n"


async def test_a_directory_of_a_newer_version_opens_if_every_object_is_readable(
    tmp_path: Path, store: SqliteStore
) -> None:
    written_by(tmp_path, "1.37")
    definition = {"spec": {"group": "gateway.k8s.io", "names": {"kind": "Gateway"}}}
    folder = "apiextensions.k8s.io/customresourcedefinitions"
    await put(
        store, folder, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "gateways.gateway.k8s.io", **definition
    )
    await put(store, "gateway.k8s.io/gateways/default", "gateway.k8s.io/v9", "Gateway", "mine")
    await put(store, "configmaps/default", "v1", "ConfigMap", "kept")
    await store.create("/registry/pilothouse.dev/sealed", b"k8s:enc:secret")
    await settle_version(tmp_path, store, "/registry")
    assert (tmp_path / FILE).read_text(encoding="utf-8") == "1.36\n", "only what 1.36 can read is in it"


async def test_a_directory_with_objects_of_a_newer_version_is_refused_with_their_names(
    tmp_path: Path, store: SqliteStore
) -> None:
    written_by(tmp_path, "1.37")
    await put(store, "evictionrequests/default", "lifecycle.k8s.io/v1alpha1", "EvictionRequest", "pod-a")
    with pytest.raises(StartFailed) as refusal:
        await settle_version(tmp_path, store, "/registry")
    assert str(refusal.value) == (
        f"the data directory {tmp_path} was written by Kubernetes 1.37, and Kubernetes 1.36 cannot read"
        " EvictionRequest (lifecycle.k8s.io/v1alpha1) default/pod-a; start the server with --kubernetes-version=1.37,"
        " or delete these objects there first"
    )
    assert (tmp_path / FILE).read_text(encoding="utf-8") == "1.37\n"


async def test_at_most_ten_objects_are_named(tmp_path: Path, store: SqliteStore) -> None:
    written_by(tmp_path, "1.38")
    for number in range(12):
        await put(store, "things/default", "new.k8s.io/v1", "Thing", f"t{number:02}")
    with pytest.raises(StartFailed, match=r"default/t09 and 2 more; start the server with --kubernetes-version=1\.38"):
        await settle_version(tmp_path, store, "/registry")


async def test_objects_that_a_newer_version_has_dropped_are_a_warning(
    tmp_path: Path, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    written_by(tmp_path, "1.34")
    await put(store, "olds/default", "old.k8s.io/v1alpha1", "Old", "mine")
    with caplog.at_level(logging.WARNING):
        await settle_version(tmp_path, store, "/registry")
    assert (
        "Kubernetes 1.36 cannot read Old (old.k8s.io/v1alpha1) default/mine, written by Kubernetes 1.34" in caplog.text
    )
    assert (tmp_path / FILE).read_text(encoding="utf-8") == "1.36\n"


def test_a_directory_goes_to_a_newer_version_and_back(tmp_path: Path) -> None:
    with Server(data_dir=tmp_path, controllers="-*") as api:
        assert api.request("POST", CONFIG_MAPS, {"metadata": {"name": "kept"}}).status == 201
    with Server(data_dir=tmp_path, controllers="-*", kubernetes_version="1.37") as api:
        assert api.request("GET", f"{CONFIG_MAPS}/kept").status == 200
    assert (tmp_path / FILE).read_text(encoding="utf-8") == "1.37\n"
    with Server(data_dir=tmp_path, controllers="-*") as api:
        assert api.request("GET", f"{CONFIG_MAPS}/kept").status == 200
