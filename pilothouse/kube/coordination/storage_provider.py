"""The storages of coordination.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.deprecation import Deprecation
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.kube.coordination.lease_candidates import LEASE_CANDIDATES
from pilothouse.kube.coordination.leases import GROUP, leases_with
from pilothouse.kube.other_versions import in_version
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion

_V1, _V1BETA1, _V1ALPHA2 = (GroupVersion(GROUP, version) for version in ("v1", "v1beta1", "v1alpha2"))


class CoordinationStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        stable = APIVersion(_V1, [served(registries.open(leases_with(registries.features)))])
        return APIGroup(GROUP, [stable, *_candidates(registries)])


def _candidates(registries: Registries) -> list[APIVersion]:
    if not registries.any_enabled(_V1BETA1, _V1ALPHA2):
        return []
    beta = [served(registries.open(LEASE_CANDIDATES), deprecation=Deprecation("1.36", "1.39"))]
    alpha = in_version(_V1ALPHA2, beta, deprecation=Deprecation("1.35", "1.38"))
    return [APIVersion(_V1BETA1, beta), APIVersion(_V1ALPHA2, alpha)]
