"""A caBundle that holds no certificate: who is to call the webhook says so in upstream's words."""

from __future__ import annotations

from pathlib import Path

from awaiting import until
from whole_server import CONFIG_MAPS, whole_server

from pilothouse.client import Json

GARBAGE: Json = {"url": "https://127.0.0.1:1/", "caBundle": "Z2FyYmFnZQ=="}
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


async def test_resource_with_an_invalid_conversion_webhook_is_not_served(tmp_path: Path) -> None:
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}
        for name in ("v1", "v2")
    ]
    conversion = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": GARBAGE}}
    names = {"plural": "bs", "kind": "B"}
    spec = {"group": "lo.x", "scope": "Namespaced", "names": names, "versions": versions, "conversion": conversion}
    async with whole_server(tmp_path) as api, api.client() as client:
        definitions = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
        await definitions.create({"metadata": {"name": "bs.lo.x"}, "spec": spec})
        await until(definitions, "bs.lo.x", lambda found: "NamesAccepted" in str(found.get("status")))
        answer = await api.request("GET", "/apis/lo.x/v1/namespaces/default/bs")
    assert (answer.status, answer.json["message"]) == (500, "Internal error occurred: error resolving resource")


async def test_an_admission_webhook_has_no_client_then(tmp_path: Path) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    hook = {"name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": GARBAGE}
    async with whole_server(tmp_path) as api:
        made = await api.request("POST", WEBHOOKS, {"metadata": {"name": "x"}, "webhooks": [{**hook, "rules": [rule]}]})
        await api.request("GET", f"{WEBHOOKS}?resourceVersion={made.json['metadata']['resourceVersion']}")
        refused = await api.request("POST", CONFIG_MAPS, {"metadata": {"name": "x"}})
    assert (refused.status, refused.json["message"]) == (
        500,
        'Internal error occurred: failed calling webhook "a.b.c": could not get REST client: '
        "unable to load root certificates: unable to parse bytes as PEM block",
    )
