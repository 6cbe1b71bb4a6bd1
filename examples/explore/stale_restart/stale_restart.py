"""A Cluster has a Secret for each of its nodes: the key of its disk. Scaling down deletes the keys of removed nodes.

The bug: the number of nodes comes from a list that may be old (resourceVersion 0, as of informers). After a restart
against a lagging API server, the operator deletes a key that is in use again.
"""

import time
from typing import Any

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

CLUSTERS = ("explore.example.com", "v1", "default", "clusters")


def key(name: str, cluster: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"cluster": cluster}}, "stringData": {"key": "generated"}}


def reconcile(cluster: Any) -> None:
    core, name = client.CoreV1Api(), cluster["metadata"]["name"]
    wanted = [f"{name}-{node}" for node in range(cluster["spec"]["nodes"])]
    for each in wanted:
        try:
            core.create_namespaced_secret("default", key(each, name))
        except ApiException as error:
            if error.status != 409:
                raise
    for existing in core.list_namespaced_secret("default", label_selector=f"cluster={name}").items:
        if existing.metadata.name not in wanted:
            core.delete_namespaced_secret(existing.metadata.name, "default")


def main() -> None:
    config.load_kube_config()
    clusters = client.CustomObjectsApi().list_namespaced_custom_object
    while True:
        try:
            listed: Any = clusters(*CLUSTERS, resource_version="0")
            for cluster in listed["items"]:
                reconcile(cluster)
            version = listed["metadata"]["resourceVersion"]
            for event in watch.Watch().stream(clusters, *CLUSTERS, resource_version=version):
                if event["type"] != "DELETED":
                    reconcile(event["object"])
        except Exception as error:
            print(error, flush=True)
            time.sleep(0.1)


if __name__ == "__main__":
    main()
