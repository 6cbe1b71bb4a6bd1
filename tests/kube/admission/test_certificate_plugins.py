"""Who may approve and sign whose requests, and what no client certificate may say."""

from __future__ import annotations

from typing import Any

import pytest
from signing_requests import new_request

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Decision
from pilothouse.apiserver.authz.interface import Attributes as Question
from pilothouse.kube.admission.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json

GROUP = "certificates.k8s.io"


class Allow:
    """Lets these (verb, signer) pass."""

    def __init__(self, *allowed: tuple[str, str]) -> None:
        self._allowed = allowed

    async def authorize(self, attributes: Question) -> Answer:
        asked = (attributes.group, attributes.resource, attributes.is_resource)
        assert asked == (GROUP, "signers", True)
        allowed = (attributes.verb, attributes.name) in self._allowed
        return Answer(Decision.ALLOW if allowed else Decision.NO_OPINION)


def write(subresource: str, obj: Json, **rest: Any) -> Attributes:
    return Attributes(
        operation=Operation.UPDATE if subresource else Operation.CREATE,
        kind=GroupVersionKind(GROUP, "v1", "CertificateSigningRequest"),
        resource=GroupVersionResource(GROUP, "v1", "certificatesigningrequests"),
        subresource=subresource,
        namespace="",
        name="c",
        user=User("u"),
        obj=obj,
        **rest,
    )


STORED: Json = {"metadata": {"name": "c"}, "spec": {"signerName": "example.com/s"}, "status": {}}


@pytest.mark.parametrize("signer", ["example.com/s", "example.com/*"])
async def test_approvers_are_allowed_a_signer_or_its_domain(signer: str) -> None:
    renamed = STORED | {"spec": {"signerName": "other.com/t"}}
    await CertificateApproval(Allow(("approve", signer))).validate(write("approval", renamed, old=STORED))


async def test_others_are_refused() -> None:
    plugin = CertificateApproval(Allow(("approve", "other.com/*"), ("sign", "example.com/s")))
    with pytest.raises(Forbidden, match="user not permitted to approve requests"):
        await plugin.validate(write("approval", STORED, old=STORED))
    await plugin.validate(write("status", STORED, old=STORED))


async def test_only_signers_change_certificates_and_conditions() -> None:
    signed = STORED | {"status": {"certificate": "eA=="}}
    await CertificateSigning(Allow(("sign", "example.com/s"))).validate(write("status", signed, old=STORED))
    nobody = CertificateSigning(Allow())
    await nobody.validate(write("status", STORED | {"status": {"conditions": []}}, old=STORED))
    with pytest.raises(Forbidden, match="user not permitted to sign requests"):
        await nobody.validate(write("status", signed, old=STORED))


async def test_no_client_certificate_names_the_group_that_may_do_everything() -> None:
    plugin = CertificateSubjectRestriction()
    client: Json = {"signerName": "kubernetes.io/kube-apiserver-client", "request": new_request("dev")}
    await plugin.validate(write("", {"spec": client}))
    masters = client | {"request": new_request("dev", "system:masters")}
    with pytest.raises(Forbidden, match="signer with system:masters group is not allowed"):
        await plugin.validate(write("", {"spec": masters}))
    await plugin.validate(write("", {"spec": masters | {"signerName": "example.com/s"}}))
    with pytest.raises(Forbidden, match="failed to parse CSR"):
        await plugin.validate(write("", {"spec": client | {"request": ""}}))
