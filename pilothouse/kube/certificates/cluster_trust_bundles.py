"""ClusterTrustBundles: trust anchors of the cluster, per signer or without a signer."""

from __future__ import annotations

from functools import partial

from pilothouse.apiserver.registry.resource import Names, Resource, cluster_metadata_fields
from pilothouse.apiserver.registry.table import NAME, Column
from pilothouse.kube.certificates.certificate_signing_requests import GROUP
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation.domains import cluster_trust_bundle_name_problems, validate_signer_name
from pilothouse.machinery.field import Errors, invalid, root, too_long
from pilothouse.machinery.objects import Json, text
from pilothouse.machinery.pem import PemBlock, pem_blocks
from pilothouse.machinery.validation.immutable import validate_immutable_field
from pilothouse.machinery.validation.object_meta import validate_object_meta

MAX_TRUST_BUNDLE_SIZE = 1 << 20

_SPEC = "io.k8s.api.certificates.v1beta1.ClusterTrustBundleSpec"
_OMITTED = "<value omitted>"


class ClusterTrustBundleStrategy(KubeStrategy):
    namespaced = False
    allow_unconditional_update = False

    def validate_metadata(self, obj: Json) -> Errors:
        """Require the signer's name as prefix, if the bundle has a signer."""
        signer = text(obj, "spec", "signerName")
        yield from validate_object_meta(
            obj["metadata"],
            namespaced=False,
            name_rule=partial(cluster_trust_bundle_name_problems, signer),
            path=root("metadata"),
        )

    def validate(self, obj: Json) -> Errors:
        yield from self._validate(obj)
        bundle = text(obj, "spec", "trustBundle")
        path = root("spec", "trustBundle")
        if len(bundle.encode()) > MAX_TRUST_BUNDLE_SIZE:
            yield too_long(path, MAX_TRUST_BUNDLE_SIZE)
        else:
            blocks = list(pem_blocks(bundle.encode()))
            problems = [f"entry {at} {problem}" for at, block in enumerate(blocks) if (problem := _problem(block))]
            for problem in problems or _problems_of_all(blocks):
                yield invalid(path, _OMITTED, problem)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        """Skip validation of an unchanged bundle."""
        bundle_changed = text(obj, "spec", "trustBundle") != text(old, "spec", "trustBundle")
        yield from self.validate(obj) if bundle_changed else self._validate(obj)
        yield from self.validate_metadata_update(obj, old)
        signers = (text(obj, "spec", "signerName"), text(old, "spec", "signerName"))
        yield from validate_immutable_field(*signers, root("spec", "signerName"))

    def _validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        if signer := text(obj, "spec", "signerName"):
            yield from validate_signer_name(signer, root("spec", "signerName"))


def _problem(block: PemBlock) -> str:
    from cryptography.x509 import load_der_x509_certificate

    if block.type != "CERTIFICATE":
        return f"has bad block type: {block.type}"
    if block.has_headers:
        return "has PEM block headers"
    try:
        certificate = load_der_x509_certificate(block.body)
        is_authority = _is_authority(certificate)
    except ValueError:
        return "does not parse as X.509"
    return "" if is_authority else "does not have the CA bit set"


def _is_authority(certificate: object) -> bool:
    from cryptography.x509 import BasicConstraints, Certificate, ExtensionNotFound

    assert isinstance(certificate, Certificate)
    try:
        return certificate.extensions.get_extension_for_class(BasicConstraints).value.ca
    except ExtensionNotFound:
        return False


def _problems_of_all(blocks: list[PemBlock]) -> list[str]:
    if not blocks:
        return ["at least one trust anchor must be provided"]
    places: dict[bytes, list[int]] = {}
    for position, block in enumerate(blocks):
        places.setdefault(block.body, []).append(position)
    return [
        f"duplicate trust anchor (indices [{' '.join(map(str, place))}])" for place in places.values() if len(place) > 1
    ]


CLUSTER_TRUST_BUNDLES = Resource(
    names=Names("clustertrustbundles", kind="ClusterTrustBundle"),
    strategy=ClusterTrustBundleStrategy(),
    group=GROUP,
    version="v1beta1",
    fields=lambda obj: cluster_metadata_fields(obj) | {"spec.signerName": text(obj, "spec", "signerName")},
    columns=[
        NAME,
        Column("SignerName", lambda obj: text(obj, "spec", "signerName") or "<none>", documented=(_SPEC, "signerName")),
    ],
)
