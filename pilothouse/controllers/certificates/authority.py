"""Certificate authority that signs requests: names and key from the request, usages and validity from the CA.

Other extensions of a request are ignored. Certificates are backdated by five minutes to tolerate clock skew, and never
outlive the CA.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID as Purpose
from cryptography.x509.oid import NameOID

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.status_error import PilothouseError

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest


BACKDATE = timedelta(minutes=5)
SHORT = timedelta(hours=8)
"""Validity below which the five minutes of backdating are added to the end."""

_SUBJECT = (
    NameOID.COUNTRY_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.POSTAL_CODE,
    NameOID.COMMON_NAME,
    NameOID.SERIAL_NUMBER,
)
"""Subject attributes that are kept, in output order; the CA vouches for no others."""

_KEY_USAGES = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
_PURPOSES = {
    "any": Purpose.ANY_EXTENDED_KEY_USAGE,
    "server auth": Purpose.SERVER_AUTH,
    "client auth": Purpose.CLIENT_AUTH,
    "code signing": Purpose.CODE_SIGNING,
    "email protection": Purpose.EMAIL_PROTECTION,
    "s/mime": Purpose.EMAIL_PROTECTION,
    "ipsec end system": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.5"),
    "ipsec tunnel": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.6"),
    "ipsec user": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.7"),
    "timestamping": Purpose.TIME_STAMPING,
    "ocsp signing": Purpose.OCSP_SIGNING,
    "microsoft sgc": x509.ObjectIdentifier("1.3.6.1.4.1.311.10.3.3"),
    "netscape sgc": x509.ObjectIdentifier("2.16.840.1.113730.4.1"),
}
"""Extended key usages, in output order."""
KUBE_APISERVER_CLIENT = "kubernetes.io/kube-apiserver-client"
KUBE_APISERVER_CLIENT_KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
LEGACY_UNKNOWN = "kubernetes.io/legacy-unknown"
_SIGNATURE, _ENCIPHERMENT, _CLIENT, _SERVER = "digital signature", "key encipherment", "client auth", "server auth"
_NODE = "system:node:"
Check: TypeAlias = "Callable[[CertificateSigningRequest, Sequence[str]], None]"


class CannotSign(PilothouseError, ValueError):
    """The authority or the request does not permit a signature; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class CertificateAuthority:
    certificate: x509.Certificate
    key: CertificateIssuerPrivateKeyTypes

    @classmethod
    def load(cls, cert_file: Path, key_file: Path) -> CertificateAuthority:
        """Load the CA; of several certificates in the file, the one that matches the key. Raises OSError or
        ValueError."""
        key: Any = load_pem_private_key(key_file.read_bytes(), password=None)
        return cls(certificate_of(key, x509.load_pem_x509_certificates(cert_file.read_bytes())), key)

    def sign(
        self, request: x509.CertificateSigningRequest, *, usages: Sequence[str], ttl: timedelta, now: datetime
    ) -> bytes:
        """Return the certificate as PEM. Raises CannotSign."""
        if not request.is_signature_valid:
            raise CannotSign("unable to verify certificate request signature")
        end = self.certificate.not_valid_after_utc
        if now - BACKDATE >= end:
            raise CannotSign(f"the signer has expired: NotAfter={end}")
        if now >= end:
            raise CannotSign(f"refusing to sign a certificate that expired in the past: NotAfter={end}")
        key: Any = request.public_key()
        builder = (
            x509.CertificateBuilder()
            .issuer_name(self.certificate.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACKDATE)
            .not_valid_after(min(end, now + ttl if ttl < SHORT else now + ttl - BACKDATE))
            .subject_name(subject := _subject(request.subject))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(self._issuer_key(), critical=False)
        )
        builder = _with_usages(builder, usages)
        if names := [name for kind in subject_alternative_names(request).values() for name in kind]:
            alternative: Any = names
            builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=not list(subject))
        return builder.sign(self.key, self._hash()).public_bytes(Encoding.PEM)

    def _issuer_key(self) -> x509.AuthorityKeyIdentifier:
        try:
            key_identifier = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        except x509.ExtensionNotFound:
            key: Any = self.certificate.public_key()
            return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)
        return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(key_identifier)

    def _hash(self) -> hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None:
        if isinstance(self.key, (ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey)):
            return None
        size = self.key.curve.key_size if isinstance(self.key, ec.EllipticCurvePrivateKey) else 0
        return hashes.SHA512() if size > 384 else hashes.SHA384() if size > 256 else hashes.SHA256()


def certificate_of(key: CertificateIssuerPrivateKeyTypes, among: Sequence[x509.Certificate]) -> x509.Certificate:
    """Return the certificate that matches the key. Raises CannotSign if none does."""
    for certificate in among:
        if certificate.public_key() == key.public_key():
            return certificate
    raise CannotSign("the key belongs to none of the authority's certificates")


def _subject(requested: x509.Name) -> x509.Name:
    attribute_lists = [requested.get_attributes_for_oid(oid) for oid in _SUBJECT]
    return x509.Name([x509.RelativeDistinguishedName(attributes) for attributes in attribute_lists if attributes])


def _with_usages(builder: x509.CertificateBuilder, usages: Sequence[str]) -> x509.CertificateBuilder:
    """Add the key usage extensions. Raises CannotSign."""
    if unknown := [usage for usage in usages if usage not in _KEY_USAGES and usage not in _PURPOSES]:
        quoted = " ".join(f'"{usage}"' for usage in unknown)
        raise CannotSign(f"unrecognized usage values: [{quoted}]")
    wanted = {_KEY_USAGES[usage] for usage in usages if usage in _KEY_USAGES}
    if "key_agreement" not in wanted:
        wanted -= {"encipher_only", "decipher_only"}  # valid only with key agreement
    if wanted:
        bits = {name: name in wanted for name in dict.fromkeys(_KEY_USAGES.values())}
        builder = builder.add_extension(x509.KeyUsage(**bits), critical=True)
    purposes = list(dict.fromkeys(oid for usage, oid in _PURPOSES.items() if usage in usages))
    return builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False) if purposes else builder


class SignerRefusal(PilothouseError, ValueError):
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


SIGNERS: Mapping[str, Check] = {
    KUBELET_SERVING: check_kubelet_serving,
    KUBE_APISERVER_CLIENT_KUBELET: check_kubelet_client,
    KUBE_APISERVER_CLIENT: check_api_client,
    LEGACY_UNKNOWN: check_nothing,
}


def common_name(request: CertificateSigningRequest) -> str:
    from cryptography.x509.oid import NameOID

    return next((str(attribute.value) for attribute in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)), "")


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

    if [attribute.value for attribute in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] != [
        "system:nodes"
    ]:
        raise SignerRefusal("subject organization is not system:nodes")


def _check_common_name(request: CertificateSigningRequest) -> None:
    if not common_name(request).startswith(_NODE):
        raise SignerRefusal(f"subject common name does not begin with {_NODE}")


def _check_usages(usages: Sequence[str], purpose: str) -> None:
    """Check the usages; key encipherment is optional, because some key types do not support it."""
    if set(usages) not in ({_SIGNATURE, _ENCIPHERMENT, purpose}, {_SIGNATURE, purpose}):
        wanted = " ".join(sorted((_SIGNATURE, _ENCIPHERMENT, purpose)))
        raise SignerRefusal(f"usages did not match [{wanted}]")
