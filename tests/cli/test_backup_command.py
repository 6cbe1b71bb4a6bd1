"""`pilothouse backup`, `restore` and `migrate` on whole servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from custom_resources import WIDGETS, definition, eventually, install, widget
from etcd_backend import emptied_etcd
from whole_server import CONFIG_MAPS, QUIET, create_config_map, whole_server

from pilothouse.apiserver.storage.backup.file import BackupFile
from pilothouse.cli.main import main
from pilothouse.testing import API, server

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVENTS_AND_LEASES = ("/registry/events/", "/registry/leases/", "/registry/masterleases/")


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="running")
async def _running() -> AsyncIterator[API]:
    async with whole_server() as api:
        await create_config_map(api, "first", data={"a": "1"})
        await install(api, definition())
        await eventually(api, 201, "POST", WIDGETS, widget(spec={"size": 7}))
        yield api


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="backup")
async def _backup(running: API, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("backup") / "file"
    assert await pilothouse("backup", file, "--data-dir", running.home.data_dir) == 0
    return file


async def pilothouse(*words: object) -> int:
    return await asyncio.to_thread(main, [str(word) for word in words])


async def entries_of(file: Path) -> dict[str, bytes]:
    found = {entry.key: entry.value async for entry in BackupFile(file).entries()}
    return {key: value for key, value in found.items() if not key.startswith(EVENTS_AND_LEASES)}


async def test_a_running_server_hands_out_the_same_over_the_api(running: API, backup: Path, tmp_path: Path) -> None:
    assert await pilothouse("backup", tmp_path / "served", "--kubeconfig", running.kubeconfig) == 0
    assert await entries_of(tmp_path / "served") == await entries_of(backup)
    assert BackupFile(tmp_path / "served").written.files == 0
    assert {"pki/ca.key", "pki/sa.key", "pki/admin.crt"} <= {each.path for each in BackupFile(backup).files()}


async def test_only_administrators_may_read_the_store(running: API) -> None:
    grant = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}
    jane = {"subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}]}
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    await running.request("POST", bindings, {"metadata": {"name": "jane"}, **grant, **jane})
    answer = await running.as_user("jane").request("GET", "/maintenance/store")
    assert answer.status == 403
    assert answer.json["message"] == "only members of system:masters may read /maintenance/store"


async def test_a_restored_server_has_the_objects_the_keys_and_a_revision_ahead(
    running: API, backup: Path, tmp_path: Path
) -> None:
    last = await create_config_map(running, "after-the-backup")
    assert await pilothouse("restore", backup, "--data-dir", tmp_path / "data") == 0
    ca = running.home.data_dir / "pki" / "ca.key"
    assert (tmp_path / "data" / "pki" / "ca.key").read_bytes() == ca.read_bytes()
    old = (await running.request("GET", f"{CONFIG_MAPS}/first")).json
    async with server(data_dir=tmp_path / "data", **QUIET) as restored:
        new = (await restored.request("GET", f"{CONFIG_MAPS}/first")).json
        assert (new["data"], new["metadata"]["uid"]) == (old["data"], old["metadata"]["uid"])
        assert int(new["metadata"]["resourceVersion"]) > int(last["metadata"]["resourceVersion"])
        assert (await eventually(restored, 200, "GET", f"{WIDGETS}/a")).json["spec"] == {"size": 7}
        assert (await restored.request("GET", f"{CONFIG_MAPS}/after-the-backup")).status == 404
        since = last["metadata"]["resourceVersion"]
        watch = await restored.request("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=5&resourceVersion={since}")
        assert b'"code":410' in watch.body


async def test_a_refusal_says_why_and_changes_nothing(
    running: API, backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await pilothouse("restore", backup, "--data-dir", running.home.data_dir) == 2
    assert "is in use by another pilothouse" in capsys.readouterr().err
    (other := tmp_path / "data" / "pki" / "ca.crt").parent.mkdir(parents=True)
    other.write_text("another one")
    assert await pilothouse("restore", backup, "--data-dir", tmp_path / "data") == 2
    assert f"{other} is there already and is another one than in the backup" in capsys.readouterr().err
    assert not (tmp_path / "data" / "store").exists()
    assert await pilothouse("migrate", "--from", f"sqlite:{running.home.data_dir}", "--to", f"sqlite:{tmp_path}") == 2
    assert "is in use by another pilothouse" in capsys.readouterr().err
    assert await pilothouse("migrate", "--from", "postgres:x", "--to", f"sqlite:{tmp_path}") == 2
    assert 'invalid store "postgres:x": expected sqlite:DATA_DIR or etcd:URL' in capsys.readouterr().err
    assert await pilothouse("backup", tmp_path / "file", "--data-dir", tmp_path) == 2
    assert "has no store: if its server uses etcd" in capsys.readouterr().err


async def test_a_store_moves_to_etcd_and_back(backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, first, second = emptied_etcd(), tmp_path / "first", tmp_path / "second"
    assert await pilothouse("restore", backup, "--data-dir", first, "--bump-revision", 0) == 0
    assert await pilothouse("migrate", "--from", f"sqlite:{first}", "--to", f"etcd:{url}") == 0
    assert await pilothouse("backup", tmp_path / "etcd", "--etcd-servers", url) == 0
    assert await pilothouse("migrate", "--from", f"etcd:{url}", "--to", f"sqlite:{second}") == 0
    assert await pilothouse("backup", tmp_path / "sqlite", "--data-dir", second) == 0
    assert await entries_of(tmp_path / "etcd") == await entries_of(backup) == await entries_of(tmp_path / "sqlite")
    revisions = [BackupFile(file).revision for file in (backup, tmp_path / "etcd", tmp_path / "sqlite")]
    assert revisions == sorted(revisions)
    assert await pilothouse("migrate", "--from", f"sqlite:{first}", "--to", f"etcd:{url}") == 2
    assert "only an empty store is restored into" in capsys.readouterr().err
