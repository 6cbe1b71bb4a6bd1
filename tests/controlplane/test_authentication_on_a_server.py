"""A real server that knows users in every way: by an issuer, a webhook, and bootstrap tokens."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import ssl
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from authentication_configuration import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from oidc_issuer import Issuer, oidc_issuer
from patience import PATIENCE
from review_webhooks import ReviewServer, review_server
from serving_process import ServeProcess

from pilothouse.machinery.objects import Json

_UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
SELF = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})


def decide(review: Json) -> Json:
    if review["spec"]["token"] == "from-webhook":
        return {"authenticated": True, "user": {"username": "wanda", "groups": ["w"], "extra": {"k": ["v"]}}}
    return {"authenticated": False}


class Elsewhere:
    """An issuer and a webhook, on an event loop of their own, because the server is another process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.issuer: Issuer = self._enter(oidc_issuer())
        self.webhook: ReviewServer = self._enter(review_server(decide))

    def _enter(self, context: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(self._stack.enter_async_context(context), self._loop).result(10)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stack.aclose(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    running = Elsewhere()
    yield running
    running.close()


@contextmanager
def serving(elsewhere: Elsewhere, folder: Path) -> Iterator[ServeProcess]:
    config = folder / "authentication.yaml"
    anonymous = "anonymous: {enabled: true, conditions: [{path: /livez}]}\n"
    config.write_text(jwt(elsewhere.issuer.url, ca=elsewhere.issuer.ca) + anonymous)
    running = ServeProcess(
        folder / "data",
        f"--authentication-config={config}",
        f"--authentication-token-webhook-config-file={elsewhere.webhook.kubeconfig(folder)}",
        "--authentication-token-webhook-version=v1",
        "--enable-bootstrap-token-auth",
        "--authorization-mode=RBAC",
    )
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="module")
def server(elsewhere: Elsewhere, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    with serving(elsewhere, tmp_path_factory.mktemp("authentication")) as running:
        yield running


def send(server: ServeProcess, method: str, path: str, body: str = "", token: str = "") -> tuple[int, Any]:
    connection = server.connect(as_admin=token == "admin")
    headers = {"content-type": "application/json"}
    if token not in ("", "admin"):
        headers["authorization"] = f"Bearer {token}"
    connection.request(method, path, body=body or None, headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, json.loads(content) if content.startswith(b"{") else content.decode()


def who(server: ServeProcess, token: str) -> Json | int:
    status, answer = send(server, "POST", REVIEWS, SELF, token)
    return answer["status"]["userInfo"] if status == 201 else status


def who_in_the_end(server: ServeProcess, token: str) -> Json:
    """A server that has just started may not have the issuer's keys yet."""
    return next(user for _ in range(100) if isinstance(user := who(server, token), dict))


def test_users_come_in_with_tokens_of_the_issuer(server: ServeProcess, elsewhere: Elsewhere) -> None:
    user = who_in_the_end(server, elsewhere.issuer.token())
    assert (user["username"], user["groups"]) == ("jane", ["system:authenticated"])
    status, refusal = send(server, "POST", REVIEWS, SELF, elsewhere.issuer.token(aud="other"))
    assert (status, refusal["message"], refusal["reason"]) == (401, "Unauthorized", "Unauthorized")


def test_the_webhook_is_asked_about_tokens_that_nobody_else_knows_and_once(
    server: ServeProcess, elsewhere: Elsewhere
) -> None:
    already = len(elsewhere.webhook.reviews)
    for _ in range(3):
        user = who(server, "from-webhook")
        assert isinstance(user, dict)
        assert (user["username"], user["groups"], user["extra"]) == (
            "wanda",
            ["w", "system:authenticated"],
            {"k": ["v"]},
        )
    asked = [review for review in elsewhere.webhook.reviews[already:] if review["spec"]["token"] == "from-webhook"]
    assert len(asked) == 1
    assert asked[0]["spec"]["audiences"] == ["https://kubernetes.default.svc"]
    assert who(server, "from-nowhere") == 401


def test_a_bootstrap_token_is_good_while_its_secret_is_there(server: ServeProcess) -> None:
    secret = {
        "metadata": {"name": "bootstrap-token-abc123"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abc123",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
        },
    }
    secrets = "/api/v1/namespaces/kube-system/secrets"
    status, made = send(server, "POST", secrets, json.dumps(secret), "admin")
    assert status == 201, made
    user = who(server, "abc123.0123456789abcdef")
    assert isinstance(user, dict)
    assert user["username"] == "system:bootstrap:abc123"
    assert send(server, "DELETE", f"{secrets}/bootstrap-token-abc123", token="admin")[0] == 200
    assert who(server, "abc123.0123456789abcdef") == 401


def test_users_may_be_anonymous_only_where_the_file_says(server: ServeProcess) -> None:
    assert send(server, "GET", "/livez")[0] == 200
    status, refusal = send(server, "GET", "/readyz")
    assert (status, refusal["reason"]) == (401, "Unauthorized")


def _certificate(server: ServeProcess, folder: Path, purpose: x509.ObjectIdentifier) -> ssl.SSLContext:
    """What a client shows that has a certificate of the server's CA, for a purpose."""
    pki = server.data_dir / "pki"
    authority = x509.load_pem_x509_certificate((pki / "ca.crt").read_bytes())
    signer: Any = load_pem_private_key((pki / "ca.key").read_bytes(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    names = {NameOID.COMMON_NAME: "carl", NameOID.ORGANIZATION_NAME: "crew", _UID: "u-7"}
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(oid, value) for oid, value in names.items()]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    file = folder / "client.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(signed.public_bytes(Encoding.PEM) + private)
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(file)
    return context


def test_a_client_certificate_names_user_uid_and_groups(server: ServeProcess, tmp_path: Path) -> None:
    context = _certificate(server, tmp_path, ExtendedKeyUsageOID.CLIENT_AUTH)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=PATIENCE)
    connection.request("POST", REVIEWS, body=SELF, headers={"content-type": "application/json"})
    user = json.loads(connection.getresponse().read())["status"]["userInfo"]
    connection.close()
    assert (user["username"], user["uid"], user["groups"]) == ("carl", "u-7", ["crew", "system:authenticated"])


def test_a_certificate_for_another_purpose_lets_nobody_in_but_a_token_does(
    server: ServeProcess, tmp_path: Path
) -> None:
    context = _certificate(server, tmp_path, ExtendedKeyUsageOID.SERVER_AUTH)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=PATIENCE)
    assert _who(connection) == 401
    assert _who(connection, authorization="Bearer from-webhook") == "wanda"
    connection.close()


def _who(connection: http.client.HTTPSConnection, **headers: str) -> str | int:
    connection.request("POST", REVIEWS, body=SELF, headers={"content-type": "application/json", **headers})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    return found["status"]["userInfo"]["username"] if answer.status == 201 else answer.status


def test_how_users_came_in_is_counted(server: ServeProcess, elsewhere: Elsewhere) -> None:
    token = elsewhere.issuer.token(jti="counted")
    who_in_the_end(server, token)
    who_in_the_end(server, token)
    assert who(server, "of nobody") == 401
    status, metrics = server.get("/metrics")  # with a client certificate
    shown = metrics.decode()
    assert status == 200
    for series in (
        'authentication_attempts{result="error"}',
        'authentication_duration_seconds_count{result="success"}',
        'authenticated_user_requests{username="other"}',
        "apiserver_client_certificate_expiration_seconds_count",
        'apiserver_authorization_decisions_total{decision="allowed",name="rbac",type="RBAC"}',
        'authentication_token_cache_request_total{status="hit"}',
        'apiserver_authentication_jwt_authenticator_latency_seconds_count{jwt_issuer_hash="sha256:',
    ):
        assert series in shown, series


def test_a_server_that_ends_closes_its_connections_to_the_issuer_and_the_webhook(
    elsewhere: Elsewhere, tmp_path: Path
) -> None:
    with serving(elsewhere, tmp_path) as server:
        who_in_the_end(server, elsewhere.issuer.token())
        assert isinstance(who(server, "from-webhook"), dict)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert "Unclosed" not in server.errors()
