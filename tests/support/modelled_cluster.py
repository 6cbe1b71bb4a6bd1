"""Nodes and pods for the scheduler, without a server."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Any

from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cycle import SchedulingCycle
from pilothouse.scheduler.diagnosis import FitError
from pilothouse.scheduler.framework import Framework
from pilothouse.scheduler.plugins.handle import Handle

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_UIDS = count(1)


def node(name: str, *, cpu: str = "4", memory: str = "8Gi", pods: str = "110", zone: str = "", **fields: Any) -> Json:
    """`fields` are `labels`, parts of the spec (`taints`, `unschedulable`), and more `allocatable`."""
    labels = {HOSTNAME: name} | ({ZONE: zone} if zone else {}) | fields.pop("labels", {})
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods} | fields.pop("allocatable", {})
    status = {"allocatable": allocatable, "images": fields.pop("images", [])}
    return {"metadata": {"name": name, "labels": labels}, "spec": fields, "status": status}


def pod(name: str = "web", *, labels: dict[str, str] | None = None, on: str = "", **fields: Any) -> Json:
    """`fields` are `requests` of its one container, `status`, `namespace`, `ports`, and parts of the spec."""
    meta: Json = {"name": name, "namespace": fields.pop("namespace", "default"), "uid": f"uid-{next(_UIDS)}"}
    meta["labels"] = labels or {}
    container: Json = {"name": "c", "image": fields.pop("image", "nginx"), "ports": fields.pop("ports", [])}
    container["resources"] = {"requests": fields.pop("requests", {})}
    status = fields.pop("status", {})
    spec = {"containers": [container], **fields} | ({"nodeName": on} if on else {})
    return {"metadata": meta, "spec": spec, "status": status}


class ModelledCluster:
    def __init__(self, *objects: Json) -> None:
        """Nodes, and pods that are on them."""
        self.handle = Handle(random=Random(1))
        for each in objects:
            self.add(each)
        self.framework = Framework(self.handle)
        self.cycle = SchedulingCycle(self.framework)

    def add(self, obj: Json) -> None:
        if "containers" in obj["spec"]:
            self.handle.cache.set_pod(PodInfo(obj))
        else:
            self.handle.cache.set_node(obj)

    def choose(self, wanted: Json) -> str:
        """Return the node that the pod gets."""
        return self.cycle.find_node(PodInfo(wanted)).name

    def place(self, wanted: Json) -> str:
        """Put the pod on the node that it gets."""
        name = self.choose(wanted)
        self.handle.cache.assume(PodInfo(wanted).on_node(name))
        return name

    def fitting(self, wanted: Json) -> set[str]:
        """Return the nodes on which the pod could be."""
        filters = self.framework.pre_filter(PodInfo(wanted))
        check = getattr(filters, "check", None)
        return {each.name for each in self.handle.cache.nodes if check and check(each) is None}

    def why_not(self, wanted: Json) -> str:
        """Return why the pod can be nowhere."""
        try:
            return f"it can be on {self.choose(wanted)}"
        except FitError as error:
            return str(error)
