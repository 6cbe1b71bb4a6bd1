"""The last server of the chain: what it does not know, nobody does."""

from __future__ import annotations

from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.server.config import GenericConfig


class ExtensionsServer:
    def __init__(self, config: GenericConfig, *, delegate: Handler) -> None:
        self.generic = config.new_server("apiextensions-apiserver", delegate)
