"""The server of the simulated kubelets and its routes: loopback only, for the API server's client certificate only."""

from __future__ import annotations

import asyncio
from pathlib import PurePosixPath
from typing import Final

import orjson

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.outbound.failures import UNREACHABLE_SERVICE
from pilothouse.apiserver.serving.client_certificate import client_certificate
from pilothouse.apiserver.serving.secure import SecureServing, SecureServingInfo
from pilothouse.apiserver.serving.server import Server
from pilothouse.apiserver.serving.tls_context import TlsFiles
from pilothouse.apiserver.serving.tls_options import KeyPair
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import text
from pilothouse.machinery.server_errors import ServiceUnavailable
from pilothouse.nodes.kubelet.commands import exec_or_attach, run_once
from pilothouse.nodes.kubelet.host import Host
from pilothouse.nodes.kubelet.logs import container_log
from pilothouse.nodes.kubelet.pod_page import PodPort
from pilothouse.nodes.kubelet.port_forward import port_forward
from pilothouse.nodes.metrics.collecting import measure_nodes, measure_pod, measure_pods, resource_metrics
from pilothouse.nodes.simulated_kubelet import CLIENT_NAME, HOST, SimulatedKubelet

_JSON: Final = [(b"content-type", b"application/json")]
_TEXT: Final = [(b"content-type", b"text/plain; charset=utf-8")]
_NODES: Final = "nodes"


async def serve_kubelets(host: Host, files: SimulatedKubelet) -> None:
    """Serve until cancelled, on a free port that is published in the files.

    Raises OSError or ValueError if the certificates are unusable.
    """
    tls = TlsFiles(KeyPair(files.serving_cert, files.serving_key), client_cas=(files.ca_cert,))
    serving = await asyncio.to_thread(SecureServing, SecureServingInfo(tls, HOST, 0, disable_http2_serving=True))
    server = Server(KubeletRoutes(host), [serving.endpoint])
    await server.start()
    files.publish(server.port)
    try:
        await asyncio.Event().wait()
    finally:
        files.withdraw()
        await server.abort()


@dataclass(frozen=True, slots=True)
class KubeletRoutes:
    host: Host

    async def __call__(self, request: Request) -> Response:
        """Serve a request. The node name precedes the kubelet path, because one server serves all nodes."""
        words = PurePosixPath(request.path).parts[1:]
        if words == ("healthz",):
            return Response(200, b"ok", [*_TEXT])
        certificate = client_certificate(request.transport)
        if certificate is None or not certificate.verified or certificate.common_name != CLIENT_NAME:
            return Response(401, b"Unauthorized")
        node = ""
        if words[:1] == (_NODES,) and len(words) > 1:
            node, words = words[1], words[2:]
            if not self.host.answers_for(node):
                return Response(503, f"node {node} does not answer".encode(), [*_TEXT])
        return await self._route(request, node, list(words))

    async def _route(self, request: Request, node: str, words: list[str]) -> Response:
        match words:
            case ["healthz"]:
                return Response(200, b"ok", [*_TEXT])
            case ["containerLogs", namespace, name, container]:
                return await container_log(self.host, request, namespace, name, container)
            case ["exec" | "attach" as action, *place] if len(place) in (3, 4):
                return await exec_or_attach(self.host, request, action, place)
            case ["run", *place] if len(place) in (3, 4):
                if request.method != "POST":
                    return Response(405, b"405: Method Not Allowed", [(b"allow", b"POST"), *_TEXT])
                return await run_once(self.host, request, place)
            case ["portForward", namespace, name, *_]:
                return port_forward(self.host, request, namespace, name)
            case ["podPorts", namespace, name, port, *rest] if port.isdecimal():
                return await self._pod_port(request, namespace, name, int(port), "/".join(rest))
            case ["pods" | "runningpods"]:
                pods = [*self.host.pods.on_node(node)]
                return Response(200, orjson.dumps({"kind": "PodList", "apiVersion": "v1", "items": pods}), [*_JSON])
            case ["usage", "nodes"]:
                return Response(200, orjson.dumps(await measure_nodes(self.host)), [*_JSON])
            case ["usage", "pods"]:
                return Response(200, orjson.dumps(await measure_pods(self.host)), [*_JSON])
            case ["usage", "pods", namespace]:
                return Response(200, orjson.dumps(await measure_pods(self.host, namespace)), [*_JSON])
            case ["usage", "pods", namespace, name]:
                return Response(200, orjson.dumps(await measure_pod(self.host, namespace, name)), [*_JSON])
            case ["metrics", "resource"]:
                return Response(200, resource_metrics(self.host, node), [*_TEXT])
        return Response(404, b"404 page not found\n", [*_TEXT])

    async def _pod_port(self, request: Request, namespace: str, name: str, port: int, rest: str) -> Response:
        """Answer in place of the pod: its address is not reachable."""
        pod = self.host.pods.get(namespace, name) or {"metadata": {"namespace": namespace, "name": name}}
        query = f"?{request.query_string}" if request.query_string else ""
        answer = await PodPort(self.host, pod, port).answer(request.method, f"/{rest}{query}")
        if answer is None:
            address = text(pod, "status", "podIP")
            refused = f"dial tcp {f'[{address}]' if ':' in address else address}:{port}: connect: connection refused"
            problem = ServiceUnavailable(f"{UNREACHABLE_SERVICE}{refused}")
            return Response(problem.code, orjson.dumps(problem.status), [*_JSON])
        headers = [(b"content-type", answer.content_type.encode())] if answer.has_body else []
        return Response(answer.status, answer.body if answer.has_body else b"", headers)
