"""ServiceCIDRs: ranges for service IPs. An update may add a second family only."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource
from pilothouse.kube.validation.addresses import AT_MOST_TWO, ONE_PER_FAMILY, cidr_family
from pilothouse.machinery.field import Errors, Path, invalid, required, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.addresses import is_valid_cidr
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE

_PATH = root("spec", "cidrs")


class ServiceCIDRStrategy(SeparateStatusStrategy):
    namespaced = False

    def prepare_for_update(self, obj: Json, old: Json) -> None:
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

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)


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
