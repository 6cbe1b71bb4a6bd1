"""Rules for PodCertificateRequests of kubelets: only for pods on their node, with matching identities."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.refusals import refused
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.admission.node_restriction.pods import Get, existing
from pilothouse.kube.mirror_pods import is_mirror_pod
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, part, text, uid_of
from pilothouse.machinery.server_errors import InternalError

_REQUEST = "PodCertificateRequest"


@dataclass(frozen=True, slots=True)
class NodePodCertificates:
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
        asked, named = text(spec, "nodeName"), quote(f"{attributes.namespace}/{text(spec, 'podName')}")
        if asked != node:
            named = f"{_REQUEST}.Spec.NodeName={quote(asked)}"
            raise refused(attributes, f"{named}, which is not the requesting node {quote(node)}")
        result = await existing(self.nodes, "nodes", asked)
        if uid_of(result) != text(spec, "nodeUID"):
            given = f"{_REQUEST} for pod {named} names node UID {quote(text(spec, 'nodeUID'))}"
            raise InternalError.of(f"{given}, inconsistent with the running node ({quote(uid_of(result))})")
        await self._check_pod(attributes, spec)

    async def _check_pod(self, attributes: Attributes, spec: Json) -> None:
        pod = await existing(self.pods, "pods", text(spec, "podName"), attributes.namespace)
        named = quote(f"{attributes.namespace}/{text(spec, 'podName')}")
        if uid_of(pod) != text(spec, "podUID"):
            given = f"{_REQUEST} for pod {named} contains pod UID ({quote(text(spec, 'podUID'))})"
            raise InternalError.of(f"{given} which differs from running pod {quote(uid_of(pod))}")
        if text(pod, "spec", "nodeName") != text(spec, "nodeName"):
            node = quote(text(spec, "nodeName"))
            raise refused(attributes, f"pod {named} is not running on node {node} named in the {_REQUEST}")
        if is_mirror_pod(pod):
            raise refused(attributes, f"pod {named} is a mirror pod")
        await self._check_account(attributes, spec, pod)

    async def _check_account(self, attributes: Attributes, spec: Json, pod: Json) -> None:
        asked, named = text(spec, "serviceAccountName"), quote(f"{attributes.namespace}/{text(spec, 'podName')}")
        if asked != text(pod, "spec", "serviceAccountName"):
            raise _other_account(attributes, named, asked, text(pod, "spec", "serviceAccountName"))
        account = await existing(self.accounts, "serviceaccounts", asked, attributes.namespace)
        if uid_of(account) != text(spec, "serviceAccountUID"):
            given = f"names service account UID {quote(text(spec, 'serviceAccountUID'))}"
            running = f"which differs from the running service account ({quote(uid_of(account))})"
            raise InternalError.of(f"{_REQUEST} for pod {named} {given}, {running}")


def _other_account(attributes: Attributes, pod: str, asked: str, running: str) -> Forbidden:
    given = f"{_REQUEST} for pod {pod} contains serviceAccountName ({quote(asked)})"
    return refused(attributes, f"{given} that differs from running pod ({quote(running)})")
