"""Webhooks of an operator on a real API server: installed, called over TLS, and trusted by their CA."""

from __future__ import annotations

import asyncio
import base64
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from awaiting import until
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from patience import PATIENCE

from pilothouse.builder.certificates import issue_in_child
from pilothouse.client import Client, ResourceClient
from pilothouse.client.clock import REAL_CLOCK
from pilothouse.client.fake_clock import FakeClock
from pilothouse.controlplane.certificates.issue import AUTHORITY_LIFE, LEAF_LIFE
from pilothouse.controlplane.certificates.paths import CertificateError
from pilothouse.errors import Invalid, StatusError
from pilothouse.kinds.conditions import is_true
from pilothouse.machinery.field import required
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json
from pilothouse.operator.reviews import AdmissionHandler, Conversion, ConversionHandler, ObjectForm
from pilothouse.operator.webhook_server import WebhookServer
from pilothouse.operator.webhooks import (
    CONVERT_PATH,
    AdmissionOptions,
    AdmissionWebhook,
    Denied,
    WebhookOptions,
    conversion_of,
    webhook_configurations,
)
from pilothouse.testing import API, server

LOCAL = WebhookOptions(host="127.0.0.1", port=0)
IN_CLUSTER = WebhookOptions(service="default/demo", host="127.0.0.1", port=0)


@pytest.fixture
async def api() -> AsyncIterator[API]:
    async with server() as running:
        yield running


@pytest.fixture
async def client(api: API) -> AsyncIterator[Client]:
    async with api.client() as connected:
        yield connected


def webhook(method: Callable[..., Any], **options: Any) -> tuple[AdmissionWebhook, Callable[[Any], Awaitable[Json]]]:
    declared = AdmissionOptions(**{"type": "validating", **options})
    hook = AdmissionWebhook(method.__name__, declared, "", "v1", "ConfigMap", "configmaps")
    handler = AdmissionHandler(method, ObjectForm(), GroupKind("", "ConfigMap"), mutating=declared.type == "mutating")
    return hook, handler.review


@asynccontextmanager
async def serving(
    client: Client, *webhooks: tuple[AdmissionWebhook, Any], options: WebhookOptions = LOCAL, **more: Any
) -> AsyncIterator[WebhookServer]:
    reviewers = {hook.path: review for hook, review in webhooks} | more.get("reviewers", {})
    clock = more.get("clock", REAL_CLOCK)
    hooks = [hook for hook, _ in webhooks]
    made = WebhookServer("demo", hooks, reviewers, more.get("converted", ()), options, clock=clock)
    await made.start(client)
    try:
        yield made
    finally:
        await made.stop()


async def test_denials_patches_and_warnings_reach_the_client(client: Client) -> None:
    def label(obj: Json) -> None:
        obj["metadata"].setdefault("labels", {})["seen"] = "yes"

    def check(obj: Json) -> Any:
        if "data" not in obj:
            yield required("data")

    def closed(obj: Json) -> None:
        if obj["metadata"]["name"] == "closed":
            raise Denied("come back tomorrow", code=409, reason="Conflict")

    maps = client.resource("v1", "configmaps", namespace="default")
    async with serving(client, webhook(label, type="mutating"), webhook(check), webhook(closed)):
        created = await maps.create({"metadata": {"name": "a"}, "data": {"b": "c"}})
        assert created["metadata"]["labels"] == {"seen": "yes"}
        with pytest.raises(Invalid) as invalid:
            await maps.create({"metadata": {"name": "b"}})
        assert 'webhook "check.configmaps.core.k8s.io" denied the request: ConfigMap "b" is invalid' in str(
            invalid.value
        )
        with pytest.raises(StatusError, match="come back tomorrow") as denied:
            await maps.create({"metadata": {"name": "closed"}, "data": {"b": "c"}})
        assert (denied.value.code, denied.value.reason) == (409, "Conflict")
    configurations = client.resource("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations")
    assert (await configurations.list())["items"] == []
    await maps.create({"metadata": {"name": "b"}})


