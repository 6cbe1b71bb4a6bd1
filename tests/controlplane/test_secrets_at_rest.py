"""Secrets at rest, through a whole server: nothing of them is readable on disk, and keys can be changed."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from serving_process import ServeProcess

SECRETS = "/api/v1/namespaces/default/secrets"
VALUE = base64.b64encode(b"nobody may read this").decode()


def key(name: str) -> dict[str, str]:
    return {"name": name, "secret": base64.b64encode(name.encode() * 32).decode()}


def write_config(path: Path, *providers: dict[str, Any]) -> None:
    part = {"resources": ["secrets"], "providers": list(providers)}
    config = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": [part]}
    path.write_text(json.dumps(config))


def call(server: ServeProcess, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    connection = server.connect()
    connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
    answer: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in (folder / "store").rglob("*") if path.is_file())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "encryption.json"


def serve(tmp_path: Path, config: Path) -> ServeProcess:
    return ServeProcess(tmp_path / "data", f"--encryption-provider-config={config}")


def test_a_secret_is_not_readable_on_disk_and_survives_a_change_of_keys(tmp_path: Path, config: Path) -> None:
    write_config(config, {"secretbox": {"keys": [key("a")]}}, {"identity": {}})
    server = serve(tmp_path, config)
    secret = {"metadata": {"name": "s"}, "data": {"password": VALUE}}
    assert call(server, "POST", SECRETS, secret)["data"] == {"password": VALUE}
    server.close()
    assert VALUE.encode() not in on_disk(tmp_path / "data")
    assert b"k8s:enc:secretbox:v1:a:" in on_disk(tmp_path / "data")

    write_config(config, {"aesgcm": {"keys": [key("b")]}}, {"secretbox": {"keys": [key("a")]}})
    server = serve(tmp_path, config)
    stored = call(server, "GET", f"{SECRETS}/s")
    assert stored["data"] == {"password": VALUE}
    rewritten = call(server, "PUT", f"{SECRETS}/s", stored)
    assert rewritten["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]
    again = call(server, "PUT", f"{SECRETS}/s", rewritten)
    assert again["metadata"]["resourceVersion"] == rewritten["metadata"]["resourceVersion"]
    server.close()

    write_config(config, {"aesgcm": {"keys": [key("b")]}})
    server = serve(tmp_path, config)
    assert call(server, "GET", f"{SECRETS}/s")["data"] == {"password": VALUE}
    server.close()
