"""The aggregator: the first server of the chain, with the merged discovery and OpenAPI documents of all servers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import field

from pilothouse.aggregator.api_services_to_register import Priorities, api_services_to_register
from pilothouse.aggregator.apiservice.apiservices import APIServices
from pilothouse.aggregator.apiservice.strategy import API_SERVICES, GROUP_VERSION, APIServiceStore
from pilothouse.aggregator.autoregister import AutoRegisterController, autoregister_completion
from pilothouse.aggregator.availability.checks import Services
from pilothouse.aggregator.availability.controller import LocalAvailableController, RemoteAvailableController
from pilothouse.aggregator.availability.status import AvailabilityStatus
from pilothouse.aggregator.crd_registration import CRDRegistrationController, CustomResourceDefinitions
from pilothouse.aggregator.discovery.groups import apis_handler
from pilothouse.aggregator.discovery.manager import DiscoveryManager
from pilothouse.aggregator.handler_manager import APIServiceRegistrationController, ProxyHandlers
from pilothouse.aggregator.openapi.controller import V2_NAME, V3_NAME, OpenAPIAggregationController
from pilothouse.aggregator.openapi.documents import AggregatedOpenAPI
from pilothouse.aggregator.openapi.v2_aggregator import SpecAggregator
from pilothouse.aggregator.openapi.v3_aggregator import SpecProxier
from pilothouse.aggregator.proxy.handler import ProxyConfig
from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.discovery.handlers import with_aggregated
from pilothouse.apiserver.discovery.manager import GroupDocuments
from pilothouse.apiserver.endpoints.api_groups import install_api_group
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.hooks import HookContext, nothing_to_start
from pilothouse.apiserver.server.server import GenericAPIServer, PreparedAPIServer
from pilothouse.client.rest.client import Client
from pilothouse.machinery.dataclass import dataclass

FIRST_ANSWERS_WITHIN = 1.0
"""Seconds that the start waits for known aggregated servers, so that their discovery is not Stale at first."""


@dataclass(frozen=True, slots=True)
class AggregatorConfig:
    generic: GenericConfig
    client: Client
    """The loopback client: controllers use the whole chain."""
    definitions: CustomResourceDefinitions | None = None
    """None if the CustomResourceDefinition API is disabled."""
    admission: AdmissionChain = field(default_factory=AdmissionChain)
    priorities: Priorities = field(default_factory=dict)
    """Priorities of the local group versions."""
    proxy: ProxyConfig = field(default_factory=ProxyConfig)
    """Access to remote servers."""
    proxy_client_is_given: bool = False
    """Whether --proxy-client-cert-file is set."""
    services: Services | None = None
    """Access to Services; without it, remote availability is not checked."""


class Aggregator:
    def __init__(self, config: AggregatorConfig, *, delegate: GenericAPIServer) -> None:
        """Raises ValueError if the APIService API is disabled."""
        if not config.generic.resources.resource_enabled(GROUP_VERSION.resource(API_SERVICES.names.plural)):
            raise ValueError(f"API group/version {GROUP_VERSION} must be enabled")
        self.config = config
        self.generic = config.generic.new_server("kube-aggregator", delegate)
        self._store = APIServiceStore(config.generic.store, root=config.generic.key_prefix)
        self.api_services = APIServices(self._store)
        self.handlers = ProxyHandlers(self.generic.mux, self.api_services, delegate, proxy=config.proxy)
        self.registration = APIServiceRegistrationController(self.api_services, self.handlers)
        self.aggregation = Aggregation(self.generic, config.priorities)
        self.aggregation.follow(self.handlers)
        group = self._store.api_group()
        install_api_group(self.generic, group, self.config.generic.installer(self.config.admission))
        self.generic.discovery.put(GroupDocuments.of(group))
        plain = apis_handler(self.api_services)
        self.generic.mux.handle("/apis", with_aggregated(plain, self.aggregation.discovery.document))
        self.generic.mux.handle("/apis/", plain, listed=False)
        if config.proxy_client_is_given:
            self.generic.add_post_start_hook("aggregator-reload-proxy-client-cert", nothing_to_start)
        self.generic.add_post_start_hook("start-kube-aggregator-informers", self._start_informers)
        self._add_availability()
        self.generic.add_post_start_hook("apiservice-registration-controller", self._start_registration)
        self.aggregation.add_discovery_hook(self.generic, self.registration.handlers_synced)
        self._add_auto_registration(delegate)
        self.aggregation.add_openapi_hooks(self.generic)
        self.generic.add_drained(self._stop)

    def prepare_run(self) -> PreparedAPIServer:
        config, options = self.config.generic, self.config.generic.run_options
        return self.generic.prepare_run(
            livez_grace_period=options.livez_grace_period,
            flags=config.flags,
            profiling=options.profiling,
            features=config.features,
        )

    def _add_availability(self) -> None:
        """Add the availability controllers. Until the first sync, an APIService keeps the status of the previous
        server."""
        config, status = self.config, AvailabilityStatus(self.config.client)
        local = LocalAvailableController(self.api_services, status)
        self._add_controller("apiservice-status-local-available-controller", local.run)
        if config.services is None:
            return
        remote = RemoteAvailableController(self.api_services, config.services, proxy=config.proxy, status=status)
        self._add_controller("apiservice-status-remote-available-controller", remote.run)

    def _add_controller(self, name: str, run: Callable[[], Coroutine[None, None, None]]) -> None:
        async def start(context: HookContext) -> None:
            context.spawn(run(), name=name)

        self.generic.add_post_start_hook(name, start)

    async def _stop(self) -> None:
        self.config.proxy.transports.close()
        await self._store.stop()

    async def _start_informers(self, context: HookContext) -> None:
        await self._store.start()
        context.spawn(self.api_services.run(), name="APIServices")

    async def _start_registration(self, context: HookContext) -> None:
        """Return once every APIService has its handler."""
        context.spawn(self.registration.run(), name="apiservice-registration-controller")
        await self.registration.handlers_synced.wait()

    def _add_auto_registration(self, delegate: GenericAPIServer) -> None:
        auto = AutoRegisterController(self.api_services, self.config.client)
        definitions = self.config.definitions
        crds = CRDRegistrationController(definitions, auto) if definitions else None
        wanted = list(api_services_to_register(delegate.listed_paths(), self.config.priorities))
        for api_service in wanted:
            auto.add_api_service_to_sync_on_start(api_service)

        async def start(context: HookContext) -> None:
            if crds is not None:
                context.spawn(crds.run(), name="crd-autoregister")
            context.spawn(auto.run(after=crds), name="autoregister")

        self.generic.add_post_start_hook("kube-apiserver-autoregistration", start)
        self.generic.add_health_check(autoregister_completion(wanted, self.api_services))


class Aggregation:
    """Merges discovery and OpenAPI documents of the servers behind APIServices with the local ones."""

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
        for controller in (self.openapi, self.openapi_v3):
            handlers.add_controller(controller)
        handlers.add_controller(self.discovery, even_if_unavailable=True)

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