async def test_the_failure_policy_decides_when_a_handler_fails(client: Client) -> None:
    def broken(obj: Json) -> None:
        raise KeyError(obj["metadata"]["name"])

    maps = client.resource("v1", "configmaps", namespace="default")
    async with serving(client, webhook(broken, failure_policy="Ignore")):
        await maps.create({"metadata": {"name": "a"}})
    async with serving(client, webhook(broken, failure_policy="Fail")):
        with pytest.raises(StatusError, match="failed calling webhook"):
            await maps.create({"metadata": {"name": "b"}})


async def test_versions_are_converted_by_the_operator(client: Client) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v1alpha1")
    ]
    names = {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"}
    spec = {"group": "demo.example.com", "scope": "Namespaced", "names": names, "versions": versions}
    definitions = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    conversions = {
        ("v1alpha1", "v1"): Conversion(lambda obj: {**obj, "spec": {"length": obj["spec"]["long"]}}),
        ("v1", "v1alpha1"): Conversion(lambda obj: {**obj, "spec": {"long": obj["spec"]["length"]}}),
    }
    handler = ConversionHandler({GroupKind("demo.example.com", "Boat"): conversions})
    await definitions.create(
        {"metadata": {"name": "boats.demo.example.com"}, "spec": spec}
        | {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    )
    more: dict[str, Any] = {"reviewers": {CONVERT_PATH: handler.review}, "converted": ["boats.demo.example.com"]}
    async with serving(client, **more):
        old = client.resource("demo.example.com/v1alpha1", "boats", namespace="default")
        new = client.resource("demo.example.com/v1", "boats", namespace="default")

        await until(definitions, "boats.demo.example.com", lambda obj: is_true(obj, "Established"))
        boat = {"apiVersion": "demo.example.com/v1alpha1", "kind": "Boat", "metadata": {"name": "ann"}}
        await old.create({**boat, "spec": {"long": 7}})
        assert (await new.get("ann"))["spec"] == {"length": 7}
    conversion = (await definitions.get("boats.demo.example.com"))["spec"]["conversion"]
    assert conversion == {"strategy": "None"}
    elsewhere = conversion_of({"url": "https://elsewhere.example.com/convert", "caBundle": ""})
    await definitions.patch("boats.demo.example.com", {"spec": {"conversion": elsewhere}})
    async with serving(client, **more):
        assert await conversion_url(definitions) != "https://elsewhere.example.com/convert"
    assert await conversion_url(definitions) == "https://elsewhere.example.com/convert"


async def conversion_url(definitions: ResourceClient) -> str:
    definition = await definitions.get("boats.demo.example.com")
    return str(definition["spec"]["conversion"]["webhook"]["clientConfig"]["url"])


async def test_in_a_cluster_the_ca_is_shared_and_injected(client: Client) -> None:
    def check(obj: Json) -> None:
        pass

    hook, _ = webhook(check, failure_policy="Ignore")

    def in_front(path: str) -> Json:
        return {"service": {"namespace": "default", "name": "demo", "path": path}}

    [configuration] = webhook_configurations("demo", [hook], in_front)
    resource = client.resource("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations")
    await resource.create(configuration)
    async with serving(client, webhook(check), options=IN_CLUSTER) as one:
        [injected] = (await resource.get("demo"))["webhooks"]
        bundle = base64.b64decode(injected["clientConfig"]["caBundle"]).decode()
        async with serving(client, webhook(check), options=IN_CLUSTER) as other:
            for port in (one.port, other.port):
                await handshake(port, bundle)
        [again] = (await resource.get("demo"))["webhooks"]
        assert again["clientConfig"] == injected["clientConfig"]


async def test_certificate_and_ca_are_renewed_and_the_injected_ca_follows(client: Client) -> None:
    """A second replica keeps serving; both present certificates of the CA that the configuration trusts."""

    def check(obj: Json) -> None:
        pass

    hook, _ = webhook(check, failure_policy="Ignore")
    [configuration] = webhook_configurations("demo", [hook], lambda path: {"url": f"https://demo.example.com{path}"})
    resource = client.resource("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations")
    secrets = client.resource("v1", "secrets", namespace="default")
    await resource.create(configuration)
    clock = FakeClock(time.time())
    options: dict[str, Any] = {"options": IN_CLUSTER, "clock": clock}

    async def trusted() -> list[x509.Certificate]:
        [injected] = (await resource.get("demo"))["webhooks"]
        return x509.load_pem_x509_certificates(base64.b64decode(injected["clientConfig"]["caBundle"]))

    async def follows(*servers: WebhookServer) -> tuple[list[x509.Certificate], set[int]]:
        """Wait until every server presents a valid certificate of the first trusted CA."""
        now = datetime.fromtimestamp(clock.wall(), UTC)
        async with asyncio.timeout(PATIENCE):
            while True:
                authorities = await trusted()
                leaves = [await presented(one.port) for one in servers]
                if all(is_issued_by(leaf, authorities[0]) and now < leaf.not_valid_after_utc for leaf in leaves):
                    return authorities, {leaf.serial_number for leaf in leaves}
                await clock.wait_for_timers(2)
                clock.advance(61)

    async with serving(client, webhook(check), **options) as one, serving(client, webhook(check), **options) as other:
        [ca], first = await follows(one, other)
        clock.advance(LEAF_LIFE.total_seconds())
        renewed, second = await follows(one, other)
        assert (renewed, first & second) == ([ca], set())
        clock.advance((AUTHORITY_LIFE - 2 * LEAF_LIFE + timedelta(days=1)).total_seconds())
        async with asyncio.timeout(PATIENCE):
            while len(await trusted()) == 1:
                await clock.wait_for_timers(2)
                clock.advance(61)
        [new, old], third = await follows(one, other)
        assert (old, second & third) == (ca, set())
        await secrets.delete("demo-ca")
        async with asyncio.timeout(PATIENCE):
            while new in await trusted():
                await clock.wait_for_timers(2)
                clock.advance(61)
        authorities, _ = await follows(one, other)
        secret = await secrets.get("demo-ca")
        assert x509.load_pem_x509_certificates(base64.b64decode(secret["data"]["ca.crt"])) == authorities


async def presented(port: int) -> x509.Certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(certificate)


def is_issued_by(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, InvalidSignature):
        return False
    return True


async def handshake(port: int, bundle: str) -> None:
    """Connect as an API server does: by the name of the Service, trusting the bundle."""
    context = ssl.create_default_context(cadata=bundle)
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="demo.default.svc")
    writer.close()
    await writer.wait_closed()


def test_certificates_are_issued_without_cryptography_in_the_process(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; import pilothouse.operator.webhook_server;"
        "from pilothouse.builder.certificates import ServingCertificate;"
        "from pilothouse.builder.extension_service import ExtensionService;"
        "place = ExtensionService('', (), 'demo', 'default');"
        "ServingCertificate(Path(sys.argv[1]), place, in_child=True).keep();"
        "print('cryptography' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
    authority, certificate = (
        x509.load_pem_x509_certificate((tmp_path / name).read_bytes()) for name in ("ca.crt", "server.crt")
    )
    certificate.verify_directly_issued_by(authority)


def test_an_error_of_the_issuing_child_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "ca.key").write_text("no key")
    task = {"folder": str(tmp_path), "name": "demo", "dns": [], "ips": [], "now": "2026-01-01T00:00:00+00:00"}
    with pytest.raises(CertificateError, match=r"ca\.key is no private key"):
        issue_in_child({**task, "rotate": False, "certify": True})


def test_a_conversion_names_the_review_versions() -> None:
    assert conversion_of({"url": "https://here"}) == {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"url": "https://here"}, "conversionReviewVersions": ["v1"]},
    }
