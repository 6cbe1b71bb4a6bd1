"""A Tenant gets a Secret in the namespace `vault`. Deleting the Tenant deletes the Secret.

Fixed: a deletion handler. kopf adds a finalizer, so the Tenant stays until the handler has deleted the Secret.
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


@kopf.on.delete("explore.example.com", "v1", "tenants", backoff=0.1)
def deleted(name: str, **_: Any) -> None:
    try:
        client.CoreV1Api().delete_namespaced_secret(name, "vault")
    except ApiException as error:
        if error.status != 404:
            raise


if __name__ == "__main__":
    config.load_kube_config()
    kopf.run(clusterwide=True, standalone=True)
