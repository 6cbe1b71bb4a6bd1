"""The kubernetes.io signers and their requirements on requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest

KUBE_APISERVER_CLIENT = "kubernetes.io/kube-apiserver-client"
KUBE_APISERVER_CLIENT_KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
LEGACY_UNKNOWN = "kubernetes.io/legacy-unknown"

_SIGNATURE, _ENCIPHERMENT, _CLIENT, _SERVER = "digital signature", "key encipherment", "client auth", "server auth"
_NODE = "system:node:"


class SignerRefusal(ValueError):
    """The request violates the signer's requirements; the message is upstream's."""


def check_api_client(request: CertificateSigningRequest, usages: Sequence[str]) -> None:
    """Check a kube-apiserver-client request. Raises SignerRefusal."""
    for usage in usages:
        if usage not in (_SIGNATURE, _ENCIPHERMENT, _CLIENT):
            raise SignerRefusal(f"invalid usage for client certificate: {usage}")
    if _CLIENT not in usages:
        raise SignerRefusal(f"missing required usage for client certificate: {_CLIENT}")


def check_kubelet_client(request: CertificateSigningRequest, usages: Sequence[str]) -> None:
    """Check a kube-apiserver-client-kubelet request. Raises SignerRefusal."""
    _check_organization(request)
    for kind, names in subject_alternative_names(request).items():
        if names:
            raise SignerRefusal(f"{kind} subjectAltNames are not allowed")
    _check_common_name(request)
    _check_usages(usages, _CLIENT)


def check_kubelet_serving(request: CertificateSigningRequest, usages: Sequence[str]) -> None:
    """Check a kubelet-serving request. Raises SignerRefusal."""
    _check_organization(request)
    names = subject_alternative_names(request)
    if not names["DNS"] and not names["IP"]:
        raise SignerRefusal("DNS or IP subjectAltName is required")
    for kind in ("Email", "URI"):
        if names[kind]:
            raise SignerRefusal(f"{kind} subjectAltNames are not allowed")
    _check_usages(usages, _SERVER)
    _check_common_name(request)


def check_nothing(request: CertificateSigningRequest, usages: Sequence[str]) -> None:
    """Accept every approved request."""


Check: TypeAlias = "Callable[[CertificateSigningRequest, Sequence[str]], None]"

SIGNERS: Mapping[str, Check] = {
    KUBELET_SERVING: check_kubelet_serving,
    KUBE_APISERVER_CLIENT_KUBELET: check_kubelet_client,
    KUBE_APISERVER_CLIENT: check_api_client,
    LEGACY_UNKNOWN: check_nothing,
}


def common_name(request: CertificateSigningRequest) -> str:
    from cryptography.x509.oid import NameOID

    return next((str(each.value) for each in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)), "")


def subject_alternative_names(request: CertificateSigningRequest) -> dict[str, list[object]]:
    """Return the subject alternative names by kind, in certificate order."""
    from cryptography import x509

    kinds = {"DNS": x509.DNSName, "Email": x509.RFC822Name, "IP": x509.IPAddress, "URI": x509.UniformResourceIdentifier}
    try:
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    return {kind: [name for name in names if isinstance(name, type_)] for kind, type_ in kinds.items()}


def _check_organization(request: CertificateSigningRequest) -> None:
    from cryptography.x509.oid import NameOID

    if [each.value for each in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] != ["system:nodes"]:
        raise SignerRefusal("subject organization is not system:nodes")


def _check_common_name(request: CertificateSigningRequest) -> None:
    if not common_name(request).startswith(_NODE):
        raise SignerRefusal(f"subject common name does not begin with {_NODE}")


def _check_usages(usages: Sequence[str], purpose: str) -> None:
    """Check the usages; key encipherment is optional, because some key types do not support it."""
    if set(usages) not in ({_SIGNATURE, _ENCIPHERMENT, purpose}, {_SIGNATURE, purpose}):
        wanted = " ".join(sorted((_SIGNATURE, _ENCIPHERMENT, purpose)))
        raise SignerRefusal(f"usages did not match [{wanted}]")
