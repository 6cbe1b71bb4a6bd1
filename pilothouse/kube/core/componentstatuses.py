"""ComponentStatuses: the health of the control plane's components. Nothing is stored; each read probes the
components."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.endpoints.options import metadata_fields_only
from pilothouse.apiserver.endpoints.routes import Deprecation
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.outbound.failures import DEADLINE_EXCEEDED, BackendFailed
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.outbound.tls import unverified_context
from pilothouse.apiserver.registry.listing import predicate
from pilothouse.apiserver.registry.operations import ListResult, RequestContext, Result
from pilothouse.apiserver.registry.options import GetOptions, ListOptions
from pilothouse.apiserver.registry.resource import Names, metadata_fields
from pilothouse.apiserver.registry.table import NAME, Column
from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.interface import Entry, Store
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject
from pilothouse.kube.registries import Registries
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource, GroupVersionKind
from pilothouse.machinery.objects import Json, drop_resource_version, items

KIND = GroupVersionKind("", "v1", "ComponentStatus")
CONTROLLER_MANAGER_PORT = 10257
SCHEDULER_PORT = 10259

_TIMEOUT = 20.0
_MAX_ANSWER = 10 * 1024
_SHOWN = {"True": "Healthy"}


@dataclass(frozen=True, slots=True)
class ComponentHealth:
    """`status` is True, False or Unknown."""

    status: str
    message: str = ""
    error: str = ""


Check: TypeAlias = Callable[[], Awaitable[ComponentHealth]]


def check_store(store: Store) -> Check:
    async def check() -> ComponentHealth:
        try:
            await asyncio.wait_for(store.ping(), _TIMEOUT)
        except (StorageError, TimeoutError) as error:
            return ComponentHealth("False", error=str(error) or DEADLINE_EXCEEDED)
        return ComponentHealth("True", "ok")

    return check


def check_port(port: int) -> Check:
    """Probe a component on this machine like upstream: over TLS, without verifying the certificate."""

    async def check() -> ComponentHealth:
        # Import the HTTP client on first use.
        from pilothouse.apiserver.outbound.request import AnswerTooLarge, OutboundRequest, ask

        target = Target("127.0.0.1", port, "/healthz", tls=unverified_context(), timeout=_TIMEOUT)
        try:
            async with asyncio.timeout(_TIMEOUT):
                answer = await ask(OutboundRequest("GET", target), limit=_MAX_ANSWER)
        except (BackendFailed, AnswerTooLarge, TimeoutError) as error:
            return ComponentHealth("False", f"Get {quote(target.url)}: {str(error) or DEADLINE_EXCEEDED}")
        if 200 <= answer.status < 400:
            return ComponentHealth("True", answer.body.decode("utf-8", "replace"))
        return ComponentHealth("False", f"HTTP probe failed with statuscode: {answer.status}")

    return check


class ComponentStatuses:
    def __init__(self, checks: dict[str, Check]) -> None:
        self._checks = checks
        self._codec = ObjectCodec(KIND.kind, KIND.api_version, metadata_fields)

    async def get(self, ctx: RequestContext, name: str, options: GetOptions) -> Result:
        if name not in self._checks:
            raise NotFound.of(GroupResource("", "componentstatus"), name)
        return await self._status(name)

    async def list(self, ctx: RequestContext, options: ListOptions) -> ListResult:
        statuses = await asyncio.gather(*map(self._status, self._checks))
        matches = predicate(options)
        objects = [StoredObject(Entry("", self._codec.encode(obj), 0, 0), self._codec) for obj in statuses]
        return ListResult([status for status in objects if matches is None or matches(status)], revision=0)

    async def _status(self, name: str) -> Json:
        health = await self._checks[name]()
        condition = {"type": "Healthy", "status": health.status, "message": health.message, "error": health.error}
        present = {field: value for field, value in condition.items() if value}
        return {
            "kind": KIND.kind,
            "apiVersion": KIND.api_version,
            "metadata": {"name": name},
            "conditions": [present],
        }


def _of_health(field: str) -> Callable[[Json], str]:
    def cell(obj: Json) -> str:
        healthy = next(
            (condition for condition in items(obj, "conditions") if condition.get("type") == "Healthy"), None
        )
        if field == "status":
            return "Unknown" if healthy is None else _SHOWN.get(healthy.get("status") or "", "Unhealthy")
        return (healthy or {}).get(field) or ""

    return cell


def component_status_storages(registries: Registries) -> list[ServedResource]:
    checks = {
        "controller-manager": check_port(CONTROLLER_MANAGER_PORT),
        "scheduler": check_port(SCHEDULER_PORT),
        "etcd-0": check_store(registries.store),
    }
    return [
        ServedResource(
            names=Names("componentstatuses", kind=KIND.kind, short=["cs"]),
            namespaced=False,
            storage=ComponentStatuses(checks),
            kind=KIND,
            decoder=TypedDecoder(KIND),
            from_stored=drop_resource_version,
            convert_field=metadata_fields_only,
            warning=Deprecation("1.19").warning(KIND),
            columns=[
                NAME,
                Column("Status", _of_health("status"), description="Status of the component conditions"),
                Column("Message", _of_health("message"), description="Message of the component conditions"),
                Column("Error", _of_health("error"), description="Error of the component conditions"),
            ],
        )
    ]
