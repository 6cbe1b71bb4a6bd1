"""The storages of certificates.k8s.io, and metrics of issued durations under upstream's names."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from prometheus_client import Counter

from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.apiserver.registry.operations import RequestContext, Updated, UpdateRequest
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Hooks, Objections
from pilothouse.apiserver.registry.view import StatusStore
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.kube.certificates import certificate_signing_requests, pod_certificate_requests
from pilothouse.kube.certificates.cluster_trust_bundles import CLUSTER_TRUST_BUNDLES
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import in_version, served
from pilothouse.machinery import field
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of, part, text
from pilothouse.machinery.validation.immutable import semantically_equal

_V1, _V1BETA1, _V1ALPHA1 = (
    GroupVersion(certificate_signing_requests.GROUP, version) for version in ("v1", "v1beta1", "v1alpha1")
)

_STABLE = {"podcertificaterequests": pod_certificate_requests.STABLE_CONVERSION}

_PREFIX = "apiserver_certificates_registry_csr"
_ONLY = "sliced by signer (only kubernetes.io signer names are specifically identified)"
REQUESTED_DURATIONS = Counter(
    f"{_PREFIX}_requested_duration",
    f"Total number of issued CSRs with a requested duration, {_ONLY}",
    ["signerName"],
    registry=REGISTRY,
)
HONORED_DURATIONS = Counter(
    f"{_PREFIX}_honored_duration",
    f"Total number of issued CSRs with a requested duration that was honored, {_ONLY}",
    ["signerName"],
    registry=REGISTRY,
)
_BACKDATING = 300
"""Seconds of backdating tolerated."""


@dataclass(frozen=True, slots=True)
class CertificatesStorageProvider:
    authorizer: Authorizer

    def open(self, registries: Registries) -> APIGroup:
        bundles: list[ServedResource] = []
        if registries.features.enabled("ClusterTrustBundle") and registries.is_enabled(
            CLUSTER_TRUST_BUNDLES, "v1", "v1beta1", "v1alpha1"
        ):
            bundles = [served(registries.open(CLUSTER_TRUST_BUNDLES))]
        unstable = [*bundles, *self._pod_certificate_requests(registries)]
        registry = registries.open(certificate_signing_requests.CERTIFICATE_SIGNING_REQUESTS)
        status = StatusStore(
            registry.with_hooks(IssuedDurations()),
            certificate_signing_requests.CertificateSigningRequestStatusStrategy(),
        )
        approval = StatusStore(registry, certificate_signing_requests.CertificateSigningRequestApprovalStrategy())
        versions = {
            _V1: [
                served(registry),
                served(registry, approval, subresource="approval"),
                served(registry, status, subresource="status"),
                *in_version(_V1, unstable, conversions=_STABLE),
            ],
            _V1BETA1: in_version(_V1BETA1, unstable),
            _V1ALPHA1: in_version(_V1ALPHA1, unstable),
        }
        return APIGroup(
            certificate_signing_requests.GROUP,
            [APIVersion(version, resources) for version, resources in versions.items() if resources],
        )

    def _pod_certificate_requests(self, registries: Registries) -> list[ServedResource]:
        resource = pod_certificate_requests.POD_CERTIFICATE_REQUESTS
        is_enabled = registries.is_enabled(resource, "v1", "v1beta1", "v1alpha1")
        if not registries.features.enabled("PodCertificateRequest") or not is_enabled:
            return []
        requests = registries.open(resource)
        return [
            served(requests),
            served(requests, PodCertificateRequestStatusStore(requests, self.authorizer), subresource="status"),
        ]


class PodCertificateRequestStatusStore(StatusStore):
    """Requires permission to sign for the signer."""

    def __init__(self, registry: RegistryStore, authorizer: Authorizer) -> None:
        super().__init__(registry, pod_certificate_requests.PodCertificateRequestStatusStrategy())
        self._authorizer = authorizer

    async def update(self, ctx: RequestContext, name: str, update: UpdateRequest) -> Updated:
        async def checked(obj: Json, old: Json) -> None:
            errors = [error async for error in self._refusals(ctx, obj, old)]
            if errors:
                raise Invalid.of(
                    pod_certificate_requests.POD_CERTIFICATE_REQUESTS.kind.group_kind, name_of(obj), errors
                )
            await update.validate_update(obj, old)

        return await super().update(ctx, name, replace(update, validate_update=checked))

    async def _refusals(self, ctx: RequestContext, obj: Json, old: Json) -> AsyncIterator[field.FieldError]:
        signer = text(old, "spec", "signerName")
        if semantically_equal(part(obj, "status"), part(old, "status")):
            return
        if not await certificate_signing_requests.may_act_for_signer(self._authorizer, ctx.user, "sign", signer):
            reason = f'User {quote(ctx.user.name)} is not permitted to "sign" for signer {quote(signer)}'
            yield field.forbidden(field.root("spec", "signerName"), reason)


class IssuedDurations(Hooks):
    """Counts a request with an explicit duration when its certificate is written."""

    @asynccontextmanager
    async def around_update(self, obj: Json, old: Json, *, dry_run: bool) -> AsyncIterator[Objections]:
        yield None
        asked = old["spec"].get("expirationSeconds")
        issued = (obj.get("status") or {}).get("certificate")
        if dry_run or asked is None or not issued or (old.get("status") or {}).get("certificate"):
            return
        signer_name = old["spec"]["signerName"]
        signer = signer_name if signer_name.startswith("kubernetes.io/") else "other"
        REQUESTED_DURATIONS.labels(signer).inc()
        if _is_honored(asked, issued):
            HONORED_DURATIONS.labels(signer).inc()


def _is_honored(requested: int, issued: str) -> bool:
    from cryptography.x509 import load_pem_x509_certificate

    try:
        certificate = load_pem_x509_certificate(base64.b64decode(issued))
    except ValueError:
        return False
    lasts = (certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds()
    return abs(requested - lasts) < _BACKDATING + requested / 20
