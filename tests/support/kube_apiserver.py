"""A real kube-apiserver, where an environment variable names its binary: nobody can install one by pip."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

from etcd_process import free_port
from patience import PATIENCE

BINARY = os.environ.get("PILOTHOUSE_TEST_KUBE_APISERVER", "")
MISSING = "PILOTHOUSE_TEST_KUBE_APISERVER names no kube-apiserver"


class KubeApiserver:
    """On an etcd, with the certificates of a data directory of ours; ready when the constructor returns."""

    def __init__(self, etcd: str, data_dir: Path) -> None:
        self._pki = data_dir / "pki"
        self.port = free_port()
        with (data_dir / "kube-apiserver.log").open("wb") as log:
            self._process = subprocess.Popen([BINARY, *self._flags(etcd)], stdout=log, stderr=log)
        try:
            self._wait(data_dir / "kube-apiserver.log")
        except BaseException:
            self.close()
            raise

    def get(self, path: str) -> dict[str, Any]:
        context = ssl.create_default_context(cafile=self._pki / "ca.crt")
        context.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=PATIENCE)
        try:
            connection.request("GET", path, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, body
            found: dict[str, Any] = json.loads(body) if body[:1] == b"{" else {}
            return found
        finally:
            connection.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _flags(self, etcd: str) -> list[str]:
        files = {
            "tls-cert-file": "apiserver.crt",
            "tls-private-key-file": "apiserver.key",
            "client-ca-file": "ca.crt",
            "service-account-key-file": "sa.pub",
            "service-account-signing-key-file": "sa.key",
        }
        return [
            f"--etcd-servers={etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            *(f"--{flag}={self._pki / name}" for flag, name in files.items()),
        ]

    def _wait(self, log: Path) -> None:
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                self.get("/readyz")
                return
            except (AssertionError, OSError):
                assert self._process.poll() is None, log.read_text()[-2000:]
                assert time.monotonic() < give_up
                time.sleep(0.2)
