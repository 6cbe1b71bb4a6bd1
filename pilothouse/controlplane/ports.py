"""Listening ports: HTTPS, and optionally plain HTTP on loopback."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from pilothouse.apiserver.filters.chain import insecure_handler_chain
from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.serving.limits import Limits
from pilothouse.apiserver.serving.secure import SecureServing
from pilothouse.apiserver.serving.server import ListenEndpoint, Server, insecure_endpoint
from pilothouse.controlplane.config import Config
from pilothouse.controlplane.errors import StartFailed
from pilothouse.machinery.dataclass import dataclass


class Port:
    """One HTTP server on one address. A failure to listen names the address."""

    def __init__(
        self,
        handler: Handler,
        endpoint: ListenEndpoint,
        *,
        limits: Limits | None = None,
        listening: Callable[[int], None] | None = None,
    ) -> None:
        """Create the port. `listening` receives the port number, which the system may have chosen."""
        self._endpoint = endpoint
        self._listening = listening
        self._server = Server(handler, [endpoint], limits=limits)

    @property
    def number(self) -> int:
        return self._server.port

    @property
    def connections(self) -> int:
        return self._server.connections

    async def start(self) -> None:
        """Start listening. Raises StartFailed."""
        try:
            await self._server.start()
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            address = host_port(self._endpoint.host, self._endpoint.port)
            raise StartFailed(f"failed to listen on {address}: {reason}") from error
        if self._listening:
            self._listening(self.number)

    async def shutdown(self, timeout: float) -> None:
        await self._server.shutdown(timeout)


@dataclass(frozen=True, slots=True)
class Ports:
    secure: Port
    insecure: Port | None = None

    @property
    def in_order(self) -> list[Port]:
        """Ports in start order: insecure first, because its clients must reach the server early."""
        return [self.secure] if self.insecure is None else [self.insecure, self.secure]


def open_ports(api: Handler, guarded: Handler, config: Config, secure: SecureServing) -> Ports:
    """Create the ports: `guarded` behind the secure port, `api` behind the insecure port.

    Raises ValueError if the insecure port is not on loopback.
    """
    streams = config.options.secure_serving.http2_max_streams_per_connection
    limits, listening = (Limits(http2_streams=streams) if streams else Limits()), config.kube.address.listens_on
    shared = replace(secure.endpoint, listener=config.place.listener)
    opened = Port(guarded, shared, limits=limits, listening=listening)
    insecure = config.options.insecure_serving
    if not insecure.port:
        return Ports(opened)
    endpoint = insecure_endpoint(insecure.bind_address, insecure.port)
    return Ports(opened, Port(insecure_handler_chain(api, config.chain), endpoint))


def host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
