"""Aggregation of discovery and OpenAPI: merges the documents of the servers behind APIServices with the local ones."""

from __future__ import annotations

import asyncio
import contextlib

from pilothouse.aggregator.api_services_to_register import Priorities
from pilothouse.aggregator.discovery.manager import DiscoveryManager
from pilothouse.aggregator.handler_manager import ProxyHandlers
from pilothouse.aggregator.openapi.controller import V2_NAME, V3_NAME, OpenAPIAggregationController
from pilothouse.aggregator.openapi.documents import AggregatedOpenAPI
from pilothouse.aggregator.openapi.v2_aggregator import SpecAggregator
from pilothouse.aggregator.openapi.v3_aggregator import SpecProxier
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.apiserver.server.server import GenericAPIServer

FIRST_ANSWERS_WITHIN = 1.0
"""Seconds that the start waits for known aggregated servers, so that their discovery is not Stale at first."""


class Aggregation:
    def __init__(
        self, generic: GenericAPIServer, priorities: Priorities, *, first_answers_within: float = FIRST_ANSWERS_WITHIN
    ) -> None:
        self._first_answers_within = first_answers_within
        v2, v3 = SpecAggregator(), SpecProxier()
        self.discovery = DiscoveryManager(generic.discovery, priorities)
        self.openapi = OpenAPIAggregationController(V2_NAME, v2)
        self.openapi_v3 = OpenAPIAggregationController(V3_NAME, v3)
        generic.openapi_documents = AggregatedOpenAPI(generic.openapi, v2, v3)

    def follow(self, handlers: ProxyHandlers) -> None:
        """Subscribe the controllers to APIServices."""
        for controller in (self.openapi, self.openapi_v3, self.discovery):
            handlers.add_controller(controller)

    def add_discovery_hook(self, generic: GenericAPIServer, api_services_known: asyncio.Event) -> None:
        async def start(context: HookContext) -> None:
            """Return once the document lists every APIService; entries may still be Stale."""
            await api_services_known.wait()
            context.spawn(self.discovery.run(), name="apiservice-discovery-controller")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.discovery.wait_tried(), self._first_answers_within)

        generic.add_post_start_hook("apiservice-discovery-controller", start)

    def add_openapi_hooks(self, generic: GenericAPIServer) -> None:
        async def start_v2(context: HookContext) -> None:
            context.spawn(self.openapi.run(), name="apiservice-openapi-controller")

        async def start_v3(context: HookContext) -> None:
            context.spawn(self.openapi_v3.run(), name="apiservice-openapiv3-controller")

        generic.add_post_start_hook("apiservice-openapi-controller", start_v2)
        generic.add_post_start_hook("apiservice-openapiv3-controller", start_v3)
