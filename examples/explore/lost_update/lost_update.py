"""Every Member is entered in a list, which all members read: the ConfigMap "members".

The bug: the list is read, extended and replaced without its resourceVersion. What somebody else wrote between the read
and the write is lost.
"""

import time
from typing import Any

from kubernetes import client, config, watch

GROUP, VERSION, PLURAL = "explore.example.com", "v1", "members"


def enter(name: str, namespace: str) -> None:
    core = client.CoreV1Api()
    read = core.read_namespaced_config_map("members", namespace)
    members = {*filter(None, read.data["names"].split(",")), name}
    body = client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name="members"),
        data={"names": ",".join(sorted(members))},
    )
    if body.data != read.data:
        core.replace_namespaced_config_map("members", namespace, body)


def main() -> None:
    config.load_kube_config()
    members = client.CustomObjectsApi().list_cluster_custom_object
    while True:
        try:
            for event in watch.Watch().stream(members, GROUP, VERSION, PLURAL):
                metadata: Any = event["object"]["metadata"]
                if event["type"] == "ADDED":
                    enter(metadata["name"], metadata["namespace"])
        except Exception as error:
            print(error, flush=True)
            time.sleep(0.1)


if __name__ == "__main__":
    main()
