"""Two servers on one etcd: the second needs a token and nothing else, and both follow a rotation while they run."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from etcd_backend import connect
from etcd_process import EtcdProcess
from patience import PATIENCE
from serving_process import ServeProcess, parsed

from pilothouse.cli.main import main

_KEYS = "/registry/pilothouse.dev/sharedkeys/cluster"
_QUIET = "/api/v1/configmaps?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=none"
"""Takes a second, and asks nothing of anybody."""


class Replicas:
    def __init__(self, folder: Path) -> None:
        self.etcd = EtcdProcess(folder)
        self.etcd.start()
        self.store = f"--etcd-servers={self.etcd.url}"
        self.first = ServeProcess(folder / "first", self.store)
        joining = f"--join-file={folder / 'first' / 'join-token'}"
        self.second = ServeProcess(folder / "second", self.store, joining, "--workers=2")

    def rotate(self, kind: str, step: str, *, through: ServeProcess) -> None:
        data_dir = f"--data-dir={through.data_dir}"
        assert main(["pki", "rotate", kind, "--step", step, "--no-wait", data_dir, self.store]) == 0

    def record(self, put: bytes = b"") -> bytes:
        """Return the record of the shared keys in etcd, after putting another in its place."""

        async def exchange() -> bytes:
            store = await connect(self.etcd.url)
            try:
                entry = await store.get(_KEYS)
                assert entry is not None
                return (await store.update(_KEYS, put, expected=entry.modified) if put else entry).value
            finally:
                await store.close()

        return asyncio.run(exchange())

    def close(self) -> None:
        for server in (self.first, self.second):
            server.close()
        self.etcd.kill()


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path_factory.mktemp("replicas"))
    yield replicas
    replicas.close()


def token_of(server: ServeProcess) -> str:
    connection = server.connect()
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    connection.request("POST", path, json.dumps(asked), {"Content-Type": "application/json"})
    answer = parsed(connection.getresponse().read())
    connection.close()
    return str(answer["status"]["token"])


def status(server: ServeProcess, token: str = "", tls: ssl.SSLContext | None = None) -> int:
    return server.get("/version", as_admin=False, token=token, tls=tls)[0]


def until(server: ServeProcess, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        server.get(_QUIET)


def published(server: ServeProcess) -> list[int]:
    """How many CAs namespaces, and extension servers, are told to trust."""
    found = [
        server.get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt")[1],
        server.get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")[1],
    ]
    return [body.count(b"BEGIN CERTIFICATE") for body in found]


def test_whoever_is_known_to_one_server_is_known_to_the_other(replicas: Replicas) -> None:
    first, second = replicas.first, replicas.second
    for one, other in ((first, second), (second, first)):
        assert other.get("/api/v1/namespaces", tls=one.tls())[0] == 200
        assert status(other, token_of(one)) == 200
    assert (first.data_dir / "join-token").read_text() == (second.data_dir / "join-token").read_text()


def test_no_server_tells_the_token(replicas: Replicas) -> None:
    secret = (replicas.first.data_dir / "join-token").read_text().strip().partition(".")[2]
    assert secret.encode() not in replicas.second.get("/flagz")[1]
    assert secret not in Path(f"/proc/{replicas.second.process.pid}/cmdline").read_text()


@pytest.mark.slow
def test_keys_are_rotated_while_both_serve_and_old_ones_hold_until_they_are_retired(replicas: Replicas) -> None:
    """Also when somebody who can write to etcd puts the record of the old keys back."""
    first, second = replicas.first, replicas.second
    old_user, old_token, old_record = first.tls(), token_of(first), replicas.record()
    for kind in ("ca", "service-account"):
        replicas.rotate(kind, "trust", through=second)
    until(first, lambda: published(first) == [2, 3])
    for kind in ("ca", "service-account"):
        replicas.rotate(kind, "issue", through=first)
    until(second, lambda: all(b"kubernetes-" in ca_of(server) for server in (first, second)))
    assert [status(server, old_token) for server in (first, second)] == [200, 200]
    assert [server.get("/api/v1/namespaces", tls=old_user)[0] for server in (first, second)] == [200, 200]
    until(first, lambda: key_id(token_of(first)) != key_id(old_token))
    new_token = token_of(first)
    assert status(second, new_token) == 200
    for kind in ("ca", "service-account"):
        replicas.rotate(kind, "retire", through=first)
    until(first, lambda: published(first) == [1, 2])
    for server in (first, second):
        until(server, lambda server=server: status(server, old_token) == 401)  # type: ignore[misc]
        until(server, lambda server=server: server.get("/version", tls=old_user)[0] == 401)  # type: ignore[misc]
        assert status(server, new_token) == 200
    assert replicas.record(old_record) == old_record
    until(first, lambda: replicas.record() != old_record)
    for server in (first, second):
        assert [status(server, old_token), server.get("/version", tls=old_user)[0]] == [401, 401]
        assert status(server, new_token) == 200


def ca_of(server: ServeProcess) -> bytes:
    """The certificate that it shows, which has the name of the CA in it."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", server.port)))


def key_id(token: str) -> str:
    return token.partition(".")[0]


def test_one_kubeconfig_has_all_servers(replicas: Replicas, capsys: pytest.CaptureFixture[str]) -> None:
    servers = [f"--server=https://127.0.0.1:{server.port}" for server in (replicas.first, replicas.second)]
    balanced = "--load-balancer=https://api.example"
    assert main(["kubeconfig", f"--data-dir={replicas.first.data_dir}", *servers, balanced]) == 0
    config = yaml.safe_load(capsys.readouterr().out)
    assert config["current-context"] == "kubernetes-admin@pilothouse"
    assert [each["cluster"]["server"] for each in config["clusters"]] == [
        "https://api.example",
        *(server.partition("=")[2] for server in servers),
    ]


def test_which_servers_there_are_is_asked_of_the_cluster(replicas: Replicas, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    assert main(["kubeconfig", f"--data-dir={replicas.second.data_dir}", f"--output={file}"]) == 0
    assert file.stat().st_mode & 0o777 == 0o600
    ports = {each["cluster"]["server"].rpartition(":")[2] for each in yaml.safe_load(file.read_text())["clusters"]}
    assert ports <= {str(replicas.first.port), str(replicas.second.port)}
    assert ports
