"""Dependencies of admission plugins: stored objects, webhook clients and policy parameters."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pilothouse.apiserver.admission.matching import Matcher
from pilothouse.apiserver.admission.policy.params import ParamResource
from pilothouse.apiserver.admission.policy.plugin import PolicyPlugin
from pilothouse.apiserver.admission.policy.source import no_policy_manifests
from pilothouse.apiserver.admission.webhook.calling import WebhookClient
from pilothouse.apiserver.admission.webhook.hooks import WebhookSource
from pilothouse.apiserver.admission.webhook.plugin import WebhookPlugin, no_static_webhooks
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.discovery.groups import group_discovery
from pilothouse.apiserver.discovery.manager import GroupManager
from pilothouse.apiserver.outbound.failures import DEADLINE_EXCEEDED
from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.registry.own_access import parse_all
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.webhook.endpoint import WebhookCallFailed
from pilothouse.client.clock import REAL_CLOCK, done_within
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest_mapper import NoMatch, RESTMapper
from pilothouse.kube.admission.config import AdmissionConfig
from pilothouse.kube.core.storage_provider import LegacyRESTStorage
from pilothouse.kube.registries import Registries
from pilothouse.kube.serviceaccount.validator import StoredTokenObjects
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json, labels_of
from pilothouse.machinery.selectors.labels import Selector
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.validation.names import is_valid_path_segment_name

if TYPE_CHECKING:
    from pilothouse.kube.admission.service_account import GetServiceAccount

P = TypeVar("P", bound=PolicyPlugin[Any])
W = TypeVar("W", bound=WebhookPlugin)

_SERVICE = ("default", "kubernetes", 443)

_HOST = ("kubernetes.default.svc", 443)

_RETRY = 1.0
"""Seconds to cache the absence of a kind."""


@dataclass(frozen=True)
class PluginParts:
    """Dependencies of the plugins in the table.

    Webhook and policy plugins find their settings by class name, which is the plugin's name.
    """

    registries: Registries
    legacy: LegacyRESTStorage
    authorizer: Authorizer
    discovery: GroupManager
    webhooks: Mapping[str, WebhookClient]
    """By the name of the calling plugin."""
    client: Client | None
    """Client of the whole server chain: parameters of policies may be of any resource."""
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
        """Return the current discovery documents of all groups."""
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


class ObjectLookup:
    def __init__(self, registry: RegistryStore) -> None:
        self._registry = registry

    async def get(self, name: str, namespace: str = "") -> Json | None:
        """Return the object, or None. Invalid names also return None."""
        if invalid_resource_name(name):
            return None
        with map_storage_errors(self._registry.resource.group_resource, name):
            existing = await self._registry.newest(namespace, name)
        return None if existing is None else existing.parse()

    async def list(self, namespace: str = "") -> list[Json]:
        """Return the objects of a namespace, or of all namespaces, from the watch cache."""
        if self._registry.ready and not self._registry.known_count:
            return []  # the common case, e.g. no LimitRange exists
        with map_storage_errors(self._registry.resource.group_resource):
            page = await self._registry.list_known(namespace)
        return await parse_all(page.objects)


def invalid_resource_name(name: str) -> str:
    """Return the reason for which a client cannot request the name, or an empty string."""
    if not name:
        return "resource name may not be empty"
    problems = is_valid_path_segment_name(name)
    return f"invalid resource name {quote(name)}: [{' '.join(problems)}]" if problems else ""


@dataclass(frozen=True, slots=True)
class OwnWebhooks:
    client: Client
    others: WebhookClient

    async def post(self, config: Json, body: Json, *, timeout: float) -> Json:
        if service := config.get("service"):
            named = (service["namespace"], service["name"], service.get("port") or 443)
            path = f"/{(service.get('path') or '').lstrip('/')}" if named == _SERVICE else None
        else:
            url = urlsplit(config.get("url") or "")
            path = url.path or "/" if (url.hostname, url.port or 443) == _HOST else None
        if path is None:
            return await self.others.post(config, body, timeout=timeout)
        over = asyncio.get_running_loop().time() + timeout
        request = self.client.request("POST", path, params={"timeout": f"{timeout:g}s"}, body=body)
        # A separate task, as for a request over a socket: timeouts of either side cancel their own task.
        asking = asyncio.ensure_future(request)
        try:
            if not await done_within(timeout, asking, REAL_CLOCK):
                raise WebhookCallFailed(DEADLINE_EXCEEDED)
            return asking.result()
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            if asyncio.get_running_loop().time() >= over:  # only the fact of the failure is reported
                raise WebhookCallFailed(DEADLINE_EXCEEDED) from None
            status = error if isinstance(error, StatusError) else None
            raise WebhookCallFailed(str(error) if status is None else status.message, status=status) from None


class PolicyParams:
    def __init__(
        self, registries: Registries, client: Client | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._registries = registries
        self._client = client
        self._mapper = None if client is None else RESTMapper(DiscoveryClient(client))
        self._unknown: BoundedCache[GroupVersionKind, bool] = BoundedCache(
            entries=256, total_bytes=256 << 10, now=clock
        )

    async def resource(self, kind: GroupVersionKind) -> ParamResource | None:
        for registry in self._registries.opened:
            if registry.resource.kind == kind:
                return ParamResource(_resource_of(registry), registry.resource.namespaced)
        if self._mapper is None or self._unknown.get(kind):
            return None
        try:
            mapping = await self._mapper.mapping(kind.group_kind, kind.version)
        except NoMatch:
            self._unknown.put(kind, True, size=256 + len(str(kind)), ttl=_RETRY)
            return None
        return ParamResource(mapping.resource, mapping.namespaced)

    async def get(self, resource: ParamResource, namespace: str, name: str) -> Json | None:
        registry = self._registry(resource)
        if registry is not None:
            return await ObjectLookup(registry).get(name, namespace)
        assert self._client is not None
        try:
            return await self._client.for_resource(resource.resource, namespace=namespace).get(name)
        except NotFound:
            return None

    async def list(self, resource: ParamResource, namespace: str, selector: Selector) -> list[Json]:
        registry = self._registry(resource)
        if registry is not None:
            result = await ObjectLookup(registry).list(namespace)
            return [obj for obj in result if selector.matches(labels_of(obj))]
        assert self._client is not None
        collection = self._client.for_resource(resource.resource, namespace=namespace)
        pages = collection.pages(ListOptions(label_selector=str(selector)))
        return [obj async for page in pages for obj in page["items"]]

    def _registry(self, resource: ParamResource) -> RegistryStore | None:
        return next((item for item in self._registries.opened if _resource_of(item) == resource.resource), None)


def _resource_of(registry: RegistryStore) -> GroupVersionResource:
    return registry.resource.kind.group_version.resource(registry.resource.names.plural)
