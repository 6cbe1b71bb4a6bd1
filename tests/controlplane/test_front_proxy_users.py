"""Users whom a front proxy names, at a real server."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from serving_process import ServeProcess, parsed
from tls_backends import Pki

from pilothouse.apiserver import KeyPair

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder = tmp_path_factory.mktemp("front-proxy")
    tokens = folder / "tokens.csv"
    tokens.write_text("secret,walker,w-1\n")
    served = ServeProcess(folder / "data", f"--token-auth-file={tokens}", "--authorization-mode=RBAC")
    yield served
    served.close()


def _pki(server: ServeProcess) -> Path:
    return server.data_dir / "pki"


def _who(server: ServeProcess, certificate: str | KeyPair, **headers: str) -> tuple[int, Any]:
    """The answer to who this is, with a certificate, or with the one of this name in the data directory."""
    context = ssl.create_default_context(cafile=str(_pki(server) / "ca.crt"))
    if isinstance(certificate, str):
        certificate = KeyPair(_pki(server) / f"{certificate}.crt", _pki(server) / f"{certificate}.key")
    context.load_cert_chain(certificate.cert_file, certificate.key_file)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=PATIENCE)
    body = json.dumps({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", REVIEWS, body, {"Content-Type": "application/json", **named})
    answer = connection.getresponse()
    found = parsed(answer.read())
    connection.close()
    return answer.status, found["status"]["userInfo"] if answer.status == 201 else found


def test_a_front_proxy_is_believed_about_its_users(server: ServeProcess) -> None:
    status, user = _who(
        server,
        "front-proxy-client",
        X_Remote_User="amy",
        X_Remote_Uid="a-1",
        X_Remote_Group="builders",
        **{"X-Remote-Extra-Acme.com%2Fproject": "one"},
    )
    assert status == 201
    assert user == {
        "username": "amy",
        "uid": "a-1",
        "groups": ["builders", "system:authenticated"],
        "extra": {"acme.com/project": ["one"]},
    }


def test_a_front_proxy_that_names_nobody_is_refused(server: ServeProcess) -> None:
    status, refusal = _who(server, "front-proxy-client")
    assert (status, refusal["reason"]) == (401, "Unauthorized")


def test_a_front_proxy_may_pass_a_token_on(server: ServeProcess) -> None:
    status, user = _who(server, "front-proxy-client", Authorization="Bearer secret")
    assert (status, user["username"]) == (201, "walker")


def test_nobody_else_is_believed(server: ServeProcess) -> None:
    status, user = _who(server, "admin", X_Remote_User="amy", X_Remote_Group="system:masters")
    assert (status, user["username"]) == (201, "kubernetes-admin")


def test_extension_servers_are_told_of_this_front_proxy(server: ServeProcess) -> None:
    _, body = server.get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
    data = parsed(body)["data"]
    assert data["requestheader-client-ca-file"] == (_pki(server) / "front-proxy-ca.crt").read_text()
    assert data["client-ca-file"] == (_pki(server) / "ca.crt").read_text()
    assert data["requestheader-allowed-names"] == '["front-proxy-client"]'


def test_a_proxy_with_another_name_is_no_front_proxy(server: ServeProcess, tmp_path: Path) -> None:
    """The same CA may issue certificates for other things."""
    from pilothouse.controlplane.certificates.issue import Profile
    from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate

    ca = keep_authority("", _pki(server) / "front-proxy-ca.crt", _pki(server) / "front-proxy-ca.key")
    keep_certificate(Profile("someone"), ca, _pki(server) / "someone.crt", _pki(server) / "someone.key")
    status, _ = _who(server, "someone", X_Remote_User="amy")
    assert status == 401


IDENTITY = {
    "X-Remote-User": "amy",
    "X-Remote-Uid": "a-1",
    "X-Remote-Group": "builders",
    "X-Remote-Extra-Project": "one",
}


def test_a_front_proxy_of_a_given_ca_is_believed_only_in_headers_that_flags_name(tmp_path: Path) -> None:
    pki = Pki.make(tmp_path / "proxies")
    flags = [f"--requestheader-client-ca-file={pki.ca_file}", "--requestheader-username-headers=X-Remote-User"]
    served = ServeProcess(tmp_path / "data", *flags, "--authorization-mode=RBAC")
    try:
        for proxy in (pki.client("gateway"), "front-proxy-client"):
            status, user = _who(served, proxy, **IDENTITY)
            assert (status, user) == (201, {"username": "amy", "groups": ["system:authenticated"]})
    finally:
        served.close()


def test_a_front_proxy_of_a_given_ca_names_nobody_without_a_header_for_names(tmp_path: Path) -> None:
    pki = Pki.make(tmp_path / "proxies")
    flags = [f"--requestheader-client-ca-file={pki.ca_file}", "--requestheader-group-headers=X-Remote-Group"]
    served = ServeProcess(tmp_path / "data", *flags, "--authorization-mode=RBAC")
    try:
        status, refusal = _who(served, pki.client("gateway"), **IDENTITY)
        assert (status, refusal["reason"]) == (401, "Unauthorized")
    finally:
        served.close()
