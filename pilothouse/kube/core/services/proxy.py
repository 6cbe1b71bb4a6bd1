"""services/proxy: whatever one of the pods behind a service serves."""

from __future__ import annotations

import ssl
from functools import cache

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.outbound.tls import unverified_context
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.kube.core.pods.connect.kubelet import Kubelets
from pilothouse.kube.core.pods.connect.storages import PROXIED_METHODS, proxied
from pilothouse.kube.core.services.locations import ServiceLocations
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind

PROXY_OPTIONS = GroupVersionKind("", "v1", "ServiceProxyOptions")


@dataclass(frozen=True, slots=True)
class ServiceProxy:
    locations: ServiceLocations
    kubelets: Kubelets
    methods: frozenset[str] = PROXIED_METHODS

    async def connect(self, ctx: RequestContext, name: str, request: Request) -> Response:
        location = await self.locations.locate(ctx, name)
        if (simulated := await self.kubelets.simulated_pod(location.pod, location.port)) is not None:
            return await proxied(request, simulated)
        tls = _unverified() if location.scheme == "https" else None
        return await proxied(request, Target(location.host, location.port, "", tls=tls))


@cache
def _unverified() -> ssl.SSLContext:
    """Return a TLS context that checks no certificates: nobody vouches for those of pods."""
    return unverified_context()
