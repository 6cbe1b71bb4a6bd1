"""--admission-control-config-file: configurations of plug-ins, and who the server is to webhooks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from admission_webhooks import allow
from aiohttp import web
from certificates_fixture import TestCA
from patience import PATIENCE
from webhook_server import FixedResolver, webhook_server

from pilothouse.apiserver.webhook.client import WebhookClients
from pilothouse.controlplane.admission_configuration import admission_configurations, webhook_credentials
from pilothouse.machinery.objects import Json

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
WEBHOOKS = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration"}


def written(folder: Path, text: str, name: str = "admission.yaml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_configurations_stand_in_the_file_or_beside_it(tmp_path: Path) -> None:
    written(tmp_path, "limits: [{type: Server}]", "limits.yaml")
    text = (
        HEAD
        + "plugins:\n- {name: PodSecurity, configuration: {kind: A}}\n- {name: EventRateLimit, path: limits.yaml}\n"
        "- {name: PodSecurity, configuration: {kind: B}}\n- {name: Priority}\n"
    )
    assert admission_configurations(written(tmp_path, text)) == {
        "PodSecurity": {"kind": "A"},
        "EventRateLimit": {"limits": [{"type": "Server"}]},
        "Priority": {},
    }


def test_a_configuration_from_before_there_were_kinds_is_for_its_plug_in(tmp_path: Path) -> None:
    file = written(tmp_path, "podNodeSelectorPluginConfig: {ns: a=b}")
    assert admission_configurations(file) == {"PodNodeSelector": {"podNodeSelectorPluginConfig": {"ns": "a=b"}}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: Pod\napiVersion: v1", 'no kind "Pod" is registered for version "v1"'),
        ("{}", 'no kind "" is registered for version ""'),
        (HEAD + "plugin: []", 'strict decoding error: unknown field "plugin"'),
        (HEAD + "plugins: [{name: a, file: b}]", 'unknown field "file"'),
        (HEAD + "plugins: [{name: a, path: missing.yaml}]", "unable to read admission control configuration from"),
        (HEAD + "plugins: [{name: a, configuration: 1}]", "plugins[0].configuration is no object"),
        (HEAD + "plugins: []\nplugins: []", "already set in map"),
        ("a: [", "yaml: "),
        ("[]", "is no object"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        admission_configurations(written(tmp_path, text))


@pytest.mark.parametrize(
    ("configuration", "problem"),
    [
        ({"kind": "Other"}, "must be a WebhookAdmissionConfiguration"),
        ({**WEBHOOKS, "kubeConfig": "x"}, 'unknown field "kubeConfig"'),
        ({**WEBHOOKS, "kubeConfigFile": "x"}, 'kubeConfigFile: Invalid value: "x": must be an absolute file path'),
        ({**WEBHOOKS, "kubeConfigFile": "/no/such/file"}, "cannot read the kubeconfig /no/such/file"),
    ],
)
def test_a_webhook_configuration_that_makes_no_sense_is_refused(configuration: Json, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        webhook_credentials({"MutatingAdmissionWebhook": configuration})


KUBECONFIG = """
users:
- {name: 'hook.default.svc:8443', user: {token: exact}}
- {name: 'hook.default.svc', user: {token: default-port}}
- {name: '*.default.svc', user: {token: namespace}}
- {name: '*.svc', user: {username: amy, password: secret}}
- {name: current, user: {token: current, as: bob, as-groups: [a, b]}}
contexts: [{name: c, context: {user: current}}]
current-context: c
"""


@pytest.mark.parametrize(
    ("target", "headers"),
    [
        ("hook.default.svc:8443", {"Authorization": "Bearer exact"}),
        ("hook.default.svc:443", {"Authorization": "Bearer default-port"}),
        ("other.default.svc:443", {"Authorization": "Bearer namespace"}),
        ("x.y.svc:443", {"Authorization": "Basic YW15OnNlY3JldA=="}),
        (
            "127.0.0.1:9443",
            {"Authorization": "Bearer current", "Impersonate-User": "bob", "Impersonate-Group": "a, b"},
        ),
    ],
)
async def test_the_user_with_the_closest_name_is_the_one(tmp_path: Path, target: str, headers: Json) -> None:
    file = written(tmp_path, KUBECONFIG, "kubeconfig")
    find = webhook_credentials({"MutatingAdmissionWebhook": {**WEBHOOKS, "kubeConfigFile": file}})
    found = find["MutatingAdmissionWebhook"](target)
    assert found is not None
    assert await found.headers() == headers


async def test_a_webhook_sees_who_calls_it(tmp_path: Path) -> None:
    ca = TestCA()
    pair = ca.issue("apiserver")
    written(tmp_path, pair.certificate.decode(), "cert.pem")
    written(tmp_path, pair.key.decode(), "key.pem")
    user = "{client-certificate: cert.pem, client-key: key.pem, token: t}"
    file = written(tmp_path, f"users: [{{name: '*', user: {user}}}]", "kubeconfig")
    find = webhook_credentials({"ValidatingAdmissionWebhook": {**WEBHOOKS, "kubeConfigFile": file}})
    shown: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        shown.append(request.headers["authorization"])
        peer = request.transport.get_extra_info("ssl_object").getpeercert()
        shown.append(str(peer["subject"]))
        return web.json_response({"kind": "Review", "apiVersion": "v1", "response": allow({})})

    async with webhook_server(answer, client_ca=ca) as server:
        clients = WebhookClients(FixedResolver(), credentials=find["ValidatingAdmissionWebhook"])
        await clients.post(server.by_url(), {}, timeout=PATIENCE)
        await clients.close()
    assert shown[0] == "Bearer t"
    assert "apiserver" in shown[1]
