"""The chain of plugins, in order: all that admit first, then all that validate."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.admission.interface import Attributes, Plugin


class AdmissionChain:
    """An empty chain admits everything."""

    def __init__(self, plugins: Sequence[Plugin] = ()) -> None:
        self.plugins = tuple(plugins)

    async def admit(self, attributes: Attributes) -> None:
        for plugin in self.plugins:
            if plugin.handles(attributes.operation):
                await plugin.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        for plugin in self.plugins:
            if plugin.handles(attributes.operation):
                await plugin.validate(attributes)
