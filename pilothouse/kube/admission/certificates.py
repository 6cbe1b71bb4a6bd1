"""CertificateApproval, CertificateSigning, CertificateSubjectRestriction and ClusterTrustBundleAttest.

The plugins authorize actions on behalf of a signer.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation, refused
from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.kube.certificates.certificate_signing_requests import may_act_for_signer
from pilothouse.kube.certificates.x509 import BadRequestData, organizations, parse_request
from pilothouse.kube.rbac.escalation import only_for_garbage_collection
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import part, text
from pilothouse.machinery.validation.immutable import semantically_equal

API_SERVER_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"

_REQUESTS = GroupResource("certificates.k8s.io", "certificatesigningrequests")
_TRUST_BUNDLES = GroupResource("certificates.k8s.io", "clustertrustbundles")


class _ForSigners(Handler):
    """Base of plugins that authorize an action on the requests of a signer."""

    operations: ClassVar[Collection[Operation]] = (Operation.UPDATE,)

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def _may(self, user: User, verb: str, signer: str) -> bool:
        return await may_act_for_signer(self._authorizer, user, verb, signer)


class CertificateApproval(_ForSigners):
    name = "CertificateApproval"
    resources = (_REQUESTS,)

    async def validate(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource != _REQUESTS or attributes.subresource != "approval":
            return
        signer = text(attributes.old or {}, "spec", "signerName")
        if not await self._may(attributes.user, "approve", signer):
            raise refused(attributes, f"user not permitted to approve requests with signerName {quote(signer)}")


class CertificateSigning(_ForSigners):
    name = "CertificateSigning"
    resources = (_REQUESTS,)

    async def validate(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource != _REQUESTS or attributes.subresource != "status":
            return
        status, before = part(attributes.obj or {}, "status"), part(attributes.old or {}, "status")
        if all(semantically_equal(status.get(name), before.get(name)) for name in ("certificate", "conditions")):
            return
        signer = text(attributes.old or {}, "spec", "signerName")
        if not await self._may(attributes.user, "sign", signer):
            raise refused(attributes, f"user not permitted to sign requests with signerName {quote(signer)}")


class ClusterTrustBundleAttest(_ForSigners):
    """Requires permission to attest for the signer of a bundle."""

    name = "ClusterTrustBundleAttest"
    resources = (_TRUST_BUNDLES,)
    operations = (Operation.CREATE, Operation.UPDATE)

    async def validate(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource != _TRUST_BUNDLES:
            return
        signer = text(attributes.obj or {}, "spec", "signerName")
        if not signer or (attributes.old and only_for_garbage_collection(attributes.obj or {}, attributes.old)):
            return
        if not await self._may(attributes.user, "attest", signer):
            raise refused(attributes, f"user not permitted to attest for signerName {quote(signer)}")


class CertificateSubjectRestriction(Handler):
    """Rejects requests of system:masters certificates from the API client signer."""

    name = "CertificateSubjectRestriction"
    resources = (_REQUESTS,)
    operations = (Operation.CREATE,)

    async def validate(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource != _REQUESTS or attributes.subresource or attributes.obj is None:
            return
        if text(attributes.obj, "spec", "signerName") != API_SERVER_CLIENT_SIGNER:
            return
        try:
            request = parse_request(text(attributes.obj, "spec", "request"))
        except BadRequestData as error:
            raise refused(attributes, f"failed to parse CSR: {error}") from None
        if SYSTEM_PRIVILEGED_GROUP in organizations(request):
            reason = f"use of {API_SERVER_CLIENT_SIGNER} signer with {SYSTEM_PRIVILEGED_GROUP} group is not allowed"
            raise refused(attributes, reason)
