"""The parts that admission plugins are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeVar

from pilothouse.apiserver.admission.matching.matcher import Matcher
from pilothouse.apiserver.admission.policy.plugin import PolicyPlugin
from pilothouse.apiserver.admission.policy.static import no_policy_manifests
from pilothouse.apiserver.admission.webhook.calling import WebhookClient
from pilothouse.apiserver.admission.webhook.plugin import WebhookPlugin, no_static_webhooks
from pilothouse.apiserver.admission.webhook.source import WebhookSource
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.discovery.groups import group_discovery
from pilothouse.apiserver.discovery.manager import GroupManager
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.client.rest.client import Client
from pilothouse.kube.admission.config import AdmissionConfig
from pilothouse.kube.admission.object_lookup import ObjectLookup
from pilothouse.kube.admission.own_webhooks import OwnWebhooks
from pilothouse.kube.admission.policy_params import PolicyParams
from pilothouse.kube.admission.service_account.plugin import GetServiceAccount
from pilothouse.kube.core.storage_provider import LegacyRESTStorage
from pilothouse.kube.registries import Registries
from pilothouse.kube.serviceaccount.getter import StoredTokenObjects
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

P = TypeVar("P", bound=PolicyPlugin[Any])
W = TypeVar("W", bound=WebhookPlugin)


@dataclass(frozen=True)
class PluginParts:
    """The parts that a plugin's maker in the table takes what it needs from.

    Plugins of webhooks and policies find what is theirs by the names of their classes, which are their own.
    """

    registries: Registries
    legacy: LegacyRESTStorage
    authorizer: Authorizer
    discovery: GroupManager
    webhooks: Mapping[str, WebhookClient]
    """By the names of the plugins that call them."""
    client: Client | None
    """To the whole server, if there is one: the parameters of policies may be of any resource."""
    config: AdmissionConfig = field(default_factory=AdmissionConfig)

    @property
    def configurations(self) -> Mapping[str, Json]:
        return self.config.configurations

    def webhook_plugin(self, plugin: type[W], configurations: Resource) -> W:
        return plugin(
            WebhookSource(self.registries.open(configurations)),
            self.matcher,
            self.authorizer,
            self._webhook_client(plugin.__name__),
            self.config.static.webhooks.get(plugin.__name__, no_static_webhooks),
        )

    def _webhook_client(self, plugin: str) -> WebhookClient:
        clients = self.webhooks[plugin]
        return clients if self.client is None else OwnWebhooks(self.client, clients)

    @property
    def params(self) -> PolicyParams:
        return PolicyParams(self.registries, self.client)

    @property
    def matcher(self) -> Matcher:
        return Matcher(self.legacy.namespace)

    def stored(self, resource: Resource) -> ObjectLookup:
        return ObjectLookup(self.registries.open(resource))

    @property
    def service_account(self) -> GetServiceAccount:
        return StoredTokenObjects(self.registries).service_account

    def groups(self) -> list[Json]:
        """Return the discovery documents of all groups that there are at the moment."""
        return [group_discovery(self.legacy.group), *(group.discovery for group in self.discovery.groups())]

    def policy_plugin(self, plugin: type[P], policies: Resource, bindings: Resource) -> P:
        return plugin(
            policies=self.registries.open(policies),
            bindings=self.registries.open(bindings),
            matcher=self.matcher,
            params=self.params,
            authorizer=self.authorizer,
            static=self.config.static.policies.get(plugin.__name__, no_policy_manifests),
        )
