"""The storages of networking.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.deprecation import Deprecation
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.networking.ingress_classes import INGRESS_CLASSES
from pilothouse.kube.networking.ingresses import INGRESSES, IngressStatusStrategy
from pilothouse.kube.networking.ip_addresses import IP_ADDRESSES
from pilothouse.kube.networking.network_policies import NETWORK_POLICIES
from pilothouse.kube.networking.service_cidrs import SERVICE_CIDRS, ServiceCIDRStatusStrategy
from pilothouse.kube.other_versions import in_version, named
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion

_V1, _V1BETA1 = GroupVersion("networking.k8s.io", "v1"), GroupVersion("networking.k8s.io", "v1beta1")


class NetworkingStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        ingresses, cidrs = registries.open(INGRESSES), registries.open(SERVICE_CIDRS)
        resources = [
            served(registries.open(INGRESS_CLASSES)),
            served(ingresses),
            served(ingresses, StatusStore(ingresses, IngressStatusStrategy()), subresource="status"),
            served(registries.open(IP_ADDRESSES)),
            served(registries.open(NETWORK_POLICIES)),
            served(cidrs),
            served(cidrs, StatusStore(cidrs, ServiceCIDRStatusStrategy()), subresource="status"),
        ]
        beta = in_version(
            _V1BETA1, named(resources, "ipaddresses", "servicecidrs"), deprecation=Deprecation("1.34", "1.37")
        )
        return APIGroup("networking.k8s.io", [APIVersion(_V1, resources), APIVersion(_V1BETA1, beta)])
