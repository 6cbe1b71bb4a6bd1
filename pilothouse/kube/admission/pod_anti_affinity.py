"""LimitPodHardAntiAffinityTopology: required anti-affinity may use the hostname topology only."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.kube.admission.pods import spec_of_written_pod
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.objects import metadata

_HOSTNAME = "kubernetes.io/hostname"


class LimitPodHardAntiAffinityTopology(Handler):
    name = "LimitPodHardAntiAffinityTopology"
    operations = (Operation.CREATE, Operation.UPDATE)

    async def validate(self, attributes: Attributes) -> None:
        spec = spec_of_written_pod(attributes) or {}
        anti = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
        for term in anti.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            if (key := term.get("topologyKey")) != _HOSTNAME:
                what = f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key}"
                name = metadata(attributes.obj or {}).get("name") or ""
                reason = f"{what} but only key {_HOSTNAME} is allowed"
                raise Forbidden.of(attributes.resource.group_resource, name, reason)
