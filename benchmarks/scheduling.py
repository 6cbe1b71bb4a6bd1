"""How many pods the scheduler finds nodes for in a second of processor time: its own part, without the API.

    python benchmarks/scheduling.py [--pods 2000]

Nodes are of three zones. Pods are placed one after the other, each counted for its node, as they are in a server
before the binding is written.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from random import Random
from typing import Any

from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cycle import SchedulingCycle
from pilothouse.scheduler.framework import Framework
from pilothouse.scheduler.plugins.handle import Handle

LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def node(number: int) -> Json:
    name = f"node-{number}"
    labels = {HOSTNAME: name, ZONE: f"zone-{number % 3}"}
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"allocatable": allocatable}}


def pod(number: int, **spec: Any) -> Json:
    requests = {"cpu": "10m", "memory": "16Mi"}
    owner = {"kind": "ReplicaSet", "name": "web", "controller": True}
    return {
        "metadata": {
            "name": f"web-{number}",
            "namespace": "default",
            "uid": str(number),
            "labels": LABELS,
            "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "c", "image": "nginx", "resources": {"requests": requests}}], **spec},
    }


def workloads() -> Iterator[tuple[str, Json, bool]]:
    """Yield a name, what is special in the pods' spec, and whether they are of a ReplicaSet."""
    yield "plain pods", {}, False
    yield "pods of a Deployment", {}, True
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    yield "spread over zones", {"topologySpreadConstraints": [spread]}, False
    term = {"topologyKey": HOSTNAME, "labelSelector": SELECTOR}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}
    yield "preferred anti-affinity", {"affinity": {"podAntiAffinity": preferred}}, False
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    yield "required anti-affinity", {"affinity": {"podAntiAffinity": required}}, False


def measure(nodes: int, pods: int, spec: Json, *, has_owner: bool) -> float:
    """Return how many pods were placed in a second."""
    handle = Handle(random=Random(1))
    for number in range(nodes):
        handle.cache.set_node(node(number))
    if has_owner:
        replica_set = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": SELECTOR}}
        handle.listers.replica_sets.add(replica_set)
    cycle = SchedulingCycle(Framework(handle))
    waiting = [pod(number, **spec) for number in range(pods)]
    start = time.process_time()
    for each in waiting:
        info = PodInfo(each)
        handle.cache.assume(info.on_node(cycle.find_node(info).name))
    return pods / (time.process_time() - start)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pods", type=int, default=2000)
    pods = arguments.parse_args().pods
    for nodes in (50, 500):
        for name, spec, has_owner in workloads():
            # With required anti-affinity there is no more than one pod for each node.
            fitting = min(pods, nodes) if name.startswith("required") else pods
            rate = measure(nodes, fitting, spec, has_owner=has_owner)
            print(f"{nodes:4} nodes  {name:26} {rate:8.0f} pods/s  {1000 / rate:6.3f} ms each")


if __name__ == "__main__":
    main()
