"""A Backup is made once, by a Job. The name of the Job is kept in the Backup's status.

The bug: the server makes up the name. If the answer to the create is lost, or the operator ends before it has written
the status, the next attempt creates a second Job.
"""

import time
from typing import Any

from kubernetes import client, config, watch

GROUP, VERSION, PLURAL = "explore.example.com", "v1", "backups"


def job_for(backup: Any) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "backup", "image": "backup"}]}
    metadata = {"generateName": f"{backup['metadata']['name']}-"}
    return {"metadata": metadata, "spec": {"suspend": True, "template": {"spec": pod}}}


def reconcile(backup: Any) -> None:
    if backup.get("status", {}).get("job"):
        return
    name, namespace = backup["metadata"]["name"], backup["metadata"]["namespace"]
    job = client.BatchV1Api().create_namespaced_job(namespace, job_for(backup))
    status = {"status": {"job": job.metadata.name}}
    client.CustomObjectsApi().patch_namespaced_custom_object_status(GROUP, VERSION, namespace, PLURAL, name, status)


def main() -> None:
    config.load_kube_config()
    backups = client.CustomObjectsApi().list_cluster_custom_object
    while True:
        try:
            for event in watch.Watch().stream(backups, GROUP, VERSION, PLURAL):
                if event["type"] != "DELETED":
                    reconcile(event["object"])
        except Exception as error:
            print(error, flush=True)
            time.sleep(0.1)


if __name__ == "__main__":
    main()
