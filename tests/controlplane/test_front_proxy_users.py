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


def _who(server: ServeProcess, certificate: str, **headers: str) -> tuple[int, Any]:
    """The answer to who this is, with one of the certificates in the data directory."""
    context = ssl.create_default_context(cafile=str(_pki(server) / "ca.crt"))
    context.load_cert_chain(_pki(server) / f"{certificate}.crt", _pki(server) / f"{certificate}.key")
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
