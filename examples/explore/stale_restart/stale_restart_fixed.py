"""A Cluster has a PersistentVolumeClaim for each of its nodes. Scaling down deletes the claims of removed nodes.

Fixed: before a delete, the operator reads the Cluster; a read without a resourceVersion is never old. The event of
a newer Cluster starts the next reconcile.
"""

import time
from typing import Any

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

CLUSTERS = ("explore.example.com", "v1", "default", "clusters")


def claim(name: str, cluster: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name, "labels": {"cluster": cluster}}, "spec": spec}


def reconcile(cluster: Any) -> None:
    core, name = client.CoreV1Api(), cluster["metadata"]["name"]
    wanted = [f"{name}-{node}" for node in range(cluster["spec"]["nodes"])]
    for each in wanted:
        try:
            core.create_namespaced_persistent_volume_claim("default", claim(each, name))
        except ApiException as error:
            if error.status != 409:
                raise
    for existing in core.list_namespaced_persistent_volume_claim("default", label_selector=f"cluster={name}").items:
        if existing.metadata.name not in wanted and is_current(cluster):
            core.delete_namespaced_persistent_volume_claim(existing.metadata.name, "default")


def is_current(cluster: Any) -> bool:
    live = client.CustomObjectsApi().get_namespaced_custom_object(*CLUSTERS, cluster["metadata"]["name"])
    return bool(live["metadata"]["generation"] == cluster["metadata"]["generation"])


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
