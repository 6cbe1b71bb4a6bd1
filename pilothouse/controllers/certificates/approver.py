"""certificatesigningrequest-approving-controller: approves client certificate requests of kubelets.

Approval requires authorization of the requester to create the subresource `nodeclient`, or `selfnodeclient` for
renewals.
"""

from __future__ import annotations

from pilothouse.client.controller import TryAgain
from pilothouse.client.rest.client import Client
from pilothouse.controllers.certificates import authority, requests
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import CERTIFICATE_SIGNING_REQUESTS
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of

_WORKERS = 5


@dataclass(frozen=True, slots=True)
class _Recognized:
    subresource: str
    message: str


_SELF = _Recognized("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
_NODE = _Recognized("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


async def run(context: ControllerContext) -> None:
    await requests.run_on_requests(context, "csrapproving", _Approver(context.client).handle, workers=_WORKERS)


class _Approver:
    def __init__(self, client: Client) -> None:
        self._requests = client.for_resource(CERTIFICATE_SIGNING_REQUESTS)
        self._reviews = client.resource("authorization.k8s.io/v1", "subjectaccessreviews")

    async def handle(self, request: Json) -> None:
        if requests.condition_types(request) & {requests.APPROVED, requests.DENIED}:
            return
        tried = []
        for recognized in await _recognized(request):
            tried.append(recognized.subresource)
            spec = request["spec"]
            requester = {"user": spec.get("username"), "uid": spec.get("uid"), "groups": spec.get("groups")}
            attributes = {
                "group": "certificates.k8s.io",
                "resource": "certificatesigningrequests",
                "verb": "create",
                "subresource": recognized.subresource,
                "version": "*",
            }
            review: Json = {"spec": {**requester, "extra": spec.get("extra"), "resourceAttributes": attributes}}
            if (await self._reviews.create(review))["status"].get("allowed"):
                condition: Json = {
                    "type": requests.APPROVED,
                    "status": "True",
                    "reason": "AutoApproved",
                    "message": recognized.message,
                }
                await self._requests.update(requests.with_condition(request, condition), subresource="approval")
                return
        if tried:
            message = f"recognized csr {name_of(request)!r} as {tried}"
            raise TryAgain(f"{message} but subject access review was not approved")


async def _recognized(request: Json) -> list[_Recognized]:
    """Return the recognizers that match the request, most specific first. Raises ValueError."""
    spec = request["spec"]
    if spec.get("signerName") != authority.KUBE_APISERVER_CLIENT_KUBELET:
        return []
    csr = await requests.parsed(request)
    try:
        authority.check_kubelet_client(csr, spec.get("usages") or ())
    except authority.SignerRefusal:
        return []
    return [_SELF, _NODE] if spec.get("username") == authority.common_name(csr) else [_NODE]
