"""Every Member is entered in a list, which all members read: the ConfigMap "members".

Fixed: the list is replaced with the resourceVersion that was read. The server refuses the write if the list has changed
since, and the operator reads the list again.
"""

import time
from typing import Any

from kubernetes import client, config, watch

GROUP, VERSION, PLURAL = "explore.example.com", "v1", "members"


def enter(name: str, namespace: str) -> None:
    core = client.CoreV1Api()
    read = core.read_namespaced_config_map("members", namespace)
    members = {*filter(None, read.data["names"].split(",")), name}
    data = {"names": ",".join(sorted(members))}
    if data != read.data:
        read.data = data
        core.replace_namespaced_config_map("members", namespace, read)


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
