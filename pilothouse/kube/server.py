"""The server of the built-in groups."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import field, replace
from ipaddress import ip_network
from typing import TYPE_CHECKING

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.admission.interface import Plugin
from pilothouse.apiserver.discovery.groups import ServerAddresses
from pilothouse.apiserver.endpoints import api_groups
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.endpoints.install import Installer
from pilothouse.apiserver.flowcontrol.debug import install_flowcontrol_debug
from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.server.checks import Unhealthy
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.health import READYZ, HealthCheck
from pilothouse.apiserver.server.hooks import HookContext, nothing_to_start
from pilothouse.apiserver.webhook.client import WebhookClients
from pilothouse.apiserver.webhook.endpoint import anonymous
from pilothouse.client.rest.client import Client
from pilothouse.kube.admission.config import AdmissionConfig
from pilothouse.kube.admission.plugin_parts import PluginParts
from pilothouse.kube.admission.plugins import admission_plugins
from pilothouse.kube.bootstrap.address import PublicAddress, kubernetes_service_ip
from pilothouse.kube.bootstrap.cluster_authentication_trust import ClusterAuthenticationInfo
from pilothouse.kube.bootstrap.install import Bootstrap
from pilothouse.kube.bootstrap.kubernetes_service import PORT as KUBERNETES_SERVICE_PORT
from pilothouse.kube.config import CAPABILITIES, EndpointConfig, ServiceAccountConfig
from pilothouse.kube.core.pods.connect.kubelet import KubeletConfig
from pilothouse.kube.core.pods.storage import PodConnections
from pilothouse.kube.core.services.network import ServiceNetwork
from pilothouse.kube.core.storage_provider import LegacyRESTStorage, LegacyRESTStorageProvider
from pilothouse.kube.groups import storage_providers
from pilothouse.kube.rbac.policy import RBACPolicy
from pilothouse.kube.registries import Registries
from pilothouse.kube.serviceaccount.openid import install_openid
from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from pilothouse.kube.node_authorizer.graph import NodeGraph


_CACHES_FILL_WITHIN = 60.0
_HOOKS_WITHOUT_WORK = ("start-apiserver-admission-initializer", "storage-object-count-tracker-hook")
"""No work: admission is ready with the server, and objects are counted in the caches."""


@dataclass(frozen=True, slots=True)
class KubeConfig:
    """Configuration of the built-in groups."""

    generic: GenericConfig
    service_network: ServiceNetwork = field(default_factory=ServiceNetwork)
    allow_privileged: bool = False
    serves_log_files: bool = False
    kubelet: KubeletConfig = field(default_factory=KubeletConfig)
    address: PublicAddress = field(default_factory=lambda: PublicAddress("127.0.0.1", 6443))
    trust: ClusterAuthenticationInfo = field(default_factory=ClusterAuthenticationInfo)
    """CAs and front proxies published for extension API servers."""
    endpoints: EndpointConfig = field(default_factory=EndpointConfig)
    policy: RBACPolicy = field(default_factory=RBACPolicy)
    """Policy of the RBAC authorizer, filled by the server."""
    node_graph: NodeGraph | None = None
    """Graph of the node authorizer, if enabled; filled by the server."""
    service_accounts: ServiceAccountConfig = field(default_factory=ServiceAccountConfig)
    external_hostname: str = ""
    """External host name, if different from the address."""
    admission: AdmissionConfig = field(default_factory=AdmissionConfig)
    leads: bool = True
    """Whether this process runs the singletons, with several workers."""
    registries: Registries | None = None
    """Registries already opened for authentication and authorization."""

    @property
    def external_address(self) -> str:
        host = self.external_hostname
        return str(self.address) if not host else host if ":" in host else f"{host}:{self.address.port}"

    @property
    def server_addresses(self) -> ServerAddresses:
        """Return the addresses in discovery: the `kubernetes` service for clients with a service IP, otherwise this
        server.
        """
        services = self.service_network.cluster_ip_ranges[0]
        inside = PublicAddress(kubernetes_service_ip(services), KUBERNETES_SERVICE_PORT)
        return ServerAddresses(lambda: str(self.address), ip_network(services, strict=False), str(inside))

    def open_registries(self) -> Registries:
        return self.registries or Registries(
            self.generic.store, root=self.generic.key_prefix, enabled=self.generic.resources
        )


class KubeServer:
    """The server of the built-in groups: installs the groups and runs their watch caches."""

    def __init__(self, config: KubeConfig, *, delegate: Handler, client: Client | None = None) -> None:
        """`client`: to the whole chain of servers."""
        self.config = config
        self.generic = config.generic.new_server("kube-apiserver", delegate)
        self.registries = config.open_registries()
        self._caches_are_filled = False
        connections = PodConnections(config.generic.authorizer, config.kubelet)
        provider = LegacyRESTStorageProvider(config.service_network, connections, config.service_accounts)
        legacy = provider.open(self.registries)
        CAPABILITIES.allow_privileged = config.allow_privileged
        self.admission = AdmissionChain(self._plugins(legacy, client))
        installer = config.generic.installer(self.admission)
        group = self._only_served(legacy.group)
        if group.versions:
            api_groups.install_legacy_api_group(self.generic, group, installer, self.config.server_addresses)
        for name, hook in group.post_start_hooks.items():
            self.generic.add_post_start_hook(name, hook)
        self._install_apis(installer)
        if config.generic.flow_control is not None:
            install_flowcontrol_debug(self.generic.mux, config.generic.flow_control)
        if config.serves_log_files:
            from pilothouse.kube.log_files import install_log_files  # rarely enabled

            install_log_files(self.generic)
        install_openid(self.generic, config.service_accounts, lambda: config.external_address)
        for name in _HOOKS_WITHOUT_WORK:
            self.generic.add_post_start_hook(name, nothing_to_start)
        self.generic.add_post_start_hook("generic-apiserver-start-informers", self._start_caches)
        checked = self.registries.features.enabled("WatchCacheInitializationPostStartHook")
        self.generic.add_post_start_hook("storage-readiness", self._fill_caches, checked=checked)
        self.generic.add_health_check(HealthCheck("informer-sync", self._check_caches, endpoints=(READYZ,)))
        self.generic.add_drained(self.registries.stop)
        Bootstrap(
            self.registries,
            legacy.services,
            address=self.config.address,
            cluster_ip=kubernetes_service_ip(self.config.service_network.cluster_ip_ranges[0]),
            trust=self.config.trust,
            endpoints=self.config.endpoints,
            leads=self.config.leads,
        ).install(self.generic)

    def _plugins(self, legacy: LegacyRESTStorage, client: Client | None) -> list[Plugin]:
        generic = self.config.generic
        credentials = self.config.admission.webhook_credentials
        webhooks = {
            plugin: WebhookClients(generic.services, credentials=credentials.get(plugin, anonymous))
            for plugin in ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
        }
        for clients in webhooks.values():
            self.generic.add_drained(clients.close)
        parts = PluginParts(
            self.registries,
            legacy,
            generic.authorizer,
            self.generic.discovery,
            webhooks,
            client,
            self.config.admission,
        )
        return admission_plugins(parts, generic.admission_plugins)

    def _install_apis(self, installer: Installer) -> None:
        generic = self.config.generic
        providers = storage_providers(generic, self.config.policy)
        groups = [self._only_served(provider.open(self.registries)) for provider in providers]
        served = [group for group in groups if group.versions]
        for group in served:
            api_groups.install_api_group(self.generic, group, installer)
            for name, hook in group.post_start_hooks.items():
                self.generic.add_post_start_hook(name, hook)
        api_groups.install_group_list(self.generic, served)

    def _only_served(self, group: APIGroup) -> APIGroup:
        """Return the group without versions and resources that are disabled or not in the emulated release."""
        versions = [
            APIVersion(
                version.group_version,
                [
                    resource
                    for resource in version.resources
                    if self.registries.is_served(resource.kind)
                    and self.config.generic.resources.resource_enabled(
                        version.group_version.resource(resource.names.plural)
                    )
                ],
            )
            for version in group.versions
        ]
        return replace(group, versions=[version for version in versions if version.resources])

    async def _start_caches(self, context: HookContext) -> None:
        await self.registries.start()

    async def _check_caches(self) -> None:
        if not self._caches_are_filled:
            raise Unhealthy("the watch caches are not filled yet")

    async def _fill_caches(self, context: HookContext) -> None:
        """Fill the watch caches within a timeout. Earlier requests wait or read the store. Undecodable objects of one
        resource do
        not block readiness.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_CACHES_FILL_WITHIN):
                await self.registries.wait_ready()
                if self.config.node_graph is not None:
                    from pilothouse.kube.node_authorizer.feed import NodeGraphFeed  # few servers have nodes

                    await NodeGraphFeed(self.config.node_graph, self.registries).start(context)
        self._caches_are_filled = True
