"""The first server of the chain: it shows the health, the hooks and the paths of all three."""

from __future__ import annotations

from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.server import PreparedAPIServer
from pilothouse.client.rest.client import RESTClient


class Aggregator:
    def __init__(self, config: GenericConfig, *, delegate: Handler, client: RESTClient) -> None:
        """`client` is the loopback client: what its controllers do, they do through the whole chain."""
        self._client = client
        self.generic = config.new_server("kube-aggregator", delegate)

    def prepare_run(self, *, livez_grace_period: float = 0.0) -> PreparedAPIServer:
        return self.generic.prepare_run(livez_grace_period=livez_grace_period)
