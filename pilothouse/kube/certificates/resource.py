"""CertificateSigningRequests as a resource: names, selectable fields and columns."""

from __future__ import annotations

from datetime import timedelta

from pilothouse.apiserver.registry.resource import Names, Resource, cluster_metadata_fields
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.storage.object import Fields
from pilothouse.kube.certificates.strategy import CertificateSigningRequestStrategy
from pilothouse.kube.certificates.validation import APPROVED, DENIED, FAILED
from pilothouse.machinery.durations import human_duration
from pilothouse.machinery.objects import Json, items, part, text

GROUP = "certificates.k8s.io"

_SPEC = "io.k8s.api.certificates.v1.CertificateSigningRequestSpec"
# The columns are described by the documentation of v1beta1, which is not served any more.
_SIGNER = (
    "Requested signer for the request. It is a qualified name in the form: `scope-hostname.io/name`. "
    "If empty, it will be defaulted:\n"
    " 1. If it's a kubelet client certificate, it is assigned\n"
    '    "kubernetes.io/kube-apiserver-client-kubelet".\n'
    " 2. If it's a kubelet serving certificate, it is assigned\n"
    '    "kubernetes.io/kubelet-serving".\n'
    ' 3. Otherwise, it is assigned "kubernetes.io/legacy-unknown".\n'
    "Distribution of trust for signers happens out of band. You can select on this field using `spec.signerName`."
)


def _fields(obj: Json) -> Fields:
    return cluster_metadata_fields(obj) | {"spec.signerName": text(obj, "spec", "signerName")}


def _condition(obj: Json) -> str:
    types = {text(each, "type") for each in items(obj, "status", "conditions")}
    decision = next((kind for kind in (DENIED, APPROVED) if kind in types), "Pending")
    failed = ",Failed" if FAILED in types else ""
    return decision + failed + (",Issued" if text(obj, "status", "certificate") else "")


def _duration(obj: Json) -> str:
    seconds = part(obj, "spec").get("expirationSeconds")
    return "<none>" if seconds is None else human_duration(timedelta(seconds=seconds))


CERTIFICATE_SIGNING_REQUESTS = Resource(
    names=Names("certificatesigningrequests", kind="CertificateSigningRequest", short=["csr"]),
    strategy=CertificateSigningRequestStrategy(),
    group=GROUP,
    fields=_fields,
    indexed_fields=("spec.signerName",),
    columns=[
        NAME,
        AGE,
        Column("SignerName", lambda obj: text(obj, "spec", "signerName") or "<none>", description=_SIGNER),
        Column("Requestor", lambda obj: text(obj, "spec", "username"), description="Base64-encoded PKCS#10 CSR data"),
        Column("RequestedDuration", _duration, documented=(_SPEC, "expirationSeconds")),
        Column("Condition", _condition, description="Conditions applied to the request, such as approval or denial."),
    ],
)
