"""The extensions server: CustomResourceDefinitions and custom resources, the last server of the chain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.endpoints.api_groups import install_api_group, install_group_list
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.apiserver.webhook.client import WebhookClients
from pilothouse.client.controller import Controller
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.extensions.controllers import conditions
from pilothouse.extensions.controllers.definitions import DefinitionInformer, StatusWriter
from pilothouse.extensions.controllers.finalizer import FinalizingController
from pilothouse.extensions.controllers.naming import NamingController
from pilothouse.extensions.customresourcedefinitions.storage import DefinitionStore, served_definitions
from pilothouse.extensions.customresourcedefinitions.strategy import GROUP_VERSION
from pilothouse.extensions.customresources.handler import CustomResources
from pilothouse.extensions.discovery import CustomResourceDiscovery
from pilothouse.extensions.openapi.publishing import OpenAPIPublisher
from pilothouse.machinery.objects import Json, name_of

_FINALIZING_WORKERS = 5


class ExtensionsServer:
    def __init__(self, config: GenericConfig, *, delegate: Handler, admission: AdmissionChain | None = None) -> None:
        self.generic = config.new_server("apiextensions-apiserver", delegate)
        self.admission = admission or AdmissionChain()
        self.definition_store = DefinitionStore(config.store, root=config.key_prefix)
        self.definitions = DefinitionInformer(self.definition_store)
        self.webhooks = WebhookClients(config.services)
        self.custom_resources = CustomResources(config, self.admission, self.webhooks, delegate=delegate)
        self.publisher = OpenAPIPublisher(self.generic.openapi, self.definitions.of_group)
        self.discovery = CustomResourceDiscovery(self.generic.discovery, self.definitions.of_group, delegate=delegate)
        self._controllers = self._make_controllers()
        self.crd_api_enabled = config.resources.resource_enabled(GROUP_VERSION.resource("customresourcedefinitions"))
        """If disabled, this server serves nothing and ignores definitions."""
        if self.crd_api_enabled:
            installer = config.installer(self.admission)
            self.definitions.listen(self._changed)
            self.generic.add_post_start_hook("start-apiextensions-informers", self._start_informers)
            self.generic.add_post_start_hook("start-apiextensions-controllers", self._start_controllers)
            self.generic.add_post_start_hook("crd-informer-synced", self._wait_synced)
            self.generic.add_drained(self._stop)
            group = APIGroup(
                GROUP_VERSION.group, [APIVersion(GROUP_VERSION, served_definitions(self.definition_store))]
            )
            install_api_group(self.generic, group, installer)
            install_group_list(self.generic, [group])
            self.generic.mux.handle_prefix("/apis/", self._serve, listed=False)

    async def _serve(self, request: Request) -> Response:
        if request.info.is_resource:
            return await self.custom_resources(request)
        return await self.discovery(request)

    def _make_controllers(self) -> list[Controller[str]]:
        definitions, writer = self.definitions, StatusWriter(self.definition_store)
        naming = NamingController(definitions, writer, lambda name: self._controllers[0].queue.add(name))
        finalizing = FinalizingController(definitions, writer, self.custom_resources.registry)
        return [
            _controller("crd_naming_condition_controller", naming.sync),
            _controller(
                "non_structural_schema_condition_controller",
                conditions.NonStructuralSchemaController(definitions, writer).sync,
            ),
            _controller("crdEstablishing", conditions.EstablishingController(definitions, writer).sync),
            _controller(
                "kubernetes_api_approval_conformant_condition_controller",
                conditions.APIApprovalController(definitions, writer).sync,
            ),
            _controller("crd_finalizer", finalizing.sync, workers=_FINALIZING_WORKERS),
        ]

    def _changed(self, definitions: list[Json]) -> None:
        for definition in definitions:
            name = name_of(definition)
            current = self.definitions.get(name)
            if current is None:
                self.custom_resources.remove(name)
            else:
                self.custom_resources.update(current)
            self.discovery.changed(definition["spec"]["group"])
            self.publisher.update(name, current)
            for controller in self._controllers:
                controller.queue.add(name)

    async def _start_informers(self, context: HookContext) -> None:
        await self.definition_store.start()
        await self.definition_store.wait_ready()
        context.spawn(self.definitions.run(), name="custom resource definitions")

    async def _start_controllers(self, context: HookContext) -> None:
        for controller in self._controllers:
            context.spawn(controller.run(), name=controller.name)

    async def _wait_synced(self, context: HookContext) -> None:
        """Wait for the definitions; until then custom resources appear as unknown."""
        await self.definitions.synced.wait()

    async def _stop(self) -> None:
        await self.custom_resources.stop()
        await self.definition_store.stop()
        await self.webhooks.close()


def _controller(name: str, sync: Callable[[str], Awaitable[None]], *, workers: int = 1) -> Controller[str]:
    """Return a controller whose queue appears in /metrics."""
    return Controller(name, sync, workers=workers, queue=RateLimitingQueue(name, registry=REGISTRY))
