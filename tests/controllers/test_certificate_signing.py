"""CertificateSigningRequests: those of kubelets are approved, what is approved is signed, what is old is deleted."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from awaiting import until, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, running
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from prometheus_client import CollectorRegistry

from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.certificates.authority import CertificateAuthority
from pilothouse.controllers.certificates.cleaner import outlived
from pilothouse.controllers.context import ControllerConfig
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled
from pilothouse.controlplane.certificates.keep import keep_authority
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import format_time

CLIENT = ["digital signature", "key encipherment", "client auth"]
SERVING = ["digital signature", "server auth"]
API_CLIENT, KUBELET = "kubernetes.io/kube-apiserver-client", "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
NODE_SUBJECT = ("system:node:n", "system:nodes")
KEY = ec.generate_private_key(ec.SECP256R1())


def asked(common_name: str, organization: str = "", *names: x509.GeneralName) -> str:
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        subject.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    subject.append(x509.NameAttribute(NameOID.USER_ID, "42"))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return base64.b64encode(builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.PEM)).decode()


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    keep_authority("kubernetes", tmp_path / "ca.crt", tmp_path / "ca.key")
    async with controlled_server(tmp_path) as server:
        yield server


def manager(server: ControlledServer, folder: Path, *names: str) -> ControllerManager:
    config = ControllerConfig(cluster_signing_cert_file=folder / "ca.crt", cluster_signing_key_file=folder / "ca.key")
    chosen = enabled(names or ("csrsigning", "csrapproving"))
    return ControllerManager(server.client, chosen, registry=CollectorRegistry(), config=config)


def requests(server: ControlledServer) -> ResourceClient:
    return server.client.resource("certificates.k8s.io/v1", "certificatesigningrequests")


async def ask(server: ControlledServer, name: str, request: str, signer: str, usages: list[str], **spec: Any) -> Json:
    wanted: Json = {"request": request, "signerName": signer, "usages": usages, **spec}
    return await requests(server).create({"metadata": {"name": name}, "spec": wanted})


async def approve(server: ControlledServer, request: Json) -> None:
    condition = {"type": "Approved", "status": "True", "reason": "Test", "message": "yes"}
    await requests(server).update({**request, "status": {"conditions": [condition]}}, subresource="approval")


async def certificate(server: ControlledServer, name: str) -> x509.Certificate:
    signed = await until(requests(server), name, lambda request: request["status"].get("certificate"))
    return x509.load_pem_x509_certificate(base64.b64decode(signed["status"]["certificate"]))


async def test_an_approved_request_is_signed_with_its_names_and_our_purposes(
    server: ControlledServer, tmp_path: Path
) -> None:
    async with running(manager(server, tmp_path)):
        request = await ask(server, "alice", asked("alice", "team"), API_CLIENT, CLIENT)
        await approve(server, request)
        issued = await certificate(server, "alice")
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    issued.verify_directly_issued_by(authority)
    assert issued.subject.rfc4514_string() == "CN=alice,O=team"
    assert not issued.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    purposes = issued.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    usage = issued.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_encipherment, usage.key_cert_sign) == (True, True, False)
    life = issued.not_valid_after_utc - issued.not_valid_before_utc
    assert life == timedelta(days=365)


@pytest.mark.parametrize(
    ("seconds", "life"),
    [(600, timedelta(minutes=15)), (9 * 3600, timedelta(hours=9)), (400 * 24 * 3600, timedelta(days=365))],
)
async def test_a_certificate_lives_as_long_as_asked_for_but_not_too_long(
    server: ControlledServer, tmp_path: Path, seconds: int, life: timedelta
) -> None:
    async with running(manager(server, tmp_path)):
        request = await ask(server, "alice", asked("alice"), API_CLIENT, CLIENT, expirationSeconds=seconds)
        await approve(server, request)
        issued = await certificate(server, "alice")
    assert issued.not_valid_after_utc - issued.not_valid_before_utc == life


async def test_serving_certificates_of_kubelets_keep_their_addresses(server: ControlledServer, tmp_path: Path) -> None:
    names = (x509.IPAddress(ip_address("192.0.2.7")), x509.DNSName("node.example"))
    async with running(manager(server, tmp_path)):
        request = await ask(server, "n", asked(*NODE_SUBJECT, *names), KUBELET_SERVING, SERVING)
        await approve(server, request)
        issued = await certificate(server, "n")
    found = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(found) == [names[1], names[0]]


@pytest.mark.parametrize(
    ("request_", "signer", "usages", "why"),
    [
        (asked("a"), API_CLIENT, ["server auth"], "invalid usage for client certificate: server auth"),
        (asked("a"), API_CLIENT, CLIENT[:2], "missing required usage for client certificate: client auth"),
        (asked("system:node:n"), KUBELET, CLIENT, "subject organization is not system:nodes"),
        (asked("n", "system:nodes"), KUBELET, CLIENT, "subject common name does not begin with system:node:"),
        (asked(*NODE_SUBJECT, x509.DNSName("a")), KUBELET, CLIENT, "DNS subjectAltNames are not allowed"),
        (
            asked(*NODE_SUBJECT),
            KUBELET,
            SERVING,
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (asked(*NODE_SUBJECT), KUBELET_SERVING, SERVING, "DNS or IP subjectAltName is required"),
        (
            asked(*NODE_SUBJECT, x509.DNSName("a"), x509.RFC822Name("a@b")),
            KUBELET_SERVING,
            SERVING,
            "Email subjectAltNames are not allowed",
        ),
    ],
)
async def test_a_rejected_request_gets_a_failed_condition(
    server: ControlledServer, tmp_path: Path, request_: str, signer: str, usages: list[str], why: str
) -> None:
    async with running(manager(server, tmp_path, "csrsigning")):
        await approve(server, await ask(server, "wrong", request_, signer, usages))
        failed = await until(requests(server), "wrong", lambda request: len(request["status"]["conditions"]) == 2)
    condition = failed["status"]["conditions"][1]
    assert (condition["type"], condition["reason"]) == ("Failed", "SignerValidationFailure")
    assert condition["message"] == why


async def test_only_approved_requests_of_known_signers_are_signed(server: ControlledServer, tmp_path: Path) -> None:
    async with running(manager(server, tmp_path, "csrsigning")):
        await ask(server, "pending", asked("a"), API_CLIENT, CLIENT)
        await approve(server, await ask(server, "foreign", asked("a"), "example.com/other", CLIENT))
        await approve(server, await ask(server, "last", asked("a"), API_CLIENT, CLIENT))
        await certificate(server, "last")
    for name in ("pending", "foreign"):
        assert "certificate" not in (await requests(server).get(name))["status"]


async def test_a_kubelet_that_may_is_approved_and_signed(server: ControlledServer, tmp_path: Path) -> None:
    """Everybody may do everything on this server."""
    async with running(manager(server, tmp_path)):
        await ask(server, "kubelet", asked(*NODE_SUBJECT), KUBELET, CLIENT)
        await ask(server, "person", asked("alice"), API_CLIENT, CLIENT)
        issued = await certificate(server, "kubelet")
    assert issued.subject.rfc4514_string() == "CN=system:node:n,O=system:nodes"
    (condition,) = (await requests(server).get("kubelet"))["status"]["conditions"]
    assert condition["reason"] == "AutoApproved"
    assert condition["message"] == "Auto approving kubelet client certificate after SubjectAccessReview."
    assert not (await requests(server).get("person"))["status"].get("conditions")


async def test_a_request_that_was_answered_long_ago_is_deleted(server: ControlledServer, tmp_path: Path) -> None:
    old = format_time(datetime.now(UTC) - timedelta(hours=2))
    denied = {"type": "Denied", "status": "True", "reason": "No", "message": "no", "lastUpdateTime": old}
    request = await ask(server, "denied", asked("a"), API_CLIENT, CLIENT)
    await ask(server, "new", asked("a"), API_CLIENT, CLIENT)
    await requests(server).update({**request, "status": {"conditions": [denied]}}, subresource="approval")
    async with running(manager(server, tmp_path, "csrcleaner")):
        await until_gone(requests(server), "denied")
    assert await requests(server).get("new")


def test_key_usages_have_a_fixed_order_and_unknown_usages_are_rejected(tmp_path: Path) -> None:
    keep_authority("kubernetes", tmp_path / "ca.crt", tmp_path / "ca.key")
    authority = CertificateAuthority.load(tmp_path / "ca.crt", tmp_path / "ca.key")
    request = x509.load_pem_x509_csr(base64.b64decode(asked("a")))

    def signed(*usages: str) -> x509.Certificate:
        pem = authority.sign(request, usages=usages, ttl=timedelta(days=9999), now=datetime.now(UTC))
        return x509.load_pem_x509_certificate(pem)

    issued = signed("s/mime", "email protection", "any", "encipher only")
    purposes = issued.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE, ExtendedKeyUsageOID.EMAIL_PROTECTION]
    assert issued.not_valid_after_utc == authority.certificate.not_valid_after_utc
    with pytest.raises(ValueError, match=r'unrecognized usage values: \["sailing"\]'):
        signed("sailing", "any")


NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("condition", "issued", "hours", "goes"),
    [
        (None, False, 24, False),
        (None, False, 25, True),
        ("Approved", True, 1, False),
        ("Approved", True, 2, True),
        ("Approved", False, 24, False),
        ("Approved", False, 25, True),
        ("Denied", False, 1, False),
        ("Denied", False, 2, True),
        ("Failed", False, 2, True),
    ],
)
def test_request_retention_depends_on_the_outcome(condition: str | None, issued: bool, hours: int, goes: bool) -> None:
    since = format_time(NOW - timedelta(hours=hours))
    status: Json = {"certificate": "c"} if issued else {}
    if condition:
        status["conditions"] = [{"type": condition, "lastUpdateTime": since}]
    assert bool(outlived({"metadata": {"creationTimestamp": since}, "status": status}, NOW)) is goes
