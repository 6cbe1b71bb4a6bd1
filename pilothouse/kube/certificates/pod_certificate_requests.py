"""PodCertificateRequests: a kubelet requests a certificate for a pod. A request is issued at most once."""

from __future__ import annotations

from typing import ClassVar

from pilothouse.apiserver.registry.resource import Names, Resource, metadata_fields
from pilothouse.apiserver.registry.table import NAME, Column
from pilothouse.apiserver.storage.object import Fields
from pilothouse.kube.certificates.certificate_signing_requests import GROUP
from pilothouse.kube.certificates.pod_certificate_keys import validate_keys
from pilothouse.kube.certificates.pod_certificate_status import STATES, validate_status
from pilothouse.kube.certificates.validation import LONGEST, LONGEST_OF_KUBERNETES, SHORTEST
from pilothouse.kube.served import VersionConversion, fitted
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource
from pilothouse.kube.validation.domains import is_kubernetes_signer_name, user_annotations, validate_signer_name
from pilothouse.kube.validation.fields import follow
from pilothouse.kube.validation.internal_structs import ANY, TEXT, struct
from pilothouse.machinery.field import Errors, Path, invalid, root, too_long
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.selectors.labels import format_labels
from pilothouse.machinery.times import Clock, system_clock
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal
from pilothouse.machinery.validation.names import is_dns1123_subdomain

MAX_UID = 128
DEFAULT_EXPIRATION = 24 * 60 * 60

_SPEC = "io.k8s.api.certificates.v1beta1.PodCertificateRequestSpec"

_printed_spec = struct(
    SignerName=TEXT,
    PodName=TEXT,
    PodUID=TEXT,
    ServiceAccountName=TEXT,
    ServiceAccountUID=TEXT,
    NodeName=TEXT,
    NodeUID=TEXT,
    MaxExpirationSeconds=ANY,
    PKIXPublicKey=ANY,
    ProofOfPossession=ANY,
    StubPKCS10Request=ANY,
    UnverifiedUserAnnotations=ANY,
)


class PodCertificateRequestStrategy(SeparateStatusStrategy):
    allow_unconditional_update = False
    reset_fields: ClassVar[tuple[str, ...]] = ()

    def default(self, obj: Json) -> None:
        spec = part(obj, "spec")
        if spec.get("maxExpirationSeconds") is None:
            spec["maxExpirationSeconds"] = DEFAULT_EXPIRATION

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        spec = part(obj, "spec")
        path = root("spec")
        yield from validate_signer_name(text(spec, "signerName"), path.child("signerName"))
        if spec.get("unverifiedUserAnnotations") is not None:
            yield from user_annotations(spec["unverifiedUserAnnotations"], path.child("unverifiedUserAnnotations"))
        for name, uid in (("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")):
            yield from follow(is_dns1123_subdomain, text(spec, name), path.child(name))
            yield from _validate_uid(text(spec, uid), path.child(uid))
        seconds = spec["maxExpirationSeconds"]
        most = LONGEST_OF_KUBERNETES if is_kubernetes_signer_name(text(spec, "signerName")) else LONGEST
        if not SHORTEST <= seconds <= most:
            yield invalid(path.child("maxExpirationSeconds"), seconds, f"must be in the range [{SHORTEST}, {most}]")
        yield from validate_keys(spec)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        if not semantically_equal(obj["spec"], old["spec"]):
            yield invalid(root("spec"), _printed_spec(obj["spec"]), FIELD_IMMUTABLE)


class PodCertificateRequestStatusStrategy(StatusSubresource, PodCertificateRequestStrategy):
    resets_metadata = True

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock

    def validate_update(self, obj: Json, old: Json) -> Errors:
        errors = list(self.validate_metadata_update(obj, old))
        yield from errors or validate_status(obj, old, self._clock)


def _validate_uid(uid: str, path: Path) -> Errors:
    if not uid:
        yield invalid(path, uid, "must not be empty")
    if len(uid.encode()) > MAX_UID:
        yield too_long(path, MAX_UID)


def _fields(obj: Json) -> Fields:
    names = ("signerName", "podName", "nodeName")
    return metadata_fields(obj) | {f"spec.{name}": text(obj, "spec", name) for name in names}


def _state(obj: Json) -> str:
    types = [text(condition, "type") for condition in items(obj, "status", "conditions")]
    return next((kind for kind in reversed(types) if kind in STATES), "Pending")


POD_CERTIFICATE_REQUESTS = Resource(
    names=Names("podcertificaterequests", kind="PodCertificateRequest"),
    strategy=PodCertificateRequestStrategy(),
    group=GROUP,
    version="v1beta1",
    fields=_fields,
    columns=[
        NAME,
        Column("PodName", lambda obj: text(obj, "spec", "podName"), documented=(_SPEC, "podName")),
        Column(
            "ServiceAccountName",
            lambda obj: text(obj, "spec", "serviceAccountName"),
            documented=(_SPEC, "serviceAccountName"),
        ),
        Column("NodeName", lambda obj: text(obj, "spec", "nodeName"), documented=(_SPEC, "nodeName")),
        Column("SignerName", lambda obj: text(obj, "spec", "signerName"), documented=(_SPEC, "signerName")),
        Column("State", _state, description="Is the request Pending, Issued, Denied, or Failed?"),
        Column(
            "UnverifiedUserAnnotations",
            lambda obj: format_labels(part(obj, "spec", "unverifiedUserAnnotations")),
            documented=(_SPEC, "unverifiedUserAnnotations"),
        ),
    ],
)


_STABLE = GroupVersionKind(GROUP, "v1", "PodCertificateRequest")
_WITHOUT = ("pkixPublicKey", "proofOfPossession")
"""Fields of the storage version that v1 lacks."""


def _from_stored(obj: Json) -> Json:
    spec = {name: value for name, value in part(obj, "spec").items() if name not in _WITHOUT}
    return fitted(_STABLE, {**obj, "apiVersion": _STABLE.api_version, "spec": spec})


STABLE_CONVERSION = VersionConversion(
    kind=_STABLE,
    to_stored=lambda obj: fitted(
        POD_CERTIFICATE_REQUESTS.kind, {**obj, "apiVersion": POD_CERTIFICATE_REQUESTS.kind.api_version}
    ),
    from_stored=_from_stored,
    default=POD_CERTIFICATE_REQUESTS.strategy.default,
)
