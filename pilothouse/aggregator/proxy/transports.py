"""The transports in use: whoever wants to reach the same server in the same way shares its connections."""

from __future__ import annotations

from pilothouse.aggregator.proxy.client_certificate import ProxyClientCertificate
from pilothouse.aggregator.proxy.transport import ProxyTransport, TransportConfig


class Transports:
    def __init__(self, certificate: ProxyClientCertificate | None = None) -> None:
        self._certificate = certificate or ProxyClientCertificate()
        self._transports: dict[TransportConfig, ProxyTransport] = {}

    def get(self, config: TransportConfig) -> ProxyTransport:
        found = self._transports.get(config)
        if found is None:
            found = self._transports[config] = ProxyTransport(config, self._certificate)
        return found

    def drop(self, config: TransportConfig) -> None:
        """Closes its idle connections. Requests under way keep theirs; whoever needs it again gets a new one."""
        found = self._transports.pop(config, None)
        if found is not None:
            found.close()

    def close(self) -> None:
        for config in list(self._transports):
            self.drop(config)
