"""The server of the simulated kubelets: loopback only, for the API server's client certificate only."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.serving.certificate_files import KeyPair
from pilothouse.apiserver.serving.secure import SecureServing, SecureServingInfo
from pilothouse.apiserver.serving.server import Server
from pilothouse.apiserver.serving.tls_context import TlsFiles
from pilothouse.nodes.kubelet.host import Host
from pilothouse.nodes.kubelet.routes import KubeletRoutes
from pilothouse.nodes.simulated_kubelet import HOST, SimulatedKubelet


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
