"""Copies each ConfigMap with the label mirror=true into the namespace "mirror", with kopf and the official client."""

# mypy: ignore-errors

import kopf
from kubernetes import client


@kopf.on.resume("v1", "configmaps", labels={"mirror": "true"})
@kopf.on.create("v1", "configmaps", labels={"mirror": "true"})
@kopf.on.update("v1", "configmaps", labels={"mirror": "true"})
def copy(name, body, **_):
    copied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict(body.get("data", {}))}
    client.CoreV1Api().patch_namespaced_config_map(
        name, "mirror", copied, field_manager="mirror", force=True, _content_type="application/apply-patch+yaml"
    )


@kopf.on.delete("v1", "configmaps", labels={"mirror": "true"})
def remove(name, **_):
    try:
        client.CoreV1Api().delete_namespaced_config_map(name, "mirror")
    except client.ApiException as error:
        if error.status != 404:
            raise
