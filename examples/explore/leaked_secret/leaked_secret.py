"""A Tenant gets a Secret in the namespace `vault`. Deleting the Tenant deletes the Secret.

The bug: the clean-up waits for the event of the deletion. The event comes once; an operator that ends before it has
deleted the Secret leaves the Secret behind.
"""

from typing import Any

import kopf
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException


@kopf.on.create("explore.example.com", "v1", "tenants", backoff=0.1)
def created(name: str, **_: Any) -> None:
    try:
        client.CoreV1Api().create_namespaced_secret("vault", {"metadata": {"name": name}})
    except ApiException as error:
        if error.status != 409:
            raise


@kopf.on.event("explore.example.com", "v1", "tenants")
def deleted(event: Any, name: str, **_: Any) -> None:
    if event["type"] == "DELETED":
        client.CoreV1Api().delete_namespaced_secret(name, "vault")


if __name__ == "__main__":
    config.load_kube_config()
    kopf.run(clusterwide=True, standalone=True)
