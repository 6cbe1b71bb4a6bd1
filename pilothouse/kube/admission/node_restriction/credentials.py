"""Rules for credentials requested by kubelets.

Tokens are bound to pods on the kubelet's node, for audiences declared by the pods. PodCertificateRequests are for
pods on the kubelet's node, with matching identities.
"""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Operation, refused
from pilothouse.apiserver.authz.interface import Attributes as Question
from pilothouse.apiserver.authz.interface import Authorizer, Decision
from pilothouse.apiserver.server.features import enabled
from pilothouse.kinds.pods import is_mirror_pod
from pilothouse.kinds.references import claim_name
from pilothouse.kube.admission.node_restriction.pods import Get, existing
from pilothouse.kube.core.serviceaccount_tokens import uid_mismatch
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden, NotFound
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, items, namespace_of, part, text, uid_of
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.status_error import aggregate
from pilothouse.machinery.version_rules import holds

_AUDIENCE_VERB = "request-serviceaccounts-token-audience"
_SIGNER_VERB = "request-serviceaccounts-podcertificate-signer"
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

_REQUEST = "PodCertificateRequest"


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
        question = Question(
            user=attributes.user,
            verb=_AUDIENCE_VERB,
            is_resource=True,
            version="v1",
            resource=audience,
            namespace=attributes.namespace,
            name=attributes.name,
        )
        allowed = (await self.authorizer.authorize(question)).decision is Decision.ALLOW
        return "" if allowed else _not_authorized(attributes, audience)

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


def _not_authorized(attributes: Attributes, audience: str) -> str:
    if holds("SignersOfNodes"):
        return f"{attributes.user.name} is not authorized to request tokens for audience {quote(audience)}"
    refusal = f"{attributes.user.name} is not authorized to request tokens for this audience"
    return f"audience {quote(audience)} not found in pod spec volume, {refusal}"


@dataclass(frozen=True, slots=True)
class NodePodCertificates:
    authorizer: Authorizer
    nodes: Get
    pods: Get
    accounts: Get

    async def admit(self, node: str, attributes: Attributes) -> None:
        """Raise Forbidden, or NotFound and InternalError if a stale cache may be the cause and a retry may succeed."""
        if not enabled(_REQUEST):
            raise refused(attributes, f"{_REQUEST} feature gate is disabled")
        if attributes.operation is not Operation.CREATE:
            raise refused(attributes, f"unexpected operation {attributes.operation.value}")
        if attributes.subresource:
            raise refused(attributes, f"unexpected subresource {attributes.subresource}")
        spec = part(attributes.obj or {}, "spec")
        node_name, named = text(spec, "nodeName"), quote(f"{attributes.namespace}/{text(spec, 'podName')}")
        if node_name != node:
            named = f"{_REQUEST}.Spec.NodeName={quote(node_name)}"
            raise refused(attributes, f"{named}, which is not the requesting node {quote(node)}")
        result = await existing(self.nodes, "nodes", node_name)
        if uid_of(result) != text(spec, "nodeUID"):
            statement = f"{_REQUEST} for pod {named} names node UID {quote(text(spec, 'nodeUID'))}"
            raise InternalError.of(f"{statement}, inconsistent with the running node ({quote(uid_of(result))})")
        await self._check_pod(attributes, spec)

    async def _check_pod(self, attributes: Attributes, spec: Json) -> None:
        pod = await existing(self.pods, "pods", text(spec, "podName"), attributes.namespace)
        named = quote(f"{attributes.namespace}/{text(spec, 'podName')}")
        if uid_of(pod) != text(spec, "podUID"):
            statement = f"{_REQUEST} for pod {named} contains pod UID ({quote(text(spec, 'podUID'))})"
            raise InternalError.of(f"{statement} which differs from running pod {quote(uid_of(pod))}")
        if text(pod, "spec", "nodeName") != text(spec, "nodeName"):
            node = quote(text(spec, "nodeName"))
            raise refused(attributes, f"pod {named} is not running on node {node} named in the {_REQUEST}")
        if is_mirror_pod(pod):
            raise refused(attributes, f"pod {named} is a mirror pod")
        account_name = text(spec, "serviceAccountName")
        if account_name != text(pod, "spec", "serviceAccountName"):
            raise _other_account(attributes, named, account_name, text(pod, "spec", "serviceAccountName"))
        account = await existing(self.accounts, "serviceaccounts", account_name, attributes.namespace)
        if uid_of(account) != text(spec, "serviceAccountUID"):
            statement = f"names service account UID {quote(text(spec, 'serviceAccountUID'))}"
            running = f"which differs from the running service account ({quote(uid_of(account))})"
            raise InternalError.of(f"{_REQUEST} for pod {named} {statement}, {running}")
        if holds("SignersOfNodes") and not await self._may_use(attributes, pod, spec):
            signer = quote(text(spec, "signerName"))
            raise refused(
                attributes, f"pod {named} does not mount a podCertificate projected volume for signer {signer}"
            )

    async def _may_use(self, attributes: Attributes, pod: Json, spec: Json) -> bool:
        """Report whether a volume of the pod has the signer, or the kubelet may use the signer for the account."""
        signer = text(spec, "signerName")
        sources = (
            source for volume in items(pod, "spec", "volumes") for source in items(volume, "projected", "sources")
        )
        if any(
            "podCertificate" in source and text(source, "podCertificate", "signerName") == signer for source in sources
        ):
            return True
        question = Question(
            user=attributes.user,
            verb=_SIGNER_VERB,
            is_resource=True,
            group=attributes.resource.group,
            version=attributes.resource.version,
            resource=signer.replace("/", ":"),  # RBAC has no resources with slashes
            namespace=attributes.namespace,
            name=text(spec, "serviceAccountName"),
        )
        return (await self.authorizer.authorize(question)).decision is Decision.ALLOW


def _other_account(attributes: Attributes, pod: str, requested: str, running: str) -> Forbidden:
    statement = f"{_REQUEST} for pod {pod} contains serviceAccountName ({quote(requested)})"
    return refused(attributes, f"{statement} that differs from running pod ({quote(running)})")
