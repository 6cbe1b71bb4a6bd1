"""Static webhooks and policies on a server: as kube-apiserver v1.36 answers with the same files."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from admission_policies import binding, policy, until
from whole_server import CONFIG_MAPS, whole_server

from pilothouse.client import Json
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

GROUP = "/apis/admissionregistration.k8s.io/v1"
VERSION = "admissionregistration.k8s.io/v1"
CONFIG = "apiserver.config.k8s.io/v1"
RULES = [
    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]},
    {
        "apiGroups": ["admissionregistration.k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["*"],
    },
]
NOWHERE = [{"apiGroups": ["none"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}]
EXPRESSION = "!has(object.metadata.labels) || !('bad' in object.metadata.labels)"
DENIED = (
    "ValidatingAdmissionPolicy 'deny.static.k8s.io' with binding 'deny.static.k8s.io' denied request: "
    f"failed expression: {EXPRESSION}"
)
MARKED = {
    "patchType": "ApplyConfiguration",
    "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'marked': 'yes'}}}"},
}
UNREACHABLE = (
    'Internal error occurred: failed calling webhook "{0}.example.com": failed to call webhook: '
    'Post "https://127.0.0.1:1/{0}?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
)
RESERVED = (
    '{0}.admissionregistration.k8s.io "a.static.k8s.io" is invalid: metadata.name: Invalid value: "a.static.k8s.io": '
    'names ending with ".static.k8s.io" are reserved for static manifest-based configurations '
    "and cannot be managed via the API"
)


def configuration(how: str, name: str, *webhooks: Json, **labels: str) -> Json:
    metadata = {"name": name, "labels": labels}
    kind = f"{how}WebhookConfiguration"
    return {"apiVersion": VERSION, "kind": kind, "metadata": metadata, "webhooks": list(webhooks)}


def unreachable(path: str) -> Json:
    """A webhook for what has a label of its name."""
    return {
        "name": f"{path}.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": f"https://127.0.0.1:1/{path}"},
        "rules": RULES,
        "objectSelector": {"matchLabels": {path: "yes"}},
    }


def manifests() -> dict[tuple[str, str], list[Json]]:
    """By plug-in, and the kind of its configuration."""
    deny, mark = "deny.static.k8s.io", "mark.static.k8s.io"
    marking: Json = {"reinvocationPolicy": "Never", "mutations": [MARKED]}
    webhooks = "WebhookAdmissionConfiguration"
    return {
        ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyConfiguration"): [
            policy(deny, rules=RULES, validations=[{"expression": EXPRESSION}]),
            binding(deny),
        ],
        ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyConfiguration"): [
            policy(mark, how="Mutating", rules=RULES, **marking),
            binding(mark, how="Mutating"),
        ],
        ("ValidatingAdmissionWebhook", webhooks): [
            configuration("Validating", "hook.static.k8s.io", unreachable("hooked"))
        ],
        ("MutatingAdmissionWebhook", webhooks): [
            configuration("Mutating", "mutate.static.k8s.io", unreachable("mutated"))
        ],
    }


def write_manifests(folder: Path) -> str:
    plugins = []
    for (plugin, kind), objects in manifests().items():
        (folder / plugin).mkdir()
        (folder / plugin / "all.json").write_text("\n---\n".join(map(json.dumps, objects)))
        settings = {"apiVersion": CONFIG, "kind": kind, "staticManifestsDir": str(folder / plugin)}
        plugins.append({"name": plugin, "configuration": settings})
    file = folder / "admission.json"
    file.write_text(json.dumps({"apiVersion": CONFIG, "kind": "AdmissionConfiguration", "plugins": plugins}))
    return str(file)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[API]:
    file = write_manifests(tmp_path_factory.mktemp("manifests"))
    gate = "ManifestBasedAdmissionControlConfig=true"
    async with whole_server(admission_control_config_file=file, feature_gates=gate) as api:
        yield api


def config_map(**labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": labels}}


def validating_policy(name: str, **labels: str) -> Json:
    made = policy(name, rules=NOWHERE, validations=[{"expression": "true"}])
    return {**made, "metadata": {"name": name, "labels": labels}}


POLICIES, WEBHOOKS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingwebhookconfigurations"
IN_GROUP = ".admissionregistration.k8s.io"
REFUSALS: dict[str, tuple[str, Json, int, str]] = {
    "policy": (CONFIG_MAPS, config_map(bad="x"), 422, f'configmaps "a" is forbidden: {DENIED}'),
    "webhook": (CONFIG_MAPS, config_map(hooked="yes"), 500, UNREACHABLE.format("hooked")),
    "mutating webhook": (CONFIG_MAPS, config_map(mutated="yes"), 500, UNREACHABLE.format("mutated")),
    "policy about a policy": (
        POLICIES,
        validating_policy("a", bad="x"),
        422,
        f'validatingadmissionpolicies{IN_GROUP} "a" is forbidden: {DENIED}',
    ),
    "webhook about a policy": (POLICIES, validating_policy("a", mutated="yes"), 500, UNREACHABLE.format("mutated")),
    "webhook about a webhook": (
        WEBHOOKS,
        configuration("Validating", "a", hooked="yes"),
        500,
        UNREACHABLE.format("hooked"),
    ),
    "name of a policy": (
        POLICIES,
        validating_policy("a.static.k8s.io"),
        422,
        RESERVED.format("ValidatingAdmissionPolicy"),
    ),
    "name of a configuration": (
        WEBHOOKS,
        configuration("Validating", "a.static.k8s.io"),
        422,
        RESERVED.format("ValidatingWebhookConfiguration"),
    ),
}


@pytest.mark.parametrize("why", REFUSALS)
async def test_static_ones_have_a_say_in_admission_configuration_too(api: API, why: str) -> None:
    path, obj, status, message = REFUSALS[why]
    answer = await api.request("POST", f"{path}?dryRun=All", obj)
    assert (answer.status, answer.json["message"]) == (status, message)


@pytest.mark.parametrize(
    ("path", "obj"),
    [
        (CONFIG_MAPS, config_map()),
        (POLICIES, validating_policy("a")),
        (WEBHOOKS, configuration("Validating", "a")),
    ],
)
async def test_static_policies_change_what_is_written(api: API, path: str, obj: Json) -> None:
    answer = await api.request("POST", f"{path}?dryRun=All", obj)
    assert (answer.status, answer.json["metadata"]["labels"]) == (201, {"marked": "yes"})


async def test_reviews_are_left_alone_and_static_objects_are_not_stored(api: API) -> None:
    review: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await api.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert answer.status == 201
    assert (await api.request("GET", f"{POLICIES}/deny.static.k8s.io")).status == 404


async def test_policies_of_clients_hold_beside_static_ones(api: API) -> None:
    own = policy("own", validations=[{"expression": "object.data.size() < 2"}], constraints={})
    for obj, plural in ((own, "policies"), (binding("own"), "policybindings")):
        created = await api.request("POST", f"{GROUP}/validatingadmission{plural}", obj)
        assert created.status == 201, created.body
    many = {**config_map(bad="x"), "data": {"a": "1", "b": "2"}}
    refused = await api.request("POST", f"{CONFIG_MAPS}?dryRun=All", many)
    assert refused.json["message"] == f'configmaps "a" is forbidden: {DENIED}'
    many["metadata"]["labels"] = {}
    refused = await until(
        lambda: api.request("POST", f"{CONFIG_MAPS}?dryRun=All", many), lambda answer: answer.status != 201
    )
    assert "ValidatingAdmissionPolicy 'own' with binding 'own' denied request" in refused.json["message"]
