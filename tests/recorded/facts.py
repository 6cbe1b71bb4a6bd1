"""Facts of a running server as JSON documents: discovery, columns, APIServices, bootstrap objects, health checks."""

from __future__ import annotations

import json
import re
from typing import Any

from scenario import Call

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_BOOTSTRAP = {
    "rbac-bootstrap.json": (
        "/apis/rbac.authorization.k8s.io/v1",
        ("clusterroles", "clusterrolebindings", "roles", "rolebindings"),
    ),
    "flowcontrol-bootstrap.json": (
        "/apis/flowcontrol.apiserver.k8s.io/v1",
        ("flowschemas", "prioritylevelconfigurations"),
    ),
}
_GATE = re.compile(r'^kubernetes_feature_enabled\{name="([^"]*)",stage="([^"]*)"\} (\d)', re.MULTILINE)


def facts_of(call: Call) -> dict[str, Any]:
    """Return file name -> document, as tests/recorded/facts.tar.xz has them."""
    discovery = {path: _json(call, path, _AGGREGATED) for path in ("/api", "/apis")}
    return {
        "discovery.json": discovery,
        "openapi-v3-index.json": sorted(_json(call, "/openapi/v3")["paths"]),
        "apiservices.json": [
            {"name": item["metadata"]["name"], "labels": item["metadata"].get("labels"), "spec": item["spec"]}
            for item in _json(call, "/apis/apiregistration.k8s.io/v1/apiservices")["items"]
        ],
        "health-checks.json": {
            path: _text(call, f"{path}?verbose").splitlines() for path in ("/healthz", "/livez", "/readyz")
        },
        "table-columns.json": _columns(call, discovery),
        "feature-gates.json": {
            name: {"stage": stage, "enabled": enabled == "1"}
            for name, stage, enabled in _GATE.findall(_text(call, "/metrics"))
        },
        **{
            name: {plural: [_object(item) for item in _json(call, f"{path}/{plural}")["items"]] for plural in plurals}
            for name, (path, plurals) in _BOOTSTRAP.items()
        },
    }


def _columns(call: Call, discovery: dict[str, Any]) -> dict[str, Any]:
    """Return path of a list -> columns without their descriptions."""
    columns = {}
    for root, document in discovery.items():
        for group in document["items"]:
            for version in group["versions"]:
                path = "/".join(filter(None, (root, group["metadata"].get("name"), version["version"])))
                for resource in version["resources"]:
                    if "list" in resource["verbs"]:
                        found = _json(call, f"{path}/{resource['resource']}", _TABLE)
                        columns[f"{path}/{resource['resource']}"] = [
                            {key: column[key] for key in ("name", "type", "format", "priority")}
                            for column in found.get("columnDefinitions") or ()
                        ]
    return columns


def _object(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object as the recorded facts have it: namespaced objects are without annotations."""
    metadata = {
        key: value
        for key, value in item["metadata"].items()
        if key != "annotations" or "namespace" not in item["metadata"]
    }
    kept = {key: value for key, value in item.items() if key not in ("metadata", "status", "kind", "apiVersion")}
    return kept | {key: metadata[key] for key in ("name", "namespace", "labels", "annotations") if metadata.get(key)}


def _json(call: Call, path: str, accept: str = "application/json") -> Any:
    return json.loads(_text(call, path, accept))


def _text(call: Call, path: str, accept: str = "*/*") -> str:
    return call("GET", path, None, "", {"Accept": accept}).text
