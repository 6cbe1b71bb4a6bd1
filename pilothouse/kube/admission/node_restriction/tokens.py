"""Rules for token requests of kubelets: bound to pods on their node, for audiences declared by the pods."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.refusals import refused
from pilothouse.apiserver.authz.interface import Attributes as Question
from pilothouse.apiserver.authz.interface import Authorizer, Decision
from pilothouse.apiserver.server.features import enabled
from pilothouse.kinds.references import claim_name
from pilothouse.kube.admission.node_restriction.pods import Get, existing
from pilothouse.kube.core.serviceaccount_tokens import uid_mismatch
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, items, namespace_of, part, text, uid_of
from pilothouse.machinery.status_error import aggregate

_VERB = "request-serviceaccounts-token-audience"
_DRIVERS = {
    "gcePersistentDisk": "pd.csi.storage.gke.io",
    "awsElasticBlockStore": "ebs.csi.aws.com",
    "cinder": "cinder.csi.openstack.org",
    "azureDisk": "disk.csi.azure.com",
    "azureFile": "file.csi.azure.com",
    "vsphereVolume": "csi.vsphere.vmware.com",
    "portworxVolume": "pxd.portworx.com",
}
"""CSI drivers that replace in-tree volume plugins."""


@dataclass(frozen=True, slots=True)
class NodeTokens:
    authorizer: Authorizer
    pods: Get
    claims: Get
    volumes: Get
    drivers: Get

    async def admit(self, node: str, attributes: Attributes) -> None:
        """Raises Forbidden, NotFound."""
        if attributes.operation is not Operation.CREATE or attributes.subresource != "token":
            return
        spec = part(attributes.obj or {}, "spec")
        bound = part(spec, "boundObjectRef")
        if (text(bound, "apiVersion"), text(bound, "kind")) != ("v1", "Pod") or not text(bound, "name"):
            raise refused(attributes, "node requested token not bound to a pod")
        if not text(bound, "uid"):
            raise refused(attributes, "node requested token with a pod binding without a uid")
        pod = await existing(self.pods, "pod", bound["name"], attributes.namespace)
        uid = bound["uid"]
        if uid_of(pod) != uid:
            raise refused(attributes, uid_mismatch(uid))
        if text(pod, "spec", "nodeName") != node:
            raise refused(attributes, "node requested token bound to a pod scheduled on a different node")
        if not enabled("ServiceAccountNodeAudienceRestriction"):
            return
        if reason := await self._audience_problem(attributes, pod, items(spec, "audiences")):
            raise refused(attributes, reason)

    async def _audience_problem(self, attributes: Attributes, pod: Json, audiences: list[str]) -> str:
        if len(audiences) > 1:
            return "node may only request 0 or 1 audiences"
        audience = audiences[0] if audiences else ""
        problems: list[str] = []
        for volume in items(pod, "spec", "volumes"):
            try:
                if await self._has_audience(pod, volume, audience):
                    return ""
            except NotFound as error:
                problems.append(error.message)
        if problems:
            return f"error validating audience {quote(audience)}: {aggregate(problems)}"
        return "" if await self._may_ask_for(attributes, audience) else _not_authorized(attributes, audience)

    async def _has_audience(self, pod: Json, volume: Json, audience: str) -> bool:
        """Report whether a volume of the pod declares the audience. Raise NotFound."""
        tokens = (
            source["serviceAccountToken"]
            for source in items(volume, "projected", "sources")
            if "serviceAccountToken" in source
        )
        if any(text(token, "audience") == audience for token in tokens):
            return True
        name = await self._driver_name(pod, volume)
        if not name:
            return False
        driver = await self.drivers(name, "")
        if driver is None:
            raise NotFound.of(GroupResource("storage.k8s.io", "csidriver"), name)
        return any(text(request, "audience") == audience for request in items(driver, "spec", "tokenRequests"))

    async def _driver_name(self, pod: Json, volume: Json) -> str:
        if claim := claim_name(pod, volume):
            claimed = await existing(self.claims, "persistentvolumeclaim", claim, namespace_of(pod))
            result = await existing(self.volumes, "persistentvolume", text(claimed, "spec", "volumeName"))
            volume = part(result, "spec")
        if "csi" in volume:
            return text(volume, "csi", "driver")
        return next((driver for source, driver in _DRIVERS.items() if source in volume), "")

    async def _may_ask_for(self, attributes: Attributes, audience: str) -> bool:
        question = Question(
            user=attributes.user,
            verb=_VERB,
            is_resource=True,
            version="v1",
            resource=audience,
            namespace=attributes.namespace,
            name=attributes.name,
        )
        return (await self.authorizer.authorize(question)).decision is Decision.ALLOW


def _not_authorized(attributes: Attributes, audience: str) -> str:
    who = f"{attributes.user.name} is not authorized to request tokens for this audience"
    return f"audience {quote(audience)} not found in pod spec volume, {who}"
