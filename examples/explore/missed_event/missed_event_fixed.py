"""A Shop gets a ConfigMap with its name.

Fixed: every event of the ConfigMap, and every start, restores the ConfigMap of the Shop. A patch without a difference
changes nothing.
"""

from typing import Any

import kopf
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

SHOPS = ("explore.example.com", "v1", "shops")


def config_map_for(body: Any) -> dict[str, Any]:
    config_map = {"metadata": {"name": body["metadata"]["name"]}, "data": {"title": body["spec"]["title"]}}
    kopf.adopt(config_map, owner=body)
    kopf.label(config_map, {"shop": body["metadata"]["name"]})
    return config_map


def ensure(body: Any) -> None:
    core, config_map, namespace = client.CoreV1Api(), config_map_for(body), body["metadata"]["namespace"]
    try:
        core.create_namespaced_config_map(namespace, config_map)
    except ApiException as error:
        if error.status != 409:
            raise
        core.patch_namespaced_config_map(config_map["metadata"]["name"], namespace, config_map)


@kopf.on.resume(*SHOPS, backoff=0.1)
@kopf.on.create(*SHOPS, backoff=0.1)
def created(body: Any, **_: Any) -> None:
    ensure(body)


@kopf.on.event("v1", "configmaps", labels={"shop": kopf.PRESENT})
def config_map_changed(namespace: str, labels: Any, **_: Any) -> None:
    shops = client.CustomObjectsApi().list_namespaced_custom_object(*SHOPS[:2], namespace, SHOPS[2])
    for shop in shops["items"]:
        if shop["metadata"]["name"] == labels["shop"]:
            ensure(shop)


if __name__ == "__main__":
    config.load_kube_config()
    kopf.run(clusterwide=True, standalone=True)
