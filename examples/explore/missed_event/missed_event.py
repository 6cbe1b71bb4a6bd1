"""A Shop gets a ConfigMap with its name.

The bug: the operator acts when a Shop appears and never looks at the ConfigMap again. Somebody deletes the ConfigMap,
and the Shop stays without one.
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


def create(body: Any) -> None:
    try:
        client.CoreV1Api().create_namespaced_config_map(body["metadata"]["namespace"], config_map_for(body))
    except ApiException as error:
        if error.status != 409:
            raise


@kopf.on.create(*SHOPS, backoff=0.1)
def created(body: Any, **_: Any) -> None:
    create(body)


if __name__ == "__main__":
    config.load_kube_config()
    kopf.run(clusterwide=True, standalone=True)
