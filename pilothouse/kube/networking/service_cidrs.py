"""ServiceCIDRs: ranges for service IPs. An update may add a second family only.

The ServiceCIDR `kubernetes` is created from --service-cluster-ip-range, and gains a second family at most. A mismatch
with the flag is left unchanged.
"""

from __future__ import annotations

import asyncio
import logging

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.server.features import enabled
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kube.served import tracked_access, tracked_status
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource
from pilothouse.kube.validation.addresses import AT_MOST_TWO, ONE_PER_FAMILY, cidr_family
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.field import Errors, Path, invalid, required, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import now
from pilothouse.machinery.validation.addresses import is_valid_cidr, parse_cidr_sloppy
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE

DEFAULT_NAME = "kubernetes"
PERIOD = 10.0
FIRST_PERIOD = 0.1
_CONTROLLER = "kubernetes-service-cidr-controller"
_OTHER_VERSIONS = ("v1beta1",)
_PATH = root("spec", "cidrs")
_OWN_STATUS = "ServiceCIDRStatusFieldWiping"
_log = logging.getLogger(__name__)


class ServiceCIDRStrategy(SeparateStatusStrategy):
    namespaced = False

    def prepare_for_create(self, obj: Json) -> None:
        if enabled(_OWN_STATUS):
            super().prepare_for_create(obj)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        if enabled(_OWN_STATUS):
            obj["status"] = old.get("status") or {}

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_cidrs(obj["spec"].get("cidrs") or [], _PATH)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        new, before = obj["spec"].get("cidrs") or [], old["spec"].get("cidrs") or []
        if len(new) == len(before):
            for position, cidr in enumerate(new):
                if cidr != before[position]:
                    yield invalid(_PATH.index(position), cidr, FIELD_IMMUTABLE)
        elif (len(before), len(new)) == (1, 2):
            if new[0] != before[0]:
                yield invalid(_PATH.index(0), new[0], FIELD_IMMUTABLE)
            yield from _validate_cidrs(new, _PATH)
        else:
            yield invalid(_PATH, obj["spec"].get("cidrs"), FIELD_IMMUTABLE)


class ServiceCIDRStatusStrategy(StatusSubresource, ServiceCIDRStrategy):
    reset_fields = ("metadata", "spec")
    resets_metadata = True
    validate_update = SeparateStatusStrategy.validate_update


def _validate_cidrs(cidrs: list[str], path: Path) -> Errors:
    if not cidrs:
        yield required(path, "at least one CIDR required")
        return
    if len(cidrs) > 2:
        yield invalid(path, {"CIDRs": cidrs}, AT_MOST_TWO)
        return
    for position, cidr in enumerate(cidrs):
        yield from is_valid_cidr(path.index(position), cidr)
    families = [cidr_family(cidr) for cidr in cidrs]
    if len(cidrs) == 2 and families[0] and families[0] == families[1]:
        reason = f"{ONE_PER_FAMILY}, i.e 192.168.0.0/24 and 2001:db8::/64"
        yield invalid(path, cidrs, reason)


SERVICE_CIDRS = Resource(
    names=Names("servicecidrs", kind="ServiceCIDR"),
    strategy=ServiceCIDRStrategy(),
    status=ServiceCIDRStatusStrategy(),
    group="networking.k8s.io",
    columns=[
        NAME,
        Column(
            "CIDRs",
            lambda obj: ",".join(obj["spec"].get("cidrs") or ()),
            documented=("io.k8s.api.networking.v1.ServiceCIDRSpec", "cidrs"),
        ),
        AGE,
    ],
)


class DefaultServiceCIDR:
    def __init__(self, registry: RegistryStore, cidrs: tuple[str, ...]) -> None:
        self.known = asyncio.Event()
        """Set once the ServiceCIDR exists."""
        self._cidrs = [cidr.network for cidr in map(parse_cidr_sloppy, cidrs) if cidr is not None]
        self._objects = tracked_access(registry, also=_OTHER_VERSIONS)
        self._statuses = tracked_status(
            registry, ServiceCIDRStatusStrategy(), manager=_CONTROLLER, also=_OTHER_VERSIONS
        )

    async def start(self, context: HookContext) -> None:
        """Returns when the ServiceCIDR exists."""
        context.spawn(self._keep(), name=_CONTROLLER)
        await self.known.wait()

    async def sync(self) -> None:
        """Raises StatusError."""
        current = await self._objects.get(DEFAULT_NAME)
        if current is None:
            await self._create()
            current = await self._objects.get(DEFAULT_NAME)
        if current is None or is_deleting(current):
            return
        cidrs = current["spec"].get("cidrs") or []
        if len(self._cidrs) == 2 and cidrs == self._cidrs[:1]:
            await self._objects.update(current, self._add_second_family)
        elif cidrs != self._cidrs:
            _log.warning("the default ServiceCIDR %s does not match the flag's %s", cidrs, self._cidrs)
        elif not _is_judged(current):
            await self._statuses.apply(_ready_status())

    async def _keep(self) -> None:
        while True:
            try:
                await self.sync()
                self.known.set()
            except StatusError as error:
                _log.error("error trying to sync the default ServiceCIDR: %s", error)
            await asyncio.sleep(PERIOD if self.known.is_set() else FIRST_PERIOD)

    async def _create(self) -> None:
        try:
            await self._objects.create(_default_object() | {"spec": {"cidrs": self._cidrs}, "status": {}})
        except AlreadyExists:
            return

    def _add_second_family(self, current: Json) -> None:
        current["spec"]["cidrs"] = self._cidrs


def _default_object() -> Json:
    kind = SERVICE_CIDRS.kind
    return {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {"name": DEFAULT_NAME}}


def _is_judged(cidr: Json) -> bool:
    """Report whether the ServiceCIDR has a Ready condition."""
    conditions = (cidr.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") != "Unknown" for condition in conditions)


def _ready_status() -> Json:
    """Return the applied configuration that makes the ServiceCIDR ready."""
    message = "Kubernetes default Service CIDR is ready"
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": now(), "message": message}
    return _default_object() | {"status": {"conditions": [ready]}}
