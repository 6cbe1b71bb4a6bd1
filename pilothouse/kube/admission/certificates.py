"""CertificateApproval, CertificateSigning, CertificateSubjectRestriction: who may do what with a signer's requests."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.refusals import refused
from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.authz.interface import Attributes as Question
from pilothouse.apiserver.authz.interface import Authorizer, Decision
from pilothouse.kube.certificates.x509 import BadRequestData, organizations, parse_request
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.nested_fields import part, text
from pilothouse.machinery.validation.immutable import semantically_equal

API_SERVER_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"

_REQUESTS = GroupResource("certificates.k8s.io", "certificatesigningrequests")


class _ForSigners:
    """Plugins that ask whether a user may do something with the requests of a signer."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def handles(self, operation: Operation) -> bool:
        return operation is Operation.UPDATE

    async def _may(self, user: User, verb: str, signer: str) -> bool:
        """Return whether the user may do it with requests of the signer itself, or of all signers of its domain."""
        for name in (signer, signer.partition("/")[0] + "/*"):
            question = Question(
                user=user,
                verb=verb,
                is_resource=True,
                group=_REQUESTS.group,
                version="*",
                resource="signers",
                name=name,
            )
            if (await self._authorizer.authorize(question)).decision is Decision.ALLOW:
                return True
        return False


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


class CertificateSubjectRestriction:
    """Nobody gets a certificate of the group that may do everything from the signer of API clients."""

    name = "CertificateSubjectRestriction"
    resources = (_REQUESTS,)

    def handles(self, operation: Operation) -> bool:
        return operation is Operation.CREATE

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
            why = f"use of {API_SERVER_CLIENT_SIGNER} signer with {SYSTEM_PRIVILEGED_GROUP} group is not allowed"
            raise refused(attributes, why)
