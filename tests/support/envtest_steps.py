"""What controller-runtime's envtest does, step by step: its files, its flags, its health checks, its signals."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from etcd_process import free_port
from patience import PATIENCE
from tiny_ca import TinyCA

_POLL_EVERY = 0.01


def envtest_folder(folder: Path, **environment: str) -> Path:
    command = [sys.executable, "-m", "pilothouse.cli.main", "envtest", "path", "--dir", str(folder)]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    assert done.stdout == f"{folder}\n"
    return folder


class Program:
    """One program of the folder, in a process group of its own, as envtest starts each."""

    def __init__(self, path: Path, arguments: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen([path, *arguments], stdout=output, stderr=output, process_group=0)

    def wait_until_healthy(self, url: str) -> None:
        anything_goes = ssl._create_unverified_context()
        until = time.monotonic() + PATIENCE
        while not _is_ok(url, anything_goes):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, f"{url} is not healthy: {self.log.read_text()}"
            time.sleep(_POLL_EVERY)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Signal the whole group, and return the exit code."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)
        return self.process.wait(PATIENCE)


def _is_ok(url: str, context: ssl.SSLContext) -> bool:
    try:
        with urllib.request.urlopen(url, context=context, timeout=PATIENCE) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


def has_flag(path: Path, flag: str) -> bool:
    """Look for the flag where envtest does: at the beginning of a line of the help."""
    shown = subprocess.run([path, "--help"], capture_output=True, check=True, text=True)
    return re.search(rf"(?m)^\s*--{flag}\b", shown.stdout + shown.stderr) is not None


class Etcd:
    def __init__(self, assets: Path, folder: Path) -> None:
        self.path = assets / "etcd"
        self.data_dir = folder / "etcd-data"
        self.data_dir.mkdir()
        self.url = f"http://127.0.0.1:{free_port()}"
        self.peer_url = f"http://127.0.0.1:{free_port()}"
        self._log = folder / "etcd.log"

    def start(self) -> Program:
        arguments = [
            f"--advertise-client-urls={self.url}",
            f"--data-dir={self.data_dir}",
            f"--listen-client-urls={self.url}",
            f"--listen-peer-urls={self.peer_url}",
        ]
        if has_flag(self.path, "unsafe-no-fsync"):
            arguments.append("--unsafe-no-fsync=true")
        program = Program(self.path, arguments, self._log)
        program.wait_until_healthy(f"{self.url}/health")
        return program


class KubeAPIServer:
    def __init__(self, assets: Path, folder: Path, etcd_url: str) -> None:
        self.path = assets / "kube-apiserver"
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.cert_dir = folder / "certs"
        self.cert_dir.mkdir()
        self._etcd_url = etcd_url
        self._log = folder / "kube-apiserver.log"
        self._clients = TinyCA()
        self._write_certificates()

    def _write_certificates(self) -> None:
        serving, service_accounts = TinyCA(), TinyCA()
        self._ca = serving.pem()[0]
        (self.cert_dir / "client-cert-auth-ca.crt").write_bytes(self._clients.pem()[0])
        for name, pair in (("apiserver", serving.serving()), ("sa-signer", service_accounts.pem())):
            for ending, content in zip(("crt", "key"), pair, strict=True):
                (self.cert_dir / f"{name}.{ending}").write_bytes(content)

    def arguments(self) -> list[str]:
        return [
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.cert_dir}",
            f"--client-ca-file={self.cert_dir / 'client-cert-auth-ca.crt'}",
            "--disable-admission-plugins=ServiceAccount",
            f"--etcd-servers={self._etcd_url}",
            *(["--insecure-port=0"] if has_flag(self.path, "insecure-port") else []),
            f"--secure-port={self.port}",
            f"--service-account-issuer={self.url}/",
            f"--service-account-key-file={self.cert_dir / 'sa-signer.crt'}",
            f"--service-account-signing-key-file={self.cert_dir / 'sa-signer.key'}",
            "--service-cluster-ip-range=10.0.0.0/24",
        ]

    def start(self, *more: str) -> Program:
        program = Program(self.path, [*self.arguments(), *more], self._log)
        program.wait_until_healthy(f"{self.url}/healthz")
        return program

    def add_user(self, name: str, *groups: str) -> Path:
        """Return the path of a kubeconfig with a client certificate, as AddUser makes one."""
        certificate, key = self._clients.client(name, groups)
        cluster = {"server": self.url, "certificate-authority-data": _base64(self._ca)}
        user = {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "envtest",
            "clusters": [{"name": "envtest", "cluster": cluster}],
            "users": [{"name": "envtest", "user": user}],
            "contexts": [{"name": "envtest", "context": {"cluster": "envtest", "user": "envtest"}}],
        }
        path = self.cert_dir / f"{name}.kubecfg"
        path.write_text(json.dumps(config))
        return path


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
