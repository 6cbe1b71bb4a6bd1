"""PodNodeSelector: node selectors per namespace, from annotations and from the plugin's configuration."""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.kube.admission.namespace_annotations import GetNamespace, annotations_of
from pilothouse.kube.admission.pods import spec_of_written_pod
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.status_error import StatusError

_ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector"
_DEFAULT = "clusterDefaultNodeSelector"


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
        wanted = await self._namespace_selector(attributes)
        _refuse_conflict(attributes, wanted, spec)
        if merged := wanted | (spec.get("nodeSelector") or {}):
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
        annotations = await annotations_of(attributes.namespace, self._namespace)
        said = annotations.get(_ANNOTATION)
        return _parsed(self._selectors.get(_DEFAULT) or "" if said is None else said)


def _refuse_conflict(attributes: Attributes, wanted: dict[str, str], spec: Json) -> None:
    chosen = spec.get("nodeSelector") or {}
    if any(chosen.get(label, value) != value for label, value in wanted.items()):
        reason = "pod node label selector conflicts with its namespace node label selector"
        raise _refusal(attributes, reason)


def _refusal(attributes: Attributes, why: str) -> Forbidden:
    return Forbidden.of(attributes.resource.group_resource, metadata(attributes.obj or {}).get("name") or "", why)


def _parsed(selector: str) -> dict[str, str]:
    """Parse text such as `a=b,c=d`. Raise StatusError."""
    parsed: dict[str, str] = {}
    for part in selector.split(",") if selector else ():
        words = part.split("=")
        if len(words) != 2:
            raise StatusError(f"invalid selector: {words}".replace("'", "").replace(",", ""))
        parsed[words[0].strip()] = words[1].strip()
    return parsed
