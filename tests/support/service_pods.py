"""Services, and pods with addresses, as nobody but a test makes them."""

from __future__ import annotations

from typing import Any

from pilothouse.client import Client, Json

APP = {"app": "web"}


class ServicesAndPods:
    def __init__(self, client: Client, namespace: str) -> None:
        self.namespace = namespace
        self.pods = client.resource("v1", "pods", namespace=namespace)
        self.services = client.resource("v1", "services", namespace=namespace)
        self.slices = client.resource("discovery.k8s.io/v1", "endpointslices", namespace=namespace)
        self.endpoints = client.resource("v1", "endpoints", namespace=namespace)
        self._nodes = client.resource("v1", "nodes")

    async def node(self, name: str, zone: str = "", cpu: str = "4", ready: bool = True) -> None:
        labels = {"topology.kubernetes.io/zone": zone} if zone else {}
        await self._nodes.create({"metadata": {"name": name, "labels": labels}})
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        status = {"allocatable": {"cpu": cpu}, "conditions": conditions}
        await self._nodes.patch(name, {"status": status}, subresource="status")

    async def service(self, name: str, *, annotations: Json | None = None, **spec: Any) -> Json:
        given = {"selector": APP, "ports": [{"port": 80, "targetPort": 8080}], **spec}
        return await self.services.create({"metadata": {"name": name, "annotations": annotations or {}}, "spec": given})

    async def pod(self, name: str, *ips: str, node: str = "n", labels: Json | None = None, **spec: Any) -> Json:
        """Ready, if it has an address."""
        container = {"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 8081}]}
        given = {"containers": [container], "nodeName": node, **spec}
        made = await self.pods.create(
            {"metadata": {"name": name, "labels": APP if labels is None else labels}, "spec": given}
        )
        return await self.set_status(name, *ips) if ips else made

    async def set_status(self, name: str, *ips: str, ready: bool = True, phase: str = "Running") -> Json:
        status = {
            "phase": phase,
            "podIP": ips[0] if ips else "",
            "podIPs": [{"ip": ip} for ip in ips],
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        }
        return await self.pods.patch(name, {"status": status}, subresource="status")
