"""Admission plugins for the placement of pods.

PodNodeSelector: node selectors per namespace, from annotations and from the plugin's configuration.
LimitPodHardAntiAffinityTopology: required anti-affinity may use the hostname topology only.
PodTopologyLabels: copies the zone and region labels of the node to its pods.
"""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.kube.admission.pods import GetNamespace, NodeReader, namespace_annotations, spec_of_written_pod
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, labels_of, metadata, text
from pilothouse.machinery.status_error import StatusError

_ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector"
_DEFAULT = "clusterDefaultNodeSelector"

_HOSTNAME = "kubernetes.io/hostname"
_PODS = GroupResource("", "pods")
_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodNodeSelector(Handler):
    name = "PodNodeSelector"
    operations = (Operation.CREATE,)

    def __init__(self, namespace: GetNamespace, configuration: Json | None = None) -> None:
        """`configuration` maps namespaces to their allowed labels, plus the cluster default."""
        self._namespace = namespace
        self._selectors: Mapping[str, str] = (configuration or {}).get("podNodeSelectorPluginConfig") or {}

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of_written_pod(attributes)
        if spec is None:
            return
        required = await self._namespace_selector(attributes)
        _refuse_conflict(attributes, required, spec)
        if merged := required | (spec.get("nodeSelector") or {}):
            spec["nodeSelector"] = merged
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        spec = spec_of_written_pod(attributes)
        if spec is None:
            return
        _refuse_conflict(attributes, await self._namespace_selector(attributes), spec)
        allowed = _parsed(self._selectors.get(attributes.namespace) or "")
        chosen = spec.get("nodeSelector") or {}
        if allowed and not chosen.items() <= allowed.items():
            raise _refusal(attributes, "pod node label selector labels conflict with its namespace whitelist")

    async def _namespace_selector(self, attributes: Attributes) -> dict[str, str]:
        annotations = await namespace_annotations(attributes.namespace, self._namespace)
        annotated = annotations.get(_ANNOTATION)
        return _parsed(self._selectors.get(_DEFAULT) or "" if annotated is None else annotated)


def _refuse_conflict(attributes: Attributes, wanted: dict[str, str], spec: Json) -> None:
    chosen = spec.get("nodeSelector") or {}
    if any(chosen.get(label, value) != value for label, value in wanted.items()):
        reason = "pod node label selector conflicts with its namespace node label selector"
        raise _refusal(attributes, reason)


def _refusal(attributes: Attributes, reason: str) -> Forbidden:
    return Forbidden.of(attributes.resource.group_resource, metadata(attributes.obj or {}).get("name") or "", reason)


def _parsed(selector: str) -> dict[str, str]:
    """Parse text such as `a=b,c=d`. Raise StatusError."""
    parsed: dict[str, str] = {}
    for part in selector.split(",") if selector else ():
        words = part.split("=")
        if len(words) != 2:
            raise StatusError(f"invalid selector: {words}".replace("'", "").replace(",", ""))
        parsed[words[0].strip()] = words[1].strip()
    return parsed


class LimitPodHardAntiAffinityTopology(Handler):
    name = "LimitPodHardAntiAffinityTopology"
    operations = (Operation.CREATE, Operation.UPDATE)

    async def validate(self, attributes: Attributes) -> None:
        spec = spec_of_written_pod(attributes) or {}
        anti = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
        for term in anti.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            if (key := term.get("topologyKey")) != _HOSTNAME:
                problem = f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key}"
                name = metadata(attributes.obj or {}).get("name") or ""
                reason = f"{problem} but only key {_HOSTNAME} is allowed"
                raise Forbidden.of(attributes.resource.group_resource, name, reason)


class PodTopologyLabels(NodeReader):
    """Handles bindings, too: the pod takes over the labels of its binding."""

    name = "PodTopologyLabels"
    resources = (_PODS,)
    operations = (Operation.CREATE,)

    async def admit(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource != _PODS or attributes.obj is None:
            return
        node = await self._get_node(name) if (name := _node_name(attributes)) else None
        result = {label: value for label, value in labels_of(node or {}).items() if label in _LABELS}
        if result:
            metadata(attributes.obj)["labels"] = labels_of(attributes.obj) | result


def _node_name(attributes: Attributes) -> str:
    obj = attributes.obj or {}
    if attributes.subresource == "binding":
        return text(obj, "target", "name") if text(obj, "target", "kind") == "Node" else ""
    return "" if attributes.subresource else text(obj, "spec", "nodeName")
