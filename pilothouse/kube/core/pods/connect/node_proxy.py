"""nodes/proxy: whatever a node serves, its kubelet first of all."""

from __future__ import annotations

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.kube.core.pods.connect.addresses import port_number, proxyable_address_of
from pilothouse.kube.core.pods.connect.kubelet import Kubelets
from pilothouse.kube.core.pods.connect.storages import PROXIED_METHODS, proxied
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.scheme_name_port import split_scheme_name_port

NODE_PROXY_OPTIONS = GroupVersionKind("", "v1", "NodeProxyOptions")


@dataclass(frozen=True, slots=True)
class NodeProxy:
    kubelets: Kubelets
    methods: frozenset[str] = PROXIED_METHODS

    async def connect(self, ctx: RequestContext, name: str, request: Request) -> Response:
        asked = split_scheme_name_port(name)
        if asked is None:
            raise BadRequest(f"invalid node request {quote(name)}")
        kubelet = await self.kubelets.locate(asked.name)
        port = port_number(asked.port) if asked.port else kubelet.port
        if kubelet.simulated_as and port == kubelet.port:
            return await proxied(request, self.kubelets.target(kubelet, ""))
        address = await proxyable_address_of(kubelet.host)
        config = self.kubelets.config
        if port == kubelet.port:
            target = Target(kubelet.host, port, "", tls=config.tls, timeout=config.timeout, address=address)
            return await proxied(request, target)
        tls = config.unverified_tls if asked.scheme == "https" else None
        return await proxied(request, Target(kubelet.host, port, "", tls=tls, address=address))
