"""IPAddresses: allocated service IPs. The name is the address; the parent is its owner."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation.fields import dns_subdomain, follow
from pilothouse.kube.validation.internal_structs import TEXT, pointer, struct
from pilothouse.machinery.field import Errors, Path, required, root
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.addresses import is_valid_ip
from pilothouse.machinery.validation.immutable import validate_immutable_field
from pilothouse.machinery.validation.names import is_valid_path_segment_name

FAMILY_LABEL = "ipaddress.kubernetes.io/ip-family"
MANAGED_BY_LABEL = "ipaddress.kubernetes.io/managed-by"

_printed = pointer(struct(Group=TEXT, Resource=TEXT, Namespace=TEXT, Name=TEXT))
"""The parent as messages print it."""


class IPAddressStrategy(KubeStrategy):
    namespaced = False

    def name_rule(self, name: str, prefix: bool) -> list[str]:
        return [error.detail for error in is_valid_ip(Path(), name)]

    def generate_name(self, prefix: str) -> str:
        """An address cannot be made up."""
        return prefix

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_parent(obj["spec"].get("parentRef"), root("spec", "parentRef"))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_again(obj, old)
        new, before = obj["spec"].get("parentRef"), old["spec"].get("parentRef")
        yield from validate_immutable_field(_printed(new), _printed(before), root("spec", "parentRef"))


def _validate_parent(parent: Json | None, path: Path) -> Errors:
    if parent is None:
        yield required(path)
        return
    if parent.get("group"):
        yield from dns_subdomain(parent["group"], path.child("group"))
    for field in ("resource", "name"):
        if not parent.get(field):
            yield required(path.child(field))
        else:
            yield from follow(is_valid_path_segment_name, parent[field], path.child(field))
    if parent.get("namespace"):
        yield from follow(is_valid_path_segment_name, parent["namespace"], path.child("namespace"))


def _parent(obj: Json) -> str:
    parent = obj["spec"].get("parentRef")
    if parent is None:
        return "<none>"
    resource = str(GroupResource(parent.get("group") or "", parent.get("resource") or "")).lower()
    return "/".join(part for part in (resource, parent.get("namespace"), parent.get("name") or "") if part is not None)


IP_ADDRESSES = Resource(
    names=Names("ipaddresses", kind="IPAddress", short=["ip"]),
    strategy=IPAddressStrategy(),
    group="networking.k8s.io",
    columns=[
        NAME,
        Column("ParentRef", _parent, documented=("io.k8s.api.networking.v1.IPAddressSpec", "parentRef")),
        replace(AGE, headed=False),
    ],
)
