"""`pilothouse check`: a store that is well, and one for each thing that can be wrong with it."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from custom_resources import WIDGETS, definition, eventually, install, widget
from whole_server import create_config_map, whole_server

from pilothouse.apiserver.storage.sqlite.schema import add_checksums
from pilothouse.cli.main import main
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENCRYPTION = """
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets, widgets.example.com]
  providers:
  - {encryptor}
  - identity: {{}}
"""
FIRST = "secretbox: {keys: [{name: a, secret: YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=}]}"
OTHER = "secretbox: {keys: [{name: a, secret: YmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmI=}]}"
SERVICE = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}


def encryption(folder: Path, encryptor: str) -> Path:
    (file := folder / "encryption.yaml").write_text(ENCRYPTION.format(encryptor=encryptor))
    return file


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="running")
async def _running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[API]:
    folder = tmp_path_factory.mktemp("running")
    config = str(encryption(folder, FIRST))
    async with whole_server(data_dir=folder / "data", encryption_provider_config=config) as api:
        await create_config_map(api, "a")
        await create_config_map(api, "b")
        await api.request("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "data": {}})
        await api.request("POST", "/api/v1/namespaces/default/services", SERVICE)
        await install(api, definition())
        await eventually(api, 201, "POST", WIDGETS, widget(spec={"size": 7}))
        yield api


async def check(*words: object) -> int:
    return await asyncio.to_thread(main, ["check", *map(str, words)])


async def test_a_running_server_is_well_from_outside_and_inside(
    running: API, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = encryption(tmp_path, FIRST)
    assert await check("--data-dir", running.home.data_dir, "--encryption-provider-config", config) == 0
    assert "no faults" in capsys.readouterr().out
    assert await check("--kubeconfig", running.kubeconfig, "--encryption-provider-config", config) == 0
    assert "note" not in capsys.readouterr().out


async def test_values_that_nobody_can_decrypt_are_told(
    running: API, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await check("--data-dir", running.home.data_dir) == 0
    assert "1 values of secrets are encrypted and were skipped" in capsys.readouterr().out
    config = encryption(tmp_path, OTHER)
    assert await check("--data-dir", running.home.data_dir, "--encryption-provider-config", config) == 1
    out = capsys.readouterr().out
    assert "/registry/secrets/default/s: cannot be decrypted" in out
    assert "add the key that encrypted the value to --encryption-provider-config" in out


A, B = "/registry/configmaps/default/a", "/registry/configmaps/default/b"
OF_A = f"(SELECT value FROM history WHERE key = '{A}')"
DAMAGES = {
    f"{A}: cannot be decoded": f"UPDATE history SET value = CAST('{{' AS BLOB) WHERE key = '{A}'",
    f"{A}: the value is not an object with kind": f"UPDATE history SET value = CAST('{{}}' AS BLOB) WHERE key = '{A}'",
    f"{A}: the value is not an object with kind, apiVersion": (
        """UPDATE history SET value = CAST('{"kind":"A","apiVersion":"a/b/c","metadata":{}}' AS BLOB)"""
        f" WHERE key = '{A}'"
    ),
    f"{B}: holds the ConfigMap default/a": f"UPDATE history SET value = {OF_A} WHERE key = '{B}'",
    f"{B}: has the uid of {A}": f"UPDATE history SET value = {OF_A} WHERE key = '{B}'",
    f"{A}: created at 9999999": f"UPDATE history SET created = 9999999 WHERE key = '{A}'",
    f"{A}: exists twice": (
        f"INSERT INTO history SELECT 99999, key, created, NULL, NULL, value, 0 FROM history WHERE key = '{A}'"
    ),
    f"{A}: the value before revision": f"UPDATE history SET previous = 99999 WHERE key = '{A}'",
    "swept to 7, compacted to 0": "UPDATE meta SET value = 7 WHERE name = 'swept'",
    "the cluster IP 10.0.0.1 has no IPAddress": "DELETE FROM history WHERE key = '/registry/ipaddresses/10.0.0.1'",
    "is not marked as allocated": (
        "UPDATE history SET value = CAST(replace(CAST(value AS TEXT), '\"data\":', '\"x\":') AS BLOB)"
        " WHERE key = '/registry/ranges/servicenodeports'"
    ),
    "no definition of Widget.example.com exists": "DELETE FROM history WHERE key LIKE '/registry/apiext%'",
    "is not in storedVersions": (
        'UPDATE history SET value = CAST(replace(CAST(value AS TEXT), \'"storedVersions":["v1"]\','
        " '\"storedVersions\":[]') AS BLOB) WHERE key LIKE '/registry/apiext%'"
    ),
    "its namespace does not exist": "DELETE FROM history WHERE key = '/registry/namespaces/default'",
}


@contextmanager
def copied(running: API, data_dir: Path) -> Iterator[sqlite3.Connection]:
    """The store's file once more, to be damaged."""
    (data_dir / "store").mkdir(parents=True)
    source = running.home.data_dir / "store" / "store.db"
    with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(data_dir / "store/store.db")) as copy:
        original.backup(copy)
        yield copy


@pytest.mark.parametrize("text", DAMAGES)
async def test_what_is_wrong_is_told_with_its_key(
    running: API, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with copied(running, tmp_path / "data") as copy:
        assert copy.execute(DAMAGES[text]).rowcount > 0
        add_checksums(copy)  # whoever wrote it did so on purpose
        copy.commit()
    config = encryption(tmp_path, FIRST)
    code = await check("--data-dir", tmp_path / "data", "--encryption-provider-config", config)
    assert text in (out := capsys.readouterr().out), out
    assert "→" in out
    assert code == (0 if "namespace" in text else 1)


async def test_damaged_values_are_told_and_left_out_of_a_backup_that_is_asked_to(
    running: API, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with copied(running, tmp_path / "data") as copy:
        copy.execute(f"UPDATE history SET value = CAST(CAST(value AS TEXT) || ' ' AS BLOB) WHERE key = '{A}'")
        copy.commit()
    assert await check("--data-dir", tmp_path / "data") == 1
    out = capsys.readouterr().out
    assert f"the stored value of {A} is damaged: the checksum of revision" in out
    assert "→ back up the readable keys (`pilothouse backup --skip-damaged`)" in out
    assert B not in out
    backup = ["backup", str(tmp_path / "file"), "--data-dir", str(tmp_path / "data")]
    assert await asyncio.to_thread(main, backup) == 2
    assert f"the stored value of {A} is damaged" in capsys.readouterr().err
    assert not (tmp_path / "file").exists()
    assert await asyncio.to_thread(main, [*backup, "--skip-damaged"]) == 0
    assert f"{A} is damaged: left out" in capsys.readouterr().out
    restored = ["restore", str(tmp_path / "file"), "--data-dir", str(tmp_path / "restored")]
    assert await asyncio.to_thread(main, restored) == 0
    assert await check("--data-dir", tmp_path / "restored") == 0


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "store").mkdir()
    shutil.copy(__file__, tmp_path / "store" / "store.db")
    assert await check("--data-dir", tmp_path) == 2
    assert "cannot be read: file is not a database" in capsys.readouterr().err
