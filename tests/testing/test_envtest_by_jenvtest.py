"""jenvtest, which is envtest for Java, starts the same programs: both at once, with certificates of its own making."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from urllib.request import Request, urlopen

from envtest_steps import Program, envtest_folder
from etcd_process import free_port
from tiny_ca import self_signed

from pilothouse.client import Json


def test_a_server_that_starts_before_its_etcd_waits_for_it(tmp_path: Path) -> None:
    """The only certificate that jenvtest's server trusts clients by is that of the client itself."""
    assets = envtest_folder(tmp_path / "k8s" / "1.36.4-linux-amd64")
    _write_certificates(tmp_path)
    etcd_port, port = free_port(), free_port()
    server = Program(assets / "kube-apiserver", _server_flags(tmp_path, port, etcd_port), tmp_path / "server.log")
    etcd = Program(assets / "etcd", _etcd_flags(tmp_path, etcd_port), tmp_path / "etcd.log")
    server.wait_until_healthy(f"https://127.0.0.1:{port}/readyz")
    user = _whoami(port, tmp_path)
    assert (user["username"], user["groups"]) == ("jenvtest", ["system:masters", "system:authenticated"])
    assert [program.stop() for program in (server, etcd)] == [0, 0]


def _write_certificates(folder: Path) -> None:
    server, client = self_signed("example.org", address="127.0.0.1"), self_signed("jenvtest", "system:masters")
    for name, pair in (("apiserver", server), ("client", client)):
        for ending, content in zip(("crt", "key"), pair, strict=True):
            (folder / f"{name}.{ending}").write_bytes(content)


def _server_flags(folder: Path, port: int, etcd_port: int) -> list[str]:
    signer = str(folder / "apiserver.key")
    return [
        *("--cert-dir", str(folder), "--secure-port", str(port), "--etcd-servers", f"http://0.0.0.0:{etcd_port}"),
        *("--authorization-mode", "RBAC", "--service-account-issuer", "https://localhost"),
        *("--service-account-signing-key-file", signer, "--service-account-signing-key-file", signer),
        *("--service-account-key-file", signer, "--service-account-issuer", str(folder / "apiserver.crt")),
        *("--disable-admission-plugins", "ServiceAccount", "--client-ca-file", str(folder / "client.crt")),
        *("--service-cluster-ip-range", "10.0.0.0/24", "--allow-privileged"),
    ]


def _etcd_flags(folder: Path, port: int) -> list[str]:
    peers, clients = f"http://localhost:{free_port()}", f"http://0.0.0.0:{port}"
    return [
        *("-data-dir", str(folder / "data"), "-wal-dir", str(folder / "wal")),
        *("--listen-client-urls", clients, "--advertise-client-urls", clients),
        *("--initial-cluster", f"default={peers}", "--initial-advertise-peer-urls", peers, "--listen-peer-urls", peers),
    ]


def _whoami(port: int, folder: Path) -> Json:
    trust = ssl.create_default_context(cafile=str(folder / "apiserver.crt"))
    trust.load_cert_chain(folder / "client.crt", folder / "client.key")
    url = f"https://127.0.0.1:{port}/apis/authentication.k8s.io/v1/selfsubjectreviews"
    review = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}'
    with urlopen(Request(url, review, {"Content-Type": "application/json"}), context=trust) as answer:
        user: Json = json.load(answer)["status"]["userInfo"]
    return user
